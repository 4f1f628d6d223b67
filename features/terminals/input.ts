/** What is typed into a terminal, written as its program takes it: what waits for that is bounded in bytes. */
import { writeSync } from 'node:fs'
import type { IPty } from 'node-pty'

/** Bytes that wait. A longer text is taken while nothing else waits. */
const maxWaiting = 1024 * 1024
/** Bytes of one call of the system, and of one pass of the event loop. */
const [writeBytes, passBytes] = [64 * 1024, 256 * 1024]
/** A program that took something so long ago, ms, is tried again so much later: at first, and after that. */
const busyMs = 250
const [busyRetryMs, idleRetryMs] = [1, 50]

/** What the library has where a terminal is a file. */
interface PtyFile {
  readonly fd?: unknown
  on?(event: 'close', listener: () => void): void
}

export class InputWriter {
  readonly #pty: IPty & PtyFile
  readonly #waiting: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #takenAt = -Infinity
  #closed = false

  constructor(pty: IPty) {
    this.#pty = pty
    this.#pty.on?.('close', () => this.end()) // the descriptor may be that of another file from now on
  }

  /** False: too much waits already, and nothing of this is taken. */
  write(text: string): boolean {
    const { fd } = this.#pty
    if (process.platform === 'win32' || typeof fd !== 'number') {
      this.#pty.write(text)
      return true
    }
    if (this.#closed) return true // nobody can read it any more, and the end is about to be told
    const bytes = Buffer.from(text)
    if (this.#bytes > 0 && this.#bytes + bytes.length > maxWaiting) return false
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    if (!this.#timer) this.#go(fd)
    return true
  }

  /** What waits is left out. */
  end(): void {
    this.#closed = true
    clearTimeout(this.#timer)
    this.#waiting.length = 0
    this.#bytes = 0
  }

  /** The library would try again with every pass of the loop. */
  #go(fd: number): void {
    this.#timer = undefined
    try {
      for (let left = passBytes; left > 0 && this.#waiting[0]; ) {
        const next = this.#waiting[0]
        const taken = writeSync(fd, next, 0, Math.min(next.length, writeBytes))
        this.#takenAt = performance.now()
        left -= taken
        this.#bytes -= taken
        if (taken === next.length) this.#waiting.shift()
        else this.#waiting[0] = next.subarray(taken)
      }
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') {
        this.end() // it is over, which the terminal hears on its own
        return
      }
    }
    if (this.#bytes === 0) return
    this.#timer = setTimeout(() => this.#go(fd), performance.now() - this.#takenAt < busyMs ? busyRetryMs : idleRetryMs)
  }
}
