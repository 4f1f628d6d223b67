import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AsyncSeriesBailHook, SyncHook } from 'tapable'
import { AppError, definePack, defineRoute, errorSpec, type PackContext, Type, type Undo } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'

/** Two packs without purpose, by their contexts. */
async function two(t: TestContextLike) {
  const held: PackContext[] = []
  const pack = (name: string) => definePack({ name, setup: ctx => void held.push(ctx as PackContext) })
  const { kernel } = await startTestKernel(t, { packs: [pack('one'), pack('other')] })
  const [one, other] = held as [PackContext, PackContext]
  return { kernel, one, other }
}

test('taps run by stage, and within a stage in the order they were made', async t => {
  const { one, other } = await two(t)
  const hook = new SyncHook<[]>([])
  const order: string[] = []
  one.tap(hook, () => void order.push('first'))
  other.tap(hook, () => void order.push('last'), { stage: 10 })
  other.tap(hook, () => void order.push('early'), { stage: -10 })
  one.tap(hook, () => void order.push('second'))
  hook.call()
  assert.deepEqual(order, ['early', 'first', 'second', 'last'])
})

test('a tap that is taken back while its hook runs is not called any more', async t => {
  const { one, other } = await two(t)
  const hook = new SyncHook<[]>([])
  const answer = new AsyncSeriesBailHook<[], string>([])
  const order: string[] = []
  const undos: Undo[] = []
  const leave = () => {
    for (const undo of undos) undo()
  }
  one.tap(hook, leave)
  one.tap(answer, () => {
    leave()
    return undefined
  })
  undos.push(
    other.tap(hook, () => void order.push('called')),
    other.tap(answer, () => 'answered')
  )
  hook.call()
  assert.deepEqual(order, [])
  undos.push(other.tap(answer, () => 'answered'))
  assert.equal(await answer.promise(), undefined)
})

test('a tap with a say in a hook of the kernel that hangs is given up, put down to its pack, and fails what it was asked for', async t => {
  const ping = defineRoute({ method: 'GET', path: '/api/v1/ping', summary: 'Ping', data: Type.Null() })
  const stuck = definePack({ name: 'stuck', setup: ctx => ctx.tap(ctx.hooks.beforeRequest, () => new Promise(() => undefined)) })
  const fine = definePack({ name: 'fine', setup: ctx => ctx.route(ping, () => null) })
  const { kernel, call } = await startTestKernel(t, { packs: [stuck, fine], frameTimeoutMs: 30 })
  assert.equal((await call(ping)).code, 50001)
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 1, last: 'tap of beforeRequest: took longer than 30 ms and was given up' })
})

test('a tap with a say that fails is put down to its pack, and its failure reaches who called the hook; expected failures are no faults', async t => {
  const { kernel, one, other } = await two(t)
  const hook = new AsyncSeriesBailHook<[string], string>(['question'])
  const Known = errorSpec('known', 40998, 'known')
  one.tap(hook, async question => {
    if (question === 'bug') throw new Error('boom')
    if (question === 'known') throw new AppError(Known)
    if (question === 'stop') AbortSignal.abort().throwIfAborted()
    return undefined // no opinion
  })
  other.tap(hook, () => 'other')
  assert.equal(await hook.promise('fine'), 'other')
  await assert.rejects(hook.promise('known'), AppError)
  await assert.rejects(hook.promise('stop'), { name: 'AbortError' })
  assert.equal(kernel.features()[0]?.meta.faults, undefined)
  await assert.rejects(hook.promise('bug'), /boom/)
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 1, last: 'tap of a hook: boom' })
})

test('a pack that comes when the server has started hears of the start once it is active, each time it comes', async t => {
  const heard: string[] = []
  const pack = definePack({
    name: 'late',
    setup(ctx) {
      ctx.tap(ctx.hooks.started, async () => void heard.push('started'))
      ctx.tap(ctx.hooks.started, () => void heard.push('withdrawn'))()
      ctx.tap(ctx.hooks.started, async () => Promise.reject(new Error('not now')))
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [] })
  await kernel.load(pack)
  await kernel.reload('late')
  await new Promise(resolve => setImmediate(resolve))
  assert.deepEqual(heard, ['started', 'started'])
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 1, last: 'tap of started: not now' })
})

test('a tap of the start that is taken back at once is not called, though the server has started', async t => {
  const { kernel, one } = await two(t)
  const told: string[] = []
  one.tap(one.hooks.started, () => void told.push('taken back'))()
  one.tap(one.hooks.started, () => void told.push('kept'))
  await kernel.load('other') // what is called at once is through
  assert.deepEqual(told, ['kept'])
})
