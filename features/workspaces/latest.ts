/** One document that several processes write: read again only when the file changed. */
import type { Stats } from 'node:fs'
import { join } from 'node:path'
import { type DocumentStore, foundAt } from '../../kernel/index.ts'

export interface LatestOptions<V> {
  readonly store: Pick<DocumentStore<V>, 'get' | 'update'>
  readonly id: string
  /** Directory of the document's file, `<id>.json`, which is asked for its change. */
  readonly dir: string
  readonly empty: V
}

interface Change<V> {
  readonly change: (current: V) => V
  readonly resolve: (next: V) => void
  readonly reject: (error: unknown) => void
}

export class Latest<V> {
  readonly #options: LatestOptions<V>
  #stamp: string | undefined
  #value: V
  /** The file was asked in this pass of the event loop: a burst of requests shares one answer. */
  #fresh = false
  /** The read that is under way, of the content with this stamp: whoever sees the same stamp meanwhile shares it. */
  #reading: { readonly stamp: string; readonly value: Promise<V> } | undefined
  /** Changes that wait for the write under way: one write takes them all. */
  #waiting: Change<V>[] = []
  #writing = false

  constructor(options: LatestOptions<V>) {
    this.#options = options
    this.#value = options.empty
  }

  /** The content as of now; not to be changed by the caller. */
  async get(): Promise<V> {
    const { id, dir } = this.#options
    if (this.#fresh && this.#stamp !== undefined) return this.#value
    const asked = stampAt(join(dir, `${id}.json`))
    const stamp = typeof asked === 'string' ? asked : await asked
    if (stamp === asked) {
      this.#fresh = true
      setImmediate(() => {
        this.#fresh = false
      })
    }
    if (stamp === this.#stamp) return this.#value
    this.#stamp = undefined // nobody may take the old content while the new is being read
    if (this.#reading?.stamp !== stamp) this.#reading = { stamp, value: this.#read(stamp) }
    return await this.#reading.value
  }

  async #read(stamp: string): Promise<V> {
    const { store, id, empty } = this.#options
    try {
      const value = (await store.get(id)) ?? empty
      if (this.#reading?.stamp !== stamp) return value
      this.#stamp = stamp // taken before the read: a write in between is seen next time
      this.#value = value
      return value
    } finally {
      if (this.#reading?.stamp === stamp) this.#reading = undefined
    }
  }

  /**
   * Read-modify-write of the latest content; on disk when it resolves. The same object means: no change. Changes that arrive while one is
   * being written share the next write, in their order; one that throws changes nothing and rejects alone.
   */
  update(change: (current: V) => V): Promise<V> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ change, resolve, reject })
      if (!this.#writing) void this.#write()
    })
  }

  async #write(): Promise<void> {
    const { store, id, empty } = this.#options
    this.#writing = true
    for (let batch = this.#waiting; batch.length > 0; batch = this.#waiting) {
      this.#waiting = []
      let settle: (() => void)[] = []
      try {
        await store.update(id, before => {
          settle = [] // the store may ask again
          let current = before ?? empty
          for (const { change, resolve, reject } of batch) {
            try {
              const next = change(current)
              current = next
              settle.push(() => resolve(next))
            } catch (error) {
              settle.push(() => reject(error))
            }
          }
          return before === undefined && current === empty ? undefined : current
        })
      } catch (error) {
        settle = batch.map(
          ({ reject }) =>
            () =>
              reject(error)
        )
      }
      this.#stamp = undefined
      this.#reading = undefined // what a read answers that began before this is not the latest
      for (const tell of settle) tell()
    }
    this.#writing = false
  }
}

/** A replaced file has another inode, even within one tick of the clock. At once where the disk is quick. */
function stampAt(file: string): string | Promise<string> {
  try {
    const found = foundAt(file)
    return found instanceof Promise ? found.then(stampOf, () => unreadable) : stampOf(found)
  } catch {
    return unreadable
  }
}

const stampOf = (found: Stats | undefined) => (found ? `${found.ino} ${found.size} ${found.mtimeMs}` : 'missing')

/** A loop of links, no permission: whoever reads it says so. */
const unreadable = 'unreadable'
