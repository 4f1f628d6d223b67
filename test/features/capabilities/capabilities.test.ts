import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { computerUse } from '../../../features/capabilities/computer-use.ts'
import {
  Capabilities,
  type Capability,
  type CapabilityStatus,
  capabilityChanged,
  installCapability,
  listCapabilities,
  readCapability
} from '../../../features/capabilities/index.ts'
import capabilities from '../../../features/capabilities/pack.ts'
import { steps } from '../../../features/capabilities/status.ts'
import { installPlugin, type Plugins, Plugins as PluginsToken, readMarketplace } from '../../../features/plugins/index.ts'
import plugins from '../../../features/plugins/pack.ts'
import { Shell, type ShellResult } from '../../../features/tools-shell/index.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import { startTestKernel, stub, type TestContextLike } from '../../../kernel/testing.ts'
import { keptOf } from '../../helpers/collected.ts'
import { inEachDisguise } from '../../helpers/disguises.ts'
import { freshDir } from '../../helpers/temp.ts'
import { directory, host, manifest } from '../plugins/scene.ts'

const said = (code: number, stderr = ''): ShellResult => ({ code, stdout: '', stderr })

interface SceneOptions {
  readonly config?: object
  readonly packs?: readonly Pack[]
  readonly shell?: Shell['run']
  readonly home?: string
}

async function start(t: TestContextLike, { config = {}, packs = [], shell = async () => said(0), home }: SceneOptions = {}) {
  const kernel = await startTestKernel(t, {
    packs: [plugins, stub(Shell, { run: shell }), capabilities, ...packs],
    config: { capabilities: config },
    ...(home === undefined ? {} : { home })
  })
  const changes = () => kernel.events.flatMap(({ type, payload }) => (type === capabilityChanged.type ? [payload as never] : []))
  const ended = (id: string) =>
    kernel.waitFor(({ type, payload }) => {
      const told = payload as { capability_id: string; install: { running: boolean } }
      return type === capabilityChanged.type && told.capability_id === id && !told.install.running
    })
  const read = async (id: string) => (await kernel.call(readCapability, { params: { capability_id: id } })).data
  const install = (id: string) => kernel.call(installCapability, { params: { capability_id: id } })
  return { ...kernel, changes, ended, read, install }
}

/** A pack that brings a capability. */
const bringing = (given: Partial<Capability> & { readonly id: string }) =>
  definePack({
    name: `brings-${given.id}`,
    setup: ctx => {
      ctx.contribute(Capabilities, {
        displayName: given.id,
        description: 'scripted',
        supported: true,
        detect: async () => ({ steps: [] }),
        unavailable: () => undefined,
        install: async () => undefined,
        ...given
      })
    }
  })

const stepsOf = ({ steps }: CapabilityStatus) => Object.fromEntries(steps.map(({ id, state }) => [id, state]))

function deferred() {
  let resolve = () => {}
  const promise = new Promise<void>(done => {
    resolve = done
  })
  return { promise, resolve }
}

const sha256 = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')

test('both built-in capabilities are listed; what this platform cannot have has no steps and is not installed', async t => {
  const { call, rest, install, changes } = await start(t)
  const { data } = await call(listCapabilities, {})
  assert.deepEqual(
    data.capabilities.map(({ id, pluginId }) => [id, pluginId]),
    [
      ['svc-cu', 'svc-cu'],
      ['svc-webbridge', 'svc-webbridge']
    ]
  )
  const [computer, bridge] = data.capabilities
  if (process.platform === 'linux') {
    assert.deepEqual(
      [computer?.supported, computer?.state, computer?.steps, computer?.install],
      [false, 'unsupported', [], { running: false }]
    )
    const refused = await install('svc-cu')
    assert.equal(refused.code, 40925)
    assert.deepEqual(changes(), [])
  }
  assert.equal(bridge?.state, 'not_installed')
  assert.deepEqual(
    bridge?.steps.map(({ id, state, optional }) => [id, state, optional]),
    [
      ['daemon-binary', 'missing', undefined],
      ['daemon', 'missing', undefined],
      ['skill', 'missing', undefined],
      ['standalone-skill-migration', 'missing', undefined],
      ['extension', 'missing', true]
    ]
  )
  assert.equal((await call(readCapability, { params: { capability_id: 'nope' } })).code, 40418)
  assert.equal((await install('nope')).code, 40418)
  for (const path of ['svc-webbridge:remove', 'svc-webbridge']) {
    assert.equal((await rest.json('POST', `/api/v1/capabilities/${path}`, {})).code, 40001)
  }
})

test('nothing of a look at a step stays in memory', async () => {
  const known: WeakRef<AbortSignal>[] = []
  const look = async (signal: AbortSignal) => {
    known.push(new WeakRef(signal))
    return { state: 'ok' as const }
  }
  for (let n = 0; n < 3; n++) await steps([{ id: 'there', look }], 60_000, new AbortController().signal)
  assert.deepEqual([known.length, await keptOf(known)], [3, 0])
})

test('without a configured source the state says so, and an install ends with it', async t => {
  const { read, install, ended, home, changes } = await start(t)
  const before = await read('svc-webbridge')
  assert.match(before.install.note ?? '', /nothing is configured/)

  const { code, data } = await install('svc-webbridge')

  assert.equal(code, 0)
  assert.equal(data.install.running, true)
  assert.match(data.install.note ?? '', /nothing is configured/)
  await ended('svc-webbridge')
  const after = await read('svc-webbridge')
  assert.equal(after.install.running, false)
  assert.match(after.install.error ?? '', /nothing is configured/)
  assert.equal(after.state, 'not_installed')
  assert.equal(changes().length, 2)
  assert.deepEqual(await readdir(join(home, 'capabilities')), [])
})

test('the browser bridge is installed from what the deployment names, told step by step, until it is ready', async t => {
  const web = await host(t)
  const program = Buffer.alloc(300_000, '#')
  web.serve['/bridge'] = (_request, reply) => void reply.writeHead(200, { 'content-length': String(program.length) }).end(program)
  const lines: string[] = []
  const children: ReturnType<typeof spawn>[] = []
  t.after(() => {
    for (const child of children) child.kill('SIGKILL')
  })
  const { read, install, ended, home, changes } = await start(t, {
    config: {
      'svc-webbridge': {
        plugin: await directory(manifest('svc-webbridge', { version: '2.1.0' })),
        program: { url: `${web.url}/bridge`, sha256: sha256(program) },
        start: 'start it'
      }
    },
    async shell({ command, env }) {
      lines.push(`${command} ${env?.SVC_CAPABILITY_FILE}`)
      const daemon = spawn('sleep', ['60'], { argv0: 'svc-webbridge' })
      children.push(daemon)
      await once(daemon, 'spawn')
      return said(0)
    }
  })
  assert.equal((await read('svc-webbridge')).install.note, undefined)

  const { data } = await install('svc-webbridge')

  assert.equal(data.install.running, true)
  await ended('svc-webbridge')
  const after = await read('svc-webbridge')
  assert.deepEqual(stepsOf(after), {
    'daemon-binary': 'ok',
    daemon: 'ok',
    skill: 'ok',
    'standalone-skill-migration': 'ok',
    extension: 'missing'
  })
  assert.deepEqual([after.state, after.version, after.install], ['ready', '2.1.0', { running: false }])
  const told = changes() as { install: { step?: string; percent?: number } }[]
  const order = told.flatMap(({ install: { step } }) => step ?? [])
  assert.deepEqual(
    order.filter((step, at) => step !== order[at - 1]),
    ['plugin', 'download', 'service']
  )
  assert.ok(told.some(({ install: { percent } }) => percent === 100))
  const file = join(home, 'capabilities', 'svc-webbridge', 'svc-webbridge')
  assert.deepEqual(lines, [`start it ${file}`])
  assert.deepEqual(await readFile(file), program)
  assert.equal((await stat(file)).mode & 0o777, 0o700)
  assert.deepEqual(await readdir(join(home, 'capabilities', 'svc-webbridge')), ['svc-webbridge'])

  await mkdir(join(home, 'skills', 'svc-webbridge'), { recursive: true })
  const beside = await read('svc-webbridge')
  assert.equal(beside.state, 'partial')
  assert.match(beside.steps.find(({ id }) => id === 'standalone-skill-migration')?.detail ?? '', /remove it/)
})

test('what was installed in part is named, and a file that is not the configured one is refused and leaves nothing', async t => {
  const web = await host(t)
  web.serve['/bridge'] = 'another file'
  const { read, install, ended, home } = await start(t, {
    config: {
      'svc-webbridge': {
        plugin: await directory(manifest('svc-webbridge')),
        program: { url: `${web.url}/bridge`, sha256: sha256(Buffer.from('the file')) }
      }
    }
  })
  await install('svc-webbridge')
  await ended('svc-webbridge')
  const failed = await read('svc-webbridge')
  assert.match(failed.install.error ?? '', /sha256/)
  assert.deepEqual([failed.install.running, failed.state, stepsOf(failed).skill], [false, 'partial', 'ok'])
  assert.deepEqual(await readdir(join(home, 'capabilities', 'svc-webbridge')), [])

  web.serve['/bridge'] = 'the file'
  const again = await install('svc-webbridge')
  assert.deepEqual([again.code, again.data.install], [0, { running: true }])
  await new Promise<void>(resolve => {
    const look = async () => ((await read('svc-webbridge')).install.running ? setImmediate(look) : resolve())
    void look()
  })
  assert.deepEqual((await read('svc-webbridge')).install, { running: false, note: 'not ready yet: daemon' })
})

test('a download that brings nothing is given up; meanwhile nobody else of the home installs', async t => {
  const web = await host(t)
  const { promise: asked, resolve } = deferred()
  web.serve['/bridge'] = (_request, reply) => {
    reply.writeHead(200, { 'content-length': '100' }).write('ten bytes.')
    resolve()
  }
  const config = {
    silence_ms: 700,
    'svc-webbridge': { program: { url: `${web.url}/bridge`, sha256: sha256(Buffer.from('x')) } }
  }
  const home = await freshDir()
  const { install, ended, read } = await start(t, { config, home })
  const other = await start(t, { config, home })
  await install('svc-webbridge')
  await asked
  const [here, there] = [await install('svc-webbridge'), await other.install('svc-webbridge')]
  assert.deepEqual([here.code, there.code], [40924, 40924])
  const seen = (await other.read('svc-webbridge')).install
  assert.equal(seen.running, true)
  assert.match(seen.note ?? '', /another server/)
  await ended('svc-webbridge')
  assert.match((await read('svc-webbridge')).install.error ?? '', /stopped coming|could not be reached/)
  assert.equal((await other.read('svc-webbridge')).install.running, false)
})

test('a step that fails or takes too long is shown as failed; a look that fails is partial in the list and 50001 alone', async t => {
  const broken = bringing({
    id: 'broken',
    detect: async () => {
      throw new Error('no way in')
    }
  })
  const endless = bringing({ id: 'endless', detect: () => new Promise(() => undefined) })
  const { call, kernel } = await start(t, { config: { detect_ms: 200 }, packs: [broken, endless] })
  const { capabilities: all } = (await call(listCapabilities, {})).data
  const find = (id: string) => all.find(one => one.id === id)
  assert.deepEqual([find('broken')?.state, find('broken')?.steps], ['partial', [{ id: 'detect', state: 'failed', detail: 'no way in' }]])
  assert.match(find('endless')?.steps[0]?.detail ?? '', /longer than 200 ms/)
  assert.equal((await call(readCapability, { params: { capability_id: 'broken' } })).code, 50001)
  await kernel.unload('brings-broken')
  assert.equal((await call(readCapability, { params: { capability_id: 'broken' } })).code, 40418)
})

test('a failed install says why, without secrets, and can be begun again; one that runs ends with its server', async t => {
  const { promise: aborted, resolve } = deferred()
  let tries = 0
  const scripted = bringing({
    id: 'scripted',
    detect: async () => ({
      steps: [
        { id: 'a', state: 'ok' },
        { id: 'b', state: 'missing' },
        { id: 'c', state: 'failed', optional: true }
      ]
    }),
    async install(progress, signal) {
      tries++
      progress.step('download', 12.7)
      if (tries === 1) throw new Error('the key Bearer abcdefghijklmnopqrstuvwxyz012345 was refused\nsecond line')
      signal.addEventListener('abort', () => resolve(), { once: true })
      await aborted
      throw new Error('gone')
    }
  })
  const { install, ended, read, changes, stop } = await start(t, { packs: [scripted] })
  await install('scripted')
  await ended('scripted')
  const { state, install: first } = await read('scripted')
  assert.equal(state, 'partial')
  assert.match(first.error ?? '', /was refused$/)
  assert.doesNotMatch(first.error ?? '', /abcdefghij/)
  assert.deepEqual(
    changes().map(({ install: { running, step, percent } }: { install: { running: boolean; step?: string; percent?: number } }) => [
      running,
      step,
      percent
    ]),
    [
      [true, undefined, undefined],
      [true, 'download', 12],
      [false, undefined, undefined]
    ]
  )
  assert.equal((await install('scripted')).data.install.error, undefined)
  await stop()
  await aborted
})

test('computer use on macOS: each step is looked at, installed in order, and what is left to do is named', async t => {
  const home = await freshDir()
  const user = await freshDir()
  const web = await host(t)
  web.serve['/app.pkg'] = 'package'
  await mkdir(join(user, 'Applications'))
  await writeFile(join(home, 'mcp.json'), JSON.stringify({ mcpServers: { 'svc-cu': { command: 'old' } } }))
  let installed = false
  const fake: Partial<Plugins> = {
    list: async () => (installed ? [{ id: 'svc-cu', enabled: true, state: 'ok', version: '3.0.0' }] : []),
    async install() {
      installed = true
      return { id: 'svc-cu', enabled: true, state: 'ok' }
    }
  }
  const lines: string[] = []
  const shell: Partial<Shell> = {
    async run({ command, env }) {
      lines.push(command)
      if (command === 'install') {
        assert.equal(await readFile(env?.SVC_CAPABILITY_FILE ?? '', 'utf8'), 'package')
        await mkdir(join(user, 'Applications', 'svc-cu.app'))
      }
      if (command.startsWith('ps'))
        return { code: 0, stdout: '/sbin/launchd\n/Users/me/Applications/svc-cu.app/Contents/MacOS/svc-cu\n', stderr: '' }
      return said(command === 'permitted' ? 1 : 0)
    }
  }
  const source = {
    plugin: '/plugin',
    program: { url: `${web.url}/app.pkg`, sha256: sha256(Buffer.from('package')) },
    ...{ install: 'install', start: 'start', permissions: 'permitted' }
  }
  const capability = computerUse({
    ...{ source, home, dir: join(home, 'capabilities', 'mac'), env: { HOME: user }, platform: 'darwin', arch: 'arm64' },
    ...{ userAgent: 'test', step_ms: 2000, silence_ms: 2000 },
    plugins: () => fake as Plugins,
    shell: () => shell as Shell
  })
  const { install, ended, read } = await start(t, { packs: [bringing({ ...capability, id: 'mac' })] })
  assert.deepEqual(stepsOf(await read('mac')), {
    plugin: 'missing',
    'legacy-mcp': 'missing',
    app: 'missing',
    service: 'ok',
    permissions: 'missing'
  })
  await install('mac')
  await ended('mac')
  const after = await read('mac')
  assert.deepEqual(stepsOf(after), { plugin: 'ok', 'legacy-mcp': 'failed', app: 'ok', service: 'ok', permissions: 'missing' })
  assert.match(after.install.note ?? '', /mcp\.json stands beside.*; permissions: grant them/)
  assert.equal(after.version, '3.0.0')
  // What the parser says of a file quotes it.
  const file = join(home, 'mcp.json')
  const detail = async () => (await read('mac')).steps.find(({ id }) => id === 'legacy-mcp')?.detail
  await writeFile(file, '{ "mcpServers": { "a": { "env": { "A": "kept-to-itself" x } } } }')
  assert.equal(await detail(), `${file} cannot be understood: it is no JSON`)
  await inEachDisguise(file, async () =>
    assert.match((await detail()) ?? '', /mcp\.json cannot be understood: it is (?:not a regular file|larger than 4194304 bytes)$/)
  )
  await writeFile(file, '\ufeff{}')
  assert.equal(stepsOf(await read('mac'))['legacy-mcp'], 'ok')
  assert.deepEqual(
    lines.filter(line => !/^ps|^permitted/.test(line)),
    ['install', 'start']
  )
  for (const [platform, arch, supported] of [
    ['win32', 'x64', true],
    ['win32', 'arm64', false],
    ['linux', 'x64', false]
  ] as const) {
    const ports = {
      source: {},
      home,
      dir: home,
      env: {},
      userAgent: '',
      step_ms: 1,
      silence_ms: 1,
      plugins: () => undefined,
      shell: () => undefined
    }
    assert.equal(computerUse({ ...ports, platform, arch }).supported, supported)
  }
})

test('the marketplace lists what can be had here, and its source installs the plugin', async t => {
  const source = await directory(manifest('svc-webbridge'))
  const { call } = await start(t, { config: { 'svc-webbridge': { plugin: source } }, packs: [bringing({ id: 'bare' })] })
  const { entries } = (await call(readMarketplace, {})).data
  const shown = entries.filter(({ id }) => id !== 'svc-cu')
  assert.deepEqual(
    shown.map(({ id, tier, source, capabilityId, installed }) => [id, tier, source, capabilityId, installed]),
    [
      ['svc-webbridge', 'official', 'capability:svc-webbridge', 'svc-webbridge', undefined],
      ['bare', 'official', 'capability:bare', 'bare', undefined]
    ]
  )
  if (process.platform === 'linux') assert.equal(entries.length, shown.length)
  const { code, data } = await call(installPlugin, { body: { source: 'capability:svc-webbridge' } })
  assert.deepEqual([code, data.id, data.originalSource], [0, 'svc-webbridge', source])
  const [again] = (await call(readMarketplace, {})).data.entries.filter(({ id }) => id === 'svc-webbridge')
  assert.deepEqual(again?.installed, { version: '1.0.0', enabled: true })
  for (const none of ['capability:bare', 'capability:nope'])
    assert.equal((await call(installPlugin, { body: { source: none } })).code, 40001)
})

test('without plugins and commands the capabilities are there, and say what is missing', async t => {
  const { call, kernel } = await startTestKernel(t, {
    packs: [capabilities],
    config: { capabilities: { 'svc-webbridge': { plugin: '/x' } } }
  })
  const read = async () => (await call(readCapability, { params: { capability_id: 'svc-webbridge' } })).data
  assert.match((await read()).steps.find(({ id }) => id === 'skill')?.detail ?? '', /no pack of this server has plugins/)
  assert.equal(
    kernel.features().find(({ name }) => name === PluginsToken.id),
    undefined
  )
})
