/** The end of an agent's journal: back to the last checkpoint, which has the states up to there, or to the beginning. */
import type { LogEntry } from '../../kernel/index.ts'
import { logId, protocolVersion, type WireLog } from './contract.ts'
import type { HistoryRecord, StateSpec } from './define.ts'
import { checkpoint, told } from './records.ts'
import type { Mark, ToldUpTo } from './telling.ts'

/** How far back a checkpoint is looked for, and records kept, before the whole journal is read from its beginning. */
const lookBackBytes = 32 * 1024 * 1024

export type Entry = LogEntry<HistoryRecord>

/** A state in a checkpoint. */
export interface Saved {
  readonly version: number
  /** Taken in up to here (not included). */
  readonly at: number
  readonly value: unknown
}

interface Tail {
  readonly from: number
  /** Undefined: too much to hold; it is read again. */
  readonly entries: readonly Entry[] | undefined
  /** Older journals have no marks: all of their events count as told. */
  readonly marked: boolean
  readonly told: ToldUpTo | undefined
  /** States of the checkpoint, by name. */
  readonly saved: Map<string, Saved>
  readonly checkpoint: { readonly at: number; readonly size: number }
}

type Scan = (range: { reverse?: boolean }) => AsyncIterable<Entry>

/** `first`: the state on which events depend. `given`: the last number of the event journal. */
export async function readTail(scan: Scan, first: StateSpec<unknown> | undefined, given: () => Mark | undefined): Promise<Tail> {
  /** A power failure may take the end of the event journal, which is flushed later: then an older mark counts. */
  const isKept = (mark: Mark): boolean => {
    const last = given()
    return last === undefined || last.epoch !== mark.epoch || mark.seq <= last.seq
  }
  const none = { saved: new Map<string, Saved>(), checkpoint: { at: 0, size: 0 } }
  const entries: Entry[] = []
  let mark: ToldUpTo | undefined
  let marked = false
  for await (const entry of scan({ reverse: true })) {
    const { value, at, next } = entry
    entries.push(entry)
    marked ||= told.is(value)
    if (!mark && told.is(value) && isKept(value)) mark = { at: value.at, seq: value.seq, epoch: value.epoch }
    if (checkpoint.is(value) && fits(value.states, at, first) && (mark || !value.told || isKept(value.told))) {
      if (!mark && value.told) mark = { at, ...value.told }
      const saved = new Map(Object.entries(value.states) as [string, Saved][]) // as the record says
      return { from: at, entries: entries.reverse(), told: mark, marked: true, saved, checkpoint: { at, size: next - at } }
    }
    if ((entries[0]?.next ?? 0) - at <= lookBackBytes) continue
    return { from: 0, entries: undefined, told: mark, marked: marked || (await begins(scan)), ...none }
  }
  return { from: 0, entries: entries.reverse(), told: mark, marked: marked || isMarked(entries[0]?.value), ...none }
}

/** Whether a checkpoint at `at` has the first state, on which the events of the records behind it depend. */
function fits(
  states: Readonly<Record<string, { readonly version: number; readonly at?: number }>>,
  at: number,
  first: StateSpec<unknown> | undefined
): boolean {
  const saved = states[first?.name ?? '']
  return saved?.version === first?.version && saved?.at === at
}

async function begins(scan: Scan): Promise<boolean> {
  for await (const { value } of scan({})) return isMarked(value)
  return false
}

/** Also where the write that should have begun the journal was refused, and not the one behind it. */
const isMarked = (first: HistoryRecord | undefined): boolean => first?.type !== 'metadata' || first.protocol_version === protocolVersion

/** Where the last record on disk ends; 0: there is none. */
export async function endOf(log: WireLog): Promise<number> {
  for await (const { next } of log.scan(logId, { reverse: true })) return next
  return 0
}
