/** One document that several processes write: read again only when the file changed. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { DocumentStore } from '../../kernel/index.ts'

export interface LatestOptions<V> {
  readonly store: DocumentStore<V>
  readonly id: string
  /** Directory of the document's file, `<id>.json`, which is asked for its change. */
  readonly dir: string
  readonly empty: V
}

export class Latest<V> {
  readonly #options: LatestOptions<V>
  #stamp: string | undefined
  #value: V

  constructor(options: LatestOptions<V>) {
    this.#options = options
    this.#value = options.empty
  }

  /** The content as of now; not to be changed by the caller. */
  async get(): Promise<V> {
    const { store, id, dir, empty } = this.#options
    const stamp = await stampOf(join(dir, `${id}.json`))
    if (stamp === this.#stamp) return this.#value
    const value = (await store.get(id)) ?? empty
    this.#stamp = stamp // taken before the read: a write in between is seen next time
    this.#value = value
    return value
  }

  /** Read-modify-write of the latest content; on disk when it resolves. The same object means: no change. */
  async update(change: (current: V) => V): Promise<V> {
    const { store, id, empty } = this.#options
    const next = (await store.update(id, current => change(current ?? empty))) ?? empty
    this.#stamp = undefined
    return next
  }
}

/** A replaced file has another inode, even within one tick of the clock. */
async function stampOf(file: string): Promise<string> {
  try {
    const { ino, size, mtimeNs } = await stat(file, { bigint: true })
    return `${ino} ${size} ${mtimeNs}`
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return 'missing'
    throw error
  }
}
