/** Who watches files of one session: changes of a window go out in one frame per connection, in which each finds what it watches. */
import type { Connection } from '../../kernel/index.ts'
import { fsChanged } from './contract.ts'
import type { FileChange } from './service.ts'
import { above, covers } from './watchers.ts'

export interface RoomOptions {
  readonly session_id: string
  readonly windowMs: number
  readonly maxChanges: number
  readonly now: () => Date
  /** Number of the newest frame before. */
  readonly seq: number
  /** Nobody watches any more; `seq`: number of the newest frame. */
  readonly empty: (seq: number) => void
}

/** A path that a connection watches. */
export interface WatchedPath {
  readonly path: string
  readonly recursive: boolean
  release: () => void
}

/** A change, and whom it is told. */
interface Seen {
  readonly change: FileChange
  readonly to: Set<Connection>
}

/** The root is empty. */
const plain = (path: string) => (path === '.' ? '' : path)

export class Room {
  readonly #options: RoomOptions
  readonly #paths = new Map<Connection, Map<string, WatchedPath>>()
  /** Of the open window, in order; none is kept once there are too many. */
  readonly #seen = new Map<FileChange, Seen>()
  /** The newest one of each path. */
  readonly #latest = new Map<string, Seen>()
  #seq: number
  #count = 0
  #truncated = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: RoomOptions) {
    this.#options = options
    this.#seq = options.seq
  }

  /** Sorted. */
  pathsOf(connection: Connection): string[] {
    return [...(this.#paths.get(connection)?.keys() ?? [])].sort()
  }

  of(connection: Connection, path: string): WatchedPath | undefined {
    return this.#paths.get(connection)?.get(path)
  }

  put(connection: Connection, watched: WatchedPath): void {
    const own = this.#paths.get(connection) ?? new Map<string, WatchedPath>()
    this.#paths.set(connection, own)
    own.get(watched.path)?.release()
    own.set(watched.path, watched)
  }

  remove(connection: Connection, path: string): void {
    const own = this.#paths.get(connection)
    own?.get(path)?.release()
    own?.delete(path)
    if (own?.size === 0) this.leave(connection)
  }

  leave(connection: Connection): void {
    for (const { release } of this.#paths.get(connection)?.values() ?? []) release()
    if (!this.#paths.delete(connection) || this.#paths.size > 0) return
    clearTimeout(this.#timer)
    this.#options.empty(this.#seq)
  }

  close(): void {
    for (const connection of [...this.#paths.keys()]) this.leave(connection)
  }

  /**
   * What a path of a connection tells. Several watches may see one change, sooner and later, and bring the same object where they share a
   * watcher; of those of a connection the path that is nearest to it tells it.
   */
  changed(connection: Connection, path: string, changes: readonly FileChange[]): void {
    for (const change of changes) {
      if (this.#nearest(connection, change.path) !== path) continue
      const latest = this.#latest.get(change.path)
      const known = this.#seen.get(change) ?? (latest?.change.change === change.change ? latest : undefined)
      if (known) known.to.add(connection)
      else this.#add(change, connection)
    }
    this.#open()
  }

  #add(change: FileChange, connection: Connection): void {
    this.#count++
    if (this.#count > this.#options.maxChanges) this.#truncate()
    if (this.#truncated) return
    const seen = { change, to: new Set([connection]) }
    this.#seen.set(change, seen)
    this.#latest.set(change.path, seen)
  }

  /** The longest path of those that the connection watches at or above this one. */
  #nearest(connection: Connection, file: string): string | undefined {
    const own = this.#paths.get(connection)
    // From the file upwards: a batch of changes may be long, and so may be the list of what is watched.
    for (let at = plain(file); own; at = above(at)) {
      const watched = own.get(at === '' ? '.' : at)
      if (watched && covers({ ...watched, path: at }, plain(file))) return watched.path
      if (at === '') return undefined
    }
    return undefined
  }

  unknown(count: number): void {
    this.#count += count
    this.#truncate()
    this.#open()
  }

  /** A path is not watched any more: its connection is told that something happened, and that the path is none of its any more. */
  lost(connection: Connection, path: string): void {
    if (!this.of(connection, path)) return
    this.#send(connection, { changes: [], truncated: true, count: 0 })
    this.remove(connection, path)
  }

  #truncate(): void {
    this.#truncated = true
    this.#seen.clear()
    this.#latest.clear()
  }

  #open(): void {
    if (this.#count > 0) this.#timer ??= setTimeout(() => this.#flush(), this.#options.windowMs)
  }

  #flush(): void {
    const [seen, truncated, count] = [[...this.#seen.values()], this.#truncated, this.#count]
    this.#seen.clear()
    this.#latest.clear()
    this.#truncated = false
    this.#count = 0
    this.#timer = undefined
    for (const connection of this.#paths.keys()) {
      const own = seen.filter(({ to }) => to.has(connection)).map(({ change }) => change)
      if (truncated) this.#send(connection, { changes: [], truncated, count })
      else if (own.length > 0) this.#send(connection, { changes: own })
    }
  }

  #send(connection: Connection, payload: { changes: FileChange[]; truncated?: boolean; count?: number }): void {
    const { session_id, windowMs, now } = this.#options
    const frame = { type: fsChanged.type, seq: ++this.#seq, session_id, timestamp: now().toISOString() }
    connection.send({ ...frame, payload: { coalesced_window_ms: windowMs, ...payload } })
  }
}
