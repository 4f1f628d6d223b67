import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEvent, defineFrame, defineOutFrame, definePack, defineRoute, errorSpec, type PackContext, Type } from '../../kernel/index.ts'
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
