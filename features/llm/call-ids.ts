/** Ids and names of tool calls: what upstreams take, and what they give. */
import { createHash } from 'node:crypto'

const ID_LENGTH = 64
/** An id or a name that needs no change, which is nearly every one. */
const fits = /^[a-zA-Z0-9_-]{1,64}$/

/** Tool-call ids in the alphabet and length that every upstream takes (64 of `[a-zA-Z0-9_-]`); different ids stay different. */
export class CallIds {
  readonly #given = new Map<string, string>()
  readonly #taken = new Set<string>()
  readonly #order: string[] = []

  of(id: string): string {
    const known = this.#given.get(id)
    if (known !== undefined) return known
    let wire = fits.test(id) ? id : id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, ID_LENGTH)
    if (wire === '' || this.#taken.has(wire))
      wire = `${wire.slice(0, ID_LENGTH - 13)}_${createHash('sha256').update(id).digest('hex').slice(0, 12)}`
    this.#given.set(id, wire)
    this.#order.push(id)
    this.#taken.add(wire)
    return wire
  }

  /** How many ids were given. */
  get count(): number {
    return this.#order.length
  }

  /** Forgets all but the first ones. */
  rewind(count: number): void {
    for (const id of this.#order.splice(count)) {
      this.#taken.delete(this.#given.get(id) ?? '')
      this.#given.delete(id)
    }
  }
}

/**
 * The name of a call in the alphabet and length that every upstream takes: a model may call what no tool is called, and that goes back to
 * it, too.
 */
export function callName(name: string): string {
  return fits.test(name) ? name : name.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, ID_LENGTH) || '_'
}

/** Ids of the tool calls of one response: each is given once, so that results find their call. */
export class ResponseIds {
  readonly #taken = new Set<string>()
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
  }

  get count(): number {
    return this.#taken.size
  }

  /** The provider's id, or a new one where it is missing or repeats another. */
  take(given: string): string {
    const id = given === '' || this.#taken.has(given) ? this.#newId() : given
    this.#taken.add(id)
    return id
  }
}
