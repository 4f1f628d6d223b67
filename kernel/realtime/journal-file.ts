/**
 * The file behind one event stream: a header line and then each durable frame exactly as sent. Only byte offsets of the newest lines stay
 * in memory.
 */
import { createReadStream } from 'node:fs'
import { setTimeout as delay } from 'node:timers/promises'
import { LeaseLost } from '../errors.ts'
import type { LineFiles } from '../storage/line-file.ts'
import { type Line, SharedFile } from '../storage/line-reader.ts'
import { lookAt } from '../storage/look.ts'
import type { EngineEnvironment } from '../storage/ports.ts'
import { unsaved } from '../storage/refusals.ts'
import { jsonOf } from '../text.ts'
import { type Journal, type JournalView, replayLimit } from './journal.ts'

/** First line of a journal file. */
interface JournalHeader {
  readonly kind: 'journal_header'
  readonly version: 1
  readonly epoch: string
  /** Epoch milliseconds. */
  readonly created_at: number
  /** Number of the first event when it is not 1: a journal that took over a running stream, or was shortened. */
  readonly first_seq?: number
}

/** A file with more events or bytes is rewritten with the newest `replayLimit`. */
const rewriteEvents = 4000
const rewriteBytes = 32 * 1024 * 1024
const retryDelaysMs = [20, 100, 300]
/** After a failure for good the next try waits. */
const pauseMs = 1000
const copyBytes = 256 * 1024

export class JournalFile implements Journal {
  readonly #env: EngineEnvironment
  readonly #path: string
  readonly #lines: LineFiles
  #header: JournalHeader
  #seq = 0
  /** Byte offsets of the newest unbroken run of lines, oldest first, up to `seq`. */
  #starts: number[] = []
  #end = 0
  /** More than `#end` while a torn tail waits for the first append. */
  #size = 0
  #ino = 0
  #events = 0
  #rewriteAt = rewriteBytes
  /** `repair`: damaged lines to leave out. `replace`: nothing usable on disk, the next append starts a file. */
  #state: 'ok' | 'repair' | 'replace' = 'ok'
  #retryAt = 0
  /** False for a view: somebody else may rewrite the file. */
  #isOwned = true
  /** Counts rewrites: offsets of one generation mean nothing in the next. */
  #generation = 0
  #file: SharedFile | undefined
  #onClosed: () => void = () => undefined

  private constructor(env: EngineEnvironment, path: string, lines: LineFiles) {
    this.#env = env
    this.#path = path
    this.#lines = lines
    this.#header = this.#newHeader()
  }

  /** See `Journals.open`. `own`: makes the file this process's alone. `onClosed`: everything is written, and it was let go. */
  static async open(
    env: EngineEnvironment,
    path: string,
    lines: LineFiles,
    own: () => Promise<unknown>,
    onClosed: () => void
  ): Promise<JournalFile> {
    const journal = new JournalFile(env, path, lines)
    journal.#onClosed = onClosed
    const open = async () => {
      await own()
      if (!(await journal.#load())) await journal.#create()
    }
    try {
      await journal.#tried(open, retryDelaysMs)
    } catch (err) {
      env.log.error({ err, path }, 'an event journal could not be opened; events are live only until it can be written')
      journal.#state = 'replace'
    }
    return journal
  }

  /** See `Journals.find`. */
  static async find(env: EngineEnvironment, path: string, lines: LineFiles): Promise<JournalView | undefined> {
    const journal = new JournalFile(env, path, lines)
    journal.#isOwned = false
    return (await journal.#load()) && journal.#state !== 'replace' ? journal : undefined
  }

  get epoch(): string {
    return this.#header.epoch
  }

  get seq(): number {
    return this.#seq
  }

  get first(): number {
    return this.#seq - this.#starts.length + 1
  }

  async *lines(from: number, to: number): AsyncGenerator<readonly Buffer[]> {
    const file = await this.#entered()
    try {
      if (from < this.first || to > this.#seq) throw unsaved('the journal does not have these lines any more')
      const at = from - this.first
      const offsets = this.#starts.slice(at, at + to - from + 2)
      if (to === this.#seq) offsets.push(this.#end)
      yield* file.lines(offsets, this.#end)
    } finally {
      await file.leave()
    }
  }

  async append(lines: readonly Uint8Array[], first: number): Promise<void> {
    if (this.#state === 'replace' && performance.now() < this.#retryAt) throw unsaved('the journal is waiting for its next try')
    const delaysMs = this.#state === 'replace' ? [] : retryDelaysMs
    try {
      await this.#tried(() => this.#write(lines, first), delaysMs)
    } catch (error) {
      if (!(error instanceof LeaseLost)) this.#retryAt = performance.now() + pauseMs
      throw error
    }
    if (this.#events > rewriteEvents || this.#end > this.#rewriteAt) await this.#shorten()
  }

  async abandon(seq: number): Promise<void> {
    if (this.#state !== 'replace') {
      this.#generation++
      this.#header = this.#newHeader()
      this.#starts = []
      this.#state = 'replace'
      // Where even that fails, the numbers of the file end before `seq`.
      await this.#quarantine().catch(err =>
        this.#env.log.error({ err, path: this.#path }, 'a damaged event journal could not be moved out of the way')
      )
    }
    this.#seq = seq
  }

  async skip(seq: number): Promise<void> {
    if (this.#state === 'repair') await this.#repair()
    this.#seq = seq
    this.#starts = []
    if (this.#state === 'ok') await this.#rewrite(0)
  }

  close(): Promise<void> {
    return this.#lines
      .release(this.#path)
      .catch(err => this.#env.log.warn({ err, path: this.#path }, 'a journal file could not be closed properly'))
      .then(this.#onClosed)
  }

  #newHeader(): JournalHeader {
    const { now, newId } = this.#env
    return { kind: 'journal_header', version: 1, epoch: `ep_${newId()}`, created_at: now().getTime() }
  }

  /** False when there is no file, or an empty one, as a kill between creation and header leaves it. */
  async #load(): Promise<boolean> {
    if (!(await lookAt(this.#path))) return false
    const scan = new Scan()
    const reading = await this.#lines.read(this.#path, line => scan.take(line))
    if (reading.size === 0) return false
    this.#generation++
    this.#size = reading.size
    this.#ino = reading.ino
    if (!scan.header) {
      this.#env.log.warn({ path: this.#path }, 'an event journal has no readable header; the stream starts a new epoch')
      this.#state = 'replace'
      return true
    }
    this.#header = scan.header
    this.#seq = scan.lastSeq
    this.#starts = scan.starts
    this.#end = reading.end
    this.#events = scan.events
    this.#state = reading.damaged > 0 ? 'repair' : 'ok'
    return true
  }

  async #create(): Promise<void> {
    await this.#replaced(this.#lines.append(this.#path, () => [headerLine(this.#header)], { end: 0, size: 0 }))
    this.#events = 0
    this.#state = 'ok'
  }

  async #write(lines: readonly Uint8Array[], first: number): Promise<void> {
    if (this.#state === 'replace') await this.#restart(first)
    if (this.#state === 'repair') await this.#repair()
    const end = await this.#lines.append(this.#path, () => lines, { end: this.#end, size: this.#size })
    for (const line of lines) {
      this.#starts.push(this.#end)
      this.#end += line.length
    }
    this.#size = end
    this.#seq += lines.length
    this.#events += lines.length
    if (this.#starts.length > replayLimit * 2) this.#starts = this.#starts.slice(-replayLimit)
  }

  async #restart(first_seq: number): Promise<void> {
    await this.#quarantine()
    this.#header = { ...this.#header, first_seq }
    this.#seq = first_seq - 1
    this.#starts = []
    await this.#create()
  }

  async #repair(): Promise<void> {
    await this.#rewrite(this.#starts.length)
    this.#state = 'ok'
  }

  async #shorten(): Promise<void> {
    try {
      await this.#rewrite(Math.min(replayLimit, this.#starts.length))
    } catch (err) {
      this.#env.log.warn({ err, path: this.#path }, 'an event journal could not be shortened')
      this.#rewriteAt = this.#end * 2
      this.#events = 0
    }
  }

  /** Puts a file with header and newest `count` lines in place. */
  async #rewrite(count: number): Promise<void> {
    const starts = count > 0 ? this.#starts.slice(-count) : []
    const from = starts[0] ?? this.#end
    const head = headerLine({ ...this.#header, first_seq: this.#seq - starts.length + 1 })
    const end = head.length + this.#end - from
    await this.#replaced(this.#lines.replace(this.#path, contentOf(head, this.#path, from, this.#end)).then(() => end))
    this.#starts = starts.map(start => start + head.length - from)
    this.#events = starts.length
    this.#rewriteAt = Math.max(rewriteBytes, end * 2)
  }

  /** Another file lies at the path now; `end` is where its lines end. */
  async #replaced(work: Promise<number>): Promise<void> {
    const end = await work
    this.#generation++
    this.#end = end
    this.#size = end
    this.#ino = (await lookAt(this.#path))?.ino ?? 0
  }

  async #quarantine(): Promise<void> {
    const moved_to = await this.#lines.quarantine(this.#path)
    if (moved_to) this.#env.log.warn({ path: this.#path, moved_to }, 'a damaged event journal was moved out of the way')
  }

  /** Tries work that fails again after each delay; the last failure stays. */
  async #tried(work: () => Promise<void>, [ms, ...rest]: readonly number[]): Promise<void> {
    try {
      await work()
    } catch (err) {
      if (ms === undefined || err instanceof LeaseLost) throw err
      this.#env.log.warn({ err, path: this.#path }, 'work on an event journal failed and is repeated')
      await delay(ms)
      await this.#tried(work, rest)
    }
  }

  /** The file as it is open for others at this time, or opened for them now. Whoever has a view looks what lies at the path. */
  #shared(): SharedFile {
    const isOpen = this.#file?.closed === false && this.#file.generation === this.#generation && this.#isOwned
    if (!this.#file || !isOpen) this.#file = new SharedFile(this.#path, this.#generation)
    return this.#file
  }

  /** The file that the offsets are of; who gets it leaves it. */
  async #entered(): Promise<SharedFile> {
    for (;;) {
      const file = this.#shared()
      const ino = await file.enter()
      if (ino === this.#ino && file.generation === this.#generation) return file
      await file.leave()
      if (file.generation !== this.#generation) continue
      if (this.#isOwned) throw unsaved('the journal file was replaced by somebody else')
      await this.#load()
    }
  }
}

function headerLine(header: JournalHeader): Buffer {
  return Buffer.from(`${JSON.stringify(header)}\n`)
}

async function* contentOf(head: Buffer, path: string, from: number, to: number): AsyncGenerator<Buffer> {
  yield head
  if (from === to) return
  let left = to - from
  for await (const bytes of createReadStream(path, { start: from, end: to - 1, highWaterMark: copyBytes })) {
    left -= (bytes as Buffer).length
    yield bytes as Buffer
  }
  if (left > 0) throw unsaved('the journal file is shorter than it was')
}

/** What the lines of a file tell, front to back. */
class Scan {
  header: JournalHeader | undefined
  starts: number[] = []
  events = 0
  #seq = 0
  /** Damaged lines since the last good one. */
  #trailing = 0

  /** A damaged last line may be an event that was seen: its number must not be given out again. */
  get lastSeq(): number {
    const before = this.events === 0 ? (this.header?.first_seq ?? 1) - 1 : this.#seq
    return before + this.#trailing
  }

  /** Why a line is of no use; undefined when it is, or is only torn. */
  take({ text, start, ended }: Line): string | undefined {
    if (!ended) return undefined
    const value = jsonOf(text)
    if (start === 0) {
      this.header = asHeader(value)
      return undefined
    }
    const seq = eventSeq(value)
    if (seq === undefined || seq <= this.#seq) {
      this.#trailing++
      this.starts = []
      return seq === undefined ? 'no event' : 'its number came before'
    }
    // A hole means that an event is lost: nothing before it may be replayed across it.
    if (seq !== this.#seq + 1) this.starts = []
    this.#seq = seq
    this.#trailing = 0
    this.events++
    this.starts.push(start)
    if (this.starts.length > replayLimit * 2) this.starts = this.starts.slice(-replayLimit)
    return undefined
  }
}

function asHeader(value: unknown): JournalHeader | undefined {
  const { kind, version, epoch } = (value ?? {}) as Partial<JournalHeader>
  const known = kind === 'journal_header' && version === 1 && typeof epoch === 'string' && /^[\w-]{1,64}$/.test(epoch)
  return known ? (value as JournalHeader) : undefined
}

function eventSeq(value: unknown): number | undefined {
  const { seq, type } = (value ?? {}) as { seq?: unknown; type?: unknown }
  return typeof type === 'string' && Number.isSafeInteger(seq) ? (seq as number) : undefined
}
