import assert from 'node:assert/strict'
import { test } from 'node:test'
import { yieldToLoop } from '../../kernel/lifecycle/wait.ts'

/** Work of about a millisecond. */
function work(): void {
  const until = performance.now() + 1
  while (performance.now() < until);
}

test('streams that all have data give the loop back together, and all of them finish', async () => {
  let passes = 0
  let open = true
  const count = () => {
    passes++
    if (open) setImmediate(count)
  }
  setImmediate(count)
  const stream = async () => {
    for (let n = 0; n < 10; n++) {
      work()
      const others = yieldToLoop()
      if (others) await others
      else await null
    }
  }
  await Promise.all(Array.from({ length: 10 }, stream))
  open = false
  assert.ok(passes >= 5, `100 ms of work left the loop ${passes} passes`)
})
