/**
 * The text of a large answer, made in slices. What makes an answer large is a few long texts (a file, the output of a tool): they never change, so
 * that they can be encoded bit by bit, with other work in between. Everything else is taken at once: an answer says what was true at one moment.
 */
import { yieldToLoop } from '../lifecycle/wait.ts'

/** Texts from here on count, characters. */
const longChars = 4096
/** So many characters in long texts make an answer large. */
const largeChars = 512 * 1024
/** Characters that are encoded without a pause. */
const sliceChars = 256 * 1024

/** A text that stays in the parts in which it was made: one of them all would be copied in one go when it is first looked at. */
class PartedText {
  readonly parts: readonly string[]
  readonly length: number

  constructor(parts: readonly string[]) {
    this.parts = parts
    this.length = parts.reduce((sum, part) => sum + part.length, 0)
  }

  toJSON(): string {
    return this.parts.join('')
  }
}

/** For a text in what a handler answers: its parts, none of which ends within a character. Of use from some hundred thousand characters on. */
export function partedText(parts: readonly string[]): string {
  return parts.length > 1 ? (new PartedText(parts) as unknown as string) : (parts[0] ?? '')
}

/** An answer's JSON, whole or in parts. */
export type AnswerText = string | readonly Buffer[]

export const wholeText = (text: AnswerText): string => (typeof text === 'string' ? text : Buffer.concat(text).toString())

/** Whether an answer is to be made by `largeJson`; it costs a fraction of making it. */
export function isLarge(value: unknown): boolean {
  return longTexts(value, 0) >= largeChars
}

/** As `Buffer.from(JSON.stringify(value))`, in parts. The value is not looked at any more when this returns its promise. */
export async function largeJson(value: unknown): Promise<Buffer[]> {
  const parts: Buffer[] = []
  let since = 0
  for (const piece of piecesOf(value)) {
    if (typeof piece === 'string') {
      parts.push(Buffer.from(piece))
      continue
    }
    const { text } = piece
    for (let at = 0, end = 0; at < text.length; at = end) {
      end = Math.min(at + sliceChars, text.length)
      if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end-- // a pair stays together
      parts.push(Buffer.from(JSON.stringify(text.slice(at, end)).slice(1, -1)))
      since += end - at
      if (since < sliceChars) continue
      since = 0
      await yieldToLoop()
    }
  }
  return parts
}

const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff

/** Characters in the long texts of a value. What is nested deeper than any answer counts as short. */
function longTexts(value: unknown, depth: number): number {
  if (typeof value === 'string') return value.length >= longChars ? value.length : 0
  if (typeof value !== 'object' || value === null || depth > 40) return 0
  if (value instanceof PartedText) return value.length
  let sum = 0
  if (Array.isArray(value)) for (const item of value) sum += longTexts(item, depth + 1)
  else for (const key in value) sum += longTexts((value as Record<string, unknown>)[key], depth + 1)
  return sum
}

type Piece = string | { readonly text: string }

/** A value as JSON, its long texts left to be encoded between their quotes. */
function piecesOf(value: unknown): Piece[] {
  const pieces: Piece[] = []
  let short = ''
  const walk = (node: unknown, depth: number): void => {
    if (node instanceof PartedText) {
      pieces.push(`${short}"`, ...node.parts.map(text => ({ text })))
      short = '"'
    } else if (longTexts(node, depth) === 0 || typeof (node as { toJSON?: unknown }).toJSON === 'function') {
      short += JSON.stringify(node) ?? 'null'
    } else if (typeof node === 'string') {
      pieces.push(`${short}"`, { text: node })
      short = '"'
    } else if (Array.isArray(node)) {
      for (const [at, item] of node.entries()) {
        short += at === 0 ? '[' : ','
        walk(item, depth + 1)
      }
      short += ']'
    } else {
      let begin = '{'
      for (const [key, item] of Object.entries(node as object)) {
        if (item === undefined || typeof item === 'function' || typeof item === 'symbol') continue
        short += `${begin}${JSON.stringify(key)}:`
        begin = ','
        walk(item, depth + 1)
      }
      short += begin === '{' ? '{}' : '}'
    }
  }
  walk(value, 0)
  pieces.push(short)
  return pieces
}
