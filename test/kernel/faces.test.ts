import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, type PackContext } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

test('a pack sees the streams of the kernel and nothing else of the hub', async t => {
  const seen: PackContext[] = []
  await startTestKernel(t, { packs: [definePack({ name: 'nosy', setup: ctx => void seen.push(ctx as PackContext) })] })
  const streams = Object.keys(seen[0]?.streams ?? {}).sort()
  for (const own of ['backwards', 'close', 'flushed', 'lost', 'open', 'subscribers', 'takeOver', 'watermark', 'written'])
    assert.ok(streams.includes(own), own)
  for (const foreign of ['stop', 'closeSockets', 'emit', 'setFrames', 'upgrade', 'tap']) {
    assert.ok(!(foreign in (seen[0]?.streams ?? {})), foreign)
  }
})

test('a pack can tap the hooks of the kernel through its context only, and cannot call them', async t => {
  const seen: PackContext[] = []
  let stopped = 0
  const { kernel } = await startTestKernel(t, {
    packs: [
      definePack({ name: 'victim', setup: ctx => void ctx.tap(ctx.hooks.stopping, () => void stopped++) }),
      definePack({ name: 'nosy', setup: ctx => void seen.push(ctx as PackContext) })
    ]
  })
  for (const [name, hook] of Object.entries(seen[0]?.hooks ?? {})) {
    assert.deepEqual(Object.keys(hook).sort(), ['kind', 'name'])
    assert.equal(hook.name, name)
    assert.ok(Object.isFrozen(hook))
    for (const power of ['call', 'promise', 'callAsync', 'tap', 'tapPromise', 'taps', 'intercept']) assert.ok(!(power in hook), power)
  }
  assert.ok(Object.isFrozen(seen[0]?.hooks))
  assert.equal(stopped, 0)
  await kernel.stop()
  assert.equal(stopped, 1)
})

test('a tap carries the name of its pack', async t => {
  const pack = definePack({ name: 'listener', setup: ctx => void ctx.tap(ctx.hooks.started, () => undefined) })
  const { kernel } = await startTestKernel(t, { packs: [pack] })
  assert.deepEqual(
    kernel.hooks.started.taps.map(tap => tap.name),
    ['listener']
  )
})
