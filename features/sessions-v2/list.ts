/** Filters, sorts, groups and cuts the sessions of the home. Pure: what lives is asked through `Facts`. */
import type { SessionState } from '../sessions/index.ts'
import type { Conditions, Key, Position } from './conditions.ts'
import type { Sort, Status } from './contract.ts'

/** What is not in the state of a session. */
export interface Facts {
  statusOf(state: SessionState): Status
  /** The id under which a workspace is listed now. */
  workspaceOf(state: SessionState): string
  /** Some workspace is listed under another id than its sessions have. */
  readonly renamed: boolean
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

/** So many filtered lists are kept of one list, so many groupings of one of them. */
const maxKept = 8
/** What was made of a list before: pages of the same view follow each other, and 10,000 rows take milliseconds. */
const filters = new WeakMap<readonly SessionState[], Map<string, readonly SessionState[]>>()
const groupings = new WeakMap<readonly SessionState[], Map<string, readonly KeyedGroup[]>>()
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

/** What `make` answered for this list and key before, or answers now. */
function kept<T>(of: WeakMap<readonly SessionState[], Map<string, T>>, rows: readonly SessionState[], key: string, make: () => T): T {
  const known = of.get(rows) ?? new Map<string, T>()
  of.set(rows, known)
  const found = known.get(key) ?? make()
  known.delete(key)
  known.set(key, found)
  for (const oldest of known.keys()) {
    if (known.size <= maxKept) break
    known.delete(oldest)
  }
  return found
}

/** The same array for the same `rows` and conditions, unless these ask for what is not in the states. */
export function filtered(rows: readonly SessionState[], conditions: Conditions, facts: Facts): readonly SessionState[] {
  const { archived, hasPrompt, updatedAfter, updatedBefore, statuses, workspaces } = conditions
  if (statuses || workspaces) return filter(rows, conditions, facts)
  return kept(filters, rows, [archived, hasPrompt, updatedAfter, updatedBefore].join(), () => filter(rows, conditions, facts))
}

function filter(rows: readonly SessionState[], conditions: Conditions, facts: Facts): readonly SessionState[] {
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
  const make = () => grouped(rows, sort, groupSize, facts)
  const ordered = facts.renamed ? make() : kept(groupings, rows, `${sort} ${groupSize}`, make)
  const page = cut(
    ordered,
    size,
    position,
    ({ key }) => key,
    (key, after) => comesAfter(key, after, sort, false)
  )
  return { ...page, rows: page.rows.map(({ group }) => group) }
}

interface KeyedGroup {
  readonly group: Grouping
  readonly key: Key
}

function grouped(rows: readonly SessionState[], sort: Sort, groupSize: number, facts: Facts): readonly KeyedGroup[] {
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
  const keyed = [...groups.values()].map(group => ({ group, key: keyOf(group) }))
  return keyed.sort((a, b) => (comesAfter(a.key, b.key, sort, false) ? 1 : -1))
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
