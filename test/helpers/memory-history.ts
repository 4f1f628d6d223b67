/** A history on a log in memory that can be told to refuse. */
import { AgentHistory, type HistoryPorts } from '../../features/history/history.ts'
import type { HistoryRecord, RecordEvents } from '../../features/history/index.ts'
import type { LogStore } from '../../kernel/index.ts'
import { silent } from '../features/tools/fakes.ts'

export interface MemoryLog extends LogStore<{ type: string; time?: number }> {
  readonly lines: string[]
  refuse: boolean
}

/** Positions are line numbers. */
export function memoryLog(): MemoryLog {
  const lines: string[] = []
  const log: MemoryLog = {
    lines,
    refuse: false,
    async append(_id, ...records) {
      if (log.refuse) throw new Error('disk full')
      const first = lines.length
      for (const record of records) lines.push(JSON.stringify(record))
      return { at: records.map((_, n) => first + n), end: lines.length }
    },
    read: async () => lines.map(line => JSON.parse(line) as HistoryRecord),
    async *scan(_id, { from = 0, to = lines.length, reverse = false } = {}) {
      const all = lines.slice(0, to).map((line, at) => ({ at, next: at + 1, value: JSON.parse(line) as HistoryRecord }))
      const wanted = all.slice(from)
      yield* reverse ? wanted.reverse() : wanted
    },
    delete: async () => undefined,
    ids: async () => [],
    release: async () => undefined
  }
  return log
}

/** Opens the history of a log; `events` says what is told of its records, `told` gets it. */
export function openHistory(
  log: MemoryLog = memoryLog(),
  { events = () => [], told = [], ...ports }: Partial<HistoryPorts> & { events?: RecordEvents['events']; told?: string[] } = {}
): Promise<AgentHistory> {
  const teller = { pack: 'of the test', nth: 0, item: undefined, events }
  return AgentHistory.open({
    log,
    logger: silent,
    now: () => new Date(1000),
    session_id: 'session_a',
    writable: true,
    states: [],
    draft: (record, before) => events(record, before, { id: 'main', session_id: 'session_a' }).map(event => ({ ...event, teller })),
    tell: event => void told.push(event.type),
    known: event => void told.push(`known ${event.type}`),
    given: () => undefined,
    flushed: async () => undefined,
    written: () => undefined,
    eventsAfter: async () => [],
    ...ports
  })
}
