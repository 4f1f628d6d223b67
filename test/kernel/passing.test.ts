/** A pack that fails in passing comes back by itself. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import {
  defineFrame,
  definePack,
  defineRoute,
  KernelInfo,
  PackAway,
  type PackContext,
  PassingFailure,
  serviceToken,
  Type
} from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'

const Clock = serviceToken<object>('clock')

function clock(setup: (ctx: PackContext) => void) {
  return definePack({
    name: 'clock',
    needs: { info: KernelInfo },
    provides: [Clock],
    setup(ctx) {
      ctx.provide(Clock, {})
      setup(ctx as unknown as PackContext)
    }
  })
}
const needy = definePack({ name: 'needy', needs: { clock: Clock, info: KernelInfo }, setup: () => undefined })

const states = (kernel: Kernel) => kernel.features().map(({ name, state, meta }) => [name, state, meta.error ?? meta.waiting_for?.[0]])
const comes = (kernel: Kernel, pack: string, state: string) =>
  new Promise<void>(done => kernel.hooks.packState.tap('test', (name, now) => void (name === pack && now === state && done())))

test('a pack that says it failed is Failed with the reason, who needs it waits, and it is back after its pause', async t => {
  const contexts: PackContext[] = []
  const { kernel } = await startTestKernel(t, { packs: [clock(given => void contexts.push(given)), needy] })
  const [ctx] = contexts
  const failed = comes(kernel, 'clock', 'Failed')
  ctx?.fail(new PassingFailure('the wheel is off', 20))
  await failed
  const back = comes(kernel, 'needy', 'Active')
  assert.deepEqual(states(kernel), [
    ['clock', 'Failed', 'the wheel is off'],
    ['needy', 'Pending', 'clock']
  ])
  ctx?.fail(new Error('an activation that is over says nothing more'))
  await back
  ctx?.fail(new Error('nor when there is another one'))
  await kernel.load('needy') // behind whatever that might have begun
  assert.deepEqual(states(kernel)[0], ['clock', 'Active', undefined])
})

test('a setup may fail in passing, and what it says while it runs counts when it is through', async t => {
  const reasons = [new PassingFailure('not yet', 200), new Error('never')]
  const { kernel } = await startTestKernel(t, {
    packs: [
      clock(ctx => {
        const reason = reasons.shift()
        if (reason instanceof PassingFailure) throw reason
        ctx.fail(reason as Error)
      })
    ]
  })
  assert.deepEqual(states(kernel), [['clock', 'Failed', 'not yet']])
  await comes(kernel, 'clock', 'Failed')
  assert.deepEqual(states(kernel), [['clock', 'Failed', 'never']])
  assert.equal(reasons.length, 0)
})

test('a try that waits behind what somebody does is given up when the pack has come back by that', async t => {
  const setups: PackContext[] = []
  const gone = latch()
  const slow = definePack({ name: 'slow', setup: ctx => void ctx.own(() => gone.opened) })
  const { kernel } = await startTestKernel(t, { packs: [slow, clock(ctx => void setups.push(ctx))] })
  const failed = comes(kernel, 'clock', 'Failed')
  setups[0]?.fail(new PassingFailure('the wheel is off', 1))
  await failed
  const changes = [kernel.unload('slow'), kernel.reload('clock')]
  await new Promise(resolve => setTimeout(resolve, 5)) // the try is due by now
  gone.open()
  await Promise.all(changes)
  await kernel.load('slow') // behind the try
  assert.equal(setups.length, 2)
  assert.deepEqual(states(kernel)[1], ['clock', 'Active', undefined])
})

test('a pack that somebody unloads meanwhile stays unloaded', async t => {
  let setups = 0
  const failing = clock(() => {
    setups++
    throw new PassingFailure('not yet', 100)
  })
  const { kernel } = await startTestKernel(t, { packs: [failing] })
  await kernel.unload('clock')
  const before = setups
  await new Promise(done => setTimeout(done, 150))
  assert.equal(setups, before)
})

const time = defineRoute({ method: 'GET', path: '/api/v1/time', summary: 'Time', data: Type.String() })
const stop = defineRoute({
  method: 'POST',
  path: '/api/v1/time:stop',
  summary: 'Stop',
  body: Type.Object({ why: Type.String() }),
  data: Type.Null()
})
const plan = defineRoute({ method: 'GET', path: '/api/v1/plan', summary: 'Plan', data: Type.String() })
const tick = defineFrame({ type: 'tick', payload: Type.Object({}), ack: Type.Object({}) })

async function startClock(t: TestContext) {
  let ctx: PackContext | undefined
  const packs = [
    clock(given => {
      ctx = given
      given.route(time, () => 'noon')
      given.route(stop, () => null)
      given.frame(tick, () => ({}))
      given.tap(given.hooks.attachStream, async id => (id === 'day' ? 'live' : undefined))
    }),
    definePack({ ...needy, setup: own => void own.route(plan, () => 'tea') })
  ]
  const server = await startTestKernel(t, { packs })
  const { kernel, call } = server
  const fails = async (error: Error) => {
    const failed = comes(kernel, 'clock', 'Failed')
    ctx?.fail(error)
    await failed
  }
  const codes = async () => [(await call(time)).code, (await call(plan)).code]
  return { ...server, fails, codes }
}

test('a session whose pack is away and comes back is not said to be missing', async t => {
  const { connect, fails } = await startClock(t)
  const socket = await connect()
  const ask = () => socket.request('subscribe', { session_ids: ['day'] })
  assert.deepEqual((await ask()).payload.accepted, ['day'])

  await fails(new PassingFailure('the wheel is off', 60_000))

  const { code, msg } = await ask()
  assert.deepEqual([code, msg], [50007, 'pack clock is starting again; try again'])
})

test('while a pack is away that comes back, its routes, its frames and those of who needs it say so', async t => {
  const { kernel, call, connect, rest, fails, codes } = await startClock(t)
  const socket = await connect()
  await fails(new PassingFailure('the wheel is off', 60_000))

  const { status, code, msg, details } = await call(time)
  assert.deepEqual([status, code, msg], [503, 50007, 'pack clock is starting again; try again'])
  const { pack, retry_after_ms } = details as unknown as { pack: string; retry_after_ms: number }
  assert.ok(pack === 'clock' && retry_after_ms > 50_000 && retry_after_ms <= 60_000, String(retry_after_ms))
  assert.equal((await call(stop, { body: {} as never })).code, PackAway.code, 'nobody looks at a request that nobody can answer')
  assert.equal(kernel.declarations().owners.get(time)?.name, 'clock', 'and the documents say whose they are')
  assert.deepEqual([(await call(plan)).code, (await call(plan)).details], [PackAway.code, { pack: 'needy' }])
  const ack = await socket.request('tick', {})
  assert.deepEqual([ack.code, ack.msg], [PackAway.code, msg])
  assert.deepEqual([(await rest.json('GET', '/api/v1/time')).code, kernel.declarations().routes.length], [PackAway.code, 3])

  await kernel.reload('clock')
  assert.deepEqual(await codes(), [0, 0])
  assert.equal((await socket.request('tick', {})).code, 0)
})

test('there is no such route when the pack gave up, is unloaded, or another one has its place', async t => {
  const { kernel, call, fails, codes } = await startClock(t)
  await fails(new Error('broken for good'))
  assert.deepEqual(await codes(), [40400, 40400])
  await kernel.reload('clock')
  await fails(new PassingFailure('the wheel is off', 60_000))
  await kernel.load(definePack({ name: 'watch', setup: ctx => void ctx.route(time, () => 'midnight') }))
  assert.equal((await call(time)).data, 'midnight')
  await kernel.unload('watch')
  assert.deepEqual(await codes(), [PackAway.code, PackAway.code])
  await kernel.unload('clock')
  assert.deepEqual(await codes(), [40400, 40400])
  assert.deepEqual(kernel.declarations().routes, [])
})

test('a pause that is longer than a timer can wait is the longest, and not none', async t => {
  const contexts: PackContext[] = []
  const asked = defineRoute({ method: 'GET', path: '/api/v1/asked', summary: 'Ask', data: Type.Null() })
  const { kernel, call } = await startTestKernel(t, {
    packs: [
      clock(ctx => {
        contexts.push(ctx)
        ctx.route(asked, () => null)
      })
    ]
  })
  const failed = comes(kernel, 'clock', 'Failed')
  contexts[0]?.fail(new PassingFailure('gone for good', Number.POSITIVE_INFINITY))
  await failed
  const { code, details } = await call(asked)
  assert.equal(code, PackAway.code)
  assert.ok((details as unknown as { retry_after_ms: number }).retry_after_ms > 2 ** 30, JSON.stringify(details))
})
