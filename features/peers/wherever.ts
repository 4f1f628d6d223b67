/** What one client of this server has of sessions, at whichever server of the home each is: asking, subscribing, and waiting for one that hangs. */
import {
  AppError,
  OwnerSilent,
  type Remote,
  type RemoteAck,
  type RemoteClient,
  type RemoteFrame,
  type RemotePorts,
  type SharedEvent,
  type Subscribed,
  type SubscribeWish,
  whereverItIs
} from '../../kernel/index.ts'
import { atOwner, type FindOwner, type Place, type Unreached } from './owner.ts'
import { ClientRemote } from './remote.ts'

/** Nobody waits for a server that could not be reached. */
type Gone = (cause: Unreached) => boolean

export class ClientSessions implements Remote {
  readonly #client: RemoteClient
  readonly #ports: RemotePorts
  readonly #find: FindOwner
  readonly #there: ClientRemote

  constructor(client: RemoteClient, ports: RemotePorts, find: FindOwner) {
    this.#find = find
    this.#client = client
    this.#ports = ports
    this.#there = new ClientRemote(client, {
      filterField: ports.filterField,
      once: ports.once,
      resync: ports.resync,
      subscribe: async (session_id, wish, wanted) => {
        const subscribed = await this.#attempt(session_id, wish, cause => cause.silent || !wanted())
        return { ...subscribed, mark: subscribed.mark ?? ports.written(session_id) }
      }
    })
  }

  has(session_id: string): boolean {
    return this.#there.has(session_id)
  }

  sessions(): string[] {
    return this.#there.sessions()
  }

  follow(session_id: string, wish: SubscribeWish): void {
    this.#there.follow(session_id, wish)
  }

  offer(event: SharedEvent): void {
    this.#there.offer(event)
  }

  close(): void {
    this.#there.close()
  }

  async unsubscribe(session_id: string): Promise<void> {
    await this.#there.unsubscribe(session_id)
  }

  async ask(session_id: string, frame: RemoteFrame): Promise<RemoteAck | undefined> {
    await this.#catchUp(session_id)
    return await this.#elsewhere(session_id, place => this.#there.ask(place, session_id, frame))
  }

  async subscribe(session_id: string, asked: SubscribeWish, orLater: boolean): Promise<Subscribed> {
    const before = await this.#there.stop(session_id)
    const { filter = before?.filter, cursor = before?.cursor } = asked
    return await this.#instead(session_id, before, { filter, cursor, more: before?.more, moved: before?.moved }, orLater)
  }

  /** What the client waits for of a session is subscribed before it asks for more of it, as `follow` does. Rejects with OwnerSilent. */
  async #catchUp(session_id: string): Promise<void> {
    const before = await this.#there.stop(session_id)
    if (!before) return
    const from = before.cursor?.seq
    const { found, resync, mark = this.#ports.written(session_id) } = await this.#instead(session_id, before, before, false)
    // Text may have streamed between the events that were missed.
    if (found && !resync && mark && mark.seq !== from) this.#ports.resync(session_id, 'buffer_overflow', mark)
  }

  /** Subscribes instead of following. */
  async #instead(session_id: string, before: SubscribeWish | undefined, wish: SubscribeWish, orLater: boolean): Promise<Subscribed> {
    try {
      const subscribed = await this.#attempt(session_id, wish, cause => orLater && cause.silent)
      if (!wish.more || !subscribed.found || subscribed.resync) return subscribed
      this.#ports.resync(session_id, 'buffer_overflow', subscribed.mark)
      return { ...subscribed, resync: true }
    } catch (err) {
      if (!(orLater || before) || !AppError.is(err) || err.spec !== OwnerSilent) throw err
      this.follow(session_id, wish)
      if (!orLater) throw err
      return { found: true, resync: false, later: true }
    } finally {
      if (before?.cursor) this.#client.giveUp(session_id)
    }
  }

  /** Subscribes beside what the client follows. `wish` is what is left when it rejects with OwnerSilent, soon when `gone` says so. */
  #attempt(session_id: string, wish: SubscribeWish, gone: Gone): Promise<Subscribed> {
    const subscribe = (place: Place) => {
      if (this.#client.subscribed(session_id)) this.#ports.leave(session_id)
      return this.#there.subscribe(place, session_id, wish)
    }
    return whereverItIs(async () => (await this.#elsewhere(session_id, subscribe, gone)) ?? (await this.#here(session_id, wish)))
  }

  async #here(session_id: string, wish: SubscribeWish): Promise<Subscribed> {
    const over = this.has(session_id) ? await this.#there.handOver(session_id, wish) : undefined
    try {
      return await this.#ports.subscribe(session_id, wish)
    } finally {
      over?.()
    }
  }

  /** Does something where the session is, when that is another server; undefined: it is here. Rejects with OwnerSilent. */
  #elsewhere<T>(session_id: string, work: (place: Place) => Promise<T>, gone?: Gone): Promise<T | undefined> {
    const isVain = (cause: Unreached) => !this.#client.open || gone?.(cause) === true
    return atOwner(() => this.#find(session_id), isVain, work)
  }
}
