/** The one wait with a time limit. */

/** What `waitAtMost` resolves to when the limit came first. */
export const late: unique symbol = Symbol('late')

/**
 * Resolves with the work's value, or with `late` after `ms` (Infinity: never); rejects as the work does. The work itself goes on: end
 * it by its signal.
 */
export async function waitAtMost<T>(work: Promise<T>, ms: number): Promise<T | typeof late> {
  if (ms === Number.POSITIVE_INFINITY) return await work
  let timer: NodeJS.Timeout | undefined
  const limit = new Promise<typeof late>(resolve => {
    timer = setTimeout(() => resolve(late), ms)
  })
  try {
    return await Promise.race([work, limit])
  } finally {
    clearTimeout(timer)
  }
}
