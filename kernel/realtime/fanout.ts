/** Who receives an event: everyone, or the subscribers of its session, minus filters and suppression. */

import { Lane, type Outgoing } from './batcher.ts'
import { type EventFrame, frameLine, reachesEveryone, wireBytes } from './event-frame.ts'

/** A connection as the fan-out sees it. */
export interface Receiver {
  /** Queues bytes of one text message. Never throws; a receiver that is too slow closes itself. */
  write(bytes: Buffer): void
  /** Holds the socket's packets back until `uncork`, so that a batch leaves together. */
  cork(): void
  uncork(): void
  /** Does this receiver want an event of the session? Asked for events that can be filtered. */
  wants(session_id: string, type: string, agent_id: string): boolean
  /** True while a replay is due that will bring the session's durable events: none may reach the receiver before it. */
  awaitsReplay(session_id: string): boolean
}

interface Audience {
  readonly lane: Lane
  readonly receivers: Set<Receiver>
}

export class Fanout {
  readonly #everyone = new Set<Receiver>()
  readonly #audiences = new Map<string, Audience>()
  readonly #waiting = new Set<Lane>()

  add(receiver: Receiver): void {
    this.#everyone.add(receiver)
  }

  remove(receiver: Receiver): void {
    this.#everyone.delete(receiver)
  }

  /** From now on the receiver gets the session's events; what was handed over before does not reach it. */
  subscribe(session_id: string, receiver: Receiver): void {
    let audience = this.#audiences.get(session_id)
    if (!audience) {
      const receivers = new Set<Receiver>()
      const lane = new Lane(
        batch => sendBatch(session_id, batch, receivers),
        (changed, waiting) => (waiting ? this.#waiting.add(changed) : this.#waiting.delete(changed))
      )
      audience = { lane, receivers }
      this.#audiences.set(session_id, audience)
    }
    audience.lane.flush()
    audience.receivers.add(receiver)
  }

  /** What was handed over before still reaches the receiver. */
  unsubscribe(session_id: string, receiver: Receiver): void {
    const audience = this.#audiences.get(session_id)
    if (!audience?.receivers.has(receiver)) return
    audience.lane.flush()
    audience.receivers.delete(receiver)
    if (audience.receivers.size === 0) this.#end(session_id, audience)
  }

  /** Ends all subscriptions of a session. */
  end(session_id: string): void {
    const audience = this.#audiences.get(session_id)
    if (audience) this.#end(session_id, audience)
  }

  subscribers(session_id: string): number {
    return this.#audiences.get(session_id)?.receivers.size ?? 0
  }

  /** Takes a frame from its stream, in order. */
  deliver(frame: EventFrame): void {
    const { draft } = frame
    if (!reachesEveryone(draft.spec)) {
      this.#audiences.get(draft.session_id)?.lane.push(frame)
      return
    }
    if (this.#everyone.size === 0) return
    this.flush()
    const bytes = wireBytes(frame.line ?? frameLine(draft, frame.seq, frame.epoch))
    for (const receiver of [...this.#everyone]) {
      if (draft.spec.durable && receiver.awaitsReplay(draft.session_id)) continue
      receiver.write(bytes)
    }
  }

  /** Sends what the lanes of a session, or all lanes, still hold. */
  flush(session_id?: string): void {
    if (session_id !== undefined) this.#audiences.get(session_id)?.lane.flush()
    else for (const lane of [...this.#waiting]) lane.flush()
  }

  #end(session_id: string, audience: Audience): void {
    audience.lane.flush()
    audience.lane.close()
    this.#waiting.delete(audience.lane)
    this.#audiences.delete(session_id)
  }
}

function sendBatch(session_id: string, batch: readonly Outgoing[], receivers: ReadonlySet<Receiver>): void {
  for (const receiver of [...receivers]) {
    receiver.cork()
    for (const { frame, bytes } of batch) {
      const { spec, agent_id } = frame.draft
      if (spec.unfiltered || receiver.wants(session_id, spec.type, agent_id)) receiver.write(bytes)
    }
    receiver.uncork()
  }
}
