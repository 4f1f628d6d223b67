/** All event streams of a process by id, and where their journals lie. */
import { join } from 'node:path'
import type { Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import { globalStream } from './event-frame.ts'
import type { Fanout } from './fanout.ts'
import { type GlobalPlace, globalPlace } from './global-journal.ts'
import { Journal } from './journal.ts'
import { JournalPool } from './journal-pool.ts'
import { defaultWaitingBytes, Stream, type StreamParts } from './stream.ts'
import type { Watermark } from './types.ts'

export interface StreamTableOptions {
  /** `<home>/server/events`. */
  readonly dir: string
  readonly server_id: string
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
  readonly #pool: JournalPool
  readonly #streams = new Map<string, Stream>()
  readonly #closing = new Map<string, Promise<void>>()
  #place: GlobalPlace | undefined

  constructor(env: Environment, options: StreamTableOptions) {
    this.#env = env
    this.#options = options
    this.#pool = new JournalPool(env.log)
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

  /** The journal as it is on disk, of a stream that is not open; undefined when there is none. Nothing is created; nobody appends to it. */
  async stored(id: string): Promise<Journal | undefined> {
    await this.#closing.get(id)
    const { log, now, newId } = this.#env
    return isStreamId(id)
      ? await Journal.find({ path: join(this.#options.dir, `${id}.jsonl`), pool: this.#pool, log, now, newId })
      : undefined
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
    this.#pool.close()
    await this.#place?.release()
    this.#place = undefined
  }

  /** Closes a stream that only late events or subscribers had opened. */
  #release(stream: Stream): void {
    const { id } = stream
    if (stream.kept || stream.users > 0 || !stream.idle || this.#streams.get(id) !== stream) return
    if (this.#options.fanout.subscribers(id) === 0) void this.close(id)
  }

  async #openJournal(id: string): Promise<Journal> {
    await this.#closing.get(id)
    const { log, now, newId } = this.#env
    return await Journal.open({ path: await this.#path(id), pool: this.#pool, log, now, newId })
  }

  async #path(id: string): Promise<string> {
    const { dir, server_id } = this.#options
    const { log } = this.#env
    if (id !== globalStream) return join(dir, `${id}.jsonl`)
    try {
      this.#place = await globalPlace(dir, server_id, log)
      return this.#place.path
    } catch (err) {
      log.error({ err }, 'there is no place for the journal of global events')
      return join(dir, `${globalStream}.${server_id}.jsonl`)
    }
  }
}

/** Ids become file names, so only safe ones exist. */
export function isStreamId(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9._-]{0,199}$/.test(id)
}
