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
  serviceToken,
  Type
} from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const whoami = defineRoute({ method: 'GET', path: '/api/v1/whoami', summary: 'Who', data: Type.String() })
const happened = defineEvent({ type: 'event.happened', scope: 'global', durable: false, payload: Type.Object({}) })
const ask = defineFrame({ type: 'ask', payload: Type.Object({}), ack: Type.Object({}) })
const told = defineOutFrame({ type: 'told', payload: Type.Object({}) })

/** A pack that does nothing but hand out its context. */
function holder(name: string) {
  const held: { ctx: PackContext<unknown> } = { ctx: undefined as never }
  const pack = definePack({
    name,
    setup: ctx => {
      held.ctx = ctx
    }
  })
  return { pack, held }
}

test('a route that an active pack adds is checked like one of its setup: it never takes over another pack’s', async t => {
  const first = definePack({ name: 'first', setup: ctx => void ctx.route(whoami, () => 'first') })
  const late = holder('late')
  const { call, kernel } = await startTestKernel(t, { packs: [late.pack, first] })

  assert.throws(() => late.held.ctx.route({ ...whoami }, () => 'late'), {
    code: 'wire_clash',
    message: 'route GET /api/v1/whoami of late clashes with first'
  })

  assert.equal((await call(whoami)).data, 'first')
  assert.deepEqual(kernel.inspect().routes, ['GET /api/v1/whoami'])
})

test('events, frames and error codes that an active pack adds are checked, too, and a refused one leaves nothing', async t => {
  const codes = errorSpec('first_missing', 40999, 'missing')
  const first = definePack({
    name: 'first',
    errors: [codes],
    setup: ctx => {
      ctx.event(happened)
      ctx.frame(ask, () => ({}))
      ctx.outFrame(told)
    }
  })
  const late = holder('late')
  const { kernel } = await startTestKernel(t, { packs: [first, late.pack] })
  const { ctx } = late.held
  const before = kernel.inspect()

  assert.throws(() => ctx.event({ ...happened }), /event type event\.happened of late clashes with first/)
  assert.throws(() => ctx.frame({ ...ask }, () => ({})), /frame type ask of late clashes with first/)
  assert.throws(() => ctx.outFrame({ ...told }), /sent frame type told of late clashes with first/)
  assert.throws(() => ctx.route({ ...whoami, errors: [errorSpec('other', 40999, 'other')] }, () => ''), /40999/)
  assert.throws(() => {
    ctx.event({ ...happened, type: 'event.late' })
    ctx.event({ ...happened, type: 'event.late' })
  }, /event\.late of late clashes with late/)

  assert.deepEqual({ ...kernel.inspect(), events: [] }, { ...before, events: [] })
  assert.deepEqual(kernel.inspect().events, ['event.happened', 'event.late'])
})

test('every registration can be taken back before its pack goes', async t => {
  const Words = extensionPoint<string>('words')
  const heard: string[] = []
  const late = holder('late')
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      ctx.event({ ...happened, type: 'event.other' })
    }
  })
  const { call, kernel } = await startTestKernel(t, { packs: [owner, late.pack] })
  const { ctx } = late.held
  const before = kernel.inspect()

  const emit = ctx.event(happened)
  let closed = 0
  const undos = [
    ctx.route(whoami, () => 'late'),
    emit.undo,
    ctx.on(happened, () => heard.push('event')),
    ctx.frame(ask, () => ({})),
    ctx.outFrame(told),
    ctx.contribute(Words, 'hello'),
    ctx.collect(Words).onChange(() => heard.push('change')),
    ctx.tap(ctx.hooks.event, () => void heard.push('tap')),
    ctx.own(() => closed++)
  ]
  emit({})
  assert.deepEqual(heard.splice(0), ['event', 'tap'])
  assert.equal((await call(whoami)).data, 'late')
  assert.notDeepEqual(kernel.inspect(), before)

  for (const undo of undos) await undo()
  for (const undo of undos) await undo() // twice changes nothing

  assert.deepEqual(kernel.inspect(), before)
  assert.equal((await call(whoami)).code, 40400)
  assert.throws(() => emit({}), { code: 'event_withdrawn' })
  assert.equal(closed, 1)
  ctx.route(whoami, () => 'again')
  for (const undo of undos) await undo() // what came later is not theirs
  assert.equal((await call(whoami)).data, 'again')
  ctx.contribute(Words, 'again')
  assert.deepEqual(heard, ['change']) // the last thing it heard was the word that went
})

test('a registration taken back during setup never becomes visible', async t => {
  const Words = extensionPoint<string>('words')
  const hasty = definePack({
    name: 'hasty',
    setup: ctx => {
      ctx.route(whoami, () => 'hasty')()
      ctx.on(happened, () => undefined)()
      ctx.contribute(Words, 'hello')()
      ctx.tap(ctx.hooks.started, () => undefined)()
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [hasty] })
  assert.deepEqual(kernel.inspect(), { ...kernel.inspect(), routes: [], taps: 0, items: 0 })
  assert.equal(kernel.features()[0]?.state, 'Active')
})

test('a service that is taken back takes down those who need it, and only them', async t => {
  const Voice = serviceToken<{ say(): string }>('voice')
  const Ear = serviceToken<object>('ear')
  const heard = defineEvent({ type: 'voice.heard', scope: 'global', durable: false, payload: Type.Object({}) })
  const order: string[] = []
  let undo: () => Promise<void> = async () => undefined
  let again: () => unknown = () => undefined
  const speaker = definePack({
    name: 'speaker',
    provides: [Voice, Ear],
    setup: ctx => {
      again = () => ctx.provide(Voice, { say: () => 'hello' })
      undo = ctx.provide(Voice, { say: () => 'hello' })
      ctx.provide(Ear, {})
      ctx.own(() => order.push('speaker'))
    }
  })
  const user = definePack({
    name: 'user',
    needs: { voice: Voice },
    setup: ctx => {
      ctx.event(heard)
      ctx.own(() => order.push('user'))
    }
  })
  const other = definePack({ name: 'other', needs: { ear: Ear }, setup: ctx => void ctx.own(() => order.push('other')) })
  const { kernel } = await startTestKernel(t, { packs: [speaker, user, other] })
  assert.deepEqual(kernel.declarations().events, [heard])

  await undo()

  assert.throws(again, { code: 'service_late' })
  assert.deepEqual(order, ['user'])
  assert.deepEqual(kernel.declarations().events, [], 'what they have on the wire is in the documents no longer')
  assert.deepEqual(kernel.features(), [
    { name: 'speaker', state: 'Active', meta: {} },
    { name: 'user', state: 'Pending', meta: { waiting_for: ['voice'] } },
    { name: 'other', state: 'Active', meta: {} }
  ])
  const substitute = definePack({ name: 'substitute', provides: [Voice], setup: ctx => ctx.provide(Voice, { say: () => 'hi' }) })
  await kernel.load(substitute)
  await undo() // the service is another's now
  assert.equal(kernel.features()[1]?.state, 'Active')
  await kernel.unload('substitute')
  await kernel.reload('speaker')
  assert.deepEqual(
    kernel.features().map(one => one.state),
    ['Active', 'Active', 'Active']
  )
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
