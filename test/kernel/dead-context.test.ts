import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineEvent,
  defineFrame,
  defineOutFrame,
  definePack,
  defineRoute,
  defineSlot,
  defineStore,
  extensionPoint,
  type PackContext,
  serviceToken,
  Type
} from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const Words = extensionPoint<string>('words')
const Voice = serviceToken<object>('voice')
const happened = defineEvent({ type: 'event.happened', scope: 'global', durable: false, payload: Type.Object({}) })
const value = Type.Object({ n: Type.Integer() })

test('everything got from a context throws once its pack is gone, and says so', async t => {
  const uses: Record<string, () => unknown> = {}
  const gone: PackContext[] = []
  const pack = definePack({
    name: 'gone',
    setup: ctx => {
      gone.push(ctx as PackContext)
      const emit = ctx.event(happened)
      const words = ctx.collect(Words)
      const kv = ctx.store(defineStore({ name: 'kv', value }))
      const doc = ctx.storeAt(defineStore({ name: 'doc', value, kind: 'document' }), `${ctx.home}/doc`)
      const log = ctx.store(defineStore({ name: 'log', value, kind: 'log' }))
      const blob = ctx.store(defineStore({ name: 'blob', value, kind: 'blob' }))
      Object.assign(uses, {
        emitter: () => emit({}),
        items: () => words.items(),
        entries: () => words.entries(),
        onChange: () => words.onChange(() => undefined),
        'kv.get': () => kv.get('a'),
        'kv.put': () => kv.put('a', { n: 1 }),
        'document.put': () => doc.put('a', { n: 1 }),
        'log.append': () => log.append('a', { n: 1 }),
        'log.scan': async () => {
          for await (const entry of log.scan('a')) assert.fail(`${entry.at}`)
        },
        'blob.stat': () => blob.stat('a')
      })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [pack, definePack({ name: 'other', setup: () => undefined })] })
  await kernel.unload('gone')
  const [ctx] = gone as [PackContext]
  let closed = 0
  Object.assign(uses, {
    route: () => ctx.route(defineRoute({ method: 'GET', path: '/x', summary: 'x', data: Type.Null() }), () => null),
    event: () => ctx.event(happened),
    on: () => ctx.on(happened, () => undefined),
    frame: () => ctx.frame(defineFrame({ type: 'x', payload: value, ack: value }), ({ payload }) => payload),
    outFrame: () => ctx.outFrame(defineOutFrame({ type: 'x', payload: value })),
    store: () => ctx.store(defineStore({ name: 'kv', value })),
    storeAt: () => ctx.storeAt(defineStore({ name: 'doc', value, kind: 'document' }), ctx.home),
    provide: () => ctx.provide(Voice, {}),
    contribute: () => ctx.contribute(Words, 'x'),
    collect: () => ctx.collect(Words),
    slot: () => ctx.slot(defineSlot('x', () => ({}))),
    tap: () => ctx.tap(ctx.hooks.started, () => undefined),
    own: () => ctx.own(() => closed++),
    background: () => ctx.background(async () => assert.fail('work of a pack that is gone was begun')),
    timer: () => ctx.timer(1, () => assert.fail('a timer of a pack that is gone went off')),
    spawn: () => ctx.spawn(process.execPath, ['-e', '0']),
    fence: () => ctx.fence(() => undefined),
    onAccountOf: () => ctx.onAccountOf('other', 'work', () => assert.fail('work of a pack that is gone was begun')),
    blame: () => ctx.blame('other', 'work', new Error('not yours')),
    'streams.open': () => ctx.streams.open('session_a'),
    'streams.openForeign': () => ctx.streams.openForeign('session_a'),
    'streams.watermark': () => ctx.streams.watermark('session_a'),
    'streams.written': () => ctx.streams.written('session_a'),
    'streams.backwards': () => ctx.streams.backwards('session_a')
  })
  for (const [what, use] of Object.entries(uses)) {
    await assert.rejects(
      async () => use(),
      (error: Error & { code?: string }) => error.code === 'pack_inactive' && /pack gone is not active any more/.test(error.message),
      what
    )
  }
  assert.equal(closed, 1, 'what is opened too late is closed at once')
  assert.deepEqual(kernel.features(), [{ name: 'other', state: 'Active', meta: {} }])
})

test('what a pack opened still works while it is being cleaned up', async t => {
  const said: string[] = []
  const store = defineStore({ name: 'kv', value })
  const farewell = definePack({
    name: 'farewell',
    setup: ctx => {
      const emit = ctx.event(happened)
      const kv = ctx.store(store)
      ctx.own(async () => {
        await kv.put('last', { n: 1 })
        emit({})
        said.push('saved and told')
      })
    }
  })
  const reader = definePack({ name: 'reader', setup: ctx => void ctx.on(happened, () => said.push('heard')) })
  const { kernel } = await startTestKernel(t, { packs: [reader, farewell] })
  await kernel.unload('farewell')
  assert.deepEqual(said, ['heard', 'saved and told'])
})
