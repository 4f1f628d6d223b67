/** States that undo takes back with the messages: a pack wraps its reducer, and its state is again what it was before the first of them. */
import type { HistoryRecord, StateSpec } from './define.ts'
import { messageFacts, numberOf } from './message.ts'
import { coreRecord } from './records.ts'

/** What a pack declares: as `StateSpec`, but `reduce` never changes the state in place, and answers the same one when nothing changed. */
export interface UndoableSpec<S> {
  readonly name: string
  readonly version: number
  initial(): S
  reduce(state: S, record: HistoryRecord): S
}

/** The state, and what it was before each input that undo may take back. JSON, when the state is. */
export interface Undoable<S> {
  now: S
  /** Number of the next message. */
  next: number
  /** Number of the newest message that came from outside: undo cuts in front of those. */
  input: number
  /** Earlier values, rising: `value` was in force until the message `until` came. One per input at most, none from before a compaction. */
  readonly earlier: { readonly until: number; readonly value: S }[]
}

/** A state that `context.undone` restores. Its spec is tracked and contributed like any other; the value is in `now`. */
export function restoredByUndo<S>({ name, version, initial, reduce }: UndoableSpec<S>): StateSpec<Undoable<S>> {
  return {
    name,
    version,
    initial: () => ({ now: initial(), next: 0, input: -1, earlier: [] }),
    reduce(state, record) {
      const core = coreRecord(record)
      const facts = core && messageFacts(core)
      if (core?.type === 'context.undone') restore(state, core.from)
      if (core?.type === 'context.compacted') state.earlier.length = 0
      if (core && facts) {
        const number = numberOf(core, state.next)
        state.next = number + 1
        if (facts.role === 'user' && facts.origin?.kind !== 'injection') state.input = number
      }
      const value = reduce(state.now, record)
      if (value === state.now) return state
      // A second change behind the same input needs no value of its own: nobody cuts between the two.
      const last = state.earlier.at(-1)
      if (state.input >= 0 && (last?.until ?? -1) < state.input) state.earlier.push({ until: state.input, value: state.now })
      state.now = value
      return state
    }
  }
}

function restore<S>(state: Undoable<S>, from: number): void {
  const first = state.earlier.findIndex(({ until }) => until >= from)
  if (first < 0) return
  state.now = state.earlier[first]!.value
  state.earlier.length = first
}
