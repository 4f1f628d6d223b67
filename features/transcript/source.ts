/** The transcript of one agent as it is now: on disk, and for a loaded session with what streams. */
import type { LogEntry, LogRange } from '../../kernel/index.ts'
import { coreRecord, type HistoryRecord, type WirePart } from '../history/index.ts'
import type { PromptPlace, TranscriptIndex, TurnEntry } from './index-state.ts'
import type { Frame, Snapshot } from './shapes.ts'
import { turnId } from './timeline.ts'
import { type Contents, TurnFold } from './turn-fold.ts'

export interface Source {
  /** Turns that were not taken back, oldest first. */
  readonly entries: readonly TurnEntry[]
  readonly entities: Omit<Snapshot, 'items' | 'hasMoreOlder'>
  readonly pending: readonly string[]
  /** Where the journal ends. */
  readonly end: number
  /** The step that runs, with what streams. */
  readonly live?: { readonly turnId: string; readonly stepId: string; readonly frames: readonly Frame[] } | undefined
  /** Number of the newest op batch; only while the session is loaded. */
  readonly seq?: number
  records(range: LogRange): AsyncIterable<LogEntry<HistoryRecord>>
}

/** A source at this moment: what is changed later does not show. */
export function sourceOf(index: TranscriptIndex, rest: Pick<Source, 'end' | 'records'> & Pick<Partial<Source>, 'live' | 'seq'>): Source {
  return {
    entries: index.entries.map(entry => ({ ...entry })),
    entities: index.entities.shown(),
    pending: index.entities.pending(),
    ...rest
  }
}

/** Content of a prompt, from its own record. */
export async function contentAt(
  { records, end }: Pick<Source, 'records' | 'end'>,
  { prompt_at: from, prompt_end: to = end }: PromptPlace
): Promise<readonly WirePart[]> {
  if (from === undefined) return []
  for await (const { value } of records({ from, to })) {
    const record = coreRecord(value)
    return record?.type === 'prompt.accepted' ? record.content : []
  }
  return []
}

/**
 * A timeline of the records between two positions, the first of them that of a turn (or 0), without turns that were taken back. `waiting`:
 * prompts of turns that are to come.
 */
export async function foldRange(
  source: Pick<Source, 'records' | 'end' | 'entries'>,
  from: number,
  to: number,
  waiting: readonly PromptPlace[] = []
): Promise<TurnFold> {
  const begun = source.entries.filter(({ at }) => at >= from && at < to)
  const fold = new TurnFold(await contentsBefore(source, from, [...begun, ...waiting]))
  if (from < to) for await (const { value, at } of source.records({ from, to })) fold.take(value, at)
  const known = new Set(source.entries.map(({ ordinal }) => turnId(ordinal)))
  const undone = fold.timeline.items.flatMap(item => (item.kind === 'turn' && !known.has(item.turnId) ? item.turnId : []))
  if (undone.length > 0) fold.remove(undone)
  return fold
}

/** Contents of those prompts that were accepted before a position. */
async function contentsBefore(source: Pick<Source, 'records' | 'end'>, from: number, prompts: readonly PromptPlace[]): Promise<Contents> {
  const contents = new Map<string, readonly WirePart[]>()
  for (const place of prompts) {
    const { prompt_at, prompt_id } = place
    if (prompt_at === undefined || prompt_at >= from || prompt_id === undefined) continue
    contents.set(prompt_id, await contentAt(source, place))
  }
  return contents
}
