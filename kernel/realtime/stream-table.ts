/** All event streams of a process by id. */
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { globalStream } from './event-frame.ts'
import type { Fanout } from './fanout.ts'
import type { Journal, Journals, JournalView, Watermark } from './journal.ts'
import { defaultWaitingBytes, Stream, type StreamParts } from './stream.ts'

export interface StreamTableOptions {
  readonly journals: Journals
  readonly fanout: Fanout
  /** What events of all streams may take while they wait, in bytes; default 64 MiB. */
  readonly waitingBytes?: number | undefined
  /** Subscribers missed events: everything up to `at`. */
  missed(id: string, at: Watermark): void
}

export class StreamTable {
  readonly #env: Environment
  readonly #options: StreamTableOptions
  readonly #parts: StreamParts
  readonly #streams = new Map<string, Stream>()
  readonly #closing = new Map<string, Promise<void>>()

  constructor(env: Environment, options: StreamTableOptions) {
    this.#env = env
    this.#options = options
    this.#parts = {
      fanout: options.fanout,
      waiting: { bytes: 0, limit: options.waitingBytes ?? defaultWaitingBytes },
      openJournal: id => this.#openJournal(id),
      missed: (id, at) => options.missed(id, at),
      idle: stream => this.#release(stream)
    }
  }

  find(id: string): Stream | undefined {
    return this.#streams.get(id)
  }

  /** The stream of an id, made at the first call. Throws on an id that is no safe file name. */
  get(id: string): Stream {
    const known = this.#streams.get(id)
    if (known) return known
    if (id !== globalStream && !isStreamId(id)) throw developerError('session_id_bad', id.slice(0, 80))
    const stream = new Stream(this.#env, id, this.#parts)
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
      this.#release(stream)
    }
  }

  /** The journal as it is on record, of a stream that is not open; undefined when there is none. Nothing is created. */
  async stored(id: string): Promise<JournalView | undefined> {
    await this.#closing.get(id)
    return isStreamId(id) ? await this.#options.journals.find(id) : undefined
  }

  async settled(id?: string): Promise<void> {
    const streams = id === undefined ? [...this.#streams.values()] : [this.#streams.get(id)]
    await Promise.all(streams.map(stream => stream?.settled()))
  }

  /** The last subscriber has gone. */
  released(id: string): void {
    const stream = this.#streams.get(id)
    if (stream) this.#release(stream)
  }

  /** Writes what is pending and closes the journal. Events emitted meanwhile open the stream anew, after this. */
  close(id: string): Promise<void> {
    const stream = this.#streams.get(id)
    if (!stream) return this.#closing.get(id) ?? Promise.resolve()
    this.#streams.delete(id)
    const closing = stream.close().finally(() => {
      if (this.#closing.get(id) === closing) this.#closing.delete(id)
    })
    this.#closing.set(id, closing)
    return closing
  }

  async closeAll(): Promise<void> {
    while (this.#streams.size > 0) await Promise.all([...this.#streams.keys()].map(id => this.close(id)))
    await Promise.all(this.#closing.values())
    await this.#options.journals.close()
  }

  /** Closes a stream that only late events or subscribers had opened. */
  #release(stream: Stream): void {
    const { id } = stream
    if (stream.kept || stream.users > 0 || !stream.idle || this.#streams.get(id) !== stream) return
    if (this.#options.fanout.subscribers(id) === 0) void this.close(id)
  }

  async #openJournal(id: string): Promise<Journal> {
    await this.#closing.get(id)
    return await this.#options.journals.open(id)
  }
}

/** Ids become file names, so only safe ones exist. */
export function isStreamId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(id)
}
