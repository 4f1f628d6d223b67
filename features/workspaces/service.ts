/** What other packs get from workspaces (project directories). */
import { errorSpec, serviceToken } from '../../kernel/index.ts'

export const WorkspaceMissing = errorSpec('workspace_missing', 40410, 'workspace not found')
/** Shared with every route that takes a directory. */
export const PathOutside = errorSpec('path_outside', 41304, 'the path leads out of the workspace')
export const PathMissing = errorSpec('path_missing', 40409, 'path not found')
export const PathDenied = errorSpec('path_denied', 40411, 'no permission for the path')

export interface WorkspaceRecord {
  readonly id: string
  readonly root: string
  readonly name: string
  readonly created_at: string
  readonly last_opened_at: string
}

export interface Workspaces {
  list(): Promise<WorkspaceRecord[]>
  get(id: string): Promise<WorkspaceRecord | undefined>
  /** The id itself and every other one under which the same root was registered. */
  aliases(id: string): Promise<readonly string[]>
  /**
   * Registers the directory, or refreshes `last_opened_at`, for what `use` makes there; then emits created or updated, which counts that.
   * Throws 40001 (not absolute), PathMissing (40409), and what `use` throws.
   */
  register<T>(root: string, use: (record: WorkspaceRecord) => Promise<T>): Promise<T>
  /** Workspace id of a root (contract 3; `wd_<slug>_<hash12>`). */
  idOf(root: string): string
  trusted(id: string): Promise<boolean>
  onTrustChange(listener: (id: string, trusted: boolean) => void): () => void
}

export const Workspaces = serviceToken<Workspaces>('workspaces', { onTrustChange: 'notify' })

/** Counts sessions; contributed by the sessions pack. */
export interface SessionCounter {
  /** How many sessions each workspace id has, as of now: to be read at once, ids without a session may be missing. */
  counts(): Promise<ReadonlyMap<string, number>>
}
export const SessionCounter = serviceToken<SessionCounter>('session-counter')
