/** Sessions that a server which is gone left open, and those that clients follow, are loaded without anybody asking for them. */
import { type Logger, SessionMoved, type Streams } from '../../kernel/index.ts'
import type { Catalog } from './catalog.ts'
import type { LiveSession } from './live.ts'
import type { Owners } from './owners.ts'
import { isNoSession } from './removal.ts'
import type { SessionTable } from './table.ts'

interface LeftOpenPorts {
  readonly table: SessionTable
  readonly catalog: Catalog
  readonly streams: Pick<Streams, 'followed' | 'lost'>
  readonly owners: Owners
  readonly log: Logger
}

export class LeftOpen {
  readonly #ports: LeftOpenPorts

  constructor(ports: LeftOpenPorts) {
    this.#ports = ports
  }

  /** Loads what a process that died left open, or closed with work that waits: turns are closed, queues go on, the state is made up for. */
  async takeOverAll(signal: AbortSignal): Promise<void> {
    const { table, catalog, owners } = this.#ports
    for (const id of await catalog.unfinished()) {
      if (signal.aborted || table.closed) return
      if (table.loaded(id) || table.isLoading(id)) continue
      try {
        const known = await catalog.find(id)
        if (known && (await owners.isFree(catalog.lock(known)))) await table.load(id)
      } catch (err) {
        if (!(err instanceof SessionMoved)) this.#failed(err, id, 'a session with work that was left could not be loaded')
      }
    }
  }

  /** Loads what clients have followed since before this pack was swapped, or has them go on at the server that took it meanwhile. */
  async openFollowed(signal: AbortSignal): Promise<void> {
    const { table, streams } = this.#ports
    for (const id of streams.followed()) {
      if (signal.aborted || table.closed) return
      try {
        await table.load(id)
      } catch (err) {
        if (err instanceof SessionMoved) await streams.lost(id)
        else if (!isNoSession(err)) this.#failed(err, id, 'a session that clients follow could not be loaded')
      }
    }
  }

  /** A session that a server which died left open is loaded: its state may lack what only its journals have. */
  async takeOver(id: string): Promise<LiveSession | undefined> {
    const { table, catalog, owners } = this.#ports
    try {
      const known = table.isLoading(id) ? undefined : await catalog.find(id)
      return table.isLoading(id) || (known && (await owners.wasLeft(known))) ? await table.load(id) : undefined
    } catch (err) {
      if (!(err instanceof SessionMoved) && !isNoSession(err)) this.#failed(err, id, 'a session that was left open could not be loaded')
      return undefined
    }
  }

  #failed(err: unknown, session_id: string, what: string): void {
    this.#ports.log.error({ err, session_id }, what)
  }
}
