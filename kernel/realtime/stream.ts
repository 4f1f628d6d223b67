/** One ordered event stream: gives out numbers, writes durable frames in groups, and hands frames over only after the disk has them. */
import { breathe } from '../breath.ts'
import type { Logger } from '../log/log.ts'
import { type Draft, type EventFrame, numberFrame } from './event-frame.ts'
import type { Journal } from './journal.ts'
import type { Watermark } from './types.ts'

/**
 * Frames that wait for the disk may take this much memory. Beyond it volatile ones are left out (their offsets show the gap);
 * durable ones come from work that waits for the same disk, so they stop by themselves.
 */
const queueBytes = 32 * 1024 * 1024

/** Guess for a frame that has no bytes yet. */
const unmergedBytes = 512

export interface StreamOptions {
  readonly id: string
  readonly log: Logger
  openJournal(): Promise<Journal>
  /** Receives frames in order. Must not throw. */
  deliver(frame: EventFrame): void
}

interface Waiter {
  readonly count: number
  readonly resolve: () => void
}

export class Stream {
  readonly id: string
  readonly #options: StreamOptions
  #journal: Journal | undefined
  #opening: Promise<Journal> | undefined
  #early: Draft[] = []
  #queue: EventFrame[] = []
  #bytes = 0
  #pumping = false
  /** Highest number given out. */
  #seq = 0
  #delivered = 0
  #accepted = 0
  #done = 0
  #waiters: Waiter[] = []
  #closed = false

  constructor(options: StreamOptions) {
    this.id = options.id
    this.#options = options
  }

  get closed(): boolean {
    return this.#closed
  }

  /** Number given out last and its epoch; undefined while the journal is not open. */
  get watermark(): Watermark | undefined {
    return this.#journal && { seq: this.#seq, epoch: this.#journal.epoch }
  }

  /** Number handed to the sockets last: what a subscription that starts now begins after. */
  get delivered(): number {
    return this.#delivered
  }

  /** Opens the journal once. What was emitted before gets its numbers now. */
  open(): Promise<Journal> {
    this.#opening ??= this.#open()
    return this.#opening
  }

  /** Takes an event; its number is given now, or when the journal has opened. */
  push(draft: Draft): void {
    if (!draft.spec.durable && this.#bytes > queueBytes) return
    this.#accepted++
    if (this.#journal) {
      this.#take(this.#journal, draft)
    } else {
      this.#early.push(draft)
      void this.open()
    }
  }

  /** Resolves when everything pushed so far was handed over. */
  settled(): Promise<void> {
    if (this.#done === this.#accepted) return Promise.resolve()
    return new Promise(resolve => this.#waiters.push({ count: this.#accepted, resolve }))
  }

  /** Opens the file anew, because another process has owned it since; true when it holds something else than it did. */
  async reread(): Promise<boolean> {
    const old = await this.open()
    await this.settled()
    const fresh = await this.#options.openJournal()
    const changed = fresh.epoch !== old.epoch || fresh.seq !== old.seq
    this.#journal = fresh
    this.#opening = Promise.resolve(fresh)
    this.#seq = fresh.seq
    this.#delivered = fresh.seq
    await old.close()
    return changed
  }

  /** Waits for what was pushed and closes the journal. */
  async close(): Promise<void> {
    this.#closed = true
    if (!this.#opening) return
    const journal = await this.#opening
    while (this.#done < this.#accepted) await this.settled()
    await journal.close()
  }

  async #open(): Promise<Journal> {
    const journal = await this.#options.openJournal()
    this.#journal = journal
    this.#seq = journal.seq
    this.#delivered = journal.seq
    for (const draft of this.#early.splice(0)) this.#take(journal, draft)
    return journal
  }

  #take(journal: Journal, draft: Draft): void {
    const { durable } = draft.spec
    const frame = numberFrame(draft, durable ? ++this.#seq : this.#seq, journal.epoch)
    if (!durable && this.#queue.length === 0 && !this.#pumping) {
      this.#handOver(frame)
      return
    }
    this.#queue.push(frame)
    this.#bytes += frame.line?.length ?? unmergedBytes
    if (!this.#pumping) void this.#pump(journal)
  }

  async #pump(journal: Journal): Promise<void> {
    this.#pumping = true
    await null // the lines of this tick share one write
    while (this.#queue.length > 0) {
      const batch = this.#queue
      this.#queue = []
      this.#bytes = 0
      const durable = batch.filter(frame => frame.draft.spec.durable)
      const lost = durable.length > 0 && !(await this.#write(journal, durable))
      await this.#handOverAll(batch)
      // Their bytes carry the old epoch; they must not get into the next file.
      if (lost) for (const frame of this.#queue.splice(0)) this.#handOver(frame)
    }
    this.#pumping = false
  }

  /** False when the disk did not take the frames: then the epoch has changed. */
  async #write(journal: Journal, frames: readonly EventFrame[]): Promise<boolean> {
    const lines = frames.flatMap(frame => frame.line ?? [])
    try {
      await journal.append(lines, frames[0]?.seq ?? 0)
      return true
    } catch (err) {
      this.#options.log.error({ err, stream: this.id }, 'events could not be journaled; they are live only')
      await journal.abandon(this.#seq)
      return false
    }
  }

  /** Hands a batch over in shares of the event loop: after a slow write it can be long, and each frame goes to many sockets. */
  async #handOverAll(batch: readonly EventFrame[]): Promise<void> {
    for (const frame of batch) {
      const others = breathe()
      if (others) await others
      this.#handOver(frame)
    }
  }

  #handOver(frame: EventFrame): void {
    if (frame.draft.spec.durable) this.#delivered = frame.seq
    this.#options.deliver(frame)
    this.#done++
    while (this.#waiters[0] && this.#waiters[0].count <= this.#done) this.#waiters.shift()?.resolve()
  }
}
