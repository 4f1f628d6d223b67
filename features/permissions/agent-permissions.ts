/** Mode and remembered approvals of one agent, kept in its history. */
import { oneOf, Type } from '../../kernel/index.ts'
import { defineRecord, type History, type StateSpec } from '../history/index.ts'
import type { Approval, PermissionMode } from './contract.ts'

const modeRecord = defineRecord('permission.mode', Type.Object({ mode: oneOf(['manual', 'auto', 'yolo']) }))
const approvalRecord = defineRecord('permission.approval', Type.Object({ tool: Type.String(), argument: Type.Optional(Type.String()) }))

interface Recorded {
  /** The mode that was set for this agent; undefined when none was. */
  readonly mode?: PermissionMode
  readonly approvals: readonly Approval[]
}
export const permissionState: StateSpec<Recorded> = {
  name: 'permissions',
  version: 1,
  initial: () => ({ approvals: [] }),
  reduce(state, record) {
    if (modeRecord.is(record)) return { ...state, mode: record.mode }
    if (!approvalRecord.is(record)) return state
    return { ...state, approvals: [...state.approvals, approval(record.tool, record.argument)] }
  }
}

/** Only explicit settings are recorded; without a history they live in memory. */
export class AgentPermissions {
  /** Where nothing was set: the configured default at the time the agent was loaded. */
  readonly fallback: PermissionMode
  readonly #history: History | undefined
  #state: { value: Recorded }

  constructor(history: History | undefined, state: { value: Recorded }, fallback: PermissionMode) {
    this.fallback = fallback
    this.#history = history
    this.#state = state
  }

  static async open(history: History | undefined, fallback: PermissionMode): Promise<AgentPermissions> {
    const state = history ? await history.track(permissionState) : { value: permissionState.initial() }
    return new AgentPermissions(history, state, fallback)
  }

  /** The mode that was set for this agent; undefined when none was. */
  get mode(): PermissionMode | undefined {
    return this.#state.value.mode
  }

  get approvals(): readonly Approval[] {
    return this.#state.value.approvals
  }

  async setMode(mode: PermissionMode): Promise<void> {
    if (this.mode !== mode) await this.#record(modeRecord.of({ mode }))
  }

  async remember({ tool, argument }: Approval): Promise<void> {
    if (this.approvals.some(each => each.tool === tool && each.argument === argument)) return
    await this.#record(approvalRecord.of(approval(tool, argument)))
  }

  async #record(record: { readonly type: string }): Promise<void> {
    if (this.#history) await this.#history.append(record)
    else this.#state = { value: permissionState.reduce(this.#state.value, record) }
  }
}

function approval(tool: string, argument: string | undefined): Approval {
  return argument === undefined ? { tool } : { tool, argument }
}
