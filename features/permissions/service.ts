/** Permission modes, rules and remembered approvals per agent. */
import { serviceToken } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'

export type PermissionMode = 'manual' | 'auto' | 'yolo'

export interface Permissions {
  /** Current mode; default: config `default_permission_mode`, else manual. */
  mode(agent: AgentHost): Promise<PermissionMode>
  /** Mode of an agent for which none was set: config `default_permission_mode`. */
  defaultMode(): Promise<PermissionMode>
  /** Recorded on disk before it resolves. */
  setMode(agent: AgentHost, mode: PermissionMode): Promise<void>
  /** Remembers an approval rule (`Bash(ls)`) for the rest of the session. */
  remember(agent: AgentHost, rule: string): Promise<void>
}

export const Permissions = serviceToken<Permissions>('permissions')
