/** Document store: one JSON file per id, replaced atomically, changed under a lock that other processes respect. */
import { readFile, rename } from 'node:fs/promises'
import { relative } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import { AppError, PersistenceFailed } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { notSaved, removeFile, replaceFile, type Sync, stamp } from './atomic.ts'
import { type Codec, codecOf } from './codec.ts'
import { Turns } from './keyed-queue.ts'
import { withLock } from './lock.ts'
import { fileOf, idsBelow, isMissing, isThere } from './paths.ts'
import type { DocumentStore } from './ports.ts'

export interface DocumentOptions {
  /** Texts in logs name files relative to it. */
  readonly home: string
  readonly log: Pick<Logger, 'warn'>
  readonly sync: Sync
}

/** All document stores of one Storage share it: files are queued by their path, whoever opened them. */
export class Documents {
  readonly #options: DocumentOptions
  readonly #turns = new Turns()

  constructor(options: DocumentOptions) {
    this.#options = options
  }

  /** The store of a spec in a directory (absolute). Holds nothing open, so it can be thrown away freely. */
  open<V>(spec: StoreSpec, dir: string): DocumentStore<V> {
    const codec = codecOf<V>(spec)
    const place = (id: string) => fileOf(dir, id, '.json')
    return {
      get: async id => {
        const file = place(id)
        const read = await this.#read(file, codec)
        // Setting aside needs the lock: another process may be replacing the bad file with a good one right now.
        return read.damaged === undefined ? read.value : this.#alone(file, () => this.#readOrSetAside(file, codec))
      },
      put: async (id, value) => {
        const file = place(id)
        const text = codec.encode(value)
        await this.#alone(file, () => replaceFile(file, text, this.#options))
      },
      update: async (id, change) => {
        const file = place(id)
        return this.#alone(file, async () => {
          const next = change(await this.#readOrSetAside(file, codec))
          if (next === undefined) await removeFile(file)
          else await replaceFile(file, codec.encode(next), this.#options)
          return next
        })
      },
      delete: async id => {
        const file = place(id)
        // Looked up first, so that deleting in a directory that is gone does not make it again for the lock.
        await this.#turns.run(file, async () => {
          if (await this.#guard(file, () => isThere(file))) await this.#guard(file, () => withLock(`${file}.lock`, () => removeFile(file)))
        })
      },
      ids: () => this.#guard(dir, () => idsBelow(dir, '.json'))
    }
  }

  /** Waits for everything that was asked for. */
  idle(): Promise<void> {
    return this.#turns.idle()
  }

  #alone<T>(file: string, work: () => Promise<T>): Promise<T> {
    return this.#turns.run(file, () => this.#guard(file, () => withLock(`${file}.lock`, work)))
  }

  async #readOrSetAside<V>(file: string, codec: Codec<V>): Promise<V | undefined> {
    const read = await this.#read(file, codec)
    if (read.damaged === undefined) return read.value
    const aside = `${file}.damaged-${stamp(new Date())}`
    await rename(file, aside)
    this.#options.log.warn({ file: this.#name(file), moved_to: this.#name(aside), reason: read.damaged }, 'damaged document set aside')
    return undefined
  }

  async #read<V>(file: string, codec: Codec<V>): Promise<{ value?: V; damaged?: string }> {
    let text: string
    try {
      text = await readFile(file, 'utf8')
    } catch (error) {
      if (isMissing(error)) return {}
      throw notSaved(this.#name(file), error)
    }
    const decoded = codec.decode(text)
    if (decoded.kind === 'value') return { value: decoded.value }
    if (decoded.kind === 'damaged') return { damaged: decoded.reason }
    // A newer program's file is fine where it is: neither used nor overwritten.
    throw new AppError(PersistenceFailed, { message: `${this.#name(file)}: ${decoded.reason}` })
  }

  /** Errors of the file system become PersistenceFailed; bugs (a bad id or value, a throwing change) stay what they are. */
  async #guard<T>(file: string, work: () => Promise<T>): Promise<T> {
    try {
      return await work()
    } catch (error) {
      throw (error as NodeJS.ErrnoException).syscall ? notSaved(this.#name(file), error) : error
    }
  }

  #name(file: string): string {
    return relative(this.#options.home, file) || '.'
  }
}
