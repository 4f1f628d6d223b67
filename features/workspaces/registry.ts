/** The registered workspaces: one row per root, tombstones for what the user took out. */
import type { RegistryFile } from './contract.ts'
import type { Latest } from './latest.ts'
import { baseName, rootKey, workspaceId } from './root.ts'
import type { WorkspaceRecord } from './service.ts'

type Rows = RegistryFile['workspaces']

export const emptyRegistry: RegistryFile = { version: 1, workspaces: {}, deleted_workspace_ids: [] }

/** What follows from the rows of one content of the file. */
interface View {
  /** In the order of registration, one per root. */
  readonly listed: readonly WorkspaceRecord[]
  /** Every id under which the root of a row was ever registered here, by the row's id; that id first. */
  readonly ids: ReadonlyMap<string, readonly string[]>
}

/** A row that is on disk, with every id of its root: nobody has to read it back. */
export interface Written {
  readonly record: WorkspaceRecord
  readonly ids: readonly string[]
}

export class Registry {
  readonly #file: Latest<RegistryFile>
  /** Of the content that was looked at last. */
  #view: (View & { readonly of: Rows }) | undefined

  constructor(file: Latest<RegistryFile>) {
    this.#file = file
  }

  async view(): Promise<View> {
    const { workspaces } = await this.#file.get()
    if (this.#view?.of !== workspaces) this.#view = { ...viewOf(workspaces), of: workspaces }
    return this.#view
  }

  async get(id: string): Promise<WorkspaceRecord | undefined> {
    const { workspaces } = await this.#file.get()
    return recordOf(workspaces, id)
  }

  /** Adds the root, or refreshes `last_opened_at` of the row it has. */
  async register(root: string, name: string | undefined, at: string): Promise<Written & { readonly created: boolean }> {
    let id = workspaceId(root)
    let created = false
    const file = await this.#file.update(current => {
      const known = Object.hasOwn(current.workspaces, id) ? id : idsOfRoot(current.workspaces, root)[0]
      created = known === undefined
      id = known ?? id
      const row =
        known === undefined ? { root, name: name ?? defaultName(root), created_at: at, last_opened_at: at } : current.workspaces[known]!
      return {
        ...current,
        workspaces: { ...current.workspaces, [id]: { ...row, last_opened_at: at } },
        deleted_workspace_ids: current.deleted_workspace_ids.filter(deleted => deleted !== id)
      }
    })
    return { ...writtenOf(file.workspaces, id)!, created }
  }

  /** Undefined when nobody has the id. */
  async rename(id: string, name: string): Promise<Written | undefined> {
    const file = await this.#file.update(current => {
      if (!Object.hasOwn(current.workspaces, id)) return current
      return { ...current, workspaces: { ...current.workspaces, [id]: { ...current.workspaces[id]!, name } } }
    })
    return writtenOf(file.workspaces, id)
  }

  /** Takes out every row with the root of this id; answers the row and the ids that went. Undefined when nobody has the id. */
  async remove(id: string): Promise<{ readonly record: WorkspaceRecord; readonly ids: readonly string[] } | undefined> {
    let removed: { record: WorkspaceRecord; ids: string[] } | undefined
    await this.#file.update(current => {
      const record = recordOf(current.workspaces, id)
      removed = record && { record, ids: idsOfRoot(current.workspaces, record.root) }
      if (!removed) return current
      const { ids } = removed
      return {
        ...current,
        workspaces: Object.fromEntries(Object.entries(current.workspaces).filter(([other]) => !ids.includes(other))),
        deleted_workspace_ids: [...new Set([...current.deleted_workspace_ids, ...ids])]
      }
    })
    return removed
  }
}

function recordOf(rows: Rows, id: string): WorkspaceRecord | undefined {
  const row = Object.hasOwn(rows, id) ? rows[id] : undefined
  return row && { id, root: row.root, name: row.name, created_at: row.created_at, last_opened_at: row.last_opened_at }
}

function writtenOf(rows: Rows, id: string): Written | undefined {
  const record = recordOf(rows, id)
  return record && { record, ids: viewOf(rows).ids.get(id) ?? [id] }
}

function viewOf(rows: Rows): View {
  const listed: WorkspaceRecord[] = []
  const byRoot = new Map<string, string[]>()
  for (const id of Object.keys(rows)) {
    const key = rootKey(rows[id]!.root)
    const known = byRoot.get(key)
    if (known) known.push(id)
    else {
      byRoot.set(key, [id])
      listed.push(recordOf(rows, id)!)
    }
  }
  const ids = new Map<string, readonly string[]>()
  for (const others of byRoot.values()) for (const id of others) ids.set(id, [...new Set([id, workspaceId(rows[id]!.root), ...others])])
  return { listed, ids }
}

function idsOfRoot(rows: Rows, root: string): string[] {
  const key = rootKey(root)
  return Object.keys(rows).filter(id => rootKey(rows[id]!.root) === key)
}

/** Base name of the root, at most 100 characters; the root itself where it has none. */
function defaultName(root: string): string {
  return [...(baseName(root) || root)].slice(0, 100).join('')
}
