/** What a pack in a process of its own does wrong ends that process alone: the pack is named, whoever asked hears it, everybody else is served. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { type TestContext, test } from 'node:test'
import { PackEnded } from '../../../../features/cli/isolation/door.ts'
import { definePack, defineRoute, PackAway, serviceToken, Type } from '../../../../kernel/index.ts'
import type { Kernel } from '../../../../kernel/kernel.ts'
import { startTestKernel } from '../../../../kernel/testing.ts'
import { isolated, isolatedText, packFile } from '../../../helpers/isolated.ts'

const fine = defineRoute({ method: 'GET', path: '/api/v1/fine', summary: 'Fine', data: Type.String() })
const neighbour = definePack({ name: 'neighbour', setup: ctx => void ctx.route(fine, () => 'fine') })
const act = defineRoute({
  method: 'POST',
  path: '/api/v1/act/{what}',
  summary: 'Act',
  params: Type.Object({ what: Type.String() }),
  data: Type.Unknown(),
  errors: [PackEnded]
})

const wild = packFile(`
const act = defineRoute({ method: 'POST', path: '/api/v1/act/{what}', summary: 'Act', params: Type.Object({ what: Type.String() }), data: Type.Unknown() })
/** As the errors of many libraries carry what they were about. */
const circular = () => { const request = { retry() {} }; request.self = request; return request }
const acts = {
  exit: () => process.exit(0),
  loop: () => { for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50) },
  heap: () => { const all = []; for (;;) all.push(new Array(10_000).fill({})) },
  bytes: async () => { const all = []; for (;;) { all.push(Buffer.alloc(20_000_000, 1)); await new Promise(done => setTimeout(done, 5)) } },
  throws: () => { setTimeout(() => { throw new Error('boom') }, 0); return new Promise(() => undefined) },
  fails: () => { throw Object.assign(new TypeError('no answer'), { request: circular(), attempts: 3 }) },
  refuses: async () => { throw Object.assign(new Error('not now'), { request: circular(), code: 'ENOTNOW' }) },
  unheard: async () => { void Promise.reject(Object.assign(new Error('unheard'), { cause: circular() })); return 'on' },
  rejects: async () => { void Promise.reject(new Error('unheard')); return 'on' },
  globals: () => { Object.prototype.polluted = 1; globalThis.fetch = undefined; JSON.stringify = () => 'no'; return 1 },
  flood: ctx => { for (let n = 0; n < 5_000; n++) ctx.log.debug({ n }, 'x'.repeat(200)); return 'done' },
  storm: async (ctx, store) => (await Promise.all(Array.from({ length: 18_000 }, (_, n) => store.get('k' + n)))).length,
  slow: () => new Promise(done => setTimeout(() => done('in time'), 300)),
  waits: () => new Promise(() => undefined),
  pid: () => process.pid
}
export default definePack({ name: 'wild', setup(ctx) {
  const store = ctx.store(defineStore({ name: 'things', value: Type.String() }))
  ctx.route(act, ({ params }) => acts[params.what](ctx, store))
} })`)

const limits = { hang_s: 3, memory_mb: 256 }

async function start(t: TestContext, options = {}) {
  const pack = await isolated(await wild, { ...limits, ...options })
  const server = await startTestKernel(t, { packs: [pack, neighbour], log: { level: 'debug', to: { write: () => undefined } } })
  return { ...server, pack, act: async (what: string) => await server.call(act, { params: { what } }) }
}

const feature = (kernel: Kernel) => kernel.features().find(({ name }) => name === 'wild')

/** Resolves when the pack is in this state. */
function comes(kernel: Kernel, state: string): Promise<void> {
  return new Promise(done => kernel.hooks.packState.tap('test', (name, now) => void (name === 'wild' && now === state && done())))
}

test('a pack that ends its process, loops, or takes too much memory fails by name, and comes back; others are served meanwhile', async t => {
  const { kernel, call, act, pack } = await start(t)
  const cases: readonly [what: string, why: RegExp][] = [
    ['exit', /exit code 0/],
    ['loop', /answered nothing for 3 s/],
    ['heap', /memory/],
    ['bytes', /MB of memory, its limit is 256 MB/],
    ['throws', /an exception escaped: boom/]
  ]
  let restarts = 0
  for (const [what, why] of cases) {
    const failed = comes(kernel, 'Failed')
    const asked = act(what)
    assert.equal((await call(fine)).data, 'fine', what)
    const answer = await asked
    assert.equal(answer.code, PackEnded.code, what)
    assert.match(answer.msg, why)
    assert.match(answer.msg, /pack wild/)
    await failed
    assert.match(feature(kernel)?.meta.error ?? '', why)
    assert.match(feature(kernel)?.meta.error ?? '', /starts again in/)
    assert.equal((await act('pid')).code, PackAway.code, what)
    const back = comes(kernel, 'Active')
    assert.equal((await call(fine)).data, 'fine', what)
    await back
    assert.equal(pack.process?.().restarts, ++restarts)
    assert.equal(typeof (await act('pid')).data, 'number')
    await kernel.reload('wild') // as an operator does: the pause begins anew
  }
})

test('what a pack does to globals, promises and the log stays its own', async t => {
  const { kernel, act, call } = await start(t)
  assert.equal((await act('globals')).data, 1)
  assert.equal(({} as { polluted?: number }).polluted, undefined)
  await kernel.reload('wild')
  assert.equal((await act('rejects')).data, 'on')
  assert.equal((await act('pid')).code, 0)
  assert.match(feature(kernel)?.meta.faults?.last ?? '', /unheard/)
  const flood = act('flood')
  assert.equal((await call(fine)).data, 'fine')
  assert.equal((await flood).data, 'done')
  const storm = act('storm')
  assert.equal((await call(fine)).data, 'fine')
  assert.equal((await storm).data, 18_000)
})

test('an error that carries what cannot be had from another process is heard all the same', { timeout: 20_000 }, async t => {
  const { kernel, act } = await start(t)
  const { data: pid } = await act('pid')

  assert.equal((await act('fails')).code, 50001)
  assert.equal((await act('refuses')).code, 50001)
  assert.equal((await act('unheard')).data, 'on')

  assert.equal((await act('pid')).data, pid, 'the process goes on')
  assert.match(feature(kernel)?.meta.faults?.last ?? '', /unheard/)
})

test('calls in flight have the grace time when the pack is unloaded, and its process ends', async t => {
  const { kernel, act, pack } = await start(t)
  const { pid } = pack.process!()
  const waiting = act('waits')
  const slow = act('slow')
  assert.equal((await act('pid')).data, pid)
  await kernel.unload('wild')
  assert.equal((await slow).data, 'in time')
  assert.notEqual((await waiting).code, 0)
  assert.equal(existsSync(`/proc/${pid}`), false)
  assert.equal(pack.process?.().pid, undefined)
})

test('a process that ends too often is not started again until the pack is reloaded', async t => {
  const { kernel, act } = await start(t, { restarts: 0 })
  const failed = comes(kernel, 'Failed')
  await act('exit')
  await failed
  assert.equal(feature(kernel)?.meta.error, 'its process ended: exit code 0')
  assert.equal((await act('pid')).code, 40400)
  await kernel.reload('wild')
  assert.equal((await act('pid')).code, 0)
})

test('what cannot be had from another process is refused by name, at setup', async t => {
  const cases: readonly [setup: string, why: RegExp][] = [
    ['ctx.slot({ kind: "slot", name: "x", open: () => 1 })', /ctx\.slot hangs on objects of the server/],
    ['ctx.hosts', /ctx\.hosts/],
    ['ctx.store(defineStore({ name: "x", value: Type.Any(), migrate: value => value }))', /migrate of store x must answer at once/],
    ['ctx.provide({ kind: "service", id: "x" }, { get: () => 1 })', /get of the service 'x' must be an async function/],
    ['ctx.contribute({ kind: "point", id: "p" }, { name: "n", look: () => 1 })', /look must answer at once/],
    ['ctx.contribute({ kind: "point", id: "p", answers: { look: "now" } }, { look: async () => 1 })', /look must answer at once/],
    ['ctx.tap(ctx.hooks.nothing, () => 1)', /^ctx\.tap needs a hook, not undefined/],
    ['ctx.tap(ctx.hooks.event)', /^a tap needs a function, not undefined/],
    ['ctx.timer(10)', /^a timer needs a function, not undefined/],
    [
      'ctx.route(defineRoute({ method: "GET", path: "/api/v1/x", summary: "x", data: Type.Any() }))',
      /^the handler of GET \/api\/v1\/x needs a function, not undefined/
    ],
    ['ctx.event(defineEvent({ type: "x.y", scope: "global", durable: true }))', /^the payload of x\.y needs a schema/]
  ]
  const packs = await Promise.all(
    cases.map(([setup], at) =>
      isolatedText(
        `export default definePack({ name: 'p-${at}', provides: ${setup.includes('provide') ? "[{ kind: 'service', id: 'x' }]" : '[]'}, setup(ctx) { ${setup} } })`
      )
    )
  )
  const { kernel } = await startTestKernel(t, { packs: [...packs, neighbour] })
  for (const [at, [, why]] of cases.entries()) assert.match(kernel.features()[at]?.meta.error ?? 'none', why)
  assert.equal(kernel.features().at(-1)?.state, 'Active')
})

test('a setup that throws stays failed with its reason; one that ends its process is tried again', async t => {
  const throws = await isolatedText(`export default definePack({ name: 'throws', setup() { throw new Error('no licence') } })`)
  const exits = await isolatedText(`export default definePack({ name: 'exits', setup() { process.exit(3) } })`, { restarts: 1 })
  const { kernel } = await startTestKernel(t, { packs: [throws, exits, neighbour] })
  for (const { process } of [throws, exits]) assert.equal(process?.()?.pid, undefined, 'it has none any more')
  const [first, second] = kernel.features()
  assert.match(first?.meta.error ?? '', /^no licence \(\S+pack\.mjs:2\)$/)
  assert.match(second?.meta.error ?? '', /exit code 3; it starts again in 0\.5 s/)
  await assert.rejects(isolatedText('process.exit(7)'), /exit code 7/)
  await assert.rejects(
    isolatedText('for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 50);', { hang_s: 1 }),
    /answered nothing/
  )
  await assert.rejects(isolatedText('throw new Error("at the top")'), /pack\.mjs:2: at the top/)
})

test('listeners that it hands to services are called, need not be asynchronous, and are its faults when they fail', async t => {
  const pack = await isolatedText(`
const Bells = { kind: 'service', id: 'bells', listening: { onRing: 'notify', onTune: 'promise', watch: 'notify' } }
export default definePack({ name: 'wild', needs: { bells: Bells }, optional: { same: Bells }, async setup(ctx, { bells, same }) {
  const heard = []
  bells.onRing(tune => void heard.push(tune))
  same().onTune(tune => { heard.push(tune); throw new Error('flat') })
  await bells.watch('all', { rang: tune => void heard.push(tune), other: 1 })
  ctx.route(defineRoute({ method: 'POST', path: '/api/v1/act/{what}', summary: 'Act', params: Type.Object({ what: Type.String() }), data: Type.Unknown() }),
    () => heard)
} })`)
  const listeners: ((tune: string) => unknown)[] = []
  const add = (listener: (tune: string) => unknown) => {
    listeners.push(listener)
    return () => void listeners.splice(listeners.indexOf(listener), 1)
  }
  const bells = {
    onRing: add,
    onTune: add,
    watch: async (_: string, listener: { rang(tune: string): void }) => add(tune => listener.rang(tune))
  }
  const Bells = serviceToken<typeof bells>('bells', { onRing: 'notify', onTune: 'promise', watch: 'notify' })
  const tower = definePack({ name: 'tower', provides: [Bells], setup: ctx => void ctx.provide(Bells, bells) })
  const { call, kernel } = await startTestKernel(t, { packs: [tower, pack] })

  for (const [at, listener] of listeners.entries()) await listener(`tune ${at}`)

  assert.deepEqual((await call(act, { params: { what: 'heard' } })).data, ['tune 0', 'tune 1', 'tune 2'])
  assert.deepEqual(feature(kernel)?.meta.faults, { count: 1, last: 'listener of bells.onTune: flat' })
  await kernel.unload('wild')
  assert.equal(listeners.length, 0)
})

test('what nobody waits for is named when it fails: listeners, taps that are only told, listeners to lists', async t => {
  const pack = await isolatedText(`
const said = defineEvent({ type: 'event.wild.said', scope: 'global', durable: false, payload: Type.Object({}) })
const boom = what => () => { throw new Error(what + ' boom') }
export default definePack({ name: 'wild', setup(ctx) {
  const emit = ctx.event(said)
  ctx.on(said, boom('listener'))
  ctx.tap(ctx.hooks.afterRequest, async () => boom('tap')())
  ctx.collect({ kind: 'point', id: 'words' }).onChange(boom('list'))
  ctx.route(defineRoute({ method: 'POST', path: '/api/v1/act/{what}', summary: 'Act', params: Type.Object({ what: Type.String() }), data: Type.Unknown() }),
    ({ params: { what } }) => {
      if (what === 'listener') emit({})
      if (what === 'list') ctx.contribute({ kind: 'point', id: 'words' }, { word: 'tea' })
      return null
    })
} })`)
  const logged: string[] = []
  const { call, kernel } = await startTestKernel(t, {
    packs: [pack, neighbour],
    allowViolations: true,
    log: { level: 'error', to: { write: line => void logged.push((JSON.parse(line) as { msg: string }).msg) } }
  })
  for (const what of ['listener', 'list', 'none']) assert.equal((await call(act, { params: { what } })).code, 0)
  await kernel.unload('wild') // what was said is heard by then
  assert.deepEqual([...new Set(logged)].sort(), [
    'change listener of words failed',
    'listener of event.wild.said failed',
    'tap of afterRequest failed'
  ])
})
