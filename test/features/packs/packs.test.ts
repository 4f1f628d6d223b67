/** Packs are seen and switched over HTTP, and follow the configuration of a running deployment. */
import assert from 'node:assert/strict'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readDeployment } from '../../../features/cli/deployment.ts'
import { packOptions } from '../../../features/cli/deployment-packs.ts'
import { loadPacks } from '../../../features/cli/load-pack.ts'
import { packSource } from '../../../features/cli/pack-source.ts'
import meta from '../../../features/meta/pack.ts'
import {
  DeploymentFaulty,
  listPacks,
  loadPack,
  PackHeld,
  PackMissing,
  PackSource,
  PackUnusable,
  refreshPacks,
  reloadPack,
  unloadPack
} from '../../../features/packs/index.ts'
import packs from '../../../features/packs/pack.ts'
import { definePack, serviceToken, Type } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { command } from '../../helpers/cli-io.ts'
import { freshDir } from '../../helpers/temp.ts'

const Clock = serviceToken<object>('clock')
const clock = definePack({
  name: 'clock',
  description: 'Tells the time',
  provides: [Clock],
  config: Type.Object({ zone: Type.String({ default: 'UTC' }), api_key: Type.Optional(Type.String()) }),
  setup: ctx => void ctx.provide(Clock, {})
})
const needy = definePack({ name: 'needy', needs: { clock: Clock }, setup: () => undefined })

test('every pack is told with its state, timings, options, schema and defaults, without secrets', async t => {
  const broken = definePack({
    name: 'broken',
    setup() {
      throw new Error('no licence')
    }
  })
  const { call } = await startTestKernel(t, {
    packs: [packs, clock, broken],
    config: { clock: { api_key: 'abcdef' } },
    now: () => new Date(0)
  })

  const { items } = (await call(listPacks)).data

  assert.deepEqual(
    items.map(item => [item.name, item.state, item.error]),
    [
      ['packs', 'Active', null],
      ['clock', 'Active', null],
      ['broken', 'Failed', 'no licence']
    ]
  )
  const told = items[1]!
  assert.deepEqual(told.options, { zone: 'UTC', api_key: '[redacted]' })
  assert.deepEqual(told.option_defaults, { zone: 'UTC' })
  assert.equal((told.options_schema as { properties: { zone: { type: string } } }).properties.zone.type, 'string')
  assert.equal(told.active_since, '1970-01-01T00:00:00.000Z')
  assert.ok(told.setup_ms !== null && told.setup_ms >= 0)
  assert.deepEqual(told.provides, ['clock'])
})

test('a pack is unloaded, loaded and reloaded; who needs it waits meanwhile', async t => {
  const { call } = await startTestKernel(t, { packs: [packs, clock, needy] })
  const needyNow = async () => (await call(listPacks)).data.items.find(item => item.name === 'needy')

  assert.equal((await call(unloadPack, { params: { name: 'clock' } })).data.state, 'Unloaded')
  assert.deepEqual((await needyNow())?.waiting_for, ['clock'])
  assert.equal((await call(loadPack, { params: { name: 'clock' } })).data.state, 'Active')
  assert.equal((await needyNow())?.state, 'Active')
  assert.equal((await call(reloadPack, { params: { name: 'clock' } })).data.state, 'Active')
  for (const route of [loadPack, unloadPack, reloadPack])
    assert.equal((await call(route, { params: { name: 'nobody' } })).code, PackMissing.code)
})

test('a required pack and the one that answers stay', async t => {
  const { call } = await startTestKernel(t, { packs: [packs, clock], required: ['clock'] })
  assert.equal((await call(unloadPack, { params: { name: 'clock' } })).code, PackHeld.code)
  assert.equal((await call(unloadPack, { params: { name: 'packs' } })).code, PackHeld.code)
  assert.equal((await call(reloadPack, { params: { name: 'packs' } })).code, PackHeld.code)
})

/** A server of a home with a pack file in it, as `serve` puts it together. */
async function deployed(t: TestContext) {
  const home = await freshDir()
  const file = join(home, 'config.toml')
  const hello = (text: string) =>
    writeFile(
      join(home, 'hello.mjs'),
      `import { definePack, defineRoute, Type } from 'svc-code/kernel'
       import { end } from './part.mjs'
       const hello = defineRoute({ method: 'GET', path: '/api/v1/hello', summary: 'Hello', data: Type.String() })
       export default definePack({ name: 'hello', config: Type.Object({ who: Type.String({ default: 'you' }) }),
         setup(ctx) { ctx.route(hello, () => '${text} ' + ctx.config.who + end) } })`
    )
  await hello('hello')
  await writeFile(join(home, 'part.mjs'), "export const end = '!'\n")
  await writeFile(file, '')
  const env = { SVC_CODE_HOME: home }
  const deployment = await readDeployment({}, env)
  const own = [packs, meta]
  const source = packSource({}, env, deployment, own)
  // Of the default packs only these: a whole server is not what this is about.
  const read = async () => {
    const now = await source.read()
    const kept = now.packs.filter(
      pack => ['hello', 'first', 'second'].includes(pack.name) || (pack.name === 'meta' && now.packs.includes(pack))
    )
    return { ...now, packs: [packs, ...kept.map(pack => (pack.name === 'meta' ? meta : pack))] }
  }
  const started = await startTestKernel(t, {
    packs: own,
    home,
    config: packOptions(deployment),
    services: [[PackSource, { ...source, read, watch: async () => () => undefined }]]
  })
  const said = async () => {
    const answer = await started.rest.raw('GET', '/api/v1/hello')
    return answer.status === 200 ? (JSON.parse(answer.body.toString()) as { data: string }).data : answer.status
  }
  return { ...started, file, hello, said }
}

test('an edit of [packs] loads, configures and unloads packs while the server runs, and a fault changes nothing', async t => {
  const { call, file, said, home, hello } = await deployed(t)
  const refresh = async (toml: string) => {
    await writeFile(file, toml)
    return await call(refreshPacks)
  }

  const added = await refresh('[packs]\nload = ["./hello.mjs"]\n[packs.config.helo]\na = 1\n')
  assert.deepEqual(added.data.loaded, ['hello'])
  assert.match(added.data.warnings[0] ?? '', /packs\.config\.helo.*did you mean hello\?/)
  assert.equal(await said(), 'hello you!')

  assert.deepEqual((await refresh('[packs]\nload = ["./hello.mjs"]\n[packs.config.hello]\nwho = "all"\n')).data.reloaded, ['hello'])
  assert.equal(await said(), 'hello all!')
  assert.deepEqual((await call(refreshPacks)).data.reloaded, [])

  const faulty = await refresh('[packs]\nload = 5\n')
  assert.equal(faulty.code, DeploymentFaulty.code)
  assert.match(faulty.msg, /config\.toml:2:1: packs\.load must be an array of strings/)
  assert.equal(await said(), 'hello all!')

  await hello('moin')
  await writeFile(join(home, 'part.mjs'), "export const end = '?'\n")
  assert.equal((await call(reloadPack, { params: { name: 'hello' } })).data.state, 'Active')
  assert.equal(await said(), 'moin all?')
  await writeFile(join(home, 'part.mjs'), "throw new Error('no end')\n")
  const broken = await call(reloadPack, { params: { name: 'hello' } })
  assert.equal(broken.code, PackUnusable.code)
  assert.match(broken.msg, /goes on as it was.*hello\.mjs:2: .*part\.mjs' does not provide an export named 'end'/)
  assert.equal(await said(), 'moin all?')
  assert.deepEqual((await refresh('[packs]\nload = ["./hello.mjs"]\n[packs.config.hello]\nwho = "us"\n')).data.reloaded, ['hello'])
  assert.equal(await said(), 'moin us?', 'with another option as well')
  await refresh('[packs]\nload = ["./hello.mjs"]\n[packs.config.hello]\nwho = "all"\n')
  await writeFile(join(home, 'part.mjs'), "export const end = '.'\n")
  assert.equal((await call(reloadPack, { params: { name: 'hello' } })).data.state, 'Active')
  assert.equal(await said(), 'moin all.')

  const disabled = await refresh('[packs]\nload = ["./hello.mjs"]\ndisable = ["hello", "meta"]\n')
  assert.deepEqual(disabled.data.unloaded.sort(), ['hello', 'meta'])
  assert.equal(await said(), 404)
  const { items } = (await call(listPacks)).data
  assert.equal(items.find(item => item.name === 'hello')?.state, 'Disabled')
  assert.equal((await call(loadPack, { params: { name: 'meta' } })).data.state, 'Active')
})

test('packs that one edit adds, or changes, are set up side by side: one that takes its time holds up no other', async t => {
  const { call, file, home } = await deployed(t)
  const met = (own: string, other: string) => `import { definePack, Type } from 'svc-code/kernel'
    const later = () => { let resolve; return { promise: new Promise(done => { resolve = done }), resolve } }
    const met = (round, who) => (((globalThis.met ??= {})[round] ??= {})[who] ??= later())
    export default definePack({ name: '${own}', config: Type.Object({ round: Type.Integer() }),
      async setup(ctx) { met(ctx.config.round, '${own}').resolve(); await met(ctx.config.round, '${other}').promise } })`
  await writeFile(join(home, 'first.mjs'), met('first', 'second'))
  await writeFile(join(home, 'second.mjs'), met('second', 'first'))
  for (const round of [1, 2]) {
    const config = ['first', 'second'].map(name => `[packs.config.${name}]\nround = ${round}\n`).join('')
    await writeFile(file, `[packs]\nload = ["./first.mjs", "./second.mjs"]\n${config}`)
    const { loaded, reloaded, items } = (await call(refreshPacks)).data
    assert.deepEqual(round === 1 ? loaded : reloaded, ['first', 'second'])
    const two = items.filter(({ name }) => name === 'first' || name === 'second')
    assert.deepEqual(
      two.map(({ state, error }) => [state, error]),
      [
        ['Active', null],
        ['Active', null]
      ]
    )
  }
})

test('a pack that was unloaded for this run is back when the file says something else about it, as it says', async t => {
  const { call, file, said } = await deployed(t)
  const refresh = async (lines: string) => {
    await writeFile(file, `[packs]\nload = ["./hello.mjs"]\n${lines}`)
    return (await call(refreshPacks)).data
  }
  await refresh('')
  await call(unloadPack, { params: { name: 'hello' } })
  assert.deepEqual((await refresh('[packs.config.meta]\n')).reloaded, [])
  assert.equal(await said(), 404)
  assert.deepEqual((await refresh('[packs.config.hello]\nwho = "all"\n')).reloaded, ['hello'])
  assert.equal(await said(), 'hello all!')
})

test('an edit of [packs] moves a pack into a process of its own and back', async t => {
  const { call, file, said } = await deployed(t)
  const refresh = async (lines: string) => {
    await writeFile(file, `[packs]\nload = ["./hello.mjs"]\n${lines}`)
    return await call(refreshPacks)
  }
  const own = async () => (await call(listPacks)).data.items.find(item => item.name === 'hello')?.process
  assert.deepEqual((await refresh('')).data.loaded, ['hello'])
  assert.equal(await own(), null)

  assert.deepEqual((await refresh('isolate = ["hello"]\n')).data.reloaded, ['hello'])
  assert.ok((await own())?.pid)
  assert.equal(await said(), 'hello you!')
  assert.deepEqual((await refresh('isolate = ["hello"]\n')).data.reloaded, [])
  assert.deepEqual((await refresh('isolate = ["hello"]\nconfig.hello.who = "all"\n')).data.reloaded, ['hello'])
  assert.equal(await said(), 'hello all!')

  const faults: readonly [string, RegExp][] = [
    ['isolate = ["helo"]', /unknown pack 'helo' in \[packs\] isolate\. Did you mean hello\?/],
    ['isolate = ["meta"]', /'meta', a default pack: only packs of load/],
    ['isolate = 1', /config\.toml:3:1: packs\.isolate must be true, false or an array of strings/],
    ['isolation = { memory_mb = 1 }', /packs\.isolation\.memory_mb must be a whole number of at least 128/],
    ['isolation = { memory = 1 }', /packs\.isolation\.memory is unknown; \[packs\.isolation\] has memory_mb, hang_s, restarts/]
  ]
  for (const [line, why] of faults) assert.match((await refresh(line)).msg, why)

  assert.deepEqual((await refresh('isolate = false\n')).data.reloaded, ['hello'])
  assert.equal(await own(), null)
  assert.equal(await said(), 'hello you!')
})

test('svc-code packs shows options with type and default, and ends with code 1 when a pack failed', async () => {
  const home = await freshDir()
  await mkdir(home, { recursive: true })
  const one = await command(home, ['packs', 'interactions'])
  assert.equal(one.code, 0)
  assert.match(one.stdout, /^approval_ttl_ms +integer/m)
  assert.match((await command(home, ['packs', 'nobody'])).stderr, /no pack 'nobody'/)
  const told = JSON.parse((await command(home, ['packs', '--json'])).stdout)
  assert.ok(told.packs.every((pack: { option_defaults?: object }) => pack.option_defaults !== undefined))

  await writeFile(join(home, 'config.toml'), '[packs.config.sessions]\nmax_idle = -1\n[packs.config.sesions]\na = 1\n')
  const odd = await command(home, ['packs'])
  assert.equal(odd.code, 1)
  assert.match(odd.stderr, /warning: \[packs\.config\.sesions\].*did you mean sessions\?/)
})

test('what a file exports is a pack each time', async () => {
  const { packs: none, failed } = await loadPacks([{ spec: './nothing.mjs', from: await freshDir() }], [])
  assert.equal(none.length, 1)
  assert.match(failed[0] ?? '', /there is no file/)
})
