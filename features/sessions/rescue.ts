/** A session whose state file was lost opens again with what the workspace and the directory tell. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../../kernel/index.ts'
import type { Workspaces } from '../workspaces/index.ts'
import { firstState } from './create.ts'
import type { SessionState } from './service.ts'

export interface RescuePorts {
  /** Absolute path of `<home>/sessions`. */
  readonly root: string
  readonly workspaces: Workspaces
  readonly log: Logger
}

/** Undefined when there are no agents (an empty or foreign directory) or the workspace is unknown. */
export async function rescueState(ports: RescuePorts, workspace_id: string, id: string): Promise<SessionState | undefined> {
  const dir = join(ports.root, workspace_id, id)
  const agents = await readdir(join(dir, 'agents')).catch(() => undefined) // no agents: nothing to rescue
  const workspace = agents && (await ports.workspaces.get(workspace_id))
  if (!agents || !workspace) return undefined
  ports.log.warn({ session_id: id }, 'session state was lost; rebuilt from its workspace')
  const state = firstState(id, workspace_id, workspace.root, {}, (await stat(dir)).birthtime)
  const records = agents.map(name => [name, { type: name === 'main' ? ('main' as const) : ('sub' as const) }])
  return { ...state, last_prompt: '', agents: Object.fromEntries(records) }
}
