/**
 * The journal of one agent: appended records, taken into every state at once, acknowledged when on disk, then told. A checkpoint among the
 * records now and then keeps opening short; when the disk refuses, all states are read back from it.
 */
import { type Logger, type LogPositions, nextPass, yieldToLoop } from '../../kernel/index.ts'
import { busyElsewhere } from '../sessions/index.ts'
import { logId, protocolVersion, type WireLog } from './contract.ts'
import type { HistoryRecord, StateSpec, Tracked } from './define.ts'
import { Held } from './held.ts'
import { isMessage } from './message.ts'
import { checkpoint, told } from './records.ts'
import type { EventDraft, Written } from './service.ts'
import { States } from './states.ts'
import { type Entry, readTail } from './tail.ts'
import { type Mark, Telling, type ToldUpTo } from './telling.ts'
import { TellingOrder } from './telling-order.ts'

/** A checkpoint is written when at least so much was appended since the last one, and so many times what a checkpoint takes. */
const checkpointBytes = 256 * 1024
const checkpointShare = 20
/** How far events were told goes on record after so much, and at closing: what is behind it is looked for in the event journal. */
const toldBytes = 16 * 1024
/** The same after so many events of the session, of which the event journal gives the newest thousand. */
const toldEvents = 500
/** When so much had to be read, a checkpoint is written at once, so that nobody has to read it again. */
const longReadBytes = 8 * 1024 * 1024

export interface AgentLogPorts {
  readonly log: WireLog
  readonly logger: Pick<Logger, 'error'>
  readonly now: () => Date
  /** False: appends throw SessionBusy. */
  readonly writable: boolean
  /** States that are kept from the first record on; the first of them is what `draft` gets. */
  readonly states: readonly StateSpec<unknown>[]
  /** The events of a record, from the first of the states as it was before. */
  readonly draft: (record: HistoryRecord, before: unknown) => readonly EventDraft[]
  readonly tell: (draft: EventDraft) => void
  /** Who tells it is away, and comes back. */
  readonly away?: ((draft: EventDraft) => boolean) | undefined
  /** Events wait for that from now on: `release` tells those whose time has come, and answers whether others still wait. */
  readonly waits?: ((release: () => boolean) => void) | undefined
  /** The event journal: the last number given out, and the last one on disk. */
  readonly given: () => Mark | undefined
  readonly written: () => Mark | undefined
  /** The newest message: its number, and its time, ms. */
  readonly lastMessage: () => { readonly number: number; readonly time: number }
  /** When a checkpoint is due. Default: after 256 KB, and after 20 times what the last one took. */
  readonly checkpoints?: { readonly bytes: number; readonly share: number } | undefined
  /** When a mark is due of how far events were told. Default: after 16 KB. */
  readonly toldBytes?: number | undefined
}

/** Events that may not have been told: of the records behind the mark. */
export interface Untold {
  readonly after: Mark | undefined
  readonly events: readonly EventDraft[]
}

export class AgentLog {
  readonly #ports: AgentLogPorts
  #telling: Telling
  readonly #states: States
  readonly #writes = new Set<Promise<unknown>>()
  readonly #order = new TellingOrder()
  readonly #held: Held
  /** Records that got on disk while others before them did not: their events are made again. By position. */
  readonly #redrafts = new Map<number, (events: readonly EventDraft[]) => void>()
  #started = false
  #end = 0
  #checkpointAt = 0
  #checkpointSize = 0
  #doubtful = false
  #rereading: Promise<void> | undefined

  constructor(ports: AgentLogPorts) {
    this.#ports = ports
    this.#telling = new Telling(ports.given, ports.written, undefined)
    this.#held = new Held(ports)
    this.#states = new States({ specs: ports.states, scan: range => this.scan(range), end: () => this.#end, logger: ports.logger })
  }

  /** Where the records on disk end. */
  get end(): number {
    return this.#end
  }

  /** Reads the journal. Answers the events that a process which died may have kept to itself. */
  async open(): Promise<Untold> {
    const { told: mark, events } = await this.#load()
    this.#telling = new Telling(this.#ports.given, this.#ports.written, mark)
    if (this.#ports.writable && events.length === 0 && this.#end - this.#checkpointAt >= longReadBytes) {
      await nextPass() // it is large, and written in one go
      this.write([]).then(
        written => written.tell(),
        err => this.#ports.logger.error({ err }, 'a checkpoint could not be written')
      )
      await nextPass()
    }
    return { after: mark, events }
  }

  /** Resolves when no event waits for a pack that is away; undefined when none does. */
  released(): Promise<void> | undefined {
    return this.#held.over()
  }

  /** Tells an event that an earlier process, or activation, kept to itself. */
  tell(draft: EventDraft): void {
    this.#held.tell(draft)
  }

  /** Everything on record is told now. */
  allTold(): void {
    if (this.#started) this.#told(this.#telling.begin(), this.#end)
  }

  #told(entry: ReturnType<Telling['begin']>, end: number): void {
    this.#held.behind(() => this.#telling.done(entry, end))
  }

  /**
   * A state that follows from the records, kept up to date from now on. With `from` it is computed from the records there, and in no
   * checkpoint.
   */
  track<S>(spec: StateSpec<S>, from?: () => number): Promise<Tracked<S>> {
    return this.#states.track(spec, from)
  }

  /** A state that is kept up to date already. */
  tracked<S>(spec: StateSpec<S>): S | undefined {
    return this.#states.tracked(spec)
  }

  /** The lowest number of a message from which on all states can be taken back. */
  get floor(): number {
    return this.#states.floor
  }

  scan(range: { from?: number; to?: number; reverse?: boolean }): AsyncIterable<Entry> {
    return this.#ports.log.scan(logId, range) as AsyncIterable<Entry> // the store checks the type field only, as records do
  }

  /** Something is on its way to the disk. */
  get writing(): boolean {
    return this.#writes.size > 0
  }

  /** Resolves when what is being appended now is on disk, or refused. */
  settled(): Promise<unknown> {
    return Promise.allSettled(this.#writes)
  }

  /**
   * Takes the records in and resolves when they are on disk. When the disk refuses, the states are read back from it once every write under
   * way has ended: memory never promises what the disk does not hold, and never misses what it does.
   */
  async write(records: readonly HistoryRecord[]): Promise<Written> {
    if (!this.#ports.writable) throw busyElsewhere()
    const read = this.certain()
    if (read) await read // else the states change at once
    const head = this.#head()
    const batch = this.#stamped([...head, ...records])
    // Before they change the states: a checkpoint among them holds those that came before.
    const write = this.#ports.log.append(logId, ...(batch as { type: string }[]))
    const drafts = batch.map(record => {
      const draft = this.#draft(record, this.#states.first)
      this.#states.take(record)
      return draft
    })
    const telling = this.#telling.begin()
    const turn = this.#order.begin()
    this.#states.writing(batch)
    this.#writes.add(write)
    let places: LogPositions
    try {
      places = await write
    } catch (error) {
      this.#telling.drop(telling)
      this.#order.speak(turn)
      this.#doubtful = true
      this.#writes.delete(write)
      this.#states.refused(batch)
      await this.#reread()
      throw error
    }
    const { at, end } = places
    this.#written(batch, places)
    this.#writes.delete(write)
    if (this.#rereading) {
      for (const [index, place] of at.entries()) {
        this.#redrafts.set(place, events => {
          drafts[index] = events
        })
      }
      await this.#rereading.catch(() => undefined) // these records are on disk; the next write reads again
      for (const place of at) this.#redrafts.delete(place)
    }
    if (!this.#order.isFirst(turn)) await this.#order.untilFirst(turn)
    let next = 0
    return {
      tell: (count = records.length) => {
        this.#order.speak(turn)
        const to = Math.min(batch.length, head.length + count)
        if (next === to) return
        for (; next < to; next++) for (const draft of drafts[next] ?? []) this.#held.tell(draft)
        if (next === batch.length) this.#told(telling, end)
      }
    }
  }

  /**
   * Resolves when the states are what the disk holds and what is on its way there; rejects while that cannot be read. Undefined: they are, nothing
   * was refused.
   */
  certain(): Promise<void> | undefined {
    return this.#doubtful ? this.#readAgain() : undefined
  }

  async #readAgain(): Promise<void> {
    while (this.#doubtful) await this.#reread()
  }

  /** Puts on record how far events were told, so that the next opening need not look for them. */
  async close(): Promise<void> {
    await this.settled()
    this.#held.drop()
    const mark = this.#ports.writable && !this.#doubtful ? this.#telling.next() : undefined
    try {
      if (mark) await this.#ports.log.append(logId, { ...told.of(mark), time: this.#ports.now().getTime() } as { type: string })
    } finally {
      await this.#ports.log.release(logId)
    }
  }

  #stamped(records: readonly HistoryRecord[]): HistoryRecord[] {
    let last = this.#ports.lastMessage()
    return records.map(record => {
      const now = this.#ports.now().getTime()
      if (!isMessage(record)) return { time: now, ...record }
      // Clients sort messages by their time.
      const stamped = { time: Math.max(now, last.time + 1), ...record, number: last.number + 1 }
      last = { number: stamped.number, time: Math.max(last.time, stamped.time) }
      return stamped
    })
  }

  #draft(record: HistoryRecord, before: unknown): readonly EventDraft[] {
    try {
      return this.#ports.draft(record, before)
    } catch (err) {
      this.#ports.logger.error({ err, type: record.type }, 'the events of a record could not be made')
      return []
    }
  }

  /** The batch is on disk. */
  #written(batch: readonly HistoryRecord[], places: LogPositions): void {
    const { at, end } = places
    for (const [index, record] of batch.entries()) {
      const place = at[index] ?? end
      if (checkpoint.is(record)) this.#checkpointed(place, (at[index + 1] ?? end) - place)
    }
    this.#states.written(batch, places)
    this.#end = end
  }

  /** What goes before the next records: the beginning of the journal, or how far it was told, or a checkpoint. */
  #head(): HistoryRecord[] {
    if (!this.#started) {
      this.#started = true
      const written = this.#ports.written()
      const metadata = { type: 'metadata', protocol_version: protocolVersion, created_at: this.#ports.now().getTime() }
      return written && written.seq >= toldEvents ? [metadata, told.of({ at: 0, ...written })] : [metadata]
    }
    const isOld = this.#telling.since >= toldEvents
    if (isOld) this.#telling.rest(this.#end)
    const behind = this.#end - this.#checkpointAt
    const { bytes, share } = this.#ports.checkpoints ?? { bytes: checkpointBytes, share: checkpointShare }
    const due = behind >= Math.max(bytes, share * this.#checkpointSize)
    if (due && this.#telling.idle) return [this.#checkpoint()]
    const isDue = isOld || this.#end - this.#telling.recorded >= (this.#ports.toldBytes ?? toldBytes)
    const mark = isDue ? this.#telling.next() : undefined
    return mark ? [told.of(mark)] : []
  }

  #checkpoint(): HistoryRecord {
    const { seq, epoch } = this.#telling.last ?? {}
    return checkpoint.of({ states: this.#states.save(), ...(seq === undefined || epoch === undefined ? {} : { told: { seq, epoch } }) })
  }

  #checkpointed(at: number, size: number): void {
    this.#checkpointAt = at
    this.#checkpointSize = size
  }

  /** All states anew, from the last checkpoint on; they change in one go, at the end. */
  async #load(): Promise<{ told: ToldUpTo | undefined; events: EventDraft[] }> {
    const tail = await readTail(range => this.scan(range), this.#ports.states[0], this.#ports.given)
    this.#checkpointed(tail.checkpoint.at, tail.checkpoint.size)
    const fresh = await this.#states.restore(tail.saved, tail.from)
    const drafts: (readonly EventDraft[])[] = []
    let end = tail.from
    const take = ({ value, at, next }: Entry) => {
      const redraft = this.#redrafts.get(at)
      const untold = tail.marked && at >= (tail.told?.at ?? 0)
      if (redraft || untold) {
        const events = this.#draft(value, fresh[0]?.value)
        redraft?.(events)
        if (untold) drafts.push(events)
      }
      for (const each of fresh) this.#states.takeInto(each, value, at)
      end = next
    }
    for await (const entry of tail.entries ?? this.scan({ from: tail.from })) {
      take(entry)
      const others = yieldToLoop() // taking in takes its time, too
      if (others) await others
    }
    this.#end = end
    this.#started = end > 0
    await this.#states.replace(fresh)
    return { told: tail.told, events: drafts.flat() }
  }

  /** Throws while the disk cannot be read: then the next write tries again. */
  #reread(): Promise<void> {
    this.#rereading ??= this.#readBack().finally(() => {
      this.#rereading = undefined
    })
    return this.#rereading
  }

  async #readBack(): Promise<void> {
    await this.settled()
    await this.#load()
    this.#doubtful = false
  }
}
