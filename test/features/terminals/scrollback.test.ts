import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { Scrollback } from '../../../features/terminals/scrollback.ts'

test('so many frames are kept, and not one more', () => {
  const scrollback = new Scrollback(2, 1024)
  for (const text of ['a', 'b', 'c']) scrollback.add(text, '')

  assert.deepEqual(
    scrollback.since(0).map(({ data }) => data),
    ['b', 'c']
  )
})

test('output that is no longer kept does not stay in memory', () => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const scrollback = new Scrollback(2000, 1024 * 1024)
  collect()
  const before = process.memoryUsage().heapUsed
  for (let n = 0; n < 900; n++) scrollback.add(Buffer.alloc(64 * 1024, 65 + (n % 26)).toString('latin1'), '')
  collect()
  assert.ok(process.memoryUsage().heapUsed - before < 8 * 1024 * 1024)
  assert.deepEqual(
    scrollback.since(0).map(({ seq }) => seq),
    Array.from({ length: 16 }, (_, n) => 885 + n)
  )
  assert.deepEqual(
    scrollback.since(898).map(({ seq }) => seq),
    [899, 900]
  )
})
