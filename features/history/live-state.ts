/** A state of an agent's journal that is kept up to date in memory. */
import type { StateSpec, Tracked } from './define.ts'
import { type Rewindable, rewindable } from './rewind.ts'

/** A state that is kept up to date: as it is folded (`rewindable` where undo takes it back), and as others see it. */
export class Live {
  readonly spec: StateSpec<unknown>
  readonly records: ReadonlySet<string> | undefined
  readonly from: (() => number) | undefined
  value: unknown
  readonly seen: Tracked<unknown>
  readonly #rewinds: boolean

  constructor(given: StateSpec<unknown>, from?: () => number) {
    this.#rewinds = given.rewinds ?? false
    this.spec = this.#rewinds ? (rewindable(given) as unknown as StateSpec<unknown>) : given // each is called with its own state only
    this.records = this.spec.records
    this.from = from
    this.value = this.spec.initial()
    this.seen = this.#rewinds ? new Rewound(this) : this
  }

  /** The lowest number of a message to which undo can take it back. */
  get floor(): number {
    return this.#rewinds ? (this.value as Rewindable<unknown>).floor : 0
  }
}

/** A state that undo takes back, as others see it. */
class Rewound implements Tracked<unknown> {
  readonly #live: Live

  constructor(live: Live) {
    this.#live = live
  }

  get value(): unknown {
    return (this.#live.value as Rewindable<unknown>).value
  }
}
