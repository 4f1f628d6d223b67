/** Waiting for work that several callers share. */

/** The promise's outcome, or the signal's reason if that comes first; the work goes on for the others. */
export async function untilAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise
  let stop: (() => void) | undefined
  try {
    return await Promise.race([
      promise,
      new Promise<never>((_, reject) => {
        stop = () => reject(signal.reason as Error)
        if (signal.aborted) stop()
        else signal.addEventListener('abort', stop, { once: true })
      })
    ])
  } finally {
    if (stop) signal.removeEventListener('abort', stop)
  }
}
