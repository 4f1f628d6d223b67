/** Ids: monotonic ULIDs (they sort by creation, also within one millisecond). */
import { randomFillSync } from 'node:crypto'
import { monotonicFactory } from 'ulid'

/**
 * A source of monotonic ULIDs. Randomness is taken in blocks: the library would ask the system for each of 16 characters at every new
 * millisecond, which costs more than the rest of a request.
 */
export function ulidSource(): () => string {
  const pool = new Uint8Array(1024)
  let used = pool.length
  const next = monotonicFactory(() => {
    if (used === pool.length) {
      randomFillSync(pool)
      used = 0
    }
    return (pool[used++] ?? 0) / 256
  })
  return () => next()
}
