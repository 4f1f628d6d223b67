/** Reading a journal file: clients that were cut together come back together and ask for the same lines, so they read one open file. */
import { type FileHandle, open } from 'node:fs/promises'
import { unsaved } from '../errors.ts'
import { forReading } from '../storage/files.ts'

const groupBytes = 256 * 1024

interface Block {
  readonly start: number
  readonly end: number
  readonly bytes: Promise<Buffer>
}

/** A journal file that is open for all who read it at this time; it closes with the last of them. */
export class SharedFile {
  /** Of the journal's offsets. */
  readonly generation: number
  readonly #opened: ReturnType<typeof opened>
  #users = 0
  /** The last one has left: nobody may enter. */
  closed = false
  /** What was read last, or could not be: 256 KiB at most, or one line. */
  #block: Block | undefined

  constructor(path: string, generation: number) {
    this.generation = generation
    this.#opened = opened(path)
  }

  /** Resolves to the number of the file, when it is open. Who has entered leaves. */
  async enter(): Promise<number> {
    this.#users++
    try {
      return (await this.#opened).ino
    } catch (error) {
      await this.leave()
      throw error
    }
  }

  async leave(): Promise<void> {
    if (--this.#users > 0) return
    this.closed = true
    this.#block = undefined
    const file = await this.#opened.catch(() => undefined) // whoever entered has heard of it
    await file?.handle.close()
  }

  /** The lines between offsets (the last one is the end), group by group. What lies before `limit` may be read along for others. */
  async *lines(offsets: readonly number[], limit: number): AsyncGenerator<Buffer[]> {
    const offsetAt = (index: number) => offsets[index] ?? 0
    for (let first = 0; first < offsets.length - 1; ) {
      const start = offsetAt(first)
      let last = first + 1
      while (last < offsets.length - 1 && offsetAt(last + 1) - start <= groupBytes) last++
      const buffer = await this.#read(start, offsetAt(last), Math.min(start + groupBytes, limit))
      yield offsets.slice(first, last).map((offset, i) => buffer.subarray(offset - start, offsetAt(first + i + 1) - start - 1))
      first = last
    }
  }

  /** At least the bytes between two offsets. */
  async #read(start: number, end: number, limit: number): Promise<Buffer> {
    const known = this.#block
    if (known && known.start <= start && end <= known.end) return (await known.bytes).subarray(start - known.start)
    const to = Math.max(end, limit)
    this.#block = { start, end: to, bytes: this.#bytes(start, to) }
    return await this.#block.bytes
  }

  async #bytes(start: number, end: number): Promise<Buffer> {
    const { handle } = await this.#opened
    const length = end - start
    const { bytesRead, buffer } = await handle.read(Buffer.allocUnsafeSlow(length), 0, length, start)
    if (bytesRead !== length) throw unsaved('the journal is shorter than its index')
    return buffer
  }
}

async function opened(path: string): Promise<{ handle: FileHandle; ino: number }> {
  const handle = await open(path, forReading)
  try {
    return { handle, ino: (await handle.stat()).ino }
  } catch (error) {
    await handle.close()
    throw error
  }
}
