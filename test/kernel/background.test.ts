import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { definePack, type PackContext } from '../../kernel/index.ts'
import type { LogOptions } from '../../kernel/log/log.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'
import { startChild } from '../helpers/child.ts'

async function contextOf(t: TestContextLike, log: LogOptions = { level: 'silent' }) {
  const held: PackContext[] = []
  const pack = definePack({ name: 'busy', setup: ctx => void held.push(ctx as PackContext) })
  const { kernel } = await startTestKernel(t, { packs: [pack], log })
  return { kernel, ctx: held[0] as PackContext }
}

test('background work is aborted and awaited when its pack unloads', async t => {
  const { kernel, ctx } = await contextOf(t)
  let ended = false
  ctx.background(async signal => {
    await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
    await tick()
    ended = true
  })
  await kernel.unload('busy')
  assert.equal(ended, true)
})

test('background work that ends because its pack goes is no fault', async t => {
  const lines: string[] = []
  const { kernel, ctx } = await contextOf(t, { level: 'error', to: { write: line => void lines.push(line) } })
  let ending = Promise.resolve()
  ctx.background(signal => {
    ending = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason), { once: true }))
    return ending
  })
  await Promise.all([kernel.unload('busy'), assert.rejects(ending)])
  assert.deepEqual(lines, [])
})

test('background work that fails is put down to its pack', async t => {
  const { kernel, ctx } = await contextOf(t)
  ctx.background(async () => {
    throw new Error('no disk')
  })
  await tick()
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 1, last: 'background work: no disk' })
})

test('two hundred thousand finished background jobs leave nothing behind', async t => {
  const child = startChild(t, 'background', '200')
  assert.equal(await child.end(), 0)
  const kib = Number(child.lines[0])
  assert.ok(kib < 4 * 1024, `the heap grew by ${kib} KiB`)
})
