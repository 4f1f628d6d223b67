/** One watched session: its position, what waits while it is being subscribed, and streamed text without gaps and repetitions. */
import type { Snapshot } from './rest.ts'
import type { Events } from './types.ts'

/** The last durable event that was seen of a session. */
export interface Cursor {
  readonly seq: number
  readonly epoch: string
}

/** An event frame of a session: everything but what has the scope of the server. */
export type SessionEvent = Exclude<Events[keyof Events], { session_id: '__global__' }>

export interface WatchOptions {
  /** Where to begin: with what comes now (default), with a snapshot, or after a position that was seen before. */
  readonly from?: 'now' | 'snapshot' | Cursor
  /** Agents whose events are wanted; default all. */
  readonly agents?: readonly string[]
  /** Every event once and in order; deltas of text join without gap. */
  onEvent(event: SessionEvent): void
  /**
   * State to go on from: at the beginning with `from: 'snapshot'`, and whenever missed events or text cannot be had any more. What
   * `onEvent` tells afterwards comes after it. Without this, missed text stays missed.
   */
  onSnapshot?(snapshot: Snapshot): void
}

export interface Watch {
  readonly session_id: string
  /** Resolves when events flow; rejects when the session does not exist or the stream was closed. */
  readonly ready: Promise<void>
  /** Position to go on from in another process. */
  readonly cursor: Cursor | undefined
  /** Unsubscribes. */
  close(): void
}

type Delta = Events['assistant.delta'] | Events['thinking.delta']

/** How much of a text has been told. */
interface Told {
  readonly turn: number
  length: number
  /** A step began: where offsets count per step, the next text begins at 0. */
  fresh: boolean
}

export class WatchState {
  readonly options: WatchOptions
  cursor: Cursor | undefined
  needsSnapshot: boolean
  /** Frames that came while the subscription is made; undefined while events flow. */
  #pending: SessionEvent[] | undefined
  /** Agents in a turn. */
  readonly #open = new Set<string>()
  readonly #told = new Map<string, Told>()
  /** Text of a step that is over was given up; a snapshot at the end of the turn has it. */
  #lacking = false
  /** Text that is missing now is made up for at the end of the turn. */
  #asItIs = false
  #closed = false

  constructor(options: WatchOptions) {
    this.options = options
    this.needsSnapshot = options.from === 'snapshot'
    this.cursor = typeof options.from === 'object' ? options.from : undefined
  }

  /** From here on frames wait until `join`. */
  hold(): void {
    this.#pending ??= []
  }

  /** The connection is gone: what a turn streams meanwhile is in no replay. */
  lost(): void {
    this.#pending = []
    if (this.#open.size > 0 && this.options.onSnapshot) this.needsSnapshot = true
  }

  /** Nothing is told any more, also of what waits. */
  close(): void {
    this.#closed = true
  }

  get joining(): boolean {
    return this.#pending !== undefined
  }

  /** Takes a snapshot as the state to go on from. What was streamed before is in it; of text that waits the offset says whether it is. */
  rebuild(snapshot: Snapshot): void {
    this.needsSnapshot = false
    this.#lacking = false
    this.cursor = { seq: snapshot.as_of_seq, epoch: snapshot.epoch }
    this.#pending = this.#pending?.filter(frame => !isVolatile(frame) || (isMainText(frame) && frame.epoch === snapshot.epoch))
    this.#told.clear()
    this.#open.clear()
    const open = snapshot.in_flight_turn
    if (open) {
      this.#open.add('main')
      this.#tell('main assistant.delta', open.turn_id, open.assistant_offset + open.assistant_text.length)
      this.#tell('main thinking.delta', open.turn_id, open.thinking_offset + open.thinking_text.length)
    }
    this.options.onSnapshot?.(snapshot)
  }

  /**
   * The subscription stands: tells what came meanwhile. False when text is missing (with `asItIs` that is made up for at the end of the
   * turn); frames go on waiting then. `cursor`: where a watch without one begins.
   */
  join(cursor: Cursor | undefined, asItIs: boolean): boolean {
    const ordered = inOrder(this.#pending ?? [])
    this.#pending = undefined
    this.cursor ??= cursor
    this.#asItIs = asItIs
    const missing = ordered.findIndex(frame => !this.take(frame))
    this.#asItIs = false
    if (missing >= 0) this.#pending = ordered.slice(missing)
    return missing < 0
  }

  /**
   * Tells an event, or keeps it while the subscription is made. False when text before it is missing, then or in the turn that it ends: a
   * snapshot is needed.
   */
  take(frame: SessionEvent): boolean {
    if (this.#closed) return true
    if (this.#pending) {
      this.#pending.push(frame)
      return true
    }
    // A slow connection brings it behind a snapshot that has it. A volatile frame has the number of the durable event before it.
    if (isVolatile(frame) && this.cursor?.epoch === frame.epoch && frame.seq < this.cursor.seq) return true
    if (isText(frame)) return this.#text(frame)
    if (!isVolatile(frame)) {
      if (this.cursor && frame.epoch === this.cursor.epoch && frame.seq <= this.cursor.seq) return true
      if (endsText(frame) && !this.#ended(frame)) return false
      this.cursor = { seq: frame.seq, epoch: frame.epoch }
    }
    if (frame.type === 'turn.started') this.#begin(frame.payload.agentId, frame.payload.turnId)
    if (frame.type === 'turn.ended') this.#open.delete(frame.payload.agentId)
    if (frame.type === 'turn.step.started') {
      for (const kind of textKinds) {
        const told = this.#told.get(`${frame.payload.agentId} ${kind}`)
        if (told) told.fresh = true
      }
    }
    this.options.onEvent(frame)
    return !(this.#lacking && frame.type === 'turn.ended')
  }

  #begin(agent: string, turn: number): void {
    this.#open.add(agent)
    for (const kind of textKinds) this.#tell(`${agent} ${kind}`, turn, 0)
  }

  #tell(key: string, turn: number, length: number): void {
    this.#told.set(key, { turn, length, fresh: false })
  }

  /** False when the texts that end here are not whole. */
  #ended({ payload }: Extract<SessionEvent, { type: TextEnd }>): boolean {
    const ends = { 'assistant.delta': payload.assistantEnd, 'thinking.delta': payload.thinkingEnd }
    return textKinds.every(kind => {
      const end = ends[kind]
      if (end === undefined) return true
      // Whoever knows nothing of the turn misses all of it.
      const told = this.#toldOf(`${payload.agentId} ${kind}`, payload.turnId, 0)
      return end <= told.length || this.#goesOn(told, end)
    })
  }

  #toldOf(key: string, turn: number, length: number): Told {
    const before = this.#told.get(key)
    const told = before?.turn === turn ? before : { turn, length, fresh: false }
    this.#told.set(key, told)
    return told
  }

  /** Text up to `at` is missing. True: a snapshot at the end of the turn makes up for it, or nobody takes snapshots. */
  #goesOn(told: Told, at: number): boolean {
    if (this.options.onSnapshot && !this.#lacking) {
      if (!this.#asItIs) return false
      this.#lacking = true
    }
    told.length = at
    return true
  }

  #text(frame: Delta): boolean {
    const { type, payload, offset } = frame
    const told = this.#toldOf(`${payload.agentId} ${type}`, payload.turnId, offset ?? 0)
    const at = offset ?? told.length
    if (told.fresh && at === 0) told.length = 0
    if (at > told.length && !this.#goesOn(told, at)) return false
    const delta = payload.delta.slice(told.length - at)
    if (delta === '') return true
    told.fresh = false
    told.length += delta.length
    this.options.onEvent({ ...frame, offset: told.length - delta.length, payload: { ...payload, delta } } as SessionEvent)
    return true
  }
}

const textKinds = ['assistant.delta', 'thinking.delta'] as const

/** Behind the texts of a step: it says where they end. */
function endsText(frame: SessionEvent): frame is Extract<SessionEvent, { type: TextEnd }> {
  return frame.type === 'tool.call.started' || frame.type === 'turn.step.completed' || frame.type === 'turn.step.interrupted'
}
type TextEnd = 'tool.call.started' | 'turn.step.completed' | 'turn.step.interrupted'

/**
 * An event that reaches everyone, or one of an earlier subscription of the same connection, may have come before the replay in which it comes again;
 * so may text that follows it. A volatile frame has the number of the durable event before it.
 */
function inOrder(frames: readonly SessionEvent[]): SessionEvent[] {
  const epochs = [...new Set(frames.map(frame => frame.epoch))]
  const rank = (frame: SessionEvent) => (isVolatile(frame) ? 1 : 0)
  return [...frames].sort((a, b) => epochs.indexOf(a.epoch) - epochs.indexOf(b.epoch) || a.seq - b.seq || rank(a) - rank(b))
}

function isText(frame: SessionEvent): frame is Delta {
  return frame.type === 'assistant.delta' || frame.type === 'thinking.delta'
}

/** Text whose length the snapshot tells. */
function isMainText(frame: SessionEvent): boolean {
  return isText(frame) && frame.payload.agentId === 'main' && frame.offset !== undefined
}

function isVolatile(frame: SessionEvent): boolean {
  return 'volatile' in frame && frame.volatile === true
}
