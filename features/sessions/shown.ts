/** Sessions as clients see them now: those that are loaded here, those of other servers, and those that are only on disk. */
import { AppError } from '../../kernel/index.ts'
import type { Catalog } from './catalog.ts'
import { SessionMissing, type SessionObject } from './contract.ts'
import type { LeftOpen } from './left-open.ts'
import type { SessionLive, SessionState, WorkTuple } from './service.ts'
import type { SharedSessions } from './shared.ts'
import type { SessionTable } from './table.ts'
import { type ListQuery, listPage, sessionObject } from './view.ts'

interface ShownPorts {
  readonly table: SessionTable
  readonly catalog: Catalog
  readonly shared: SharedSessions
  /** Sessions that a dead server left open are loaded before they are shown. */
  readonly left?: LeftOpen
}

export class ShownSessions {
  readonly #ports: ShownPorts

  constructor(ports: ShownPorts) {
    this.#ports = ports
  }

  /** Also of a session of another server; undefined: nothing is known to go on. */
  work(id: string): WorkTuple | undefined {
    const { table, shared } = this.#ports
    const loaded = table.loaded(id)
    return loaded?.writable ? loaded.work : (shared.work(id) ?? loaded?.work)
  }

  /** Throws SessionMissing. */
  async object(id: string, live?: SessionLive): Promise<SessionObject> {
    const { table, catalog, left } = this.#ports
    const loaded = (await table.stillThere(id)) ?? (await left?.takeOver(id))
    const state = loaded?.state ?? (await catalog.find(id))
    if (!state) throw new AppError(SessionMissing)
    return sessionObject(state, this.work(id), live)
  }

  /** `workspaces`: ids of those to keep. */
  page(sorted: readonly SessionState[], query: ListQuery, workspaces?: readonly string[]): { items: SessionObject[]; has_more: boolean } {
    const { rows, has_more } = listPage(sorted, query, id => this.work(id)?.busy === true, workspaces)
    return { items: rows.map(state => sessionObject(this.#newest(state), this.work(state.id))), has_more }
  }

  #newest(listed: SessionState): SessionState {
    const loaded = this.#ports.table.loaded(listed.id)
    return loaded?.writable ? loaded.state : listed
  }
}
