/** A file of text that comes piece by piece, beside whoever prints it. What the disk does not take whole is not kept at all. */
import { createWriteStream, mkdirSync, type WriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'

export class KeptText {
  readonly #path: string
  readonly #stream: WriteStream
  readonly #closed: Promise<void>
  #failed = false

  private constructor(path: string) {
    this.#path = path
    this.#stream = createWriteStream(path, { mode: 0o600 })
    this.#stream.on('error', () => {
      this.#failed = true
    })
    this.#closed = new Promise(resolve => this.#stream.once('close', resolve))
  }

  /** A new file, 0600, with its directory; undefined when the directory cannot be made. */
  static open(path: string): KeptText | undefined {
    try {
      mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    } catch {
      return undefined
    }
    return new KeptText(path)
  }

  /** The disk refused something of it. */
  get failed(): boolean {
    return this.#failed
  }

  /** Waits for nobody: what is on the way is held in memory. */
  write(piece: string | Uint8Array): void {
    if (!this.#failed) this.#stream.write(piece)
  }

  /** Ends it; answers whether the file is there, whole. It is not without `keep`, and when the disk refused something of it. */
  async end(keep: boolean): Promise<boolean> {
    this.#stream.end()
    await this.#closed
    if (keep && !this.#failed) return true
    await rm(this.#path, { force: true }).catch(() => undefined) // what stays is swept with its session
    return false
  }
}
