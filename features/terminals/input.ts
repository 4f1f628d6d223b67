/** What is typed into a terminal, written as its program takes it: what waits for that is bounded in bytes. */
import { writeSync } from 'node:fs'
import type { IPty } from 'node-pty'
import { descriptorOf, isFile } from './descriptor.ts'

/** Bytes that wait. A longer text is taken while nothing else waits. */
const maxWaiting = 1024 * 1024
/** Bytes of one call of the system, and of one pass of the event loop. */
const [writeBytes, passBytes] = [64 * 1024, 256 * 1024]
/** A program that took something so long ago, ms, is tried again so much later: at first, and after that. */
const busyMs = 250
const [busyRetryMs, idleRetryMs] = [1, 50]

export class InputWriter {
  readonly #pty: IPty
  readonly #waiting: Buffer[] = []
  #bytes = 0
  #timer: NodeJS.Timeout | undefined
  #takenAt = -Infinity
  #closed = false

  constructor(pty: IPty) {
    this.#pty = pty
  }

  /** False: too much waits already, and nothing of this is taken. */
  write(text: string): boolean {
    if (!isFile(this.#pty)) {
      this.#pty.write(text)
      return true
    }
    if (this.#closed || descriptorOf(this.#pty) === undefined) return true // nobody can read it any more, and the end is about to be told
    const bytes = Buffer.from(text)
    if (this.#bytes > 0 && this.#bytes + bytes.length > maxWaiting) return false
    this.#waiting.push(bytes)
    this.#bytes += bytes.length
    if (!this.#timer) this.#go()
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
  #go(): void {
    this.#timer = undefined
    const fd = descriptorOf(this.#pty)
    if (fd === undefined) {
      this.end()
      return
    }
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
    this.#timer = setTimeout(() => this.#go(), performance.now() - this.#takenAt < busyMs ? busyRetryMs : idleRetryMs)
  }
}
