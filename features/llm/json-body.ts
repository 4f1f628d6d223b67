/** Request bodies as bytes: pictures are long, and nothing else runs while one is being written as JSON. */
import { randomUUID } from 'node:crypto'
import { yieldToLoop } from '../../kernel/index.ts'

/** From this length on (characters) a text is looked at by itself. */
const LONG = 64 * 1024
/** Characters that are looked at in one go. */
const SLICE = 256 * 1024
/** What JSON writes as it is, in one byte each: base64. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** The JSON of a value in UTF-8, in pieces. Long texts in base64 are passed through, so that the event loop is never held by their length. */
export async function jsonBody(value: unknown): Promise<readonly Uint8Array[]> {
  const mark = randomUUID()
  const marks = new Map<string, string>()
  for (const text of longTexts(value)) {
    if (!marks.has(text) && (await isPlain(text))) marks.set(text, `${mark}:${marks.size}`)
  }
  const marked = (_key: string, item: unknown) => (typeof item === 'string' && item.length >= LONG ? (marks.get(item) ?? item) : item)
  const json = wellFormed(JSON.stringify(value, marks.size > 0 ? marked : undefined))
  if (marks.size === 0) return [Buffer.from(json, 'utf8')]
  const texts = [...marks.keys()]
  const pieces: Uint8Array[] = []
  for (const [at, piece] of json.split(new RegExp(`(?<=")${mark}:(\\d+)(?=")`)).entries()) {
    pieces.push(at % 2 === 0 ? Buffer.from(piece, 'utf8') : Buffer.from(texts[Number(piece)] ?? '', 'latin1'))
    await yieldToLoop()
  }
  return pieces
}

/** Halves of characters (a text that was cut in the middle of one) become U+FFFD: servers refuse a whole request for one. */
function wellFormed(json: string): string {
  // JSON writes whole characters as they are, so every escape of a surrogate is a half.
  return json.includes('\\ud') ? json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, '$1\ufffd') : json
}

/** A conversation has many thousands of small values, and each request asks again: no generator, no list per object. */
function longTexts(value: unknown, found: string[] = []): string[] {
  if (typeof value === 'string') {
    if (value.length >= LONG) found.push(value)
  } else if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) longTexts(value[at], found)
  } else if (typeof value === 'object' && value !== null) {
    for (const key in value) longTexts((value as Record<string, unknown>)[key], found)
  }
  return found
}

async function isPlain(text: string): Promise<boolean> {
  for (let at = 0; at < text.length; at += SLICE) {
    if (!plain.test(text.slice(at, at + SLICE))) return false
    await yieldToLoop()
  }
  return true
}
