/** Request bodies as bytes: pictures are long, and nothing else runs while one is being written as JSON. */
import { randomUUID } from 'node:crypto'
import { yieldToLoop } from '../../kernel/index.ts'
import { writtenList } from './written-list.ts'

/** From this length on (characters) a text is looked at by itself. */
const LONG = 64 * 1024
/** Characters that are looked at in one go. */
const SLICE = 256 * 1024
/** What JSON writes as it is, in one byte each: base64. */
const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

/** Characters that become one piece. */
const PIECE = 64 * 1024

/**
 * The JSON of a value in UTF-8, in pieces. The items of its lists are written one after the other (those that the list before began with, not
 * again), and long texts in base64 passed through, so that the event loop is held neither by the length of a conversation nor by that of a
 * picture.
 */
export async function jsonBody(value: unknown): Promise<readonly Uint8Array[]> {
  const others = yieldToLoop() // making the value took its time, too
  if (others) await others
  const pieces = new Pieces()
  if (typeof value !== 'object' || value === null || Array.isArray(value)) await pieces.add(value)
  else {
    let sign = '{'
    for (const [key, item] of Object.entries(value)) {
      if (item === undefined) continue
      pieces.text(`${sign}${JSON.stringify(key)}:`)
      const slow = Array.isArray(item) ? pieces.addList(item) : pieces.add(item)
      if (slow) await slow
      sign = ','
    }
    pieces.text(sign === '{' ? '{}' : '}')
  }
  return pieces.end()
}

class Pieces {
  readonly #pieces: Uint8Array[] = []
  #text = ''
  readonly #mark = randomUUID()
  /** Long texts, and whether they are passed through. */
  readonly #long = new Map<string, boolean>()

  text(json: string): void {
    this.#text += json
    if (this.#text.length >= PIECE) this.#flush()
  }

  async addList(items: readonly unknown[]): Promise<void> {
    this.text('[')
    const written = await writtenList(items)?.take(items, itemBytes)
    const count = written?.count ?? 0
    if (written && count > 0) {
      this.#flush()
      this.#pieces.push(written.bytes)
    }
    for (let at = count; at < items.length; at++) {
      if (at > 0) this.text(',')
      const others = this.add(items[at]) ?? yieldToLoop()
      if (others) await others
    }
    this.text(']')
  }

  /** A promise where the value holds long texts: await it first. */
  add(value: unknown): Promise<void> | undefined {
    const long = longTexts(value)
    if (long.length > 0) return this.#addLong(value, long)
    this.text(written(value))
    return undefined
  }

  async #addLong(value: unknown, long: readonly string[]): Promise<void> {
    const texts: string[] = []
    for (const text of long) {
      if (!this.#long.has(text)) this.#long.set(text, await isPlain(text))
      if (this.#long.get(text)) texts.push(text)
    }
    const marked = (_key: string, item: unknown) =>
      typeof item === 'string' && item.length >= LONG && this.#long.get(item) ? `${this.#mark}:${texts.indexOf(item)}` : item
    const json = written(value, texts.length > 0 ? marked : undefined)
    if (texts.length === 0) return this.text(json)
    for (const [at, piece] of json.split(new RegExp(`(?<=")${this.#mark}:(\\d+)(?=")`)).entries()) {
      if (at % 2 === 0) this.text(piece)
      else {
        this.#flush()
        this.#pieces.push(Buffer.from(texts[Number(piece)] ?? '', 'latin1'))
      }
      await yieldToLoop()
    }
  }

  end(): readonly Uint8Array[] {
    this.#flush()
    return this.#pieces
  }

  #flush(): void {
    if (this.#text !== '') this.#pieces.push(Buffer.from(this.#text, 'utf8'))
    this.#text = ''
  }
}

function itemBytes(item: unknown): readonly Uint8Array[] | Promise<readonly Uint8Array[]> {
  const pieces = new Pieces()
  const others = pieces.add(item) ?? yieldToLoop()
  return others ? others.then(() => pieces.end()) : pieces.end()
}

/** Halves of characters (a text that was cut in the middle of one) become U+FFFD: servers refuse a whole request for one. */
function written(value: unknown, replacer?: (key: string, item: unknown) => unknown): string {
  const json = JSON.stringify(value, replacer) ?? 'null'
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
