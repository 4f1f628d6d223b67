/** Loaded sessions that nobody uses are unloaded, the least recently used first. */
import type { Logger, Streams } from '../../kernel/index.ts'
import type { LiveSession } from './live.ts'

export interface IdleLimits {
  /** Loaded sessions without work and subscribers that are kept. */
  readonly maxIdle: number
  /** Beyond `maxIdle` a session stays loaded at least this long after its last use, ms. */
  readonly idleMs: number
  /** One that was not used for so long is unloaded, however few there are, ms. */
  readonly hibernateMs: number
}

interface IdlePorts extends IdleLimits {
  /** Those that are loaded, in order of use, the least recent first. */
  readonly sessions: ReadonlyMap<string, LiveSession>
  readonly streams: Pick<Streams, 'subscribers'>
  readonly log: Logger
  /** Sessions that are being closed. */
  readonly closing: () => number
  /** Puts a session behind all others. */
  readonly used: (session: LiveSession, at: number) => void
  readonly unload: (id: string) => Promise<void>
}

/** Sessions that are closed at a time, when nobody waits for it. */
const maxClosing = 32

export class IdleSessions {
  readonly #ports: IdlePorts
  #timer: NodeJS.Timeout | undefined
  #due = 0
  #stopped = false

  constructor(ports: IdlePorts) {
    this.#ports = ports
  }

  /** Unloads what nobody uses, and comes back when the next one is due. */
  sweep(): void {
    if (this.#stopped) return
    const { sessions, maxIdle, idleMs, hibernateMs, closing, used, unload, log } = this.#ports
    const now = performance.now()
    for (const session of sessions.values()) {
      const limit = sessions.size > maxIdle ? idleMs : hibernateMs
      const rest = session.usedAt + limit - now
      if (rest > 0 || closing() >= maxClosing) {
        this.#comeBack(now, Math.max(rest, 20))
        return
      }
      if (this.#isIdle(session)) {
        void unload(session.id).catch(err => log.warn({ err, session_id: session.id }, 'unloading a session failed'))
      } else used(session, now + 1) // what goes on counts as use; behind `now`, so that this pass ends here
    }
  }

  /** A timer that fires too early stays: one for each use would leave a list of timers in the runtime until it is due. */
  #comeBack(now: number, ms: number): void {
    if (this.#timer && this.#due <= now + ms) return
    clearTimeout(this.#timer)
    this.#due = now + ms
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.sweep()
    }, ms).unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  #isIdle({ id, isKept, work }: LiveSession): boolean {
    return !isKept && !work.busy && work.pending_interaction === 'none' && this.#ports.streams.subscribers(id) === 0
  }
}
