/** Waits for work that may ignore its abort signal. */

/** The work's value, or undefined when it still has not ended `graceMs` after the abort. Rejections pass through. */
export async function withGrace<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<{ readonly value: T } | undefined> {
  let stop: (() => void) | undefined
  const abandoned = new Promise<undefined>(resolve => {
    let timer: NodeJS.Timeout | undefined
    const begin = () => {
      timer = setTimeout(resolve, graceMs, undefined)
    }
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { once: true })
    stop = () => {
      signal.removeEventListener('abort', begin)
      clearTimeout(timer)
    }
  })
  try {
    return await Promise.race([work.then(value => ({ value })), abandoned])
  } finally {
    stop?.()
  }
}
