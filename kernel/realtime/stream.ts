/**
 * Ordered event streams: a stream gives out numbers, writes durable frames in groups, and hands frames over only after the disk has them.
 * The table has all streams of a process by id.
 */

import type { Environment } from '../environment.ts'
import { developerError, LeaseLost } from '../errors.ts'
import { laterPass, yieldToLoop } from '../lifecycle/wait.ts'
import type { Fence } from '../storage/fences.ts'
import { type Draft, type EventFrame, globalStream, inEpoch, numberFrame } from './event-frame.ts'
import type { Fanout } from './fanout.ts'
import type { Journal, Journals, JournalView, Watermark } from './journal.ts'
import type { StreamFacts } from './types.ts'

/**
 * What frames of all streams together may take while they wait for the disk and their hand-over. Beyond half of it volatile frames are
 * left out (their offsets show the gap). Beyond all of it durable events take a number but go neither to disk nor to sockets:
 * subscribers get `resync_required`, and so does every cursor before the gap.
 */
const defaultWaitingBytes = 64 * 1024 * 1024
/** With more than this waiting, handing over no longer lets others have their turn: emitters in this process get slower instead. */
const yieldBytes = 4 * 1024 * 1024

export class Stream {
  readonly id: string
  /** Somebody opened it and will close it; otherwise it goes when it is idle and nobody is subscribed. */
  kept = false
  /** Another server has taken the session: nobody is subscribed here any more. */
  lost = false
  /** Another process has the session and writes its journal: what is said of it here takes no number, and nobody hears it. */
  foreign = false
  /** Subscriptions and readers that are under way. */
  users = 0
  /** Number handed to the sockets last, so it is on disk: what a subscription that starts now begins after. */
  delivered = 0
  closed = false
  readonly #env: Environment
  readonly #table: StreamTable
  #journal: Journal | undefined
  #opening: Promise<Journal> | undefined
  /** Events that came before the journal was open. */
  #early: Draft[] = []
  /** Durable events that were left out before the journal was open. */
  #earlyGap = 0
  #queue: EventFrame[] = []
  /** Numbers up to `seq` were left out; until that is told, every durable event is. */
  #gap = false
  #pumping: Promise<void> | undefined
  /** Highest number given out. */
  #seq = 0
  #accepted = 0
  #done = 0
  #waiters: { readonly count: number; readonly resolve: () => void }[] = []

  constructor(env: Environment, id: string, table: StreamTable) {
    this.#env = env
    this.id = id
    this.#table = table
  }

  /** Number given out last and its epoch; undefined while the journal is not open. */
  get watermark(): Watermark | undefined {
    return this.#journal && { seq: this.#seq, epoch: this.#journal.epoch }
  }

  /** Number handed over last and its epoch; undefined while the journal is not open. */
  get written(): Watermark | undefined {
    return this.#journal && { seq: this.delivered, epoch: this.#journal.epoch }
  }

  get idle(): boolean {
    return !this.#pumping && this.#early.length === 0
  }

  /** Opens the journal once. What was emitted before gets its numbers now. */
  open(): Promise<Journal> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  /** Takes an event; its number is given now, or when the journal has opened. */
  push(draft: Draft): void {
    if (this.foreign) return
    const { durable } = draft.spec
    const { bytes, limit } = this.#table.waiting
    if (durable ? bytes > limit || this.#gap || this.#earlyGap > 0 : bytes > limit / 2) {
      if (durable) this.#leaveOut()
      return
    }
    this.#accepted++
    if (this.#journal) {
      this.#take(this.#journal, draft)
      if (!this.kept && this.idle) this.#table.release(this)
    } else {
      this.#early.push(draft)
      this.#table.waiting.bytes += draft.text.length
      void this.open()
    }
  }

  /** Resolves when everything pushed so far has left for the sockets. */
  settled(): Promise<void> {
    if (this.#done === this.#accepted) return Promise.resolve()
    return new Promise(resolve => this.#waiters.push({ count: this.#accepted, resolve }))
  }

  /** Waits for what was pushed and closes the journal. */
  async close(): Promise<void> {
    this.closed = true
    if (!this.#opening) return
    const journal = await this.#opening
    while (this.#pumping) await this.#pumping
    await journal.close()
  }

  async #open(): Promise<Journal> {
    const journal = await this.#table.openJournal(this.id)
    this.#journal = journal
    this.#seq = journal.seq
    this.delivered = journal.seq
    for (const draft of this.#early.splice(0)) {
      this.#table.waiting.bytes -= draft.text.length
      this.#take(journal, draft)
    }
    for (; this.#earlyGap > 0; this.#earlyGap--) this.#leaveOut()
    if (!this.kept && this.idle) this.#table.release(this)
    return journal
  }

  #take(journal: Journal, draft: Draft): void {
    const { durable } = draft.spec
    const frame = numberFrame(draft, durable ? ++this.#seq : this.#seq, journal.epoch)
    this.#table.waiting.bytes += frame.size
    if (!durable && !this.#pumping) {
      this.#handOver(frame)
    } else {
      this.#queue.push(frame)
      this.#pumping ??= this.#pump(journal)
    }
  }

  /** The event keeps its number, so that nobody takes what follows for what was left out. */
  #leaveOut(): void {
    if (!this.#journal) {
      this.#earlyGap++
    } else {
      this.#seq++
      this.#gap = true
      this.#pumping ??= this.#pump(this.#journal)
    }
  }

  /** Group by group: durable frames to the disk, then all frames in order to the sockets. */
  async #pump(journal: Journal): Promise<void> {
    // The lines of this pass share one write. Answers go out before, and what was begun with it (a request to a model).
    await (this.#table.waiting.bytes < yieldBytes ? laterPass() : null)
    while (this.#queue.length > 0 || this.#gap) {
      const gap = this.#gap // then everything before it is in this batch
      const batch = this.#queue
      this.#queue = []
      const { epoch } = journal
      const lines: Buffer[] = []
      let first = 0
      for (const frame of batch) {
        if (!frame.spec.durable) continue
        if (lines.length === 0) first = frame.seq
        lines.push(frame.line)
      }
      if (lines.length > 0) {
        try {
          await journal.append(lines, first)
        } catch (err) {
          if (err instanceof LeaseLost) {
            this.#lose(batch)
            continue
          }
          this.#env.log.error({ err, stream: this.id }, 'events could not be journaled; they are live only')
          await this.#abandon(journal)
        }
      }
      // In shares of the event loop: after a slow write a batch can be long, and each frame goes to many sockets.
      for (const frame of batch) {
        const others = this.#table.waiting.bytes < yieldBytes ? yieldToLoop() : undefined
        if (others) await others
        this.#handOver(frame.epoch === journal.epoch ? frame : inEpoch(frame, journal.epoch))
      }
      if (epoch !== journal.epoch) this.#handOverOld(journal)
      if (gap) await this.#skip(journal)
    }
    this.#pumping = undefined
    if (!this.kept) this.#table.release(this)
  }

  /** The session is another server's: what is said of it here nobody hears. */
  #lose(batch: readonly EventFrame[]): void {
    for (const frame of [...batch, ...this.#queue.splice(0)]) {
      this.#table.waiting.bytes -= frame.size
      this.#done++
    }
    this.#gap = false
    for (const waiter of this.#waiters.splice(0)) waiter.resolve()
  }

  /**
   * Frames that were made for an epoch that has ended; they must not get into the next file. They are told in the new one: should this process
   * die before it is on disk, the old one goes on, and gives their numbers to other events.
   */
  #handOverOld({ epoch }: Journal): void {
    const queue = this.#queue
    this.#queue = queue.filter(frame => frame.epoch === epoch)
    for (const frame of queue) if (frame.epoch !== epoch) this.#handOver(inEpoch(frame, epoch))
  }

  /** Ends the replayable part of the journal at the gap and tells the subscribers. */
  async #skip(journal: Journal): Promise<void> {
    const seq = this.#seq
    this.#gap = false
    this.#env.log.error({ stream: this.id, seq }, 'more events than the disk takes: some are left out, subscribers resync')
    try {
      await journal.skip(seq)
    } catch (err) {
      this.#env.log.error({ err, stream: this.id }, 'a gap could not be journaled; the journal begins anew')
      await this.#abandon(journal)
      this.#handOverOld(journal)
    }
    this.delivered = Math.max(this.delivered, seq)
    this.#table.missed(this.id, { seq: this.delivered, epoch: journal.epoch })
  }

  /** An engine that cannot even do that costs the stream its journal, and not its life. */
  async #abandon(journal: Journal): Promise<void> {
    try {
      await journal.abandon(this.#seq)
    } catch (err) {
      this.#env.log.error({ err, stream: this.id }, 'a journal could not be given up')
    }
  }

  #handOver(frame: EventFrame): void {
    this.#table.waiting.bytes -= frame.size
    if (frame.spec.durable) this.delivered = frame.seq
    this.#table.fanout.deliver(frame)
    this.#done++
    while (this.#waiters[0]?.count === this.#done) this.#waiters.shift()?.resolve()
  }
}

export class StreamTable {
  readonly fanout: Fanout
  /** Leases of sessions: their journals are written under them. */
  readonly fences = new Map<string, Fence>()
  /** Bytes that wait in all streams, and what they may be. */
  readonly waiting: { bytes: number; readonly limit: number }
  /** Subscribers missed events: everything up to `at`. */
  readonly missed: (id: string, at: Watermark) => void
  readonly #env: Environment
  readonly #journals: Journals
  readonly #streams = new Map<string, Stream>()
  readonly #closing = new Map<string, Promise<void>>()

  /** `waitingBytes`: what events of all streams may take while they wait, in bytes; default 64 MiB. */
  constructor(env: Environment, journals: Journals, fanout: Fanout, missed: StreamTable['missed'], waitingBytes = defaultWaitingBytes) {
    this.#env = env
    this.#journals = journals
    this.fanout = fanout
    this.missed = missed
    this.waiting = { bytes: 0, limit: waitingBytes }
  }

  facts(): StreamFacts[] {
    return [...this.#streams.values()].map(({ id, kept, watermark, delivered }) => ({
      session_id: id,
      position: watermark && { ...watermark, written: delivered },
      kept,
      subscribers: this.fanout.subscribers(id)
    }))
  }

  find(id: string): Stream | undefined {
    return this.#streams.get(id)
  }

  /** The stream of an id, made at the first call. Throws on an id that is no safe file name. */
  get(id: string): Stream {
    const known = this.#streams.get(id)
    if (known) return known
    if (id !== globalStream && !isStreamId(id)) throw developerError('session_id_bad', id.slice(0, 80))
    const stream = new Stream(this.#env, id, this)
    stream.kept = id === globalStream
    this.#streams.set(id, stream)
    return stream
  }

  /** Works with an open stream, which nobody lets go of meanwhile. */
  async using<T>(id: string, work: (stream: Stream, journal: Journal) => Promise<T>): Promise<T> {
    const stream = this.get(id)
    stream.users++
    try {
      return await work(stream, await stream.open())
    } finally {
      stream.users--
      this.release(stream)
    }
  }

  /** The journal with everything that was pushed before, also of a stream that is not open; undefined when there is none. Nothing is created. */
  async recorded(id: string): Promise<JournalView | undefined> {
    if (this.#streams.has(id)) {
      return await this.using(id, async (stream, journal) => {
        await stream.settled()
        return journal
      })
    }
    await this.#closed(id)
    return isStreamId(id) ? await this.#journals.find(id) : undefined
  }

  async settled(id?: string): Promise<void> {
    const streams = id === undefined ? [...this.#streams.values()] : [this.#streams.get(id)]
    await Promise.all(streams.map(stream => stream?.settled()))
  }

  /** Writes what is pending and closes the journal. Events emitted meanwhile open the stream anew, after this. */
  close(id: string): Promise<void> {
    const stream = this.#streams.get(id)
    if (!stream) return this.#closing.get(id) ?? Promise.resolve()
    this.#streams.delete(id)
    return this.#untilClosed(id, stream.close())
  }

  /** Closes the stream and deletes its journal; whoever opens the stream meanwhile waits for that. */
  remove(id: string): Promise<void> {
    const removed = this.close(id).then(() => this.#journals.remove(id))
    return this.#untilClosed(id, removed)
  }

  #untilClosed(id: string, work: Promise<void>): Promise<void> {
    const closing = work.finally(() => {
      if (this.#closing.get(id) === closing) this.#closing.delete(id)
    })
    this.#closing.set(id, closing)
    return closing
  }

  async closeAll(): Promise<void> {
    while (this.#streams.size > 0) await Promise.all([...this.#streams.keys()].map(id => this.#end(id)))
    await Promise.allSettled(this.#closing.values())
    await this.#journals.close()
  }

  /** Closes a stream when nobody waits for that. */
  async #end(id: string): Promise<void> {
    await this.close(id).catch(err => this.#env.log.error({ err, stream: id }, 'a journal could not be closed'))
  }

  /** How the stream before has ended was told to whoever ended it. */
  async #closed(id: string): Promise<void> {
    await this.#closing.get(id)?.catch(() => undefined)
  }

  /** Closes a stream that only late events or subscribers had opened, once it is idle. */
  release(stream: Stream | undefined): void {
    if (!stream) return
    const { id } = stream
    if (stream.kept || stream.users > 0 || !stream.idle || this.#streams.get(id) !== stream) return
    if (this.fanout.subscribers(id) === 0) void this.#end(id)
  }

  /** Never rejects, whatever the engine does. */
  async openJournal(id: string): Promise<Journal> {
    await this.#closed(id)
    try {
      return await this.#journals.open(id, this.fences.get(id))
    } catch (err) {
      this.#env.log.error({ err, stream: id }, 'a journal could not be opened; events are live only until the stream is opened anew')
      return new NoJournal(`ep_${this.#env.newId()}`)
    }
  }
}

/** In place of one that cannot be had: it gives every number up. */
class NoJournal implements Journal {
  readonly epoch: string
  seq = 0

  constructor(epoch: string) {
    this.epoch = epoch
  }

  get first(): number {
    return this.seq + 1
  }

  async *lines(): AsyncGenerator<readonly Buffer[]> {}

  async append(lines: readonly Uint8Array[]): Promise<void> {
    this.seq += lines.length
  }

  async skip(seq: number): Promise<void> {
    this.seq = seq
  }

  async abandon(seq: number): Promise<void> {
    this.seq = seq
  }

  async close(): Promise<void> {}
}

/** Ids become file names, so only safe ones exist. */
export function isStreamId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(id)
}
