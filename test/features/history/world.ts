/** A history that lives through reopenings, kills, power failures and refused writes, with an event journal beside it. */
import type { AgentHistory } from '../../../features/history/history.ts'
import type { ConversationView, HistoryRecord, RecordEvent, StateSpec } from '../../../features/history/index.ts'
import type { JournaledEvent } from '../../../kernel/index.ts'
import { type MemoryLog, openHistory } from '../../helpers/memory-history.ts'

export const session_id = 'session_a'

/** Sums the `n` of all records: what a pack might keep. */
export const sum = (name: string): StateSpec<number> => ({
  name,
  version: 1,
  initial: () => 0,
  reduce: (state, record) => state + (typeof record.n === 'number' ? record.n : 0)
})

/** Two events of some records, none of others; each says what it is about, and what was there before. */
export function eventsOf(record: HistoryRecord, before: ConversationView): RecordEvent[] {
  if (typeof record.n !== 'number' || record.n % 5 === 4) return []
  const payload = { n: record.n, prompts: before.prompts.size, open: [...before.openCalls.keys()] }
  const event = { type: `of.${record.type}`, payload, at: new Date(0) }
  return record.n % 5 === 3 ? [event, { ...event, type: `also.${record.type}` }] : [event]
}

export class World {
  readonly log: Pick<MemoryLog, 'append' | 'scan' | 'release'>
  history!: AgentHistory
  /** The event journal: numbers are places, from 1. */
  events: { readonly type: string; readonly payload: Readonly<Record<string, unknown>> }[] = []
  /** How many of them are on disk. */
  written = 0
  /** The process that tells: one that died tells nothing more. */
  #process = 0

  private constructor(log: Pick<MemoryLog, 'append' | 'scan' | 'release'>) {
    this.log = log
  }

  static async open(log: Pick<MemoryLog, 'append' | 'scan' | 'release'>): Promise<World> {
    const world = new World(log)
    await world.start()
    return world
  }

  /** A new process; `lost` events at the end of the journal are gone with the old one. */
  async start(): Promise<void> {
    const process = ++this.#process
    const alive = <T>(value: T) => (process === this.#process ? value : undefined)
    const log = this.log as MemoryLog // of which a history uses these
    let before: Promise<unknown> = Promise.resolve()
    this.history = await openHistory(
      {
        ...log,
        append: (id, ...given) => {
          const records = structuredClone(given)
          // One after the other, as a file takes them.
          const write = before.then(async () => {
            await new Promise(setImmediate)
            if (records.some(record => (record as HistoryRecord).refused)) throw new Error('disk full')
            return await log.append(id, ...records)
          })
          before = write.catch(() => undefined)
          return write
        },
        scan: (id, range) => log.scan(id, range)
      },
      {
        session_id,
        events: eventsOf,
        states: [sum('early')],
        checkpoints: { bytes: 12, share: 1 },
        tell: ({ type, payload }) => void alive(this.events.push({ type, payload: JSON.parse(JSON.stringify(payload)) })),
        known: () => undefined,
        given: () => ({ seq: this.events.length, epoch: 'e' }),
        written: () => ({ seq: this.written, epoch: 'e' }),
        eventsAfter: async mark =>
          this.events.slice(mark?.seq ?? 0).map((event, at) => ({ ...event, seq: (mark?.seq ?? 0) + at + 1 }) as unknown as JournaledEvent)
      }
    )
    await this.history.recover()
  }

  flush(): void {
    this.written = this.events.length
  }

  async reopen(): Promise<void> {
    this.flush()
    await this.history.close()
    await this.start()
  }

  /** The process is gone: events that were not on disk are lost; so are `lost` that were, when the power failed. */
  async kill(lost = 0): Promise<void> {
    await new Promise(setImmediate) // what was given to the disk gets there
    this.written = Math.max(0, this.written - lost)
    this.events.length = this.written
    await this.start()
  }
}
