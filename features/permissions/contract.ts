/** What others see of permissions: the service, and the sections of the configuration (contract 1, `default_permission_mode`, `permission`). */
import { oneOf, problems, type Static, serviceToken, Type } from '../../kernel/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'

/** manual asks, yolo approves what no rule or danger holds back, auto approves everything that no rule denies. */
export const PermissionMode = oneOf(['manual', 'yolo', 'auto'])
export type PermissionMode = Static<typeof PermissionMode>

/** An approval for the rest of a session: calls of the tool with this very argument, or every call of it. */
export interface Approval {
  readonly tool: string
  readonly argument?: string
}

/** Permission modes and remembered approvals per agent. */
export interface Permissions {
  /**
   * Mode in force: the agent's own or the main agent's, whichever was set later; without one of its own its caller's; default: config
   * `default_permission_mode`, else manual.
   */
  mode(agent: AgentHost): Promise<PermissionMode>
  /** Mode of an agent of the session for which none was set: config `default_permission_mode` as it was when the session was made. */
  defaultMode(session: Session): Promise<PermissionMode>
  /**
   * From the main agent it counts for all agents of the session, and opens none of them. Recorded on disk before it resolves, and announced
   * for the agents at work whose mode changed (`agent.status.updated`).
   */
  setMode(agent: AgentHost, mode: PermissionMode): Promise<void>
  /** For the rest of the session, whichever of its agents asked. Recorded on disk before it resolves. */
  remember(agent: AgentHost, approval: Approval): Promise<void>
}

export const Permissions = serviceToken<Permissions>('permissions')

/** `Tool` or `Tool(argument)`; the tool part is a glob. */
const pattern = Type.String({ minLength: 1, pattern: '^[^()\\s]+(\\([\\s\\S]*\\))?$' })

const rule = Type.Object({
  decision: oneOf(['allow', 'deny', 'ask']),
  pattern,
  scope: Type.Optional(oneOf(['turn-override', 'session-runtime', 'project', 'user'], { description: 'default user' })),
  reason: Type.Optional(Type.String())
})

/** Shorthand: `match` (or `pattern`) is the argument part. */
const short = Type.Object({
  tool: Type.String({ minLength: 1, pattern: '^[^()\\s]+$' }),
  match: Type.Optional(Type.String()),
  pattern: Type.Optional(Type.String()),
  reason: Type.Optional(Type.String())
})

const Permission = Type.Object({
  rules: Type.Optional(Type.Array(rule)),
  allow: Type.Optional(Type.Array(short)),
  deny: Type.Optional(Type.Array(short)),
  ask: Type.Optional(Type.Array(short))
})

export const permissionSection = {
  name: 'permission',
  schema: Permission,
  default: {},
  /** One mistyped rule must not take the others with it. */
  salvage(stored: unknown): Static<typeof Permission> {
    if (typeof stored !== 'object' || stored === null) return {}
    const lists = Object.entries(Permission.properties).flatMap(([name, { items }]) => {
      const given = (stored as Record<string, unknown>)[name]
      return Array.isArray(given) ? [[name, given.filter(entry => problems(items, entry).length === 0)]] : []
    })
    return Object.fromEntries(lists)
  }
}

export const defaultModeSection = {
  name: 'default_permission_mode',
  schema: PermissionMode,
  default: 'manual' as const
}
