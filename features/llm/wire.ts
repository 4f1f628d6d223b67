/** What every adapter does with a message on its way to the wire: ids, arguments, texts, and which thinking still goes back. */
import { createHash } from 'node:crypto'
import type { LlmContent, LlmMessage, LlmRequest } from './service.ts'

const ID_LENGTH = 64

/** Tool-call ids in the alphabet and length that every upstream takes (64 of `[a-zA-Z0-9_-]`); different ids stay different. */
export class CallIds {
  readonly #given = new Map<string, string>()
  readonly #taken = new Set<string>()

  of(id: string): string {
    const known = this.#given.get(id)
    if (known !== undefined) return known
    let wire = id.replace(/[^a-zA-Z0-9_-]/g, '_').slice(0, ID_LENGTH)
    if (wire === '' || this.#taken.has(wire))
      wire = `${wire.slice(0, ID_LENGTH - 13)}_${createHash('sha256').update(id).digest('hex').slice(0, 12)}`
    this.#given.set(id, wire)
    this.#taken.add(wire)
    return wire
  }
}

/** Texts of a message, joined. */
export function textOf(parts: readonly LlmContent[]): string {
  return parts.map(part => (part.type === 'text' ? part.text : '')).join('')
}

export function isImage(part: LlmContent): boolean {
  return part.type === 'image' || part.type === 'image_url'
}

/** Tool arguments as an object; `{}` for anything else: one broken call must not spoil the rest of the session. */
export function argumentsObject(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
  } catch {
    return {} // the model wrote no JSON: the tool's result says so already
  }
}

/**
 * From which message on thinking goes back: 0 (all), or with `thinking_keep = "off"` the one after the prompt of the turn, because
 * protocols that sign thinking want it back while its tool calls are being answered. What is said to a turn that runs (reminders, steered
 * prompts) follows tool results and begins no other turn.
 */
export function thinkingFrom({ model, messages }: LlmRequest): number {
  if (model.thinking_keep !== 'off') return 0
  const begins = (message: LlmMessage, at: number) => message.role === 'user' && messages[before(messages, at)]?.role !== 'tool'
  return messages.findLastIndex(begins) + 1
}

/** The message in front of a block of user messages, from any of them. */
function before(messages: readonly LlmMessage[], at: number): number {
  while (messages[at]?.role === 'user') at--
  return at
}

/** Ids of the tool calls of one response: each is given once, so that results find their call. */
export class ResponseIds {
  readonly #taken = new Set<string>()
  readonly #newId: () => string

  constructor(newId: () => string) {
    this.#newId = newId
  }

  get count(): number {
    return this.#taken.size
  }

  /** The provider's id, or a new one where it is missing or repeats another. */
  take(given: string): string {
    const id = given === '' || this.#taken.has(given) ? this.#newId() : given
    this.#taken.add(id)
    return id
  }
}

/** A count of tokens as providers report it; 0 for anything that is none. */
export function tokenCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}

/** A value from the wire as an object; `{}` for anything else. Decoders look into fields that a server may have filled with anything. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

/** A value from the wire as a list; empty for anything else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A value from the wire as a text; empty for anything else. */
export function stringOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
