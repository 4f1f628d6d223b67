import assert from 'node:assert/strict'
import { test } from 'node:test'
import { nextPass, yieldToLoop } from '../../kernel/lifecycle/wait.ts'

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

test('of many that wait for the next pass, a pass takes as many as it has time for, in their order', async () => {
  const passes: number[][] = [[]]
  let open = true
  const count = () => {
    passes.push([])
    if (open) setImmediate(count)
  }
  const waiting = Array.from({ length: 30 }, async (_, n) => {
    await nextPass()
    passes.at(-1)?.push(n)
    work()
  })
  setImmediate(count)
  await Promise.all(waiting)
  open = false
  assert.ok(Math.max(...passes.map(pass => pass.length)) <= 10, `30 ms of work were done as ${passes.map(pass => pass.length).join(', ')}`)
  assert.deepEqual(
    passes.flat(),
    waiting.map((_, n) => n)
  )
})

test('who waits goes on in the next pass, also where others use up every pass', async () => {
  let open = true
  const busy = () => {
    void yieldToLoop()
    for (let n = 0; n < 5; n++) work()
    if (open) setImmediate(busy)
  }
  setImmediate(busy)
  for (let n = 0; n < 5; n++) await nextPass()
  open = false
})

test('who comes later has its turn beside work that yields again and again', async () => {
  let over = false
  const long = (async () => {
    for (let slice = 0; slice < 50; slice++) {
      for (let n = 0; n < 4; n++) work()
      await yieldToLoop()
    }
    over = true
  })()
  for (let n = 0; n < 5; n++) await nextPass()
  assert.equal(over, false)
  await long
})
