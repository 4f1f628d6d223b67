/** The sessions of the home that this server knows of, in memory: their facts, their order and how many each workspace has. */
import type { SessionState } from './service.ts'

export interface Row {
  state: SessionState
  /** Of the file that holds `state`; empty while that is not known to be on disk. */
  stamp: string
  /** From the index file, not compared with the state file yet: it may have changed since. */
  unproven?: boolean
}

export class KnownSessions {
  readonly #rows = new Map<string, Row>()
  readonly #counts = new Map<string, number>()
  readonly #pinned = new Set<string>()
  /** Newest first, unless `#moved`; may hold rows that went, no more of them than there are rows. */
  #order: Row[] = []
  #moved = false
  #listed: readonly SessionState[] | undefined

  row(id: string): Row | undefined {
    return this.#rows.get(id)
  }

  /** The row as it is now; rows themselves change. */
  copy(id: string): Row | undefined {
    const row = this.#rows.get(id)
    return row && { ...row }
  }

  /** As they are now; some may go meanwhile. */
  rows(): readonly [string, Row][] {
    return [...this.#rows]
  }

  /** Those whose files are as the index says. */
  *saved(): Iterable<Row> {
    for (const row of this.#rows.values()) if (row.stamp !== '' && !this.#pinned.has(row.state.id)) yield row
  }

  /** How many sessions each workspace has; changes with them. */
  get counts(): ReadonlyMap<string, number> {
    return this.#counts
  }

  /** Newest `updated_at` first, then id descending. The same array as long as nothing changes. */
  list(): readonly SessionState[] {
    if (!this.#listed) {
      if (this.#moved) this.#order = this.#order.filter(row => this.#isShown(row)).sort(newestFirst)
      this.#moved = false
      this.#listed = this.#order.map(row => row.state)
    }
    return this.#listed
  }

  /** `stamp`: of the file that holds the state. */
  take(state: SessionState, stamp = ''): SessionState {
    const row = this.#rows.get(state.id)
    this.#listed = undefined
    if (row) {
      this.#moved ||= row.state.updated_at !== state.updated_at
      Object.assign(row, { state, stamp, unproven: false })
      return state
    }
    const fresh = { state, stamp }
    this.#rows.set(state.id, fresh)
    this.#order.push(fresh)
    this.#moved = true
    this.#counts.set(state.workspace_id, (this.#counts.get(state.workspace_id) ?? 0) + 1)
    return state
  }

  /**
   * Takes what was read from a state file, unless something newer is known; false then. `before` is a copy of the row as it was when the reading
   * began: what came meanwhile is newer, and so is what the server of the session told before it wrote it.
   */
  takeRead(before: Row | undefined, state: SessionState, stamp = ''): boolean {
    if (this.#rows.get(state.id)?.state !== before?.state || this.#pinned.has(state.id)) return false
    if (before?.stamp === '' && before.state.updated_at > state.updated_at) return false
    this.take(state, stamp)
    return true
  }

  /** Shows a session no more. */
  forget(id: string): void {
    const row = this.#rows.get(id)
    if (!row) return
    this.#rows.delete(id)
    const left = (this.#counts.get(row.state.workspace_id) ?? 1) - 1
    if (left > 0) this.#counts.set(row.state.workspace_id, left)
    else this.#counts.delete(row.state.workspace_id)
    this.#moved = true
    this.#listed = undefined
    if (this.#order.length > 2 * this.#rows.size) this.#order = this.#order.filter(each => this.#isShown(each))
  }

  /** While pinned, memory is the truth: the session is loaded and owned here. */
  pin(id: string): void {
    this.#pinned.add(id)
  }

  /** False when it was not pinned. */
  unpin(id: string): boolean {
    return this.#pinned.delete(id)
  }

  isPinned(id: string): boolean {
    return this.#pinned.has(id)
  }

  #isShown(row: Row): boolean {
    return this.#rows.get(row.state.id) === row
  }
}

function newestFirst({ state: a }: Row, { state: b }: Row): number {
  if (a.updated_at !== b.updated_at) return a.updated_at < b.updated_at ? 1 : -1
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}
