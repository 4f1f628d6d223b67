import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineEvent,
  defineFrame,
  defineOutFrame,
  definePack,
  defineRoute,
  errorSpec,
  extensionPoint,
  type PackContext,
  type ServiceToken,
  serviceToken,
  Type
} from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const whoami = defineRoute({ method: 'GET', path: '/api/v1/whoami', summary: 'Who', data: Type.String() })
const happened = defineEvent({ type: 'event.happened', scope: 'global', durable: false, payload: Type.Object({}) })
const ask = defineFrame({ type: 'ask', payload: Type.Object({}), ack: Type.Object({}) })
const told = defineOutFrame({ type: 'told', payload: Type.Object({}) })

/** A pack that does nothing but hand out its context. */
function holder(name: string, provides: readonly ServiceToken<object>[] = []) {
  const held: { ctx: PackContext<unknown> } = { ctx: undefined as never }
  const pack = definePack({
    name,
    provides,
    setup: ctx => {
      held.ctx = ctx
      for (const token of provides) ctx.provide(token, {})
    }
  })
  return { pack, held }
}

test('what a pack has on the wire and provides it brings in its setup; later it is refused and leaves nothing', async t => {
  const Voice = serviceToken<object>('voice')
  const held = holder('late', [Voice])
  const { kernel } = await startTestKernel(t, { packs: [held.pack] })
  const { ctx } = held.held
  const before = kernel.inspect()

  for (const late of [
    () => ctx.route(whoami, () => 'late'),
    () => ctx.event(happened),
    () => ctx.frame(ask, () => ({})),
    () => ctx.outFrame(told),
    () => ctx.provide(Voice, {})
  ])
    assert.throws(late, { code: 'setup_over' })

  assert.deepEqual(kernel.inspect(), before)
})

test('a pack whose route, event, frame or error code another one has fails, with the clash named, and leaves nothing', async t => {
  const codes = errorSpec('first_missing', 40999, 'missing')
  const first = definePack({
    name: 'first',
    errors: [codes],
    setup: ctx => {
      ctx.route(whoami, () => 'first')
      ctx.event(happened)
      ctx.frame(ask, () => ({}))
      ctx.outFrame(told)
    }
  })
  const late = (name: string, bring: (ctx: PackContext<unknown>) => unknown) => definePack({ name, setup: ctx => void bring(ctx as never) })
  const { call, kernel } = await startTestKernel(t, { packs: [first] })
  const before = kernel.inspect()
  await kernel.load(
    late('routes', ctx => ctx.route({ ...whoami }, () => 'late')),
    late('events', ctx => ctx.event({ ...happened })),
    late('frames', ctx => ctx.frame({ ...ask }, () => ({}))),
    late('sends', ctx => ctx.outFrame({ ...told })),
    late('codes', ctx => ctx.route({ ...whoami, path: '/api/v1/other', errors: [errorSpec('other', 40999, 'other')] }, () => '')),
    late('twice', ctx => [1, 2].map(() => ctx.event({ ...happened, type: 'event.late' })))
  )
  assert.deepEqual(
    kernel.features().map(one => one.meta.error),
    [
      undefined,
      'route GET /api/v1/whoami of routes clashes with first',
      'event type event.happened of events clashes with first',
      'frame type ask of frames clashes with first',
      'sent frame type told of sends clashes with first',
      "error code 40999 is 'first_missing' of first and 'other' of codes",
      'event type event.late of twice clashes with twice'
    ]
  )
  assert.equal((await call(whoami)).data, 'first')
  assert.deepEqual(kernel.inspect(), before)
})

test('what is not on the wire can be taken back before its pack goes', async t => {
  const Words = extensionPoint<string>('words')
  const heard: string[] = []
  const late = holder('late')
  let emit: (payload: object) => void = () => undefined
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      emit = ctx.event(happened)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [owner, late.pack] })
  const { ctx } = late.held
  const before = kernel.inspect()
  let closed = 0
  const undos = [
    ctx.on(happened, () => heard.push('event')),
    ctx.contribute(Words, 'hello'),
    ctx.collect(Words).onChange(() => heard.push('change')),
    ctx.tap(ctx.hooks.event, () => void heard.push('tap')),
    ctx.own(() => closed++)
  ]
  emit({})
  assert.deepEqual(heard.splice(0), ['event', 'tap'])
  assert.notDeepEqual(kernel.inspect(), before)

  for (const undo of undos) await undo()
  for (const undo of undos) await undo() // twice changes nothing

  assert.deepEqual(kernel.inspect(), before)
  emit({})
  assert.equal(closed, 1)
  ctx.contribute(Words, 'again')
  for (const undo of undos) await undo() // what came later is not theirs
  assert.equal(kernel.inspect().items, before.items + 1)
  assert.deepEqual(heard, ['change']) // the last thing it heard was the word that went
})

test('a registration taken back during setup never becomes visible', async t => {
  const Words = extensionPoint<string>('words')
  const hasty = definePack({
    name: 'hasty',
    setup: ctx => {
      ctx.on(happened, () => undefined)()
      ctx.contribute(Words, 'hello')()
      ctx.tap(ctx.hooks.started, () => undefined)()
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [hasty] })
  assert.deepEqual(kernel.inspect(), { ...kernel.inspect(), taps: 0, items: 0 })
  assert.equal(kernel.features()[0]?.state, 'Active')
})

test('nobody takes over a frame or an error code of the kernel', async t => {
  const packs = [
    definePack({ name: 'asks', setup: ctx => void ctx.frame({ ...ask, type: 'subscribe' }, () => ({})) }),
    definePack({ name: 'sends', setup: ctx => void ctx.outFrame({ ...told, type: 'server_hello' }) }),
    definePack({ name: 'fails', errors: [errorSpec('mine', 40101, 'mine')], setup: () => undefined })
  ]
  const { kernel } = await startTestKernel(t, { packs })
  assert.deepEqual(
    kernel.features().map(one => one.meta.error),
    [
      'frame type subscribe of asks clashes with the kernel',
      'sent frame type server_hello of sends clashes with the kernel',
      "error code 40101 is 'unauthorized' of the kernel and 'mine' of fails"
    ]
  )
})
