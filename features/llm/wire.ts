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
 * From which message on thinking goes back: 0 (all), or with `thinking_keep = "off"` the one after the last user message, because
 * protocols that sign thinking want it back while its tool calls are being answered.
 */
export function thinkingFrom({ model, messages }: LlmRequest): number {
  return model.thinking_keep === 'off' ? messages.findLastIndex(isUser) + 1 : 0
}

const isUser = (message: LlmMessage): boolean => message.role === 'user'

/** A count of tokens as providers report it; 0 for anything that is none. */
export function tokenCount(value: unknown): number {
  return typeof value === 'number' && Number.isFinite(value) && value > 0 ? Math.floor(value) : 0
}
