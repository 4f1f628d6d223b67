/** Lines that could not be used: told once per reading, and copied, once each, to `<file>.damaged`. */
import { type FileCalls, readIfThere } from './files.ts'
import type { Line } from './line-reader.ts'

/** Copies of damaged lines do not take more, however often a damaged file is read. */
const quarantineBytes = 4 * 1024 * 1024

type Warn = (file: string, text: string, fields: object) => void

/** The damaged lines that one reading of a file met. */
export class DamagedLines {
  readonly #file: string
  readonly #files: FileCalls
  readonly #warn: Warn
  readonly #texts: string[] = []
  #room = quarantineBytes
  #first: { first_byte: number; reason: string } | undefined
  count = 0

  constructor(file: string, files: FileCalls, warn: Warn) {
    this.#file = file
    this.#files = files
    this.#warn = warn
  }

  add({ text, start }: Line, reason: string): void {
    this.count++
    this.#first ??= { first_byte: start, reason }
    this.#room -= text.length
    if (this.#room > 0) this.#texts.push(text)
  }

  /** At the end of the reading. Does nothing when there was no damage. */
  async report(): Promise<void> {
    if (!this.#first) return
    this.#warn(this.#file, 'damaged lines skipped, copied to the .damaged file beside', { count: this.count, ...this.#first })
    await this.#keep()
  }

  async #keep(): Promise<void> {
    const place = `${this.#file}.damaged`
    const known = (await readIfThere(place, this.#files)) ?? ''
    const seen = new Set(known.split('\n'))
    let room = quarantineBytes - Buffer.byteLength(known)
    const fresh: Buffer[] = []
    for (const text of this.#texts) {
      const line = Buffer.from(`${text}\n`)
      if (seen.has(text) || line.length > room) continue
      seen.add(text)
      fresh.push(line)
      room -= line.length
    }
    if (fresh.length === 0) return
    const handle = await this.#files.open(place, 'a', 0o600)
    try {
      await handle.writeFile(Buffer.concat(fresh))
    } finally {
      await handle.close()
    }
  }
}
