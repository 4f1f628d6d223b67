/** What packs put into the journal of an agent: typed records, and states that follow from them. */
import { checker, type Static, type TObject } from '../../kernel/index.ts'

/**
 * A line of `agents/<id>/wire.jsonl`: `{ type, ...fields, time }`, `time` in ms. Types that nobody knows are kept and skipped.
 */
export interface HistoryRecord {
  readonly type: string
  readonly time?: number
  readonly [field: string]: unknown
}

export type RecordOf<T extends string, F extends TObject> = { readonly type: T; readonly time?: number } & Readonly<Static<F>>

/** A kind of record: declared once, it makes, types and recognises its records. */
export interface RecordSpec<T extends string = string, F extends TObject = TObject> {
  readonly type: T
  readonly fields: F
  /** A record to append; `time` is stamped then. */
  of(fields: Static<F>): RecordOf<T, F>
  /** Whether a record that was read is of this kind and whole. */
  is(record: HistoryRecord): record is RecordOf<T, F>
}

export function defineRecord<const T extends string, F extends TObject>(type: T, fields: F): RecordSpec<T, F> {
  let check: ReturnType<typeof checker<F>> | undefined
  return {
    type,
    fields,
    of: given => ({ type, ...(given as object) }) as RecordOf<T, F>, // the parameter says that they are the fields
    is(record): record is RecordOf<T, F> {
      if (record.type !== type) return false
      check ??= checker(fields)
      return check.Check(record)
    }
  }
}

/** Of what looks at records. */
export interface LooksAtRecords {
  /** Types of the records that it looks at: it gets no others. Default: all of them. */
  readonly records?: ReadonlySet<string> | undefined
}

/** The types of these kinds of records. */
export const recordTypes = (...kinds: readonly (string | { readonly type: string })[]): ReadonlySet<string> =>
  new Set(kinds.map(kind => (typeof kind === 'string' ? kind : kind.type)))

export const looksAt = ({ records }: LooksAtRecords, { type }: { readonly type: string }): boolean => records?.has(type) ?? true

/** Those of `all` that look at records of a type, in order; worked out once per type as long as `all` answers the same list. */
export function lookersOf<T extends LooksAtRecords>(all: () => readonly T[]): (record: { readonly type: string }) => readonly T[] {
  let from: readonly T[] | undefined
  const byType = new Map<string, readonly T[]>()
  return record => {
    const now = all()
    if (now !== from) byType.clear()
    from = now
    const known = byType.get(record.type)
    if (known) return known
    const found = now.filter(each => looksAt(each, record))
    byType.set(record.type, found)
    return found
  }
}

/** A state that follows from the records of an agent, one after the other: live and after a restart the same. */
export interface StateSpec<S> extends LooksAtRecords {
  /** Names it in checkpoints; one per state. */
  readonly name: string
  /** Of the saved form: one of another version is thrown away and the state computed anew. */
  readonly version: number
  initial(): S
  /** Takes one record in; may change `state` in place. Called for every record (of `records`), in order; looks at nothing else. */
  reduce(state: S, record: HistoryRecord): S
  /** Where a record that was taken in is, once it is on disk; in order. */
  located?(state: S, record: HistoryRecord, at: number): void
  /** JSON for a checkpoint, and back. Default: the state itself. Undefined: it cannot be had, and the state follows from all records. */
  save?(state: S): unknown
  load?(saved: unknown): S | undefined
  /**
   * True: undo takes it back to what it was before the first message that is taken back. `reduce` then answers another value where something
   * changed and never changes one in place, and `located` is not called. Default false: undo is a record like others. Whoever changes it
   * raises `version`.
   */
  readonly rewinds?: boolean
}

/** A state as it is now; another value after every record. */
export interface Tracked<S> {
  readonly value: S
}
