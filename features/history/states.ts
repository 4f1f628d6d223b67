/** The states that follow from the records of a journal, kept up to date in memory: from a checkpoint, and from the records behind it. */
import { type Logger, type LogPositions, yieldToLoop } from '../../kernel/index.ts'
import { type HistoryRecord, lookersOf, looksAt, type StateSpec, type Tracked } from './define.ts'
import { Live } from './live-state.ts'
import type { Entry, Saved } from './tail.ts'

/** A state that is being read; it takes the place of the one in memory when it is whole. */
export interface Fresh {
  readonly spec: StateSpec<unknown>
  value: unknown
}

interface StatesPorts {
  /** Kept from the first record on. */
  readonly specs: readonly StateSpec<unknown>[]
  readonly scan: (range: { from: number; to: number }) => AsyncIterable<Entry>
  /** Where the records on disk end. */
  readonly end: () => number
  readonly logger: Pick<Logger, 'error'>
}

export class States {
  readonly #ports: StatesPorts
  readonly #live = new Map<string, Live>()
  /** The same, another list whenever one is added. */
  #lives: readonly Live[] = []
  readonly #lookers = lookersOf(() => this.#lives)
  /** States of the last checkpoint that nobody has asked for. */
  #saved = new Map<string, Saved>()
  /** Records that were taken in and are not on disk yet, by write. */
  #unwritten: (readonly HistoryRecord[])[] = []

  constructor(ports: StatesPorts) {
    this.#ports = ports
    for (const spec of ports.specs) this.#add(new Live(spec))
  }

  /** The value of the first of `specs`. */
  get first(): unknown {
    return this.#live.get(this.#ports.specs[0]?.name ?? '')?.value
  }

  /** See `AgentLog.track`. */
  async track<S>(spec: StateSpec<S>, from?: () => number): Promise<Tracked<S>> {
    const known = this.#live.get(spec.name)
    if (known) return known.seen as Tracked<S> // one spec per name
    await this.#catchUp(new Live(spec as StateSpec<unknown>, from))
    return this.#live.get(spec.name)?.seen as Tracked<S>
  }

  /** See `AgentLog.tracked`. */
  tracked<S>(spec: StateSpec<S>): S | undefined {
    return this.#live.get(spec.name)?.seen.value as S | undefined // one spec per name
  }

  /** See `AgentLog.floor`. */
  get floor(): number {
    return Math.max(0, ...[...this.#live.values()].map(live => live.floor))
  }

  /** A new record. */
  take(record: HistoryRecord): void {
    for (const live of this.#lookers(record)) this.takeInto(live, record)
  }

  /** One state alone takes a record in. `at`: where that is, if it is on disk. */
  takeInto(state: Fresh, record: HistoryRecord, at?: number): void {
    try {
      if (looksAt(state.spec, record)) state.value = state.spec.reduce(state.value, record)
      if (at !== undefined) state.spec.located?.(state.value, record, at)
    } catch (err) {
      this.#ports.logger.error({ err, type: record.type, state: state.spec.name }, 'a state could not take a record in')
    }
  }

  /** Records that were taken in are on their way to the disk, until `written` or `refused`. */
  writing(batch: readonly HistoryRecord[]): void {
    this.#unwritten.push(batch)
  }

  written(batch: readonly HistoryRecord[], { at, end }: LogPositions): void {
    for (const [index, record] of batch.entries())
      for (const { spec, value } of this.#live.values()) spec.located?.(value, record, at[index] ?? end)
    this.#forget(batch)
  }

  /** They are not on disk: all states are restored afterwards. */
  refused(batch: readonly HistoryRecord[]): void {
    this.#forget(batch)
  }

  #forget(batch: readonly HistoryRecord[]): void {
    this.#unwritten = this.#unwritten.filter(each => each !== batch)
  }

  /** All states as a checkpoint holds them, by name: as they are until the next record is taken in. */
  save(): Record<string, Saved> {
    const states: Record<string, Saved> = Object.fromEntries(this.#saved)
    for (const { spec, from, value } of this.#live.values()) {
      const saved = from ? undefined : spec.save ? spec.save(value) : value
      if (saved !== undefined) states[spec.name] = { version: spec.version, at: this.#ports.end(), value: saved }
    }
    return states
  }

  /** Those of `specs` that the checkpoint at `at` (0: the beginning of the journal) has, as it has them: they take in what follows. */
  async restore(saved: Map<string, Saved>, at: number): Promise<Fresh[]> {
    this.#saved = saved
    const fresh: Fresh[] = []
    for (const { name } of this.#ports.specs) {
      const restored = this.#restored((this.#live.get(name) as Live).spec, at)
      if (restored) fresh.push(restored)
      const others = yieldToLoop() // behind a long history each is large
      if (others) await others
    }
    return fresh
  }

  /** Restored states that have taken in all that is on disk count from now on; the others read what they lack. */
  async replace(fresh: readonly Fresh[]): Promise<void> {
    for (const { spec, value } of fresh) (this.#live.get(spec.name) as Live).value = value
    for (const live of this.#live.values()) if (!fresh.some(each => each.spec === live.spec)) await this.#catchUp(live)
  }

  #add(live: Live): void {
    this.#live.set(live.spec.name, live)
    this.#lives = [...this.#live.values()]
  }

  #restored(spec: StateSpec<unknown>, at: number): Fresh | undefined {
    const saved = this.#saved.get(spec.name)
    if (at === 0) return { spec, value: spec.initial() }
    if (saved?.version !== spec.version || saved.at !== at) return undefined
    this.#saved.delete(spec.name)
    const value = loaded(spec, saved)
    return value === undefined ? undefined : { spec, value }
  }

  /** Reads what a state has not taken in, until it agrees with the end of the journal. */
  async #catchUp(live: Live): Promise<void> {
    const { spec, from } = live
    const saved = from ? undefined : this.#saved.get(spec.name)
    const known = saved?.version === spec.version ? loaded(spec, saved) : undefined
    const fresh = { spec, value: known ?? spec.initial() }
    for (let at = from?.() ?? (known === undefined ? undefined : saved?.at) ?? 0; at < this.#ports.end(); ) {
      const to = this.#ports.end()
      for await (const entry of this.#ports.scan({ from: at, to })) {
        this.takeInto(fresh, entry.value, entry.at)
        await yieldToLoop()
      }
      at = to
    }
    for (const batch of this.#unwritten) for (const record of batch) this.takeInto(fresh, record)
    live.value = fresh.value
    // In the same tick, so that no record comes in between; who asked at the same time gets the first one.
    if (!this.#live.has(spec.name)) this.#add(live)
    this.#saved.delete(spec.name)
  }
}

/** A state of a checkpoint; undefined: it cannot be used. */
function loaded(spec: StateSpec<unknown>, saved: Saved): unknown {
  return spec.load ? spec.load(saved.value) : saved.value
}
