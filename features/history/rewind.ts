/**
 * States that undo takes back: what they were when the newest compaction came, and the records that changed them since. Taking messages back
 * folds those that came before; what came before a compaction can never be taken back, so memory holds only what may be.
 */
import type { HistoryRecord, StateSpec } from './define.ts'
import { isMessage } from './message.ts'
import { contextCompacted, contextUndone } from './records.ts'

/** So many changes are kept; of more, the older half cannot be taken back any more. */
const changesKept = 2048

export interface Rewindable<S> {
  readonly value: S
  readonly base: S
  /** Number of the next message. */
  readonly messages: number
  /** The lowest number of a message to which the state can go back. */
  readonly floor: number
  /** Records that changed the state since `base`. `at`: taking back the messages from this number on (or a later one) leaves the record in force. */
  readonly changes: readonly { readonly at: number; readonly record: HistoryRecord }[]
}

interface Saved {
  readonly base: unknown
  readonly messages: number
  readonly floor: number
  readonly changes: Rewindable<unknown>['changes']
}

/** The state with what it takes to go back. A pure fold, too. */
export function rewindable<S>(spec: StateSpec<S>, kept = changesKept): StateSpec<Rewindable<S>> {
  const folded = (base: S, changes: Rewindable<S>['changes']) => changes.reduce((value, { record }) => spec.reduce(value, record), base)
  const cut = (state: Rewindable<S>, from: number): Rewindable<S> => {
    const changes = state.changes.filter(({ at }) => at <= from)
    return changes.length === state.changes.length ? state : { ...state, changes, value: folded(state.base, changes) }
  }
  const bounded = (state: Rewindable<S>): Rewindable<S> => {
    if (state.changes.length <= kept) return state
    const old = state.changes.slice(0, Math.ceil(kept / 2))
    const changes = state.changes.slice(old.length)
    return { ...state, base: folded(state.base, old), floor: old.at(-1)?.at ?? state.floor, changes }
  }
  return {
    name: spec.name,
    version: spec.version,
    initial: () => ({ value: spec.initial(), base: spec.initial(), messages: 0, floor: 0, changes: [] }),
    reduce(given, record) {
      const state = contextUndone.is(record) ? cut(given, record.from) : given
      const value = spec.reduce(state.value, record)
      const number = isMessage(record) ? Math.max(state.messages, Number(record.number ?? state.messages)) : undefined
      const messages = number === undefined ? state.messages : number + 1
      if (contextCompacted.is(record)) return { value, base: value, messages, floor: messages, changes: [] }
      if (value === state.value) return messages === state.messages ? state : { ...state, messages }
      // The begin of a turn goes with the message behind it.
      const at = record.type === 'turn.started' ? messages + 1 : messages
      return bounded({ ...state, value, messages, changes: [...state.changes, { at, record }] })
    },
    save: ({ base, messages, floor, changes }) => ({ base: spec.save ? spec.save(base) : base, messages, floor, changes }),
    load(given) {
      const saved = given as Saved // what `save` made
      const base = spec.load ? spec.load(saved.base) : (saved.base as S)
      return { ...saved, base, value: folded(base, saved.changes) }
    }
  }
}
