/**
 * The file behind one event stream: `<dir>/<id>.jsonl`, a header line and then each durable frame exactly as sent.
 * Appends are made by one caller at a time; only byte offsets of the newest lines stay in memory.
 */
import { constants } from 'node:fs'
import { type FileHandle, open, rename } from 'node:fs/promises'
import type { Logger } from '../log/log.ts'
import { copyTail, createFile, missingIsUndefined, openForAppend, setAside } from './journal-file.ts'
import type { JournalPool, Pooled } from './journal-pool.ts'
import { type JournalHeader, scanJournal } from './journal-scan.ts'

/** Events that a cursor may lie behind and still be replayed (ws-protocol `max_event_buffer_size`). */
export const replayLimit = 1000
/** A file with more events or bytes is rewritten with the newest `replayLimit`. */
const rewriteEvents = 4000
const rewriteBytes = 32 * 1024 * 1024
const retryDelaysMs = [20, 100, 300]

export interface JournalOptions {
  readonly path: string
  readonly pool: JournalPool
  readonly log: Logger
  now(): Date
  newId(): string
}

/** An open file that stays readable whatever happens to the journal meanwhile. `starts` are offsets as of `generation`. */
export interface JournalReader {
  readonly handle: FileHandle
  readonly generation: number
}

export class Journal implements Pooled {
  readonly #options: JournalOptions
  #header: JournalHeader
  /** Highest number on disk (or given up, after a write failure). */
  #seq = 0
  #starts: number[] = []
  #good = 0
  /** What the file must measure when it is opened for appending, else somebody else wrote; undefined after a failed write of our own. */
  #expected: number | undefined = 0
  #events = 0
  #rewriteAt = rewriteBytes
  /** `repair`: damaged lines to set aside. `replace`: nothing usable on disk, the next append starts a file. */
  #state: 'ok' | 'repair' | 'replace' = 'ok'
  #handle: FileHandle | undefined
  #busy = false
  #unsynced = false
  #closing: Promise<unknown> = Promise.resolve()
  #syncing: Promise<void> | undefined
  #retryAt = 0
  generation = 0

  private constructor(options: JournalOptions) {
    this.#options = options
    this.#header = this.#newHeader()
  }

  /**
   * Opens or creates a journal. Never rejects: a file that cannot be read or made costs the stream its persistence, not its life
   * (logged; tried again at later appends). An existing file is only read here; repairs wait for the first append, because
   * another process may still own it.
   */
  static async open(options: JournalOptions): Promise<Journal> {
    const journal = new Journal(options)
    try {
      await journal.#load()
    } catch (err) {
      options.log.error({ err, path: options.path }, 'an event journal could not be opened; events are live only until it can be written')
      journal.#state = 'replace'
    }
    return journal
  }

  /** Reads a journal that is there, for readers; undefined when there is none (or its header tells nothing). Rejects when it cannot be read. */
  static async find(options: JournalOptions): Promise<Journal | undefined> {
    const journal = new Journal(options)
    return (await journal.#scan()) && journal.#state !== 'replace' ? journal : undefined
  }

  get epoch(): string {
    return this.#header.epoch
  }

  get seq(): number {
    return this.#seq
  }

  /** Lowest number that can be replayed; `seq + 1` when there is nothing. */
  get first(): number {
    return this.#seq - this.#starts.length + 1
  }

  /** Byte offsets of the lines `from`..`to` and, last, the end of `to`. Both must lie between `first` and `seq`. */
  offsets(from: number, to: number): number[] {
    const at = from - this.first
    const slice = this.#starts.slice(at, at + (to - from) + 1)
    slice.push(this.#starts[at + (to - from) + 1] ?? this.#good)
    return slice
  }

  /** Opens the file for reading; compare `generation` with the journal's before using offsets. The caller closes the handle. */
  async reader(): Promise<JournalReader> {
    for (;;) {
      const generation = this.generation
      const handle = await open(this.#options.path, constants.O_RDONLY)
      if (generation === this.generation) return { handle, generation }
      await handle.close()
    }
  }

  /**
   * Puts lines (each with its newline) on disk, numbered `first` onwards. Resolves when they would survive `kill -9`.
   * A failed write is repeated three times within half a second, then the call rejects and nothing of it counts.
   */
  async append(lines: readonly Uint8Array[], first: number): Promise<void> {
    if (this.#state === 'replace' && performance.now() < this.#retryAt) throw new Error('the journal is waiting for its next try')
    const delays = this.#state === 'replace' ? [] : retryDelaysMs
    this.#busy = true
    try {
      for (let attempt = 0; ; attempt++) {
        try {
          await this.#write(lines, first)
          break
        } catch (err) {
          await this.#drop()
          const delay = delays[attempt]
          if (delay === undefined) {
            this.#retryAt = performance.now() + 1000
            throw err
          }
          this.#options.log.warn({ err, path: this.#options.path }, 'a journal write failed and is repeated')
          await new Promise(resolve => setTimeout(resolve, delay))
        }
      }
      if (this.#events > rewriteEvents || this.#good > this.#rewriteAt) await this.#shorten()
    } finally {
      this.#busy = false
    }
  }

  /**
   * Ends this incarnation after a write failure: numbers up to `seq` may have been seen, so they never come again, and a new
   * epoch makes every old cursor ask for a resync. The old file is put aside; where even that fails, its numbers end before `seq`.
   */
  async abandon(seq: number): Promise<void> {
    if (this.#state === 'replace') {
      this.#seq = seq
      return
    }
    await this.#drop()
    this.generation++
    this.#header = this.#newHeader()
    this.#seq = seq
    this.#starts = []
    this.#state = 'replace'
    await this.#setAside('move').catch(err =>
      this.#options.log.error({ err, path: this.#options.path }, 'a damaged journal could not be set aside')
    )
  }

  /** Gives up the numbers up to `to` without their events: nothing before them can be replayed any more. Rejects when the disk does not take that. */
  async skip(to: number): Promise<void> {
    this.#busy = true
    try {
      if (this.#state === 'repair') await this.#repair()
      this.#seq = to
      this.#starts = []
      if (this.#state === 'ok') await this.#rewrite(0)
    } finally {
      this.#busy = false
    }
  }

  park(): Promise<unknown> | undefined {
    return this.#busy ? undefined : this.#drop()
  }

  async sync(): Promise<void> {
    const handle = this.#handle
    if (!handle || !this.#unsynced) return
    this.#unsynced = false
    this.#syncing = handle.datasync()
    try {
      await this.#syncing
    } finally {
      this.#syncing = undefined
    }
  }

  /** Syncs and closes. The caller has no append running. */
  async close(): Promise<void> {
    await this.#drop()
    await this.#closing
  }

  #newHeader(first_seq?: number): JournalHeader {
    const { now, newId } = this.#options
    const base = { kind: 'journal_header', version: 1, epoch: `ep_${newId()}`, created_at: now().getTime() } as const
    return first_seq === undefined ? base : { ...base, first_seq }
  }

  async #load(): Promise<void> {
    if (!(await this.#scan())) await this.#create()
  }

  /** False when there is no file. */
  async #scan(): Promise<boolean> {
    const { path, log } = this.#options
    const handle = await open(path, constants.O_RDONLY).catch(missingIsUndefined)
    if (!handle) return false
    try {
      const scan = await scanJournal(handle, replayLimit)
      this.#expected = scan.size
      if (!scan.header) {
        log.warn({ path }, 'an event journal has no readable header; the stream starts a new epoch')
        this.#state = 'replace'
        return true
      }
      this.#header = scan.header
      this.#seq = scan.seq
      this.#starts = scan.starts
      this.#good = scan.good
      this.#events = scan.events
      if (scan.size > scan.good) log.warn({ path, bytes: scan.size - scan.good }, 'an event journal ends in a torn line, which is left out')
      if (scan.damaged > 0) {
        log.warn({ path, lines: scan.damaged }, 'damaged lines of an event journal are skipped and will be set aside')
        this.#state = 'repair'
      }
      return true
    } finally {
      await handle.close()
    }
  }

  async #create(): Promise<void> {
    this.#good = await createFile(this.#options.path, this.#header)
    this.#expected = this.#good
    this.#events = 0
    this.#state = 'ok'
  }

  async #write(lines: readonly Uint8Array[], first: number): Promise<void> {
    if (this.#state === 'replace') await this.#replace(first)
    if (this.#state === 'repair') await this.#repair()
    const handle = this.#handle ?? (await this.#openForAppend())
    await this.#options.pool.touch(this)
    const total = lines.reduce((sum, line) => sum + line.length, 0)
    this.#expected = undefined
    const { bytesWritten } = await handle.writev([...lines])
    if (bytesWritten !== total) throw new Error(`only ${bytesWritten} of ${total} bytes were written`)
    for (const line of lines) {
      this.#starts.push(this.#good)
      this.#good += line.length
    }
    if (this.#starts.length > replayLimit * 2) this.#starts = this.#starts.slice(-replayLimit)
    this.#expected = this.#good
    this.#seq += lines.length
    this.#events += lines.length
    this.#unsynced = true
    this.#options.pool.dirty(this)
  }

  async #openForAppend(): Promise<FileHandle> {
    await this.#closing
    this.#handle = await openForAppend(this.#options.path, this.#good, this.#expected)
    return this.#handle
  }

  async #replace(first_seq: number): Promise<void> {
    await this.#setAside('move')
    this.#header = { ...this.#header, first_seq }
    this.#seq = first_seq - 1
    await this.#create()
  }

  async #repair(): Promise<void> {
    await this.#setAside('copy')
    await this.#rewrite(this.#starts.length)
    this.#state = 'ok'
  }

  async #shorten(): Promise<void> {
    try {
      await this.#rewrite(Math.min(replayLimit, this.#starts.length))
    } catch (err) {
      this.#options.log.warn({ err, path: this.#options.path }, 'an event journal could not be shortened')
      this.#rewriteAt = this.#good * 2
      this.#events = 0
    }
  }

  /** Writes header and newest `count` lines to a new file and puts it in place. */
  async #rewrite(count: number): Promise<void> {
    const { path } = this.#options
    const starts = count > 0 ? this.#starts.slice(-count) : []
    const from = starts[0] ?? this.#good
    const { temp, headBytes } = await copyTail(path, { ...this.#header, first_seq: this.#seq - starts.length + 1 }, from, this.#good)
    await this.#drop()
    await rename(temp, path)
    const shift = headBytes - from
    this.generation++
    this.#starts = starts.map(start => start + shift)
    this.#good += shift
    this.#expected = this.#good
    this.#events = starts.length
    this.#rewriteAt = Math.max(rewriteBytes, this.#good * 2)
  }

  async #setAside(how: 'move' | 'copy'): Promise<void> {
    const aside = `${this.#options.path}.damaged-${this.#options.newId()}`
    if (await setAside(this.#options.path, aside, how)) this.#options.log.warn({ path: aside }, 'a damaged event journal was set aside')
  }

  /** Lets go of the file; it is opened again at the next append. */
  #drop(): Promise<unknown> {
    const handle = this.#handle
    if (!handle) return this.#closing
    this.#handle = undefined
    this.#options.pool.forget(this)
    const unsynced = this.#unsynced
    this.#unsynced = false
    const syncing = this.#syncing
    const close = async () => {
      try {
        await syncing
        if (unsynced) await handle.datasync()
      } finally {
        await handle.close()
      }
    }
    this.#closing = close().catch(err =>
      this.#options.log.warn({ err, path: this.#options.path }, 'a journal file could not be closed properly')
    )
    return this.#closing
  }
}
