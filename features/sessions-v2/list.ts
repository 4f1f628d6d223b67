/** Filters, sorts, groups and cuts the sessions of the home. Pure: what lives is asked through `Facts`. */
import type { SessionState } from '../sessions/index.ts'
import type { Conditions, Key, Position } from './conditions.ts'
import type { Sort, Status } from './contract.ts'

/** What is not in the state of a session. */
export interface Facts {
  statusOf(state: SessionState): Status
  /** The id under which a workspace is listed now. */
  workspaceOf(state: SessionState): string
}

export interface Page<T> {
  readonly rows: readonly T[]
  readonly total: number
  readonly has_more: boolean
  /** Of the last row. */
  readonly last: Key | undefined
}

export interface Grouping {
  readonly workspace_id: string
  /** The first ones under the sort. */
  readonly rows: readonly SessionState[]
  readonly total: number
}

/** Lists that were sorted before, by the list that they were made of. */
const sorted = new WeakMap<readonly SessionState[], Map<Sort, readonly SessionState[]>>()

/** `all`: newest `updated_at` first, then id descending; that array is not changed. */
export function sortBy(all: readonly SessionState[], sort: Sort): readonly SessionState[] {
  if (sort === 'meta.updated_at_desc') return all
  const known = sorted.get(all) ?? new Map<Sort, readonly SessionState[]>()
  sorted.set(all, known)
  const made = known.get(sort) ?? (sort === 'meta.updated_at_asc' ? all.toReversed() : all.toSorted(newestMade))
  known.set(sort, made)
  return made
}

function newestMade(a: SessionState, b: SessionState): number {
  if (a.created_at !== b.created_at) return a.created_at < b.created_at ? 1 : -1
  return a.id < b.id ? 1 : a.id > b.id ? -1 : 0
}

export function filtered(rows: readonly SessionState[], conditions: Conditions, facts: Facts): readonly SessionState[] {
  const { archived, hasPrompt, updatedAfter, updatedBefore, statuses } = conditions
  const workspaces = conditions.workspaces && new Set(conditions.workspaces)
  // Both are ISO texts of one length.
  const from = updatedAfter === undefined ? undefined : isoOf(updatedAfter)
  const to = updatedBefore === undefined ? undefined : isoOf(updatedBefore)
  return rows.filter(
    state =>
      (archived === 'all' || state.archived === (archived === 'true')) &&
      (hasPrompt === undefined || hasPrompt === (state.last_prompt !== undefined)) &&
      (from === undefined || state.updated_at >= from) &&
      (to === undefined || state.updated_at <= to) &&
      (!workspaces || workspaces.has(facts.workspaceOf(state))) &&
      (!statuses || statuses.includes(facts.statusOf(state)))
  )
}

export function flatPage(rows: readonly SessionState[], { sort, size }: Conditions, position: Position): Page<SessionState> {
  const keyOf = (state: SessionState): Key => ({ at: momentOf(state, sort), id: state.id })
  return cut(rows, size, position, keyOf, (key, after) => comesAfter(key, after, sort, sort !== 'meta.updated_at_asc'))
}

/** Groups stand by their first session under the sort, ties by workspace id. */
export function groupPage(rows: readonly SessionState[], conditions: Conditions, facts: Facts, position: Position): Page<Grouping> {
  const { sort, size, groupSize } = conditions
  const groups = new Map<string, { workspace_id: string; rows: SessionState[]; total: number }>()
  for (const state of rows) {
    const workspace_id = facts.workspaceOf(state)
    let group = groups.get(workspace_id)
    if (!group) {
      group = { workspace_id, rows: [], total: 0 }
      groups.set(workspace_id, group)
    }
    group.total++
    if (group.rows.length < groupSize) group.rows.push(state)
  }
  const keyOf = (group: Grouping): Key => ({ at: momentOf(group.rows[0] as SessionState, sort), id: group.workspace_id })
  const later = (key: Key, after: Key) => comesAfter(key, after, sort, false)
  const ordered = [...groups.values()].map(group => ({ group, key: keyOf(group) })).sort((a, b) => (later(a.key, b.key) ? 1 : -1))
  const page = cut(ordered, size, position, ({ key }) => key, later)
  return { ...page, rows: page.rows.map(({ group }) => group) }
}

function comesAfter(key: Key, after: Key, sort: Sort, idsDescend: boolean): boolean {
  if (key.at !== after.at) return sort === 'meta.updated_at_asc' ? key.at > after.at : key.at < after.at
  return idsDescend ? key.id < after.id : key.id > after.id
}

function cut<T>(
  rows: readonly T[],
  size: number,
  { page, after }: Position,
  keyOf: (row: T) => Key,
  isLater: (key: Key, after: Key) => boolean
): Page<T> {
  const found = after ? rows.findIndex(row => isLater(keyOf(row), after)) : ((page ?? 1) - 1) * size
  const from = found < 0 ? rows.length : found
  const shown = rows.slice(from, from + size)
  const last = shown.at(-1)
  return { rows: shown, total: rows.length, has_more: from + size < rows.length, last: last === undefined ? undefined : keyOf(last) }
}

export const momentOf = (state: SessionState, sort: Sort): number =>
  Date.parse(sort === 'meta.created_at_desc' ? state.created_at : state.updated_at)

/** Moments before the year 0 or after 9999 have another form: they are before or after everything. */
function isoOf(moment: number): string {
  if (moment < -62_167_219_200_000) return ''
  return moment > 253_402_300_799_999 ? '~' : new Date(moment).toISOString()
}
