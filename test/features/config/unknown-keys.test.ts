/** What of the file is not read, is told to whoever runs the server, and to clients; what a patch misspells is refused. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ConfigSections, patchConfig, readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import llm from '../../../features/llm/pack.ts'
import { definePack, type Pack, Type } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

async function start(t: TestContext, toml: string, ...more: readonly Pack[]) {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  const write = (text: string) => writeFile(path, text)
  await write(toml)
  const told: string[] = []
  const kernel = await startTestKernel(t, {
    packs: [config, llm, ...more],
    home,
    onOperatorLine: ({ level, text }) => told.push(`${level}: ${text}`)
  })
  return { ...kernel, told, write, read: () => readFile(path, 'utf8') }
}

const misspelt = `offlin = true
theme = "dark"

[packs]
load = []

[task]
max_running_tasks = 3

[loop_control]
max_step_per_turn = 5
max_retries_per_step = 2
mine = 1

[providers.a]
api_kye = "LEAK"
env = { api_kye = "LEAK" }
`

test('keys of the file that nobody reads are told at the start, with the ones that were meant and without values; the file stays', async t => {
  const { told, read, call } = await start(t, misspelt)

  assert.deepEqual(told.sort(), [
    'warning: config.toml: loop_control.max_retries_per_step is no longer read; use max_attempts_per_step',
    'warning: config.toml: loop_control.max_step_per_turn: is unknown; did you mean max_steps_per_turn?',
    'warning: config.toml: offlin is unknown; did you mean offline?',
    'warning: config.toml: providers.a.api_kye: is unknown; did you mean api_key?',
    'warning: config.toml: theme is unknown: nobody reads it'
  ])
  assert.equal((await call(patchConfig, { body: { telemetry: true } })).code, 0)
  assert.ok((await read()).endsWith(misspelt.slice(misspelt.indexOf('[packs]'))))
})

test('a key that is misspelt while the server runs is told once', async t => {
  const { told, write, call } = await start(t, '')
  await write('offlin = true\n')
  await call(readConfig)
  await call(readConfig)
  assert.deepEqual(told, ['warning: config.toml: offlin is unknown; did you mean offline?'])
})

test('clients are told what is not used as written whenever that changes, and when it is over', async t => {
  const scene = await start(t, 'offlin = true\n')
  const told = () => scene.events.flatMap(({ type, payload }) => (type === 'event.config.warning' ? [payload] : []))
  const offlin = { domain: 'offlin', message: 'config.toml: offlin is unknown; did you mean offline?' }
  assert.deepEqual(told(), [{ warnings: [offlin] }])

  const theme = { domain: 'theme', message: 'config.toml: theme is unknown: nobody reads it' }
  for (const text of ['theme = 1\nofflin = true\n', 'offlin = false\ntheme = 2\n', 'offlin = ', '']) {
    await scene.write(text)
    await scene.call(readConfig)
  }

  const [, both, broken, none, ...more] = told() as { warnings: { message: string; domain?: string }[] }[]
  assert.deepEqual(both, { warnings: [theme, offlin] })
  assert.match(broken?.warnings[0]?.message ?? '', /^config\.toml cannot be used: line 1, column \d+: /)
  assert.equal(broken?.warnings[0]?.domain, undefined)
  assert.deepEqual([none, more], [{ warnings: [] }, []])
})

test('a hook whose matcher is no regular expression is told: it never runs', async t => {
  const { told, call } = await start(t, '[[hooks]]\nevent = "Stop"\ncommand = "true"\nmatcher = "(a"\n')
  assert.deepEqual(told, ['warning: config.toml: hooks.0.matcher: is no regular expression: the hook never runs'])
  assert.equal(((await call(readConfig)).data as { hooks?: unknown[] }).hooks?.length, 1)
})

test('a server whose file is used as written tells clients of no warnings', async t => {
  const { events, call } = await start(t, 'telemetry = true\n')
  await call(patchConfig, { body: { telemetry: false } })
  assert.deepEqual(
    events.filter(({ type }) => type === 'event.config.warning'),
    []
  )
})

test('a key whose pack goes with the server is not told, one whose pack is unloaded is', async t => {
  const section = { name: 'mine', default: {}, schema: Type.Object({ size: Type.Optional(Type.Integer()) }) }
  const mine = definePack({ name: 'mine', setup: ctx => void ctx.contribute(ConfigSections, section) })
  const stopped = await start(t, '[mine]\nsize = 1\n', mine)
  await stopped.stop()
  assert.deepEqual(stopped.told, [])

  const { told, kernel } = await start(t, '[mine]\nsize = 1\n', mine)
  await kernel.unload('mine')
  assert.deepEqual(told, ['warning: config.toml: mine is unknown: nobody reads it'])
})

test('a key whose pack is reloaded is not told, nor are clients, and it is when the pack does not come back', async t => {
  const section = { name: 'mine', default: {}, schema: Type.Object({ size: Type.Optional(Type.Integer()) }) }
  let fails = false
  const mine = definePack({
    name: 'mine',
    setup: ctx => {
      ctx.contribute(ConfigSections, section)
      if (fails) throw new Error('not again')
    }
  })
  const { told, kernel, events } = await start(t, '[mine]\nsize = 1\n', mine)
  const warned = () => events.filter(({ type }) => type === 'event.config.warning').length

  await kernel.reload('mine')
  assert.deepEqual([told, warned()], [[], 0])

  fails = true
  await kernel.reload('mine')
  assert.deepEqual([told, warned()], [['warning: config.toml: mine is unknown: nobody reads it'], 1])
})

test('a key whose pack is taken out for good is told', async t => {
  const section = { name: 'mine', default: {}, schema: Type.Object({ size: Type.Optional(Type.Integer()) }) }
  const mine = definePack({ name: 'mine', setup: ctx => void ctx.contribute(ConfigSections, section) })
  const { told, kernel } = await start(t, '[mine]\nsize = 1\n', mine)
  await kernel.change({ remove: ['mine'] })
  assert.deepEqual(told, ['warning: config.toml: mine is unknown: nobody reads it'])
})

test('a misspelt key is refused beside the one that was meant', async t => {
  const { call } = await start(t, '[loop_control]\nmax_steps_per_turn = 5\n')
  assert.deepEqual((await call(patchConfig, { body: { loop_control: { max_stps_per_turn: 6 } } as never })).details, [
    { path: 'body.loop_control.max_stps_per_turn', message: 'is unknown; did you mean max_steps_per_turn?' }
  ])
})

test('a patch with a misspelt key is refused as it was sent, with the one that was meant, and writes nothing', async t => {
  const { call, read } = await start(t, misspelt)
  const refused = async (body: object) => (await call(patchConfig, { body: body as never })).details

  assert.deepEqual(await refused({ offlin: true }), [{ path: 'body.offlin', message: 'is unknown; did you mean offline?' }])
  assert.deepEqual(await refused({ defaultModl: 'x', yollo: true, loopControl: { maxStepsPerTurns: 5 } }), [
    { path: 'body.defaultModl', message: 'is unknown; did you mean default_model?' },
    { path: 'body.yollo', message: 'is unknown; did you mean yolo?' },
    { path: 'body.loopControl.maxStepsPerTurns', message: 'is unknown; did you mean max_steps_per_turn?' }
  ])
  assert.deepEqual(await refused({ providers: { b: { base_ulr: 'https://x' } } }), [
    { path: 'body.providers.b.base_ulr', message: 'is unknown; did you mean base_url?' }
  ])
  assert.equal(await read(), misspelt)

  // What the file has already stands in nobody's way, and what is like nothing that is known may be somebody else's.
  assert.equal(await refused({ loop_control: { max_step_per_turn: 6, max_attempts_per_step: 1 }, somebody_elses: 1 }), undefined)
  assert.match(await read(), /max_step_per_turn = 6\n/)
})

test('a file that cannot be read is told with line and column, at the start and while the server runs, and so is its end', async t => {
  const { told, write, call } = await start(t, '\n[providers.a\napi_key = "LEAK"\n')
  assert.match(told.shift()!, /^warning: config\.toml cannot be used: line 2, column \d+: .*; it counts as empty$/)

  await write('default_model = "a"\n')
  await call(readConfig)
  assert.deepEqual(told.splice(0), ['info: config.toml is used again'])

  await write('default_model = "a"\nplan_mode = maybe # LEAK\n')
  await call(readConfig)
  assert.match(told[0]!, /^warning: config\.toml cannot be used: line 2, column \d+: .*; the last good content is used$/)
  assert.ok(!told.join().includes('LEAK'))
})
