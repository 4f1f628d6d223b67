/**
 * States that undo takes back: what they are, and what they were before each input that may be taken back. What came before a compaction can
 * never be, so memory holds one value per turn since then at most.
 */
import { type HistoryRecord, recordTypes, type StateSpec } from './define.ts'
import { isMessage, messageFacts, messageTypes, numberOf } from './message.ts'
import { contextCompacted, contextUndone, coreRecord, turnStarted } from './records.ts'

/** So many earlier values are kept; of more, the older half is forgotten. */
const valuesKept = 2048

export interface Rewindable<S> {
  readonly value: S
  /** Number of the next message. */
  readonly next: number
  /** Number of the newest message that came from outside, or will come next: undo cuts in front of those. */
  readonly input: number
  /** The lowest number of a message to which the state can go back. */
  readonly floor: number
  /** Rising: `value` was in force until the message `until` came. */
  readonly earlier: readonly { readonly until: number; readonly value: S }[]
}

/** What tells where messages begin and end. */
const own = [...messageTypes, turnStarted, contextCompacted, contextUndone]

/** The state with what it takes to go back. A pure fold, too. */
export function rewindable<S>(spec: StateSpec<S>, kept = valuesKept): StateSpec<Rewindable<S>> {
  const save = (value: S): unknown => (spec.save ? spec.save(value) : value)
  const load = (saved: unknown) => (spec.load ? spec.load(saved) : (saved as S)) // what `save` made
  return {
    name: spec.name,
    version: spec.version,
    ...(spec.records ? { records: recordTypes(...spec.records, ...own) } : {}),
    initial: () => ({ value: spec.initial(), next: 0, input: -1, floor: 0, earlier: [] }),
    reduce(given, record) {
      const state = counted(contextUndone.is(record) ? cut(given, record.from) : given, record)
      const value = spec.reduce(state.value, record)
      if (contextCompacted.is(record)) return { ...state, value, floor: state.next, earlier: [] }
      if (value === state.value) return state
      const { input, earlier } = state
      // A second change behind the same input needs no value of its own: nobody cuts between the two.
      if (input < 0 || (earlier.at(-1)?.until ?? -1) >= input) return { ...state, value }
      return bounded({ ...state, value, earlier: [...earlier, { until: input, value: state.value }] }, kept)
    },
    save: state => each(state, save),
    load: saved => each(saved as Rewindable<unknown>, load)
  }
}

/** The same with other values; undefined when one of them cannot be had. */
function each<S, T>(state: Rewindable<S>, change: (value: S) => T | undefined): Rewindable<T> | undefined {
  const value = change(state.value)
  const earlier = state.earlier.flatMap(({ until, value }) => {
    const changed = change(value)
    return changed === undefined ? [] : [{ until, value: changed }]
  })
  return value === undefined || earlier.length < state.earlier.length ? undefined : { ...state, value, earlier }
}

/** The begin of a turn goes with the message behind it. */
function counted<S>(state: Rewindable<S>, given: HistoryRecord): Rewindable<S> {
  if (!isMessage(given) && given.type !== 'turn.started') return state
  const record = coreRecord(given)
  if (record?.type === 'turn.started') return { ...state, input: state.next }
  const facts = record && messageFacts(record)
  if (!facts) return state
  const number = numberOf(record, state.next)
  const isInput = facts.role === 'user' && facts.origin?.kind !== 'injection'
  return { ...state, next: number + 1, input: isInput ? number : state.input }
}

function cut<S>(state: Rewindable<S>, from: number): Rewindable<S> {
  const first = state.earlier.findIndex(({ until }) => until >= from)
  return first < 0 ? state : { ...state, value: state.earlier[first]!.value, earlier: state.earlier.slice(0, first) }
}

function bounded<S>(state: Rewindable<S>, kept: number): Rewindable<S> {
  if (state.earlier.length <= kept) return state
  const half = Math.ceil(kept / 2)
  return { ...state, floor: state.earlier[half - 1]!.until + 1, earlier: state.earlier.slice(half) }
}
