/** Work in order, and a few at once: what packs get for it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aFewAtOnce, inOrder, nextPass } from '../../kernel/index.ts'

test('work in a queue runs one after the other, whatever becomes of the work before', async () => {
  const queued = inOrder()
  const seen: string[] = []
  const first = queued(async () => {
    seen.push('begins')
    await Promise.resolve()
    seen.push('fails')
    throw new Error('no')
  })
  const second = queued(async () => {
    seen.push('goes on')
    return 2
  })
  await assert.rejects(first, /^Error: no$/)
  assert.equal(await second, 2)
  assert.deepEqual(seen, ['begins', 'fails', 'goes on'])
})

test('of many never more than so many run at once, and the answers are in the order of the items', async () => {
  let running = 0
  let most = 0
  const done = aFewAtOnce([3, 1, 2], 2, async item => {
    most = Math.max(most, ++running)
    for (let pass = 0; pass < item; pass++) await nextPass() // the first item ends last
    running--
    return item * 10
  })
  assert.deepEqual(await done, [30, 10, 20])
  assert.equal(most, 2)
})

test('the first failure of a few at once is the failure of all', async () => {
  await assert.rejects(
    aFewAtOnce([1, 2], 1, async item => {
      if (item === 1) throw new Error('one')
      assert.fail('nothing follows a failure')
    }),
    /^Error: one$/
  )
})
