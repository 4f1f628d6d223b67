/** Who receives an event: everyone, or the subscribers of its session, minus filters and suppression. */
import type { SharedEvent } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import type { ClientConnection } from './connection.ts'
import { asksResync, type EventFrame, onceKey, reachesEveryone, resyncFrame } from './event-frame.ts'

export class Fanout {
  readonly #env: Environment
  /** All that are open, oldest first; who connects and goes puts itself there and takes itself away. */
  readonly connections = new Set<ClientConnection>()
  readonly #subscribers = new Map<string, Set<ClientConnection>>()
  /** Who passes on what reaches everyone. */
  readonly #shared = new Set<(event: SharedEvent) => void>()

  constructor(env: Environment) {
    this.#env = env
  }

  /** From now on the connection gets the session's events; what was handed over before does not reach it. */
  subscribe(session_id: string, connection: ClientConnection): void {
    const receivers = this.#subscribers.get(session_id) ?? new Set()
    this.#subscribers.set(session_id, receivers.add(connection))
  }

  unsubscribe(session_id: string, connection: ClientConnection): void {
    const receivers = this.#subscribers.get(session_id)
    receivers?.delete(connection)
    if (receivers?.size === 0) this.#subscribers.delete(session_id)
  }

  subscribers(session_id: string): number {
    return this.#subscribers.get(session_id)?.size ?? 0
  }

  followed(): string[] {
    return [...this.#subscribers.keys()]
  }

  /** Takes a frame from its stream, in order. What is written in one go leaves together (`SocketTransport.send`). */
  deliver(frame: EventFrame): void {
    const { spec, session_id, subject, only, wire } = frame
    if (reachesEveryone(spec) && !only) {
      this.#toEveryone(frame)
      return
    }
    const resync =
      asksResync(spec, wire) && Buffer.from(JSON.stringify(resyncFrame(this.#env.now(), session_id, 'session_recreated', frame)))
    for (const connection of this.#subscribers.get(session_id) ?? []) {
      if (only && connection !== only) continue
      if (!spec.unfiltered && !connection.wants(session_id, spec.type, subject)) continue
      connection.write(wire)
      if (resync) connection.write(resync)
    }
  }

  #toEveryone({ spec, session_id, seq, wire, foreign }: EventFrame): void {
    if (this.connections.size === 0 && this.#shared.size === 0) return
    const { scope, type, durable } = spec
    const once = onceKey(spec, session_id, seq)
    const event: SharedEvent = { scope, type, session_id, seq, durable, ...(once && { once }), frame: wire }
    for (const connection of this.connections) {
      if (!connection.relayed) connection.broadcast(event)
      else if (connection.subscribed(session_id)) connection.tell(event)
    }
    if (foreign || spec.perServer) return
    for (const tell of this.#shared) tell(event)
  }

  /** See `Relays.onShared`. */
  onShared(listener: (event: SharedEvent) => void): () => void {
    this.#shared.add(listener)
    return () => void this.#shared.delete(listener)
  }

  /** A session event of another server that reaches everyone. */
  offer(event: SharedEvent): void {
    for (const connection of this.connections) if (!connection.relayed) connection.broadcast(event, true)
  }
}
