/** Who watches files of one session: changes of a window go out in one frame per connection, in which each finds what it watches. */
import type { Connection } from '../../kernel/index.ts'
import { fsChanged } from './contract.ts'
import type { FileChange, WatchTrouble } from './service.ts'
import { covers } from './watchers.ts'

export interface RoomOptions {
  readonly session_id: string
  readonly windowMs: number
  readonly maxChanges: number
  readonly now: () => Date
  /** Nobody watches any more. */
  readonly empty: () => void
}

/** A path that a connection watches. */
export interface WatchedPath {
  readonly path: string
  readonly recursive: boolean
  release: () => void
}

export class Room {
  readonly #options: RoomOptions
  readonly #paths = new Map<Connection, Map<string, WatchedPath>>()
  #seq = 0
  /** Of the open window; none is kept once there are too many. */
  #changes: FileChange[] = []
  readonly #taken = new Set<FileChange>()
  readonly #latest = new Map<string, FileChange['change']>()
  #count = 0
  #truncated = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: RoomOptions) {
    this.#options = options
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
    this.#options.empty()
  }

  close(): void {
    for (const connection of [...this.#paths.keys()]) this.leave(connection)
  }

  /** Several watches may see one change, and bring the same object where they share a watcher. */
  changed(changes: readonly FileChange[]): void {
    for (const change of changes) {
      if (this.#taken.has(change) || this.#latest.get(change.path) === change.change) continue
      this.#count++
      if (this.#count > this.#options.maxChanges) this.#truncate()
      if (this.#truncated) continue
      this.#latest.set(change.path, change.change)
      this.#taken.add(change)
      this.#changes.push(change)
    }
    this.#open()
  }

  unknown(count: number): void {
    this.#count += count
    this.#truncate()
    this.#open()
  }

  /** A path is not watched any more: its connection is told that something happened, and that the path is none of its any more. */
  lost(connection: Connection, path: string, _trouble: WatchTrouble): void {
    if (!this.of(connection, path)) return
    this.#send(connection, { changes: [], truncated: true, count: 0 })
    this.remove(connection, path)
  }

  #truncate(): void {
    this.#truncated = true
    this.#changes = []
    this.#latest.clear()
    this.#taken.clear()
  }

  #open(): void {
    if (this.#count > 0) this.#timer ??= setTimeout(() => this.#flush(), this.#options.windowMs)
  }

  #flush(): void {
    const [changes, truncated, count] = [this.#changes, this.#truncated, this.#count]
    this.#changes = []
    this.#latest.clear()
    this.#taken.clear()
    this.#truncated = false
    this.#count = 0
    this.#timer = undefined
    for (const [connection, paths] of this.#paths) {
      if (truncated) this.#send(connection, { changes: [], truncated, count })
      else {
        const watched = [...paths.values()].map(({ path, recursive }) => ({ path: path === '.' ? '' : path, recursive }))
        const own = changes.filter(({ path }) => watched.some(each => covers(each, path === '.' ? '' : path)))
        if (own.length > 0) this.#send(connection, { changes: own })
      }
    }
  }

  #send(connection: Connection, payload: { changes: FileChange[]; truncated?: boolean; count?: number }): void {
    const { session_id, windowMs, now } = this.#options
    const frame = { type: fsChanged.type, seq: ++this.#seq, session_id, timestamp: now().toISOString() }
    connection.send({ ...frame, payload: { coalesced_window_ms: windowMs, ...payload } }, { after: null })
  }
}
