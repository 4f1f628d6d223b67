/** Waiting for what another pack does in a turn: at most so long, and not long once the turn is over. */
import { overSoon } from '../../kernel/index.ts'

export interface Patience {
  /** At most so long, ms. */
  readonly limit_ms: number
  /** The turn's: once it aborts, the work may take `grace_ms` to end. */
  readonly signal?: AbortSignal | undefined
  readonly grace_ms?: number
}

/** The work's value. Rejects as the work does, and when it is not waited for any more; the work itself goes on. */
export async function waited<T>(work: T | Promise<T>, { limit_ms, signal, grace_ms = 10_000 }: Patience): Promise<T> {
  if (!(work instanceof Promise) || (await overSoon(work))) return work
  const timers: NodeJS.Timeout[] = []
  let abort = () => {}
  const over = new Promise<never>((_, reject) => {
    const after = (ms: number, why: string) => {
      timers.push(setTimeout(() => reject(new Error(`${why} and is not waited for`)), ms).unref())
    }
    after(limit_ms, `took longer than ${limit_ms} ms`)
    abort = () => after(grace_ms, 'did not end with its turn')
  })
  signal?.addEventListener('abort', abort, { once: true })
  if (signal?.aborted) abort()
  try {
    return await Promise.race([work, over])
  } finally {
    signal?.removeEventListener('abort', abort)
    for (const timer of timers) clearTimeout(timer)
  }
}
