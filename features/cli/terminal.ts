/** The terminal in which a server was started, or the pipe in its place. */
import type { OperatorLine } from '../../kernel/index.ts'

/** Of a pipe that nobody reads; what comes beyond is in the log alone. */
const maxUnread = 256 * 1024

/** Lines of a running server. Before `running` they are part of the start. */
export class Terminal {
  readonly #out: (text: string) => void
  /** What was shown before `running`. */
  readonly #told = new Set<string>()
  #running = false

  constructor(out: (text: string) => void) {
    this.#out = out
  }

  /** From now on lines carry the time of day. */
  running(): void {
    this.#running = true
  }

  /** It was shown at the start. */
  isTold(text: string): boolean {
    return this.#told.has(text)
  }

  show({ level, text }: OperatorLine): void {
    if (!this.#running) this.#told.add(text)
    this.say(level === 'info' ? text : `warning: ${text}`)
  }

  say(text: string): void {
    if (process.stdout.writableLength > maxUnread) return
    this.#out(`${this.#running ? `${new Date().toTimeString().slice(0, 8)} ` : ''}${text}\n`)
  }
}
