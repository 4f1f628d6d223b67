/** The registered workspaces: one row per root, tombstones for what the user took out. */
import type { RegistryFile } from './contract.ts'
import type { Latest } from './latest.ts'
import { baseName, rootKey, workspaceId } from './root.ts'
import type { WorkspaceRecord } from './service.ts'

type Rows = RegistryFile['workspaces']

export const emptyRegistry: RegistryFile = { version: 1, workspaces: {}, deleted_workspace_ids: [] }

export class Registry {
  readonly #file: Latest<RegistryFile>

  constructor(file: Latest<RegistryFile>) {
    this.#file = file
  }

  /** In the order of registration, one per root. */
  async list(): Promise<WorkspaceRecord[]> {
    const { workspaces } = await this.#file.get()
    const seen = new Set<string>()
    return records(workspaces).filter(({ root }) => {
      const key = rootKey(root)
      return !seen.has(key) && seen.add(key)
    })
  }

  async get(id: string): Promise<WorkspaceRecord | undefined> {
    const { workspaces } = await this.#file.get()
    return recordOf(workspaces, id)
  }

  /** Every id under which the root of a workspace was ever registered here; the row's own id first. */
  async aliases(id: string): Promise<string[]> {
    const { workspaces } = await this.#file.get()
    const row = recordOf(workspaces, id)
    return row ? [...new Set([id, workspaceId(row.root), ...idsOfRoot(workspaces, row.root)])] : [id]
  }

  /** Adds the root, or refreshes `last_opened_at` of the row it has. */
  async register(
    root: string,
    name: string | undefined,
    at: string
  ): Promise<{ readonly record: WorkspaceRecord; readonly created: boolean }> {
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
    return { record: recordOf(file.workspaces, id)!, created }
  }

  /** Undefined when nobody has the id. */
  async rename(id: string, name: string): Promise<WorkspaceRecord | undefined> {
    const file = await this.#file.update(current => {
      if (!Object.hasOwn(current.workspaces, id)) return current
      return { ...current, workspaces: { ...current.workspaces, [id]: { ...current.workspaces[id]!, name } } }
    })
    return recordOf(file.workspaces, id)
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

function records(rows: Rows): WorkspaceRecord[] {
  return Object.keys(rows).map(id => recordOf(rows, id)!)
}

function idsOfRoot(rows: Rows, root: string): string[] {
  const key = rootKey(root)
  return Object.keys(rows).filter(id => rootKey(rows[id]!.root) === key)
}

/** Base name of the root, at most 100 characters; the root itself where it has none. */
function defaultName(root: string): string {
  return (baseName(root) || root).slice(0, 100)
}
