/** Who receives an event: everyone, or the subscribers of its session, batched, minus filters and suppression. */
import type { SharedEvent } from '../elsewhere.ts'
import type { Environment } from '../environment.ts'
import type { ClientConnection } from './connection.ts'
import { type EventFrame, frameLine, type MergeableFrame, onceKey, resyncFrame } from './event-frame.ts'
import type { Connection } from './types.ts'

const windowMs = 16
const maxFrames = 64
/** Flushes that need not wait within one window: a quiet stream is never delayed, a busy one is batched. */
const quickFlushes = 4

export class Fanout {
  readonly #env: Environment
  /** All that are open, oldest first; who connects and goes puts itself there and takes itself away. */
  readonly connections = new Set<ClientConnection>()
  readonly #audiences = new Map<string, Audience>()
  /** Audiences that hold frames back. */
  readonly #waiting = new Set<Audience>()
  /** Who passes on what reaches everyone. */
  readonly #shared = new Set<(event: SharedEvent) => void>()

  constructor(env: Environment) {
    this.#env = env
  }

  /** From now on the connection gets the session's events; what was handed over before does not reach it. */
  subscribe(session_id: string, connection: ClientConnection): void {
    let audience = this.#audiences.get(session_id)
    if (!audience) {
      audience = new Audience(this.#env, session_id, this.#waiting)
      this.#audiences.set(session_id, audience)
    }
    audience.flush()
    audience.receivers.add(connection)
  }

  /** What was handed over before still reaches the connection. */
  unsubscribe(session_id: string, connection: ClientConnection): void {
    const audience = this.#audiences.get(session_id)
    if (!audience?.receivers.has(connection)) return
    audience.flush()
    audience.receivers.delete(connection)
    if (audience.receivers.size === 0) this.end(session_id)
  }

  /** Ends all subscriptions of a session. */
  end(session_id: string): void {
    this.#audiences.get(session_id)?.close()
    this.#audiences.delete(session_id)
  }

  subscribers(session_id: string): number {
    return this.#audiences.get(session_id)?.receivers.size ?? 0
  }

  /** Takes a frame from its stream, in order. */
  deliver(frame: EventFrame): void {
    if (frame.only) this.#toOne(frame, frame.only)
    else if (!frame.everyone) this.#audiences.get(frame.session_id)?.push(frame)
    else if (this.connections.size > 0 || this.#shared.size > 0) this.#toEveryone(frame)
  }

  #toOne(frame: EventFrame, only: Connection): void {
    const audience = this.#audiences.get(frame.session_id)
    const receiver = only as ClientConnection // the only class of connections
    if (!audience?.receivers.has(receiver) || !receiver.wants(frame.session_id, frame.spec.type, frame.subject)) return
    audience.flush()
    receiver.write(frame.wire ?? alone(frame))
  }

  #toEveryone(frame: EventFrame): void {
    this.flush()
    const { spec, session_id, seq } = frame
    const { scope, type, durable } = spec
    const once = onceKey(spec, session_id, seq)
    const event: SharedEvent = { scope, type, session_id, seq, durable, ...(once && { once }), frame: frame.wire ?? alone(frame) }
    for (const connection of [...this.connections]) {
      if (!connection.relayed) connection.broadcast(event)
      else if (connection.subscribed(session_id)) connection.tell(event)
    }
    if (frame.foreign || spec.perServer) return
    for (const tell of this.#shared) tell(event)
  }

  /** See `Relays.onShared`. */
  onShared(listener: (event: SharedEvent) => void): () => void {
    this.#shared.add(listener)
    return () => void this.#shared.delete(listener)
  }

  /** A session event of another server that reaches everyone. */
  offer(event: SharedEvent): void {
    this.flush()
    for (const connection of [...this.connections]) if (!connection.relayed) connection.broadcast(event, true)
  }

  /** Sends what waits for its batch, of a session or of all. */
  flush(session_id?: string): void {
    if (session_id !== undefined) this.#audiences.get(session_id)?.flush()
    else for (const audience of [...this.#waiting]) audience.flush()
  }
}

/** Adjacent frames that go out together: one frame, or several that merge into one. */
interface Run {
  readonly frames: [EventFrame, ...EventFrame[]]
  /** Length of the text of all of them; only of mergeable ones. */
  length: number
}

type MergeableRun = readonly [MergeableFrame, ...MergeableFrame[]]

/** Subscribers of one session: adjacent text frames become one, and every frame is serialised once for all of them. */
class Audience {
  readonly receivers = new Set<ClientConnection>()
  readonly #env: Environment
  readonly #session_id: string
  readonly #waiting: Set<Audience>
  #runs: Run[] = []
  #window: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined
  #quick = 0

  /** Puts itself into `waiting` while it holds frames back. */
  constructor(env: Environment, session_id: string, waiting: Set<Audience>) {
    this.#env = env
    this.#session_id = session_id
    this.#waiting = waiting
  }

  /**
   * Queues a frame. It leaves with those that were written to disk together with it; a volatile one at the end of this tick, or within 16 ms when the
   * stream is busy, or with the 64th frame.
   */
  push(frame: EventFrame): void {
    if (frame.wire || !this.#merge(frame)) this.#runs.push({ frames: [frame], length: -1 })
    if (this.#runs.length === 1) this.#waiting.add(this)
    if (this.#runs.length >= maxFrames) this.flush()
    else if (!this.#immediate && this.#quick < quickFlushes) this.#immediate = setImmediate(() => this.flush())
  }

  /** Sends what is queued, now. */
  flush(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    if (this.#runs.length === 0) return
    const runs = this.#runs
    this.#runs = []
    this.#waiting.delete(this)
    this.#quick++
    this.#window ??= setTimeout(() => {
      this.#window = undefined
      this.#quick = 0
      this.flush()
    }, windowMs)
    const batch: { readonly frame: EventFrame; readonly bytes: Buffer }[] = []
    for (const { frames } of runs) {
      const [frame] = frames
      if (frame.wire) batch.push({ frame, bytes: frame.wire })
      else for (const bytes of this.#joined(frames as MergeableRun)) batch.push({ frame, bytes }) // only those merge
    }
    for (const connection of [...this.receivers]) {
      if (batch.length > 1) connection.cork()
      for (const { frame, bytes } of batch) {
        if (!frame.spec.unfiltered && !connection.wants(this.#session_id, frame.spec.type, frame.subject)) continue
        connection.write(bytes)
        if (frame.spec.resync) connection.write(this.#resync(frame))
      }
      if (batch.length > 1) connection.uncork()
    }
  }

  #resync(frame: EventFrame): Buffer {
    return Buffer.from(JSON.stringify(resyncFrame(this.#env.now(), this.#session_id, 'session_recreated', frame)))
  }

  close(): void {
    this.flush()
    clearTimeout(this.#window)
  }

  /** Several frames as one; where that fails (the payload has changed since and is no JSON any more), each for itself. */
  #joined(frames: MergeableRun): Buffer[] {
    const [{ draft, seq, epoch }] = frames
    if (frames.length === 1) return [alone(frames[0])]
    const append = draft.spec.merge?.append ?? ''
    const join = () => {
      const text = frames.map(frame => frame.draft.fields[append]).join('')
      return [frameLine(draft, seq, epoch, JSON.stringify({ ...draft.fields, [append]: text })).subarray(0, -1)]
    }
    return this.#env.guard.call(draft.pack, `merge rule of ${draft.spec.type}`, join, undefined) ?? frames.map(alone)
  }

  /** Adds a text frame to the run before it when the spec allows that and no text is missing between them. */
  #merge(frame: MergeableFrame): boolean {
    const last = this.#runs.at(-1)
    const first = last?.frames[0]
    if (!last || !first || first.wire) return false
    const { spec, subject, seq, epoch } = frame
    const rule = spec.merge
    if (!rule || first.spec !== spec || first.subject !== subject || first.epoch !== epoch || first.seq !== seq) return false
    const { fields, offset } = frame.draft
    const begin = first.draft
    if (rule.by.some(key => begin.fields[key] !== fields[key])) return false
    const before = begin.fields[rule.append]
    const added = fields[rule.append]
    if (typeof before !== 'string' || typeof added !== 'string') return false
    const length = last.length < 0 ? before.length : last.length
    if (offset === undefined ? begin.offset !== undefined : begin.offset === undefined || offset !== begin.offset + length) return false
    last.frames.push(frame)
    last.length = length + added.length
    return true
  }
}

function alone({ draft, seq, epoch }: MergeableFrame): Buffer {
  return frameLine(draft, seq, epoch, draft.text).subarray(0, -1)
}
