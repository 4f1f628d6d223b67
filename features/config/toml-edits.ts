/** Collects what changes in a TOML text and puts it in: edits, new lines of tables that are there, new tables. */
import { stringify } from 'smol-toml'
import { yieldToLoop } from '../../kernel/index.ts'
import { isTable } from './tables.ts'
import { type BlockIndex, type Path, startsWith } from './toml-index.ts'
import type { Block } from './toml-scan.ts'

/** Replaces `[start, end)` of the text; insertions have no extent. Edits at one place apply in their order. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
  /** Takes out whole lines. */
  readonly lines?: boolean
}

export class Edits {
  readonly newline: string
  readonly #text: string
  readonly #index: BlockIndex
  readonly #edits: Edit[] = []
  readonly #lines = new Map<Block, string[]>()
  /** New tables by their header. */
  readonly #tables = new Map<string, { path: Path; array: boolean; lines: string[] }>()
  readonly #renamed: { readonly path: Path; readonly to: string }[] = []

  /** The text ends with a line break, so that something can be put behind the last line. */
  constructor(text: string, index: BlockIndex) {
    this.#text = text
    this.#index = index
    this.newline = newlineOf(text)
  }

  edit(start: number, end: number, text: string): void {
    this.#edits.push({ start, end, text })
  }

  /** Whole lines go, with the blank ones behind them when there is one before them; at the end of the text with those before them. */
  remove(start: number, end: number): void {
    this.#edits.push({ start, end, text: '', lines: true })
  }

  /** A new line at the end of a table that has a header. */
  line(block: Block, line: string): void {
    const lines = this.#lines.get(block)
    if (lines) lines.push(line)
    else this.#lines.set(block, [line])
  }

  /** Lines of a new table, or of one more element of an array of tables; more can be pushed. */
  table(path: Path, array: boolean): string[] {
    const key = array ? `${this.#tables.size} ${JSON.stringify(path)}` : JSON.stringify(path)
    let table = this.#tables.get(key)
    if (!table) {
      table = { path, array, lines: [] }
      this.#tables.set(key, table)
    }
    return table.lines
  }

  /** The headers of a table change its name. What is below it is still told under the old path. */
  rename(path: Path, to: string): void {
    this.#renamed.push({ path, to })
  }

  /** The text with all edits. */
  async result(): Promise<string> {
    for (const [block, lines] of this.#lines) this.#placeLines(block, lines)
    for (const { path, array, lines } of this.#tables.values()) {
      this.#placeTable(path, array, lines)
      await yieldToLoop()
    }
    const pieces: string[] = []
    let tail = '\n\n'
    let swallow = false
    const emit = (piece: string) => {
      const rest = swallow && /\n[ \t]*\r?\n$/.test(tail) ? piece.replace(/^(?:[ \t]*\r?\n)+/, '') : piece
      if (rest === '') return
      swallow = false
      tail = (tail + rest.slice(-8)).slice(-8)
      pieces.push(rest)
    }
    let at = 0
    let taken = 0
    for (const { start, end, text, lines } of this.#edits.sort((a, b) => a.start - b.start)) {
      emit(this.#text.slice(at, Math.max(at, start)))
      if (start >= at) taken = start
      if (start === taken) emit(text) // inside what goes nothing is left to change
      swallow ||= lines === true
      at = Math.max(at, end)
    }
    emit(this.#text.slice(at))
    const text = pieces.join('')
    return swallow ? withoutBlankEnd(text) : text
  }

  #placeLines(block: Block, lines: readonly string[]): void {
    const empty = block.names.length === 0 && block.entries.length === 0
    const at = empty ? this.#rootStart(block) : block.contentEnd
    const open = empty && this.#touches(at)
    this.edit(at, at, [...lines, ...(open ? [''] : []), ''].join(this.newline))
  }

  /** Behind the comment that opens the file, when a blank line sets it apart. */
  #rootStart({ end, contentEnd }: Block): number {
    if (end === this.#text.length) return end
    const opening = /^(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n/.exec(this.#text.slice(contentEnd, end))
    return contentEnd + (opening?.[0].length ?? 0)
  }

  /** Text follows without a blank line between. */
  #touches(at: number): boolean {
    return at < this.#text.length && !/^\r?\n/.test(this.#text.slice(at, at + 2))
  }

  #placeTable(path: Path, array: boolean, lines: readonly string[]): void {
    const at = this.#endOfKin(path)
    const header = this.newPath(path)
      .filter(part => typeof part === 'string')
      .map(keyText)
      .join('.')
    const head = array ? `[[${header}]]` : `[${header}]`
    const isFirst = at === 0 && this.#edits.length === 0
    const apart = isFirst || /\n\r?\n$/.test(this.#text.slice(Math.max(0, at - 3), at))
    this.edit(at, at, [...(apart ? [] : ['']), head, ...lines, ...(this.#touches(at) ? [''] : []), ''].join(this.newline))
  }

  /** The path with the new names of renamed tables. */
  newPath(path: Path): Path {
    const result = [...path]
    for (const renamed of this.#renamed) if (startsWith(path, renamed.path)) result[renamed.path.length - 1] = renamed.to
    return result
  }

  /** Behind the last table that shares the longest part of the path; the end of the text when none does. */
  #endOfKin(path: Path): number {
    for (let length = path.length; length > 0; length--) {
      const kin = this.#index.at(path.slice(0, length))
      if (kin) return kin.blocks.at(-1)!.contentEnd
    }
    return this.#text.length
  }
}

function withoutBlankEnd(text: string): string {
  const end = text.trimEnd().length
  return end === 0 ? '' : text.slice(0, text.indexOf('\n', end) + 1)
}

/** The line break of a text. */
export function newlineOf(text: string): string {
  return text.includes('\r\n') ? '\r\n' : '\n'
}

export function keyText(key: string | number): string {
  const name = String(key)
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : scalar(name)
}

/** A value on one line; an array of tables gets one line per element. */
export function inline(value: unknown, newline: string): string {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every(isTable)) {
      return `[${newline}${value.map(item => `  ${inline(item, newline)}`).join(`,${newline}`)}${newline}]`
    }
    return `[${value.map(item => inline(item, newline)).join(', ')}]`
  }
  if (!isTable(value)) return scalar(value)
  const fields = Object.entries(value)
  if (fields.length === 0) return '{}'
  return `{ ${fields.map(([key, item]) => `${keyText(key)} = ${inlineFlat(item)}`).join(', ')} }`
}

/** Inside an inline table no line may break. */
function inlineFlat(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(inlineFlat).join(', ')}]` : inline(value, ' ')
}

function scalar(value: unknown): string {
  const text = stringify({ k: value })
  return text.slice(text.indexOf('=') + 1).trim()
}
