/** Open append handles of log files, the least recently used closed when there are too many. */
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Sync } from './atomic.ts'
import { repairTail } from './lines.ts'
import { ensureDir, isMissing, syncDir } from './paths.ts'

export interface Tail {
  readonly handle: FileHandle
  /** Bytes that are known to be good; a failed write is cut back to it. */
  size: number
}

export interface TailOptions {
  readonly sync: Sync
  /** Handles kept open. */
  readonly limit: number
  /** A torn tail was cut off. */
  onCut(file: string, bytes: number): void
  /** Files with work under way are not closed. */
  isBusy(file: string): boolean
}

/** Per file at most one caller at a time (the log store's queue sees to it). */
export class Tails {
  readonly #open = new Map<string, Tail>()
  readonly #options: TailOptions

  constructor(options: TailOptions) {
    this.#options = options
  }

  /** The handle of a file, made and repaired when needed. A file that was removed meanwhile is made anew. */
  async get(file: string): Promise<Tail> {
    const known = this.#open.get(file)
    if (known) {
      if ((await known.handle.stat()).nlink > 0) {
        this.#open.delete(file)
        this.#open.set(file, known)
        return known
      }
      await this.close(file)
    }
    const tail = await this.#make(file)
    this.#open.set(file, tail)
    await this.#evict()
    return tail
  }

  async close(file: string): Promise<void> {
    const tail = this.#open.get(file)
    this.#open.delete(file)
    await tail?.handle.close()
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.#open.keys()].map(file => this.close(file)))
  }

  async #make(file: string): Promise<Tail> {
    const handle = await openAppend(file)
    try {
      const { size, cut } = await repairTail(handle)
      if (cut > 0) this.#options.onCut(file, cut)
      if (size === 0 && this.#options.sync === 'fsync') await syncDir(dirname(file))
      return { handle, size }
    } catch (error) {
      await handle.close()
      throw error
    }
  }

  async #evict(): Promise<void> {
    let excess = this.#open.size - this.#options.limit
    for (const file of [...this.#open.keys()]) {
      if (excess <= 0) return
      if (this.#options.isBusy(file)) continue
      excess--
      await this.close(file)
    }
  }
}

async function openAppend(file: string): Promise<FileHandle> {
  try {
    return await open(file, 'a+', 0o600)
  } catch (error) {
    if (!isMissing(error)) throw error
    await ensureDir(dirname(file))
    return open(file, 'a+', 0o600)
  }
}
