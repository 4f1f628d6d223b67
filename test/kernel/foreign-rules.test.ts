import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defineEvent, defineFrame, definePack, defineSlot, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ text: Type.String() }) })
const veil = defineFrame({ type: 'veil', payload: Type.Object({}), ack: Type.Object({}) })
const hang = defineFrame({ type: 'hang', payload: Type.Object({}), ack: Type.Object({}) })
const quick = defineFrame({ type: 'quick', payload: Type.Object({}), ack: Type.Object({}) })

/** A kernel with one pack that emits notes, knows every session, and whatever `more` sets up. */
async function scene(
  t: Parameters<typeof startTestKernel>[0],
  options: { setup?: Parameters<typeof definePack>[0]['setup']; frameTimeoutMs?: number; graceMs?: number; setupTimeoutMs?: number } = {}
) {
  const { setup = () => undefined, ...given } = options
  let add: (payload: { text: string }, session: string) => void = () => undefined
  const pack = definePack({
    name: 'notes',
    setup(ctx, services) {
      add = ctx.event(noted)
      ctx.tap(ctx.hooks.attachStream, async id => {
        await ctx.streams.open(id)
        return 'live' as const
      })
      return setup(ctx, services)
    }
  })
  const it = await startTestKernel(t, { packs: [pack], ...given })
  const faults = () => it.kernel.features()[0]?.meta.faults
  return { ...it, add, faults }
}

test('a suppress rule that throws hides nothing, is put down to its pack, and no subscriber misses an event', async t => {
  const it = await scene(t, {
    setup(ctx) {
      ctx.frame(veil, async ({ connection }) => {
        await connection.subscribe('s1')
        connection.suppress('s1', 'notes', () => {
          throw new Error('a bad rule')
        })
        return {}
      })
    }
  })
  const [veiled, other] = [await it.connect(), await it.connect()]
  await veiled.request('veil')
  await other.request('subscribe', { session_ids: ['s1'] })
  for (const text of ['a', 'b']) it.add({ text }, 's1')
  for (const client of [veiled, other]) await client.next(frame => frame.payload?.text === 'b')
  assert.deepEqual(it.faults()?.last, 'suppress rule of s1: a bad rule')
  await it.stop()
})

test('a frame handler without end is given up after its time, is told so, and its connection goes on', async t => {
  let signal: AbortSignal | undefined
  const it = await scene(t, {
    frameTimeoutMs: 50,
    setup(ctx) {
      ctx.frame(hang, input => {
        signal = input.signal
        return new Promise(() => undefined)
      })
      ctx.frame(quick, () => ({}))
    }
  })
  const client = await it.connect()
  const [hung, next] = await Promise.all([client.request('hang'), client.request('quick')])
  assert.deepEqual([hung.code, hung.msg, next.code], [50001, 'internal error', 0])
  assert.equal(signal?.aborted, true)
  assert.match(it.faults()?.last ?? '', /^handler of frame hang: took longer than 50 ms/)
})

test('the signal of a frame aborts when its connection is over', async t => {
  const begun = latch()
  const aborted = latch()
  const it = await scene(t, {
    setup(ctx) {
      ctx.frame(hang, ({ signal }) => {
        signal.addEventListener('abort', () => aborted.open())
        begun.open()
        return new Promise(() => undefined)
      })
    }
  })
  const client = await it.connect()
  client.send({ type: 'hang' })
  await begun.opened
  client.terminate()
  await aborted.opened
})

test('a session that is never loaded for its subscriber counts as missing, and the connection goes on', async t => {
  const it = await scene(t, {
    frameTimeoutMs: 1000,
    setup(ctx) {
      ctx.tap(ctx.hooks.attachStream, id => (id === 'stuck' ? new Promise(() => undefined) : undefined), { stage: -1 })
    }
  })
  const client = await it.connect()
  const ack = await client.request('subscribe', { session_ids: ['stuck', 's1'] })
  assert.deepEqual([ack.payload.accepted, ack.payload.not_found], [['s1'], ['stuck']])
})

test('a slot of a connection that never closes does not hold up the stop', async t => {
  const slot = defineSlot('stuck', () => ({ close: () => new Promise(() => undefined) }))
  const it = await scene(t, {
    graceMs: 100,
    setupTimeoutMs: 2000, // the limit of a close, too
    setup(ctx) {
      ctx.frame(quick, ({ connection }) => {
        connection.get(slot)
        return {}
      })
    }
  })
  const client = await it.connect()
  await client.request('quick')
  const began = performance.now()
  await it.stop()
  assert.ok(performance.now() - began < 10_000)
})
