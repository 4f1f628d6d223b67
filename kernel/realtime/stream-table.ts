/** All event streams of a process by id, and where their journals lie. */
import { join } from 'node:path'
import type { Logger } from '../log/log.ts'
import { type EventFrame, globalStream } from './event-frame.ts'
import { type GlobalPlace, globalPlace } from './global-journal.ts'
import { Journal } from './journal.ts'
import { JournalPool } from './journal-pool.ts'
import { Stream } from './stream.ts'

export interface StreamTableOptions {
  /** `<home>/server/events`. */
  readonly dir: string
  readonly server_id: string
  readonly log: Logger
  now(): Date
  newId(): string
  deliver(frame: EventFrame): void
}

export class StreamTable {
  readonly #options: StreamTableOptions
  readonly #pool: JournalPool
  readonly #streams = new Map<string, Stream>()
  readonly #closing = new Map<string, Promise<void>>()
  #place: GlobalPlace | undefined

  constructor(options: StreamTableOptions) {
    this.#options = options
    this.#pool = new JournalPool(options.log)
  }

  find(id: string): Stream | undefined {
    return this.#streams.get(id)
  }

  /** The stream of an id, made at the first call. Throws on an id that is no safe file name. */
  get(id: string): Stream {
    const known = this.#streams.get(id)
    if (known) return known
    if (id !== globalStream && !isStreamId(id)) throw new Error(`'${id.slice(0, 80)}' is no session id`)
    const { log, deliver } = this.#options
    const stream = new Stream({ id, log, openJournal: () => this.#openJournal(id), deliver })
    this.#streams.set(id, stream)
    return stream
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

  async #openJournal(id: string): Promise<Journal> {
    await this.#closing.get(id)
    const { log, now, newId } = this.#options
    return await Journal.open({ path: await this.#path(id), pool: this.#pool, log, now, newId })
  }

  async #path(id: string): Promise<string> {
    const { dir, server_id, log } = this.#options
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
