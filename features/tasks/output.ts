/** What a task printed: the end of it in memory, all of it in a file when somebody may want it later. */
import { open, rm, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { KeptText } from '../tools/index.ts'

/** Bytes that are kept in memory. */
const KEEP_BYTES = 1024 * 1024
/** A task that prints more is stopped. */
export const MAX_BYTES = 16 * 1024 * 1024

/** What is kept comes in pieces of this size, whatever the size of what was printed at once. */
const BLOCK_BYTES = 16 * 1024

interface Block {
  readonly buffer: Buffer
  used: number
}

export class TaskOutput {
  readonly path: string
  #blocks: Block[] = []
  /** Bytes in the blocks. */
  #held = 0
  #bytes = 0
  #file: KeptText | undefined
  /** There is no file, and there will be none. */
  #lost = false
  #finished = false

  /** `path`: of the file, which is made when it is needed. */
  constructor(path: string) {
    this.path = path
  }

  /** Bytes so far. */
  get bytes(): number {
    return this.#bytes
  }

  /** All of it is in the file, or on the way there. */
  get saved(): boolean {
    return this.#file !== undefined && !this.#file.failed && !this.#lost
  }

  add(text: string): void {
    const chunk = Buffer.from(text)
    this.#bytes += chunk.length
    this.#hold(chunk)
    if (!this.#finished) this.#file?.write(chunk)
    if (this.#held > KEEP_BYTES && !this.#file) this.save()
    while (this.#held - (this.#blocks[0]?.used ?? 0) >= KEEP_BYTES) this.#held -= this.#blocks.shift()?.used ?? 0
  }

  #hold(chunk: Buffer): void {
    for (let at = 0; at < chunk.length; ) {
      let block = this.#blocks.at(-1)
      if (!block || block.used === block.buffer.length) {
        block = { buffer: Buffer.allocUnsafeSlow(BLOCK_BYTES), used: 0 }
        this.#blocks.push(block)
      }
      const copied = chunk.copy(block.buffer, block.used, at)
      block.used += copied
      at += copied
      this.#held += copied
    }
  }

  /** What is held from the last `bytes` on, or a little more. */
  #last(bytes: number): Buffer {
    const wanted: Buffer[] = []
    for (let at = this.#blocks.length - 1, length = 0; at >= 0 && length < bytes; at--) {
      const { buffer, used } = this.#blocks[at] as Block
      wanted.unshift(buffer.subarray(0, used))
      length += used
    }
    return Buffer.concat(wanted)
  }

  /** From now on all of it goes into the file. Without one (the disk refuses), only the end is kept. */
  save(): void {
    if (this.#file || this.#lost) return
    this.#file = KeptText.open(this.path)
    this.#lost = !this.#file // the view says that there is no file
    this.#file?.write(this.#last(this.#held))
  }

  /** The last bytes of what is in memory, at most so many. */
  tail(bytes = KEEP_BYTES): string {
    const most = Math.min(bytes, KEEP_BYTES)
    return endOf(this.#last(most), most)
  }

  /** Closes the file; without `keep` it goes. What is in memory stays there. */
  async finish(keep: boolean): Promise<void> {
    if (this.#file && !this.#finished) {
      this.#finished = true
      if (!(await this.#file.end(keep))) await rm(dirname(this.path), { recursive: true, force: true })
    }
    if (!keep) this.#lost = true
  }
}

/** The last bytes, at most so many, without a part of a character at the cut. */
export function endOf(buffer: Buffer, bytes: number): string {
  let from = Math.max(0, buffer.length - bytes)
  if (from > 0) while (from < buffer.length && ((buffer[from] as number) & 0xc0) === 0x80) from++
  return buffer.toString('utf8', from)
}

/** The end of a file, at most so many bytes; undefined when it cannot be read. */
export async function endOfFile(path: string, bytes: number): Promise<string | undefined> {
  try {
    const file = await open(path)
    try {
      const { size } = await file.stat()
      const length = Math.min(size, bytes, KEEP_BYTES)
      // One more than wanted shows whether the first one continues a character.
      const from = Math.max(0, size - length - 3)
      const { buffer, bytesRead } = await file.read(Buffer.alloc(size - from), 0, size - from, from)
      return endOf(buffer.subarray(0, bytesRead), length)
    } finally {
      await file.close()
    }
  } catch {
    return undefined // gone; what the record says of its end is left
  }
}

/** Bytes of a file; 0 when there is none. */
export async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(() => undefined))?.size ?? 0 // absent: nothing was printed
}
