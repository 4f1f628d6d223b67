/** What a list is asked for, checked, and the token by which a page says where the next one begins. */
import { createHash } from 'node:crypto'
import { AppError, fromPageToken, invalid, toPageToken } from '../../kernel/index.ts'
import { type ListQuery, maxItems, PageTokenInvalid, type Sort, type Status } from './contract.ts'

/** Where a page begins: behind the row with this key, under the sort. */
export interface Key {
  /** Epoch milliseconds by which the list is sorted. */
  readonly at: number
  /** Of a session, or of the workspace of a group. */
  readonly id: string
}

export interface Conditions {
  readonly workspaces?: readonly string[]
  readonly statuses?: readonly Status[]
  readonly updatedAfter?: number
  readonly updatedBefore?: number
  readonly archived: 'true' | 'false' | 'all'
  readonly hasPrompt?: boolean
  readonly grouped: boolean
  readonly groupSize: number
  readonly sort: Sort
  readonly git: boolean
  /** Ids and archive flags only. */
  readonly marks: boolean
  readonly size: number
}

/** A page by its number from 1, or behind a key; neither: the first one. */
export interface Position {
  readonly page?: number
  readonly after?: Key
}

const bad = (field: string, message: string) => invalid([{ path: `query.${field}`, message }])
const words = (text: string) => text.split(',').map(word => word.trim())

/** Throws 40001 for parts that do not go together, PageTokenInvalid (40922) for a token of other conditions. */
export function conditionsOf(query: ListQuery): { readonly conditions: Conditions; readonly position: Position } {
  const grouped = query.view === 'by_workspace'
  const marks = query.fields !== undefined
  if (query.fields !== undefined && words(query.fields).sort().join() !== 'archived,id') throw bad('fields', 'expected id,archived')
  const domains = words(query.include ?? '').filter(word => word !== '')
  const unknown = domains.find(word => word !== 'git')
  if (unknown !== undefined) throw bad('include', `unknown domain '${unknown}'`)
  const git = domains.length > 0
  if (git && marks) throw bad('include', 'git and the projection exclude each other')
  const { page_size: size = 50, page, page_token: token } = query
  const given = query['group.page_size']
  if (given !== undefined && !grouped) throw bad('group.page_size', 'only with view=by_workspace')
  if (!marks && size > maxItems) throw bad('page_size', `at most ${maxItems} without fields=id,archived`)
  if (!marks && (given ?? 1) > maxItems) throw bad('group.page_size', `at most ${maxItems} without fields=id,archived`)
  if (page !== undefined && token !== undefined) throw bad('page', 'page and page_token exclude each other')
  const conditions: Conditions = {
    ...(query['workspace.id'] && { workspaces: [...new Set(query['workspace.id'])].sort() }),
    ...(query['activity.status'] && { statuses: [...new Set(query['activity.status'])].sort() }),
    ...(query['meta.updated_after'] !== undefined && { updatedAfter: query['meta.updated_after'] }),
    ...(query['meta.updated_before'] !== undefined && { updatedBefore: query['meta.updated_before'] }),
    archived: query['meta.archived'],
    ...(query['meta.has_prompt'] !== undefined && { hasPrompt: query['meta.has_prompt'] === 'true' }),
    grouped,
    groupSize: given ?? 5,
    sort: query.sort,
    git,
    marks,
    size
  }
  if (page !== undefined) return { conditions, position: { page } }
  return { conditions, position: token === undefined ? {} : { after: readToken(token, conditions) } }
}

export function tokenOf(conditions: Conditions, { at, id }: Key): string {
  return toPageToken({ v: 1, f: printOf(conditions), k: [at, id] })
}

function readToken(token: string, conditions: Conditions): Key {
  const read = fromPageToken(token) as { v?: unknown; f?: unknown; k?: unknown } | null | undefined
  const [at, id] = Array.isArray(read?.k) ? (read.k as unknown[]) : []
  if (read?.v !== 1 || typeof at !== 'number' || typeof id !== 'string') {
    throw new AppError(PageTokenInvalid, { message: 'the page token cannot be read' })
  }
  if (read.f !== printOf(conditions)) throw new AppError(PageTokenInvalid)
  return { at, id }
}

/** The same for the same conditions, whatever order their values came in. */
function printOf(conditions: Conditions): string {
  return createHash('sha256').update(JSON.stringify(conditions)).digest('hex').slice(0, 16)
}
