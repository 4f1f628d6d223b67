/** A pack that fails in passing comes back by itself. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, type PackContext, PassingFailure, serviceToken } from '../../kernel/index.ts'
import type { Kernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const Clock = serviceToken<object>('clock')

function clock(setup: (ctx: PackContext) => void) {
  return definePack({
    name: 'clock',
    provides: [Clock],
    setup(ctx) {
      ctx.provide(Clock, {})
      setup(ctx as unknown as PackContext)
    }
  })
}
const needy = definePack({ name: 'needy', needs: { clock: Clock }, setup: () => undefined })

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
