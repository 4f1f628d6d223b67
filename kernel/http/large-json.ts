/**
 * The text of a large answer, made in slices. What makes an answer large is a few long texts (a file, the output of a tool), or lists of which the
 * handler says that they do not change: they can be encoded bit by bit, with other work in between. Everything else is taken at once: an answer says
 * what was true at one moment.
 */
import { developerError } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'

/** Texts from here on count, characters. */
const longChars = 4096
/** So many characters in long texts make an answer large. */
const largeChars = 512 * 1024
/** Characters that are encoded without a pause. */
const sliceChars = 256 * 1024
/** Objects, lists and what is in them: of more an answer would hold up the loop for seconds. */
const mostValues = 5_000_000

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

/** Lists that are encoded item by item, with the characters that their JSON has, about. */
const lists = new WeakMap<object, number>()

/**
 * For a list in what a handler answers of which nothing changes any more: its items are encoded bit by bit. `chars`: of its JSON, about. Of use
 * from some hundred thousand characters on.
 */
export function partedList<T>(items: T[], chars: number): T[] {
  lists.set(items, chars)
  return items
}

/** An answer's JSON, whole or to be made in parts. */
export type AnswerText = string | LargeText

/** The JSON of a value; one with much text is made when it is asked for. Throws a DeveloperError `answer_large`, and what a `toJSON` throws. */
export function answerText(value: unknown): AnswerText {
  const chars = longTexts(value, 0, { left: mostValues })
  return chars >= largeChars ? new LargeText(piecesOf(value), chars) : JSON.stringify(value)
}

/** The bytes of a value's JSON, made bit by bit. Of the value nothing else is looked at any more than texts and parted lists. */
export class LargeText {
  readonly #pieces: readonly Piece[]
  /** In its long texts and parted lists. */
  readonly chars: number

  constructor(pieces: readonly Piece[], chars: number) {
    this.#pieces = pieces
    this.chars = chars
  }

  /** Each part is encoded when it is asked for. */
  async *parts(): AsyncGenerator<Buffer> {
    let json = ''
    for (const bit of bitsOf(this.#pieces)) {
      json += bit
      if (json.length < sliceChars) continue
      yield Buffer.from(json)
      json = ''
      await yieldToLoop()
    }
    yield Buffer.from(json)
  }

  async made(): Promise<Buffer[]> {
    const parts: Buffer[] = []
    for await (const part of this.parts()) parts.push(part)
    return parts
  }

  async whole(): Promise<string> {
    return Buffer.concat(await this.made()).toString()
  }
}

function* bitsOf(pieces: readonly Piece[]): Generator<string> {
  for (const piece of pieces) {
    if (typeof piece === 'string') yield piece
    else if (typeof piece.long === 'string') yield* slicesOf(piece.long)
    else {
      for (const [at, item] of piece.long.entries()) {
        if (at > 0) yield ','
        yield* bitsOf(piecesOf(item))
      }
    }
  }
}

function* slicesOf(text: string): Generator<string> {
  for (let at = 0, end = 0; at < text.length; at = end) {
    end = Math.min(at + sliceChars, text.length)
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end-- // a pair stays together
    yield JSON.stringify(text.slice(at, end)).slice(1, -1)
  }
}

const isHighSurrogate = (code: number) => code >= 0xd800 && code <= 0xdbff

/**
 * Characters in the long texts and parted lists of a value. What is nested deeper than any answer counts as short. Throws when more values
 * than `most` are in it.
 */
function longTexts(value: unknown, depth: number, most?: { left: number }): number {
  if (most && --most.left < 0) throw developerError('answer_large', mostValues)
  if (typeof value === 'string') return value.length >= longChars ? value.length : 0
  if (typeof value !== 'object' || value === null || depth > 40) return 0
  if (value instanceof PartedText) return value.length
  const chars = lists.get(value)
  if (chars !== undefined) return chars
  let sum = 0
  if (Array.isArray(value)) for (const item of value) sum += longTexts(item, depth + 1, most)
  else for (const key in value) sum += longTexts((value as Record<string, unknown>)[key], depth + 1, most)
  return sum
}

type Piece = string | { readonly long: string | readonly unknown[] }

/** A value as JSON; its long texts are left to be encoded between their quotes, its parted lists between their brackets. */
function piecesOf(value: unknown): Piece[] {
  const pieces: Piece[] = []
  let short = ''
  const walk = (node: unknown, depth: number): void => {
    if (node instanceof PartedText) {
      pieces.push(`${short}"`, ...node.parts.map(long => ({ long })))
      short = '"'
    } else if (longTexts(node, depth) === 0 || typeof (node as { toJSON?: unknown }).toJSON === 'function') {
      short += JSON.stringify(node) ?? 'null'
    } else if (typeof node === 'string') {
      pieces.push(`${short}"`, { long: node })
      short = '"'
    } else if (Array.isArray(node) && lists.has(node)) {
      pieces.push(`${short}[`, { long: node })
      short = ']'
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
