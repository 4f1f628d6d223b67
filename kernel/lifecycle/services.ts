/** Who provides what: services with one provider, extension points with many contributors and change notice. */
import type { Collection } from '../pack.ts'

interface Provided {
  readonly owner: string
  readonly impl: unknown
}

/** Services by token id. Only what an active pack (or the kernel) provides is here. */
export class ServiceTable {
  readonly #provided = new Map<string, Provided>()

  owner(id: string): string | undefined {
    return this.#provided.get(id)?.owner
  }

  has(id: string): boolean {
    return this.#provided.has(id)
  }

  get(id: string): unknown {
    return this.#provided.get(id)?.impl
  }

  ids(): string[] {
    return [...this.#provided.keys()].sort()
  }

  /** Adds a service; returns its withdrawal. The lifecycle has checked for a second provider. */
  add(id: string, owner: string, impl: unknown): () => void {
    this.#provided.set(id, { owner, impl })
    return () => {
      if (this.#provided.get(id)?.impl === impl) this.#provided.delete(id)
    }
  }
}

interface Point {
  readonly entries: { readonly order: number; readonly item: unknown }[]
  readonly listeners: Set<() => void>
  items: readonly unknown[]
}

/** Extension points by id; items keep the activation order of their packs. */
export class PointTable {
  readonly #points = new Map<string, Point>()
  readonly #onError: (error: unknown, point: string) => void

  constructor(onError: (error: unknown, point: string) => void) {
    this.#onError = onError
  }

  add(id: string, order: number, item: unknown): () => void {
    const point = this.#point(id)
    const entry = { order, item }
    const at = point.entries.findIndex(other => other.order > order)
    point.entries.splice(at < 0 ? point.entries.length : at, 0, entry)
    this.#changed(id, point)
    return () => {
      const index = point.entries.indexOf(entry)
      if (index < 0) return
      point.entries.splice(index, 1)
      this.#changed(id, point)
    }
  }

  collection<T>(id: string, own: (undo: () => void) => () => Promise<void>): Collection<T> {
    const point = this.#point(id)
    return {
      items: () => point.items as readonly T[],
      onChange: listener => {
        const entry = () => listener() // a listener may be registered twice
        point.listeners.add(entry)
        const drop = own(() => point.listeners.delete(entry))
        return () => {
          void drop()
        }
      }
    }
  }

  /** Number of contributed items and of listeners over all points, for leak checks. */
  size(): number {
    let size = 0
    for (const point of this.#points.values()) size += point.entries.length + point.listeners.size
    return size
  }

  #point(id: string): Point {
    let point = this.#points.get(id)
    if (!point) {
      point = { entries: [], listeners: new Set(), items: [] }
      this.#points.set(id, point)
    }
    return point
  }

  #changed(id: string, point: Point): void {
    point.items = point.entries.map(entry => entry.item)
    for (const listener of [...point.listeners]) {
      try {
        listener()
      } catch (error) {
        this.#onError(error, id)
      }
    }
  }
}
