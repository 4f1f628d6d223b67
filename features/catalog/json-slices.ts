/** JSON.parse in slices: a long document must not hold the event loop. */
import { breathe } from '../../kernel/index.ts'

/** Longest piece that is parsed in one go, bytes: about a millisecond. */
const PIECE_BYTES = 64 * 1024
/** How deep long objects and lists are taken apart; every level reads the text once more. */
const DEPTH = 4

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a]
const [openObject, closeObject, openList, closeList] = [0x7b, 0x7d, 0x5b, 0x5d]

/**
 * The value of a JSON text in UTF-8, as JSON.parse has it. Throws SyntaxError where JSON.parse does, and for a piece of more than 64 KiB
 * that is nested deeper than 4 levels or is a single string.
 */
export async function parseInSlices(text: Uint8Array): Promise<unknown> {
  const bytes = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
  return await new Reader(bytes).value(0, bytes.length, 0)
}

class Reader {
  readonly #bytes: Buffer

  constructor(bytes: Buffer) {
    this.#bytes = bytes
  }

  async value(from: number, to: number, depth: number): Promise<unknown> {
    await breathe()
    if (to - from <= PIECE_BYTES) return JSON.parse(this.#bytes.toString('utf8', from, to))
    const start = this.#afterSpace(from)
    const first = this.#bytes[start]
    if (depth === DEPTH || (first !== openObject && first !== openList)) throw new SyntaxError('a piece of the JSON text is too long')
    return first === openObject ? await this.#object(start, to, depth) : await this.#list(start, to, depth)
  }

  async #object(start: number, to: number, depth: number): Promise<unknown> {
    const pairs: [string, unknown][] = []
    await this.#members(start, to, closeObject, async from => {
      if (this.#bytes[from] !== quote) throw malformed()
      const afterKey = await this.#end(from, to)
      const key = JSON.parse(this.#bytes.toString('utf8', from, afterKey)) as string
      const at = this.#afterSpace(afterKey)
      if (this.#bytes[at] !== colon) throw malformed()
      const begin = this.#afterSpace(at + 1)
      const end = await this.#end(begin, to)
      pairs.push([key, await this.value(begin, end, depth + 1)])
      return end
    })
    // Own properties, also one that is called __proto__.
    return Object.fromEntries(pairs)
  }

  async #list(start: number, to: number, depth: number): Promise<unknown> {
    const items: unknown[] = []
    await this.#members(start, to, closeList, async from => {
      const end = await this.#end(from, to)
      items.push(await this.value(from, end, depth + 1))
      return end
    })
    return items
  }

  /** Walks what stands between the brackets; `read` reads one member and answers where it ends. */
  async #members(start: number, to: number, close: number, read: (from: number) => Promise<number>): Promise<void> {
    let at = this.#afterSpace(start + 1)
    if (this.#bytes[at] === close) at++
    else {
      for (;;) {
        at = this.#afterSpace(await read(at))
        const mark = this.#bytes[at++]
        if (mark === close) break
        if (mark !== comma) throw malformed()
        at = this.#afterSpace(at)
      }
    }
    if (this.#afterSpace(at) < to) throw malformed()
  }

  /** Where the value that begins here ends. Only brackets and strings are looked at: what is between them is checked when it is parsed. */
  async #end(from: number, to: number): Promise<number> {
    const bytes = this.#bytes
    let depth = 0
    let inString = false
    let pause = from + PIECE_BYTES
    for (let at = from; at < to; at++) {
      if (at >= pause) {
        pause = at + PIECE_BYTES
        await breathe()
      }
      const byte = bytes[at]
      if (inString) {
        if (byte === backslash) at++
        else if (byte === quote) {
          inString = false
          if (depth === 0) return at + 1
        }
      } else if (byte === quote) inString = true
      else if (byte === openObject || byte === openList) depth++
      else if (byte === closeObject || byte === closeList) {
        if (depth === 0) return at
        if (--depth === 0) return at + 1
      } else if (depth === 0 && (byte === comma || byte === colon)) return at
    }
    if (inString || depth > 0) throw malformed()
    return to
  }

  #afterSpace(from: number): number {
    let at = from
    while (isSpace(this.#bytes[at])) at++
    return at
  }
}

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09
}

function malformed(): SyntaxError {
  return new SyntaxError('the text is not JSON')
}
