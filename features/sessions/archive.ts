/** Archiving and restoring a session, at the server of the home that has it. */
import { AppError, inOrder } from '../../kernel/index.ts'
import { atOwner, type Peers } from '../peers/index.ts'
import type { Catalog } from './catalog.ts'
import { SessionBusy, SessionMissing } from './contract.ts'
import type { LiveSession } from './live.ts'
import type { Owners } from './owners.ts'
import type { Session, SessionState } from './service.ts'
import type { SessionTable } from './table.ts'

/** Under which servers ask each other about sessions. */
export const sessionsTopic = 'sessions'

interface ArchivePorts {
  readonly table: SessionTable
  readonly catalog: Catalog
  readonly now: () => Date
  /** Tells that the agents of a loaded session are over; resolves when clients have heard of it. */
  readonly disposed: (session: Session) => Promise<void>
  /** Tells that a session of this workspace was archived. */
  readonly archived: (workspace_id: string, id: string) => void
  readonly owners: Owners
  readonly peers: () => Peers | undefined
}

type Change = (state: SessionState) => SessionState

/** What a server answers that was asked; without a code it is done. */
interface Answer {
  readonly code?: number
  readonly message?: string
}

export class Archive {
  readonly #ports: ArchivePorts
  /** Changes of loaded sessions: each begins with what the one before has left. */
  readonly #orders = new WeakMap<Session, ReturnType<typeof inOrder>>()

  constructor(ports: ArchivePorts) {
    this.#ports = ports
  }

  /** Where the session is. Throws what it throws there, and OwnerSilent. */
  archive(id: string): Promise<void> {
    return this.#change('archive', id)
  }

  /** As `archive`. */
  restore(id: string): Promise<void> {
    return this.#change('restore', id)
  }

  /** Of a session of this server, loaded or not. Its running work ends first. */
  async archiveHere(id: string): Promise<void> {
    const { table, catalog, now, disposed, archived } = this.#ports
    let isNew = false
    const change: Change = state => {
      isNew = !state.archived
      return isNew ? { ...state, archived: true, archived_at: now().toISOString() } : state
    }
    await table.patch(id, change, session =>
      this.#inOrder(session, async () => {
        if (session.writable) await table.archiving.run(session)
        await changeLoaded(session, change)
        if (isNew) await disposed(session)
      })
    )
    const workspace_id = (await catalog.find(id))?.workspace_id
    if (workspace_id !== undefined) archived(workspace_id, id)
  }

  restoreLoaded(session: LiveSession): Promise<void> {
    return this.#inOrder(session, async () => {
      const { archived } = session.state
      await changeLoaded(session, restored)
      if (archived) await this.#ports.table.restoring.run(session)
    })
  }

  #inOrder(session: Session, change: () => Promise<void>): Promise<void> {
    const order = this.#orders.get(session) ?? inOrder()
    this.#orders.set(session, order)
    return order(change)
  }

  /** Another server asks. */
  async asked(payload: unknown): Promise<Answer> {
    const { what, id } = payload as { readonly what: 'archive' | 'restore'; readonly id: string }
    try {
      await this.#changeHere(what, id)
      return {}
    } catch (error) {
      if (!AppError.is(error)) throw error
      return { code: error.code, message: error.message }
    }
  }

  async #change(what: 'archive' | 'restore', id: string): Promise<void> {
    const { owners, peers } = this.#ports
    const others = peers()
    const there =
      others &&
      others.servers().length > 0 &&
      (await atOwner(
        () => owners.of(id),
        () => false,
        place => others.ask(place.id, sessionsTopic, { what, id })
      ))
    if (!there) return await this.#changeHere(what, id)
    const { code, message } = there as Answer
    const failure = [SessionMissing, SessionBusy].find(spec => spec.code === code)
    if (failure) throw new AppError(failure)
    if (code !== undefined) throw new Error(message)
  }

  #changeHere(what: 'archive' | 'restore', id: string): Promise<void> {
    if (what === 'archive') return this.archiveHere(id)
    return this.#ports.table.patch(id, restored, session => this.restoreLoaded(session))
  }
}

function restored(state: SessionState): SessionState {
  const { archived_at: _at, ...rest } = state
  return state.archived ? { ...rest, archived: false } : state
}

/** Also when memory says that it is so: the write that made it so may be refused yet. */
async function changeLoaded(session: Session, change: Change): Promise<void> {
  if (session.writable || change(session.state) !== session.state) await session.update(change)
}
