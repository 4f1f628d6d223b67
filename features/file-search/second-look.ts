/**
 * The second look of a search by content. A program that searches a tree opens files by their paths, and a link that takes the place of a
 * directory meanwhile leads it out. So it only says where to look; what is answered comes from files that are held, and are what they seem.
 */
import { join } from 'node:path'
import type { Partial } from './engine.ts'
import { type HeldFile, holdFile } from './held.ts'

/** Files that are held for one look, at most and at least. */
const [MOST, LEAST] = [256, 16]
/** Files that all searches hold together before each goes on with few: the server can open no more than the system lets it. */
const HELD = 512
let heldByAll = 0
const atOnce = () => Math.max(LEAST, Math.min(MOST, HELD - heldByAll))

interface Held extends HeldFile {
  /** Relative to the root. */
  readonly path: string
}

/** Looks into these files; what it says ends all. */
export type Look = (files: readonly Held[]) => Promise<Partial | undefined>

export class SecondLook {
  readonly #root: string
  readonly #look: Look
  readonly #waiting: string[] = []
  #working: Promise<void> | undefined
  #partial: Partial | undefined
  #failure: unknown

  constructor(root: string, look: Look) {
    this.#root = root
    this.#look = look
  }

  /** One more file, looked into with all that came while others were. False: no more is wanted. */
  add(path: string): boolean {
    this.#waiting.push(path)
    this.#working ??= this.#work()
    return this.#wanted
  }

  /** When all were looked into, or no more is wanted. Throws what went wrong. */
  async end(): Promise<Partial | undefined> {
    await this.idle()
    if (this.#failure !== undefined) throw this.#failure
    return this.#partial
  }

  /** When nothing runs any more, however it went. */
  async idle(): Promise<void> {
    await this.#working
  }

  get #wanted(): boolean {
    return this.#partial === undefined && this.#failure === undefined
  }

  async #work(): Promise<void> {
    await undefined // who adds one adds more in the same breath
    await Promise.all([this.#lane(), this.#lane()]) // one holds files while the program looks into those of the other
    this.#working = undefined
  }

  async #lane(): Promise<void> {
    try {
      while (this.#waiting.length > 0 && this.#wanted) await this.#next(this.#waiting.splice(0, atOnce()))
    } catch (error) {
      this.#failure ??= error
    }
  }

  async #next(paths: readonly string[]): Promise<void> {
    heldByAll += paths.length
    const asked = await Promise.allSettled(paths.map(path => hold(this.#root, path)))
    const held = asked.flatMap(each => (each.status === 'fulfilled' && each.value ? [each.value] : []))
    try {
      for (const each of asked) if (each.status === 'rejected') throw each.reason
      const partial = held.length > 0 ? await this.#look(held) : undefined
      this.#partial ??= partial // the other lane may have been stopped meanwhile
    } finally {
      for (const file of held) file.close()
      heldByAll -= paths.length
    }
  }
}

/** A file below a root, for a second look. */
export async function hold(root: string, path: string): Promise<Held | undefined> {
  const file = await holdFile(join(root, path))
  return file && { ...file, path }
}
