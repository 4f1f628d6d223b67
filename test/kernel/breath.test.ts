import assert from 'node:assert/strict'
import { test } from 'node:test'
import { breathe } from '../../kernel/breath.ts'

/** Work of about a millisecond. */
function work(): void {
  const until = performance.now() + 1
  while (performance.now() < until);
}

test('streams that all have data give the loop back together, and all of them finish', async () => {
  let turns = 0
  let open = true
  const count = () => {
    turns++
    if (open) setImmediate(count)
  }
  setImmediate(count)
  const stream = async () => {
    for (let n = 0; n < 10; n++) {
      work()
      const others = breathe()
      if (others) await others
      else await null
    }
  }
  await Promise.all(Array.from({ length: 10 }, stream))
  open = false
  assert.ok(turns >= 5, `100 ms of work left the loop ${turns} turns`)
})
