/** Mode and remembered approvals of one agent, kept in its history. */
import { Type } from '../../kernel/index.ts'
import { defineRecord, type History, type HistoryRecord, recordTypes, type StateSpec } from '../history/index.ts'
import { type Approval, PermissionMode } from './contract.ts'

export const modeRecord = defineRecord('permission.mode', Type.Object({ mode: PermissionMode }))
const approvalRecord = defineRecord('permission.approval', Type.Object({ tool: Type.String(), argument: Type.Optional(Type.String()) }))

/** A mode that was set. */
interface SetMode {
  readonly mode: PermissionMode
  /** Instant, ms. */
  readonly at: number
}

interface Recorded {
  /** The mode that was set for this agent; undefined when none was. */
  readonly own?: SetMode
  readonly approvals: readonly Approval[]
}
export const permissionState: StateSpec<Recorded> = {
  name: 'permissions',
  version: 2,
  records: recordTypes(modeRecord, approvalRecord),
  initial: () => ({ approvals: [] }),
  reduce(state, record) {
    if (modeRecord.is(record)) return { ...state, own: { mode: record.mode, at: record.time ?? 0 } }
    if (!approvalRecord.is(record)) return state
    return { ...state, approvals: [...state.approvals, approval(record.tool, record.argument)] }
  }
}

/** Of an agent's own mode and the main agent's, the one that was set later; when both were at once, the main agent's. */
export function later(own: SetMode | undefined, main: SetMode | undefined): SetMode | undefined {
  return own && main ? (main.at >= own.at ? main : own) : (own ?? main)
}

/** Only explicit settings are recorded; without a history they live in memory. */
export class AgentPermissions {
  /** Where nothing was set: the default of the session. */
  readonly fallback: PermissionMode
  readonly #history: History | undefined
  #state: { value: Recorded }
  /** Of the main agent: when another agent's own mode was last set in this process. */
  #othersAt = 0
  /** Of the main agent: its mode was set in this process, so no mode that is not counted in `othersAt` is later. */
  #leads = false

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
  get own(): SetMode | undefined {
    return this.#state.value.own
  }

  get approvals(): readonly Approval[] {
    return this.#state.value.approvals
  }

  /** Of the main agent: from `now` (ms) on the mode of all. Recorded unless that is so already; clocks that go back change no order. */
  async setForAll(mode: PermissionMode, now: number): Promise<void> {
    const { own } = this
    if (this.#leads && own?.mode === mode && own.at >= this.#othersAt) return
    await this.#set(mode, Math.max(now, own?.at ?? 0, this.#othersAt))
    this.#leads = true
  }

  /** Of another agent: its own mode from `now` (ms) on, until the main agent's is set again. */
  async setForOne(mode: PermissionMode, now: number, main: AgentPermissions | undefined): Promise<void> {
    const { own } = this
    if (own && later(own, main?.own)?.mode === mode) return
    const at = Math.max(now, own?.at ?? 0, main?.own ? main.own.at + 1 : 0)
    if (main) main.#othersAt = Math.max(main.#othersAt, at)
    await this.#set(mode, at)
  }

  async remember({ tool, argument }: Approval): Promise<void> {
    if (this.approvals.some(each => each.tool === tool && each.argument === argument)) return
    await this.#record(approvalRecord.of(approval(tool, argument)))
  }

  #set(mode: PermissionMode, at: number): Promise<void> {
    return this.#record({ ...modeRecord.of({ mode }), time: at })
  }

  async #record(record: HistoryRecord): Promise<void> {
    if (this.#history) await this.#history.append(record)
    else this.#state = { value: permissionState.reduce(this.#state.value, record) }
  }
}

function approval(tool: string, argument: string | undefined): Approval {
  return argument === undefined ? { tool } : { tool, argument }
}
