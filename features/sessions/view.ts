/** The session object of the wire, and which sessions a list shows. */
import { type AppError, invalid, type Static } from '../../kernel/index.ts'
import type { listSessions, SessionObject } from './contract.ts'
import type { SessionLive, SessionState, WorkTuple } from './service.ts'

const cold: WorkTuple = { busy: false, main_turn_active: false, pending_interaction: 'none' }
const noUsage: SessionObject['usage'] = {
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_creation_tokens: 0,
  total_cost_usd: 0,
  context_tokens: 0,
  context_limit: 0,
  turn_count: 0
}

/** Contract 2, Session object. `work` is undefined for a session that is not loaded here; `live` is for the snapshot only. */
export function sessionObject(state: SessionState, work: WorkTuple = cold, live?: SessionLive): SessionObject {
  return {
    id: state.id,
    workspace_id: state.workspace_id,
    title: state.title,
    created_at: state.created_at,
    updated_at: state.updated_at,
    archived: state.archived,
    ...(state.archived_at === undefined || !state.archived ? {} : { archived_at: state.archived_at }),
    busy: work.busy,
    main_turn_active: work.main_turn_active,
    pending_interaction: work.pending_interaction,
    ...(state.last_turn_reason === undefined ? {} : { last_turn_reason: state.last_turn_reason }),
    ...(state.last_prompt === undefined ? {} : { last_prompt: state.last_prompt }),
    metadata: { ...state.metadata, ...kinship(state), cwd: state.cwd },
    agent_config: { model: live?.model ?? '' },
    usage: live?.usage ?? noUsage,
    permission_rules: [],
    message_count: 0,
    last_seq: 0
  }
}

/** Clients know children by their metadata. */
function kinship({ child_of }: SessionState): Record<string, unknown> {
  return child_of === undefined ? {} : { parent_session_id: child_of, child_session_kind: 'child' }
}

/** What a list is asked for; ids of workspaces come apart from it, because one workspace may have several. */
export type ListQuery = Omit<Static<NonNullable<typeof listSessions.query>>, 'workspace_id'>

/** Rejects queries whose parts exclude each other (40001). */
export function queryProblem(query: ListQuery): AppError | undefined {
  if (query.before_id !== undefined && query.after_id !== undefined) {
    return invalid([{ path: 'query.before_id', message: 'before_id and after_id exclude each other' }])
  }
  if (query.archived_only && query.include_archive) {
    return invalid([{ path: 'query.archived_only', message: 'archived_only and include_archive exclude each other' }])
  }
  return undefined
}

/**
 * Slices the sorted sessions (contract 2 and its list rules): filters act before slicing, `busy` after it, except with `archived_only`.
 * An unknown cursor gives an empty page. Without `page_size` and `archived_only` everything is on one page. `workspaces`: ids to keep.
 */
export function listPage(
  sorted: readonly SessionState[],
  query: ListQuery,
  isBusy: (id: string) => boolean,
  workspaces?: readonly string[]
): { rows: SessionState[]; has_more: boolean } {
  const fitsBusy = (state: SessionState) => query.busy === undefined || isBusy(state.id) === query.busy
  const pivot = query.before_id ?? query.after_id
  const at = pivot === undefined ? -1 : sorted.findIndex(state => state.id === pivot)
  if (pivot !== undefined && at < 0) return { rows: [], has_more: false }
  const window = pivot === undefined ? sorted : query.before_id === undefined ? sorted.slice(0, at) : sorted.slice(at + 1)
  const rows = window.filter(
    state =>
      (query.archived_only ? state.archived : query.include_archive || !state.archived) &&
      (!query.exclude_empty || state.last_prompt !== undefined) &&
      (workspaces === undefined || workspaces.includes(state.workspace_id)) &&
      (!query.archived_only || fitsBusy(state))
  )
  const paged = query.page_size !== undefined || query.archived_only === true
  const size = paged ? (query.page_size ?? 20) : rows.length
  const has_more = rows.length > size
  return { rows: rows.slice(0, size).filter(fitsBusy), has_more }
}
