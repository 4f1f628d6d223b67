/** Mode and remembered approvals of one agent, kept in its history. */
import type { History } from '../history/index.ts'
import type { Approval, PermissionMode } from './contract.ts'

const MODE = 'permission.mode'
const APPROVAL = 'permission.approval'

/** Only explicit settings are recorded; without a history they live in memory. */
export class AgentPermissions {
  /** Where nothing was set: the configured default at the time the agent was loaded. */
  readonly fallback: PermissionMode
  readonly #history: History | undefined
  #mode: PermissionMode | undefined
  readonly #approvals: Approval[] = []

  constructor(history: History | undefined, fallback: PermissionMode) {
    this.fallback = fallback
    this.#history = history
    for (const { mode } of history?.records(MODE) ?? []) if (isMode(mode)) this.#mode = mode
    for (const { tool, argument } of history?.records(APPROVAL) ?? []) {
      if (typeof tool === 'string' && (argument === undefined || typeof argument === 'string'))
        this.#approvals.push(approval(tool, argument))
    }
  }

  /** The mode that was set for this agent; undefined when none was. */
  get mode(): PermissionMode | undefined {
    return this.#mode
  }

  get approvals(): readonly Approval[] {
    return this.#approvals
  }

  async setMode(mode: PermissionMode): Promise<void> {
    if (this.#mode === mode) return
    await this.#history?.append({ type: MODE, mode })
    this.#mode = mode
  }

  async remember({ tool, argument }: Approval): Promise<void> {
    if (this.#approvals.some(each => each.tool === tool && each.argument === argument)) return
    await this.#history?.append({ type: APPROVAL, ...approval(tool, argument) })
    this.#approvals.push(approval(tool, argument))
  }
}

function approval(tool: string, argument: string | undefined): Approval {
  return argument === undefined ? { tool } : { tool, argument }
}

function isMode(value: unknown): value is PermissionMode {
  return value === 'manual' || value === 'auto' || value === 'yolo'
}
