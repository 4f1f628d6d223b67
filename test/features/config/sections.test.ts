/** The service as other packs see it: sections, environment, patches, change notice. */
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ConfigFile } from '../../../features/config/file.ts'
import {
  backgroundSection,
  type ConfigSection,
  experimentalSection,
  loopControlSection,
  servicesSection,
  subagentSection
} from '../../../features/config/index.ts'
import { applyBody, readBody } from '../../../features/config/merge-patch.ts'
import { ownSections } from '../../../features/config/sections.ts'
import { Settings } from '../../../features/config/settings.ts'
import { ConfigView } from '../../../features/config/view.ts'
import { Type, ValidationFailed } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'

const Shape = Type.Object({ size: Type.Integer(), mode: Type.Optional(Type.String()) })
const shape: ConfigSection<typeof Shape> = {
  name: 'shape',
  schema: Shape,
  default: { size: 1 },
  overlay: env => (env.SHAPE_MODE ? { mode: env.SHAPE_MODE } : undefined),
  retired: { length: 'size' }
}

async function open(toml: string, env: NodeJS.ProcessEnv = {}, sections: readonly ConfigSection[] = [...ownSections, shape]) {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  await writeFile(path, toml)
  const warnings: string[] = []
  const log = { warn: (_: unknown, message: string) => warnings.push(message), error: () => undefined }
  const settings = new Settings({ file: new ConfigFile(home), env, log: log as never, sections: () => sections })
  await settings.ready()
  return { settings, warnings, path, read: () => readFile(path, 'utf8') }
}

test('a value is default, then file, then environment', async () => {
  const plain = await open('')
  assert.deepEqual(plain.settings.get(shape), { size: 1 })
  const file = await open('[shape]\nmode = "file"\n')
  assert.deepEqual(file.settings.get(shape), { size: 1, mode: 'file' })
  const environment = await open('[shape]\nmode = "file"\nsize = 2\n', { SHAPE_MODE: 'env', SVC_CODE_LOOP_MAX_STEPS_PER_TURN: '9' })
  assert.deepEqual(environment.settings.get(shape), { size: 2, mode: 'env' })
  assert.equal(environment.settings.get(loopControlSection).max_steps_per_turn, 9)
  assert.equal(environment.settings.get(shape), environment.settings.get(shape))
})

test('a service of the environment gets nothing that belongs to the one of the file', async () => {
  const toml = 'base_url = "https://file"\napi_key = "k"\ncustom_headers = { X = "y" }\noauth = { storage = "file", key = "k" }\n'
  const { settings } = await open(`[services.svc_search]\n${toml}`, { SVC_CODE_WEB_SEARCH_BASE_URL: 'https://env' })

  assert.deepEqual(settings.get(servicesSection).svc_search, { base_url: 'https://env' })
})

test('numbers of the environment may be the smallest ones; a switch for all flags also switches them off', async () => {
  const env = { SVC_CODE_SUBAGENT_TIMEOUT_MS: '0', SVC_CODE_BACKGROUND_MAX_RUNNING_TASKS: '1', SVC_CODE_EXPERIMENTAL_FLAG: 'off' }
  const { settings } = await open('[experimental]\nwait_for = true\nmine = true\n', env)

  assert.equal(settings.get(subagentSection).timeout_ms, 0)
  assert.equal(settings.get(backgroundSection).max_running_tasks, 1)
  const { wait_for, mine } = settings.get(experimentalSection)
  assert.deepEqual([wait_for, mine], [false, true])
})

test('what the environment says wrongly is left out alone, and told without its value', async () => {
  const section: typeof shape = { ...shape, overlay: () => ({ size: 'secret-value' as unknown as number, mode: 'env' }) }
  const { settings, warnings } = await open('[shape]\nsize = 2\n', {}, [section])

  assert.deepEqual(settings.get(section), { size: 2, mode: 'env' })
  assert.match(warnings.join(), /^environment: shape\.size: /)
  assert.doesNotMatch(warnings.join(), /secret-value/)
})

test('a key that stands in the place of the name of a header is not told', async () => {
  const Headers = Type.Object({ custom_headers: Type.Record(Type.String(), Type.String()) })
  const section: ConfigSection<typeof Headers> = { name: 'one', schema: Headers, default: { custom_headers: {} } }
  for (const [name, told] of [
    ['X-Team', 'X-Team'],
    ['sk-a1b2c3d4e5f6g7h8i9j0k1l2m3', '[redacted]']
  ]) {
    const { warnings } = await open(`[one.custom_headers]\n${name} = 5\n`, {}, [section])
    assert.ok(warnings[0]?.startsWith(`config.toml: one.custom_headers.${told}: `), warnings[0])
  }
})

test('values of the environment are not written when a client sends them back', async () => {
  const env = { SHAPE_MODE: 'env', SVC_CODE_WEB_SEARCH_BASE_URL: 'https://env' }
  const { settings, read } = await open('[services.svc_search]\nbase_url = "https://file"\napi_key = "k"\n', env)
  const view = new ConfigView(settings)
  const seen = await view.prepare()
  assert.deepEqual(seen.services, { svcSearch: { baseUrl: 'https://env' } })

  const patch = readBody({ services: seen.services, shape: { mode: 'env', size: 5 } }, settings)
  await settings.save(file => applyBody(file, patch, settings, view.config, env))

  assert.match(await read(), /^\[services\.svc_search\]\nbase_url = "https:\/\/file"\napi_key = "k"\n/)
  assert.doesNotMatch(await read(), /env/)
  assert.equal(settings.get(shape).size, 5)
  assert.equal(settings.get(servicesSection).svc_search?.api_key, undefined)
})

test('a patch merges, null deletes, and an invalid one writes nothing', async () => {
  const { settings, read } = await open('# top\n[shape]\nsize = 2\nmode = "a"\n')

  await settings.patch({ shape: { mode: null }, other: { x: [1] } })
  assert.equal(await read(), '# top\n[shape]\nsize = 2\n\n[other]\nx = [1]\n')
  await assert.rejects(settings.patch({ other: null, shape: { size: 'x' } }), { spec: ValidationFailed, message: /^shape\.size: / })
  await assert.rejects(settings.patch({ other: { x: [null] } }), { spec: ValidationFailed })
  assert.equal(await read(), '# top\n[shape]\nsize = 2\n\n[other]\nx = [1]\n')
})

test('concurrent updates all arrive, and listeners hear each changed field', async () => {
  const { settings } = await open('')
  const heard: string[] = []
  settings.onChange(({ fields }) => heard.push(...fields))

  await Promise.all(Array.from({ length: 20 }, (_, n) => settings.update(file => Object.assign(file, { [`k${n}`]: n }))))
  await settings.update(() => undefined)

  assert.deepEqual(Object.keys(settings.table).length, 20)
  assert.deepEqual(heard.sort(), Object.keys(settings.table).sort())
})

test('what is not used as written is told once, without values', async () => {
  const toml = '[shape]\nsize = "secret-value"\nlength = 3\n'
  const { settings, warnings } = await open(toml, {}, [shape, { ...shape, default: { size: 7 } }])

  assert.deepEqual(settings.get(shape), { size: 1 })
  assert.deepEqual(
    settings.diagnostics().map(({ domain }) => domain),
    ['shape', 'shape', 'shape']
  )
  await settings.reload()
  assert.equal(warnings.length, 3)
  assert.doesNotMatch(warnings.join(), /secret-value/)
})

test('a pool of secondary models that cannot be used is told, and stored all the same', async () => {
  const wrong = ['models = { primary = "x" }\nforce = true', 'models = { a = "x" }\ndefault_model = "b"', 'force = true', 'models = {}']
  const paths = []
  for (const text of wrong) {
    const { settings } = await open(`[secondary_model]\n${text}\n`)
    paths.push(settings.diagnostics().map(({ message }) => /config\.toml: secondary_model\.([\w.]+): /.exec(message)?.[1]))
  }
  const fine = await open('[secondary_model]\nmodels = { a = "x" }\ndefault_model = "a"\n')
  await fine.settings.patch({ secondary_model: { force: true } })

  assert.deepEqual(paths, [['models.primary', 'default_model', 'force', 'force'], ['default_model'], ['force'], ['default_model']])
  assert.match(await fine.read(), /force = true/)
})

test('a failed save is a 40001 with the reason', async () => {
  const { settings, path } = await open('a = 1\n')
  await rm(path)
  await mkdir(path)

  await assert.rejects(settings.patch({ a: 2 }), { spec: ValidationFailed, message: /not a regular file/ })
})

const Records = Type.Record(Type.String(), Type.Object({ type: Type.String(), tags: Type.Optional(Type.Array(Type.String())) }))
const records: ConfigSection<typeof Records> = { name: 'records', schema: Records, default: {} }

test('a patch merges into the records of a map; an update edits a copy, not what others see', async () => {
  const { settings, read } = await open('[records.a]\ntype = "x" # of a\ntags = ["one"]\n\n[records.b]\ntype = "y"\n', {}, [records])
  const before = settings.get(records)

  await settings.patch({ records: { a: { tags: ['two'] } } })
  await settings.update(file => {
    const map = file.records as Record<string, object>
    map.c = { ...map.b, tags: [] }
  })

  assert.equal(
    await read(),
    '[records.a]\ntype = "x" # of a\ntags = ["two"]\n\n[records.b]\ntype = "y"\n\n[records.c]\ntype = "y"\ntags = []\n'
  )
  assert.deepEqual(before, { a: { type: 'x', tags: ['one'] }, b: { type: 'y' } })
  const held = settings.get(records)
  await settings.update(file => {
    ;(file.records as { a: { type: string } }).a.type = 'z'
  })
  assert.deepEqual([held.a!.type, settings.get(records).a!.type], ['x', 'z'])
  assert.throws(() => held.a!.tags!.push('more'), TypeError)
})

test('values that a change does not concern stay the same objects', async () => {
  const { settings } = await open('[shape]\nsize = 2\n\n[records.a]\ntype = "x"\n\n[records.b]\ntype = "y"\n', {}, [shape, records])
  const before = settings.get(shape)

  await settings.patch({ records: { b: { type: 'z' } } })

  assert.equal(settings.get(shape), before)
  assert.deepEqual(settings.get(records).b, { type: 'z' })
})

test('a record that a change does not concern stays the same object, is checked once and shown once', async () => {
  const asked: string[] = []
  const counted: ConfigSection<typeof Records> = {
    ...records,
    review(value) {
      asked.push(...Object.keys(value))
      return []
    },
    toWire(value) {
      asked.push(...Object.keys(value))
      return value
    }
  }
  const text = '[records.a]\ntype = "x"\n[records.a.more]\nsize = 1\n'
  const { settings, path } = await open(`${text}[records.b]\ntype = "y"\n`, {}, [counted])
  const view = new ConfigView(settings)
  await view.prepare()
  const { a } = settings.get(counted)
  asked.length = 0

  await settings.patch({ records: { b: { type: 'z' } } })
  await settings.update(file => Object.assign(file.records as object, { c: { type: 'x' } }))
  await writeFile(path, 'broken')
  await settings.reload()
  await writeFile(path, `# moved\n[records.b]\ntype = "outside"\n${text}`)
  await settings.reload()

  assert.equal(settings.get(counted).a, a)
  assert.deepEqual(Object.keys((await view.prepare()).records as object), ['b', 'a'])
  assert.deepEqual([asked.includes('a'), asked.includes('b'), asked.includes('c')], [false, true, true])
})

test('a change is refused for the records that it makes wrong, by its own fault only', async () => {
  const toml = '[records.broken]\ntype = 1\n\n[records.good]\ntype = "x"\n'
  const { settings, read } = await open(toml, {}, [records])
  const many = Object.fromEntries(Array.from({ length: 100 }, (_, n) => [`r${n}`, { type: n === 70 ? 7 : 'y' }]))

  await assert.rejects(settings.patch({ records: many }), (error: Error) => {
    assert.deepEqual(
      (error as Error & { details: { path: string }[] }).details.map(({ path }) => path),
      ['records.r70.type']
    )
    return true
  })
  assert.equal(await read(), toml)
  await settings.patch({ records: { ...many, r70: { type: 'y' } } })
  assert.equal(Object.keys(settings.get(records)).length, 101)
})

test('the revision grows when a value or what is said of the file changes, and not when the file is only looked at', async () => {
  const { settings, path } = await open('[shape]\nsize = 2\n')
  const grows = async (change: () => unknown) => {
    const before = settings.revision
    await change()
    await settings.reload()
    return settings.revision > before
  }

  assert.deepEqual(
    [
      await grows(() => undefined),
      await grows(() => settings.patch({ shape: { size: 3 } })),
      await grows(() => settings.patch({ shape: { size: 3 } })),
      await grows(() => writeFile(path, 'shape = [')),
      await grows(() => writeFile(path, '[shape]\nsize = 3\n')),
      await grows(() => settings.judgeNames())
    ],
    [false, true, false, true, true, true]
  )
})
