/** Fair shares of the event loop: many streams that all have data must not hold it together longer than one may hold it alone. */

/** What all streams together may take of one pass of the event loop, ms. */
const sliceMs = 3

let began = 0
let counting = false

/**
 * Asks whether it is time to yield to the event loop. Undefined: go on. A promise: await it first; it resolves in the next pass.
 * Work that loops over data which is already there (parsed events, journal lines, frames to hand over) calls this between items.
 */
export function yieldToLoop(): Promise<void> | undefined {
  const now = performance.now()
  if (!counting) {
    counting = true
    began = now
    setImmediate(endPass)
  }
  return now - began > sliceMs ? new Promise(resolve => setImmediate(resolve)) : undefined
}

function endPass(): void {
  counting = false
}
