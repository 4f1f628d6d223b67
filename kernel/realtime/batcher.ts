/** Batching of one stream's session events: adjacent text frames become one, and every frame is serialised once for all sockets. */
import { type EventFrame, frameLine, wireBytes } from './event-frame.ts'

const windowMs = 16
const maxFrames = 64
/** Flushes that need not wait within one window: a quiet stream is never delayed, a busy one is batched. */
const quickFlushes = 4

interface Item {
  readonly frame: EventFrame
  /** Concatenated text of merged frames. */
  text: string | undefined
}

/** A frame and its bytes, ready to be sent. */
export interface Outgoing {
  readonly frame: EventFrame
  readonly bytes: Buffer
}

export class Lane {
  readonly #send: (batch: readonly Outgoing[]) => void
  readonly #changed: (lane: Lane, waiting: boolean) => void
  #items: Item[] = []
  #window: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined
  #quick = 0

  /** `changed` tells whether frames are waiting, so that the owner can flush only lanes that need it. */
  constructor(send: (batch: readonly Outgoing[]) => void, changed: (lane: Lane, waiting: boolean) => void) {
    this.#send = send
    this.#changed = changed
  }

  /** Queues a frame. It leaves at the end of this tick, or within 16 ms when the stream is busy, or with the 64th frame. */
  push(frame: EventFrame): void {
    if (!this.#merge(frame)) this.#items.push({ frame, text: undefined })
    if (this.#items.length === 1) this.#changed(this, true)
    if (this.#items.length >= maxFrames) this.flush()
    else if (!this.#immediate && this.#quick < quickFlushes) this.#immediate = setImmediate(() => this.flush())
  }

  /** Sends what is queued, now. */
  flush(): void {
    clearImmediate(this.#immediate)
    this.#immediate = undefined
    if (this.#items.length === 0) return
    const items = this.#items
    this.#items = []
    this.#changed(this, false)
    this.#quick++
    this.#window ??= setTimeout(() => this.#reopen(), windowMs)
    this.#send(items.map(toBytes))
  }

  close(): void {
    clearTimeout(this.#window)
    clearImmediate(this.#immediate)
  }

  #reopen(): void {
    this.#window = undefined
    this.#quick = 0
    this.flush()
  }

  /** Adds a text frame to the one before it when the spec allows that and no text is missing between them. */
  #merge(frame: EventFrame): boolean {
    const last = this.#items.at(-1)
    const { spec, fields, agent_id, offset } = frame.draft
    const rule = spec.merge
    if (!last || !rule || frame.line || last.frame.line) return false
    const first = last.frame.draft
    if (first.spec !== spec || first.agent_id !== agent_id || last.frame.epoch !== frame.epoch || last.frame.seq !== frame.seq) return false
    if (rule.by.some(key => first.fields[key] !== fields[key])) return false
    const before = last.text ?? first.fields[rule.append]
    const added = fields[rule.append]
    if (typeof before !== 'string' || typeof added !== 'string') return false
    if (offset === undefined ? first.offset !== undefined : first.offset === undefined || offset !== first.offset + before.length)
      return false
    last.text = before + added
    return true
  }
}

function toBytes({ frame, text }: Item): Outgoing {
  return { frame, bytes: wireBytes(frame.line ?? lateLine(frame, text)) }
}

function lateLine({ draft, seq, epoch }: EventFrame, text: string | undefined): Buffer {
  const append = draft.spec.merge?.append
  const merged = text === undefined || append === undefined ? undefined : JSON.stringify({ ...draft.fields, [append]: text })
  return frameLine(draft, seq, epoch, merged)
}
