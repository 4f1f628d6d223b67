/** The configuration file under the hands of its user: edits beside the server, and files that cannot be used. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdir, readFile, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { type ConfigScene, configScene } from '../helpers/config-scene.ts'

/** Resolves with the next change that a socket hears of. */
async function watching(scene: ConfigScene) {
  const socket = await scene.server.connect()
  return async () => {
    const known = socket.frames.length
    return (await socket.next(frame => socket.frames.indexOf(frame) >= known && frame.type === 'event.config.changed')).payload
  }
}

test('an edit beside the server is answered at once, announced to everybody, and not lost by the next patch', async t => {
  const scene = await configScene(t, 'default_model = "a"\n')
  const next = await watching(scene)

  const change = next()
  await scene.write('# by hand\ndefault_model = "b" # new\n[unmodelled]\nx = 1\n')
  assert.equal((await scene.get()).default_model, 'b')
  const { changed_fields, config } = await change
  await scene.patch({ plan_mode: true })

  assert.deepEqual(changed_fields, ['default_model', 'unmodelled'])
  assert.deepEqual(config.raw, { default_model: 'b', unmodelled: { x: 1 } })
  assert.equal(await scene.read(), '# by hand\ndefault_model = "b" # new\nplan_mode = true\n[unmodelled]\nx = 1\n')
})

const replacements: Readonly<Record<string, (path: string) => Promise<unknown>>> = {
  'written in place': path => writeFile(path, 'default_model = "b"\n'),
  'replaced by rename, as editors do': async path => {
    await writeFile(`${path}.swap`, 'default_model = "b"\n')
    await rename(`${path}.swap`, path)
  },
  'moved away and written anew': async path => {
    await rename(path, `${path}.bak`)
    await writeFile(path, 'default_model = "b"\n')
  },
  'replaced by a link': async path => {
    const elsewhere = join(path, '../dotfiles')
    await mkdir(elsewhere)
    await writeFile(join(elsewhere, 'mine.toml'), 'default_model = "b"\n')
    await symlink(join(elsewhere, 'mine.toml'), `${path}.link`)
    await rename(`${path}.link`, path)
  }
}
for (const [how, replace] of Object.entries(replacements)) {
  test(`a file that is ${how} is noticed without a request`, async t => {
    const scene = await configScene(t, 'default_model = "a"\n')
    const next = await watching(scene)

    const change = next()
    await replace(scene.path)

    assert.equal((await change).config.default_model, 'b')
  })
}

test('a link that comes later is followed: edits where it leads are noticed, and a patch is written there', async t => {
  const scene = await configScene(t, 'default_model = "a"\n')
  const next = await watching(scene)
  const first = next()
  await replacements['replaced by a link']!(scene.path)
  await first
  const real = join(scene.home, 'dotfiles/mine.toml')

  const second = next()
  await writeFile(real, 'default_model = "c"\n')
  assert.equal((await second).config.default_model, 'c')
  await scene.patch({ plan_mode: true })

  assert.equal(await readFile(real, 'utf8'), 'default_model = "c"\nplan_mode = true\n')
})

test('what a link leads to is noticed when it goes, and when it comes again, with its directory', async t => {
  const scene = await configScene(t, 'default_model = "a"\n')
  const next = await watching(scene)
  const first = next()
  await replacements['replaced by a link']!(scene.path)
  await first
  const dir = join(scene.home, 'dotfiles')

  const gone = next()
  await rm(dir, { recursive: true })
  assert.equal((await gone).config.default_model, undefined)
  const again = next()
  await mkdir(dir)
  await writeFile(join(dir, 'mine.toml'), 'default_model = "c"\n')
  assert.equal((await again).config.default_model, 'c')
})

test('a file that goes takes its values with it, and the next patch makes a new one', async t => {
  const scene = await configScene(t, 'default_model = "a"\ntelemetry = true\n')
  const next = await watching(scene)

  const change = next()
  await rm(scene.path)
  assert.deepEqual((await change).changed_fields, ['default_model', 'telemetry'])
  const { default_model, telemetry, raw } = await scene.patch({ plan_mode: true })

  assert.deepEqual([default_model, telemetry, raw], [undefined, false, { plan_mode: true }])
  assert.equal(await scene.read(), 'plan_mode = true\n')
})

const unusable: Readonly<Record<string, { spoil(path: string): Promise<unknown>; reason: RegExp }>> = {
  'no TOML': { spoil: path => writeFile(path, 'default_model = "b"\napi_key = sk-SEED\n'), reason: /line 2, column \d+/ },
  'cut off in a text': { spoil: path => writeFile(path, 'default_model = "SEED'), reason: /line 1, column \d+/ },
  'with a key given twice': { spoil: path => writeFile(path, 'a = 1\na = "SEED"\n'), reason: /line 2, column \d+/ },
  'no UTF-8': { spoil: path => writeFile(path, Buffer.from('default_model = "SEED \xff"\n', 'latin1')), reason: /UTF-8/ },
  'a directory': { spoil: async path => rm(path).then(() => mkdir(path)), reason: /not a regular file/ },
  'a pipe': {
    spoil: async path => rm(path).then(() => promisify(execFile)('mkfifo', ['-m', '600', path])),
    reason: /not a regular file/
  },
  'a device': { spoil: async path => rm(path).then(() => symlink('/dev/zero', path)), reason: /not a regular file/ },
  'as large as no configuration is': { spoil: path => truncate(path, 5_000_000_000), reason: /larger than 8388608 bytes/ },
  'a link to itself': { spoil: async path => rm(path).then(() => symlink(path, path)), reason: /ELOOP/ },
  'closed to the server': { spoil: path => chmod(path, 0), reason: /EACCES/ }
}
for (const [what, { spoil, reason }] of Object.entries(unusable)) {
  const skip = what === 'closed to the server' && process.getuid?.() === 0 ? 'nothing is closed to root' : false
  test(`while the file is ${what}, the last good content counts and every save is refused with the reason`, { skip }, async t => {
    const scene = await configScene(t, 'default_model = "a"\n[providers.p]\ntype = "svc"\napi_key = "k-SEED"\n')
    await spoil(scene.path)

    const { default_model, providers, raw } = await scene.get()
    const refusals = [
      await scene.post({ default_model: 'c' }),
      await scene.server.rest.json('POST', '/api/v1/providers', { id: 'q', type: 'svc', models: [{ model: 'm', max_context_size: 1 }] })
    ]

    assert.deepEqual([default_model, Object.keys(providers), raw.default_model], ['a', ['p'], 'a'])
    for (const { code, msg, details } of refusals) {
      assert.equal(code, 40001)
      assert.match(msg, reason)
      assert.match(details?.[0]?.message ?? '', reason)
      assert.doesNotMatch(JSON.stringify([msg, details]), /SEED/)
    }
    await rm(scene.path, { recursive: true })
    await scene.write('default_model = "d"\n')
    const { default_model: mended, plan_mode } = await scene.patch({ plan_mode: true })
    assert.deepEqual([mended, plan_mode], ['d', true])
  })
}

test('a save that would make the file larger than it may be is a 40001, and changes nothing', async t => {
  const text = `default_model = "a"\n#${'x'.repeat(8 * 1024 * 1024 - 22)}\n`
  const scene = await configScene(t, text)
  assert.equal((await scene.get()).default_model, 'a', 'so large it may be')
  const { code, msg } = await scene.post({ default_model: 'longer' })
  assert.equal(code, 40001)
  assert.match(msg, /it would be larger than 8388608 bytes/)
  assert.equal(await scene.read(), text)
})

test('a save that the disk refuses is a 40001 with the reason, changes nothing and is not told', async t => {
  const scene = await configScene(t, 'default_model = "a"\n')
  const socket = await scene.server.connect()
  await mkdir(`${scene.path}~`) // where the new content would be written first

  const { code, msg } = await scene.post({ default_model: 'b' })
  const { default_model } = await scene.get()
  await rm(`${scene.path}~`, { recursive: true })
  await scene.patch({ plan_mode: true })
  await socket.next('event.config.changed')

  assert.equal(code, 40001)
  assert.match(msg, /EISDIR/)
  assert.equal(default_model, 'a')
  assert.equal(await scene.read(), 'default_model = "a"\nplan_mode = true\n')
  assert.deepEqual(
    socket.frames.flatMap(({ type, payload }) => (type === 'event.config.changed' ? [payload.changed_fields] : [])),
    [['plan_mode']]
  )
})

test('an edit that breaks the file is not told; what differs after the next one is', async t => {
  const scene = await configScene(t, 'default_model = "a"\nplan_mode = true\n')
  const next = await watching(scene)

  const change = next()
  await scene.write('default_model = "b"\nplan_mode = \n')
  assert.equal((await scene.get()).default_model, 'a')
  await scene.write('default_model = "a"\nplan_mode = false\n')

  assert.deepEqual((await change).changed_fields, ['plan_mode'])
})

test('a server that starts over a file that is no TOML answers defaults, refuses saves, and recovers', async t => {
  const scene = await configScene(t, '= SEED')

  const { raw, default_permission_mode } = await scene.get()
  assert.deepEqual([raw, default_permission_mode], [{}, 'manual'])
  assert.deepEqual(await scene.refused({ plan_mode: true }), [''])
  assert.equal(await scene.read(), '= SEED')
  await scene.write('plan_mode = true\n')

  assert.equal((await scene.get()).plan_mode, true)
})

for (const [what, text, after] of [
  ['empty', '', 'plan_mode = true\n'],
  ['blank', '\n\n', '\n\nplan_mode = true\n'],
  ['of comments only', '# a\n# b', '# a\n# b\nplan_mode = true\n'],
  ['with a byte order mark', '\ufeffdefault_model = "a"\n', '\ufeffdefault_model = "a"\nplan_mode = true\n'],
  [
    'with CRLF',
    '# a\r\ndefault_model = "a" # b\r\n\r\n[odd]\r\nx = 1\r\n',
    '# a\r\ndefault_model = "a" # b\r\nplan_mode = true\r\n\r\n[odd]\r\nx = 1\r\n'
  ],
  ['without a last line break', 'default_model = "a"', 'default_model = "a"\nplan_mode = true\n']
] as const) {
  test(`a file ${what} is read and patched as it is`, async t => {
    const { patch, read } = await configScene(t, text)
    await patch({ plan_mode: true })
    assert.equal(await read(), after)
  })
}

test('what fits no schema falls back for itself: a domain to its default, a broken entry of a map or list to nothing', async t => {
  const scene = await configScene(
    t,
    `plan_mode = "yes"
telemetry = true
extra_skill_dirs = ["/a", 5, "/b"]
[loop_control]
max_steps_per_turn = "many"
max_attempts_per_step = 3
[[hooks]]
event = "Stop"
command = "fine"
[[hooks]]
event = "Never"
command = "broken"
[providers.fine]
type = "svc"
[providers.broken]
type = 5
[models."two\\nlines"]
provider = 5
[experimental]
fine = true
broken = "on"
`
  )

  const { plan_mode, telemetry, extra_skill_dirs, loop_control, hooks, providers, models, experimental } = await scene.get()

  assert.deepEqual([plan_mode, telemetry, extra_skill_dirs], [false, true, ['/a', '/b']])
  assert.deepEqual(loop_control, { maxAttemptsPerStep: 10, reservedContextSize: 50_000, compactionTriggerRatio: 0.85 })
  assert.deepEqual(hooks, [{ event: 'Stop', command: 'fine' }])
  assert.deepEqual([Object.keys(providers), models, experimental], [['fine'], {}, { fine: true }])
  for (const path of ['models', 'providers', 'auth']) assert.equal((await scene.server.rest.json('GET', `/api/v1/${path}`)).code, 0, path)
})

test('an override of the file that says whose model it is is passed over; the others count', async t => {
  const lines: string[] = []
  const toml = `[providers.p]
type = "svc"
[providers.z]
type = "svc"
[models.m]
provider = "p"
model = "m"
max_context_size = 1000
overrides = { provider = "z", max_context_size = 5 }
`
  const { server } = await configScene(t, toml, { log: { level: 'warn', to: { write: line => lines.push(line) } } })

  const { items } = (await server.rest.json('GET', '/api/v1/models')).data as { items: { provider: string; max_context_size: number }[] }

  assert.deepEqual(
    items.map(({ provider, max_context_size }) => [provider, max_context_size]),
    [['p', 5]]
  )
  assert.match(lines.join(''), /models\.m\.overrides\.provider: /)
})

test('keys that are no longer read are named in the log, and a key in the spelling of the wire is not taken for the real one', async t => {
  const lines: string[] = []
  const toml = '[loop_control]\nmax_retries_per_step = 1\nmax_steps_per_run = 2\nmaxStepsPerTurn = 3\n'
  const { get } = await configScene(t, toml, { log: { level: 'warn', to: { write: line => lines.push(line) } } })

  const { loop_control, raw } = await get()

  assert.equal(loop_control.maxStepsPerTurn, undefined)
  assert.equal(raw.loop_control.maxStepsPerTurn, 3)
  for (const key of ['max_retries_per_step', 'max_steps_per_run']) assert.ok(lines.join('').includes(`loop_control.${key} `), key)
})
