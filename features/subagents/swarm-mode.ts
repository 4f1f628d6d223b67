/** Swarm mode: whether an agent is to split its work among others. On by its user until it is off, by the tool until its turn ends. */
import { oneOf, Type } from '../../kernel/index.ts'
import { defineRecord, type History, type HistoryRecord, recordTypes, type StateSpec, type Tracked } from '../history/index.ts'

export const modeRecord = defineRecord('swarm.mode', Type.Object({ on: Type.Boolean(), trigger: oneOf(['manual', 'tool']) }))

interface Mode {
  readonly on: boolean
  readonly trigger: 'manual' | 'tool'
}
export const swarmState: StateSpec<Mode> = {
  name: 'swarm-mode',
  version: 1,
  records: recordTypes(modeRecord),
  initial: () => ({ on: false, trigger: 'manual' }),
  reduce: (state, record) => (modeRecord.is(record) ? { on: record.on, trigger: record.trigger } : state)
}

const entered =
  'Swarm mode is on. Split the work into independent pieces and give them to agents of their own with AgentSwarm (or Agent for single ones); check and join what they answer.'
const left = 'Swarm mode is off. Work as usual.'

/** What ends the mode with a turn: nothing when a user switched it on. */
export const leftByTool = ({ on, trigger }: Mode): HistoryRecord[] =>
  on && trigger === 'tool' ? [modeRecord.of({ on: false, trigger })] : []

export class SwarmMode {
  readonly #history: History
  readonly #state: Tracked<Mode>
  readonly #changed: () => void

  constructor(history: History, state: Tracked<Mode>, changed: () => void) {
    this.#history = history
    this.#state = state
    this.#changed = changed
  }

  get on(): boolean {
    return this.#state.value.on
  }

  /** Entering what is on, and leaving what is off, does nothing. */
  async set(on: boolean, trigger: Mode['trigger']): Promise<void> {
    if (this.on === on) return
    await this.#history.append(modeRecord.of({ on, trigger }))
    this.#changed()
  }

  /** What the tool switched on ends with the turn. */
  turnEnd(): Promise<void> | undefined {
    return leftByTool(this.#state.value).length > 0 ? this.set(false, 'tool') : undefined
  }

  remind(): { readonly text: string; readonly facts: Readonly<Record<string, unknown>> } | undefined {
    const last = this.#history.reminder('swarm_mode')
    const { on, trigger } = this.#state.value
    if (on) return trigger === 'manual' && last?.on !== true ? { text: entered, facts: { on } } : undefined
    return last?.on === true ? { text: left, facts: { on } } : undefined
  }
}
