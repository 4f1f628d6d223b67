/** The work in flight of a pack, and how long its end waits for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Activity } from '../../kernel/lifecycle/scope.ts'

test('without a grace time running work is aborted at once', { timeout: 4_000 }, async () => {
  const activity = new Activity()
  const work = activity.enter()
  assert.equal(await activity.drain(0), 1)
  assert.equal(work?.signal.aborted, true)
  assert.equal(activity.enter(), undefined)
})

test('work that ends within the grace time is not aborted, and nobody waits longer for it', { timeout: 4_000 }, async () => {
  const activity = new Activity()
  const work = activity.enter()
  const drained = activity.drain(60_000)
  work?.leave()
  assert.equal(await drained, 0)
})
