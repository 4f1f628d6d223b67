/** Who has a session: which server of the home holds its lock, and whether that one is still there. */
import { lockHolder } from '../../kernel/index.ts'
import type { Peers, Place } from '../peers/index.ts'
import type { Catalog } from './catalog.ts'
import { isThere } from './disk.ts'
import type { Leases } from './leases.ts'
import type { SessionState } from './service.ts'

interface OwnerPorts {
  readonly catalog: Catalog
  readonly leases: Leases
  readonly peers: () => Peers | undefined
  /** This server has the session. */
  readonly isHere: (id: string) => boolean
}

export class Owners {
  readonly #ports: OwnerPorts

  constructor(ports: OwnerPorts) {
    this.#ports = ports
  }

  /** The server that has a session, when it is another one that can be asked. */
  async of(id: string): Promise<Place | undefined> {
    const { catalog, leases, peers, isHere } = this.#ports
    const known = isHere(id) ? undefined : await catalog.find(id)
    const holder = known && (await lockHolder(catalog.lock(known)))
    const { server_id } = (holder?.info ?? {}) as { server_id?: string }
    const other = peers()
    if (!holder || server_id === undefined || !other || isHere(id)) return undefined
    const isExpired = await leases.isExpired(holder) // watched from the first look on, not from the first silence
    if (isExpired && other.silent(server_id)) return undefined // it is ours to take over
    return other.place(server_id)
  }

  /** Nobody holds this lock, or who held it is gone. */
  async isFree(lock: string): Promise<boolean> {
    const holder = await lockHolder(lock)
    return holder === undefined || (await this.#ports.leases.isExpired(holder))
  }

  /** Whoever had the session open is gone without having closed it. */
  async wasLeft(known: SessionState): Promise<boolean> {
    const lock = this.#ports.catalog.lock(known)
    return (await isThere(lock)) && (await this.isFree(lock))
  }
}
