/** Waiting for what another pack does in a turn: at most so long, and not long once the turn is over. */

export interface Patience {
  /** At most so long, ms. */
  readonly limit_ms: number
  /** The turn's: once it aborts, the work may take `grace_ms` to end. */
  readonly signal?: AbortSignal | undefined
  readonly grace_ms?: number
}

/** The work's value. Rejects as the work does, and when it is not waited for any more; the work itself goes on. */
export function waited<T>(work: Promise<T>, { limit_ms, signal, grace_ms = 10_000 }: Patience): Promise<T> {
  return new Promise((resolve, reject) => {
    const timers: NodeJS.Timeout[] = []
    const abort = () => after(grace_ms, 'did not end with its turn')
    const over = () => {
      signal?.removeEventListener('abort', abort)
      for (const timer of timers) clearTimeout(timer)
    }
    const after = (ms: number, why: string) => {
      const giveUp = () => {
        over()
        reject(new Error(`${why} and is not waited for`))
      }
      timers.push(setTimeout(giveUp, ms).unref())
    }
    after(limit_ms, `took longer than ${limit_ms} ms`)
    if (signal?.aborted) abort()
    else signal?.addEventListener('abort', abort)
    work.then(
      value => {
        over()
        resolve(value)
      },
      (error: unknown) => {
        over()
        reject(error)
      }
    )
  })
}
