/** Waits with a time limit. */

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

/** Resolves with the work's value, or with `late` when it is not there `ms` after the signal was aborted; rejects as the work does. */
export function waitPastAbort<T>(work: Promise<T>, signal: AbortSignal, ms: number): Promise<T | typeof late> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const aborted = () => {
      timer = setTimeout(() => resolve(late), ms)
    }
    const done = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', aborted)
    }
    if (signal.aborted) aborted()
    else signal.addEventListener('abort', aborted)
    work.then(
      value => {
        done()
        resolve(value)
      },
      (error: unknown) => {
        done()
        reject(error)
      }
    )
  })
}
