/** Edits a TOML text in place: only what differs is touched, so comments, order and layout of everything else stay. */
import { stringify } from 'smol-toml'
import { isTable, own, same, type Table } from './tables.ts'
import { renamedTables } from './toml-rename.ts'
import { type Entry, type Path, type Section, scan } from './toml-scan.ts'

/** Replaces `text[start, end)`; insertions have no extent. Edits at one place apply in their order. */
interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** The text of `before` turned into one that reads as `next`. The caller reads the result back: rare shapes may come out different. */
export function editToml(text: string, before: Table, next: Table): string {
  const source = text === '' || text.endsWith('\n') ? text : `${text}\n`
  const editor = new Editor(source, scan(source))
  editor.diff([], before, next)
  return editor.result()
}

class Editor {
  readonly #text: string
  readonly #newline: string
  readonly #sections: readonly Section[]
  readonly #edits: Edit[] = []
  /** New lines of sections that are there. */
  readonly #lines = new Map<Section, string[]>()
  /** New sections by their header. */
  readonly #blocks = new Map<string, { path: Path; array: boolean; lines: string[] }>()
  /** Tables whose headers change their last name. Everything below is found, and taken down, under the old path. */
  readonly #renamed: { readonly path: Path; readonly to: string }[] = []

  constructor(text: string, sections: readonly Section[]) {
    this.#text = text
    this.#newline = text.includes('\r\n') ? '\r\n' : '\n'
    this.#sections = sections
  }

  /** Takes down what has to change below `path`. */
  diff(path: Path, before: Table, next: Table): void {
    const renamed = renamedTables(before, next)
    for (const [from, to] of renamed) if (!this.#rename([...path, from], to)) renamed.delete(from)
    const targets = new Set(renamed.values())
    for (const key of Object.keys(before)) if (!Object.hasOwn(next, key) && !renamed.has(key)) this.#remove([...path, key])
    for (const [from, to] of renamed) this.diff([...path, from], own(before, from) as Table, own(next, to) as Table)
    for (const [key, value] of Object.entries(next)) {
      if (targets.has(key)) continue
      const old = own(before, key)
      if (!same(old, value)) this.#change([...path, key], old, value)
    }
    // An empty table lives on only by a header of its own.
    const empty = path.length > 0 && Object.keys(next).length === 0
    if (empty && !this.#sections.some(section => equal(section.path, path))) this.#block(path, false)
  }

  /** Changes the name in every header of a table. False: it stands elsewhere, too, in lines of other tables. */
  #rename(path: Path, to: string): boolean {
    const headers = this.#sections.filter(section => startsWith(section.path, path))
    const elsewhere = this.#sections.some(
      section => !startsWith(section.path, path) && section.entries.some(entry => startsWith(entry.path, path))
    )
    if (headers.length === 0 || elsewhere) return false
    const at = path.filter(part => typeof part === 'string').length - 1
    for (const { names } of headers) {
      const { start, end } = names[at]!
      this.#edits.push({ start, end, text: keyText(to) })
    }
    this.#renamed.push({ path, to })
    return true
  }

  #change(path: Path, old: unknown, value: unknown): void {
    const entry = this.#entry(path)
    if (entry) {
      this.#edits.push({ start: entry.valueStart, end: entry.valueEnd, text: inline(value, this.#newline) })
    } else if (isTable(old) && isTable(value)) {
      this.diff(path, old, value)
    } else if (Array.isArray(old) && Array.isArray(value) && value.length > 0 && value.every(isTable) && this.#isTableArray(path)) {
      this.#diffTables(path, old as Table[], value)
    } else {
      this.#remove(path)
      this.#add(path, value)
    }
  }

  /** Elements of an array of tables, by position; surplus ones go, new ones come behind the last. */
  #diffTables(path: Path, before: readonly Table[], next: readonly Table[]): void {
    before.forEach((old, index) => {
      const element = next[index]
      if (element) this.diff([...path, index], old, element)
      else this.#remove([...path, index])
    })
    for (const element of next.slice(before.length)) this.#append(path, true, element)
  }

  #entry(path: Path): Entry | undefined {
    for (const { entries } of this.#sections) {
      const found = entries.find(entry => equal(entry.path, path))
      if (found) return found
    }
    return undefined
  }

  #isTableArray(path: Path): boolean {
    return this.#sections.some(section => section.array && section.path.length === path.length + 1 && startsWith(section.path, path))
  }

  /** Takes out all lines of a place. Comments behind the last entry of a removed table stay: they may belong to what follows. */
  #remove(path: Path): void {
    for (const { path: header, start, bodyStart, entries } of this.#sections) {
      if (header.length > 0 && startsWith(header, path)) {
        this.#edits.push({ start, end: entries.at(-1)?.end ?? bodyStart, text: '' })
      } else {
        for (const entry of entries) if (startsWith(entry.path, path)) this.#edits.push({ start: entry.start, end: entry.end, text: '' })
      }
    }
  }

  #add(path: Path, value: unknown): void {
    if (isTable(value)) this.#append(path, false, value)
    else if (path.length === 1 && Array.isArray(value) && value.length > 0 && value.every(isTable)) {
      for (const element of value) this.#append(path, true, element)
    } else this.#addLine(path.slice(0, -1), `${keyText(path.at(-1)!)} = ${inline(value, this.#newline)}`)
  }

  #addLine(table: Path, line: string): void {
    const section = this.#sections.find(({ path: header }) => equal(header, table))
    const dotted = section ? undefined : this.#dottedSection(table)
    if (section) this.#insertInto(section, line)
    else if (dotted) {
      const prefix = table.slice(dotted.section.path.length).map(keyText).join('.')
      this.#edits.push({ start: dotted.entry.end, end: dotted.entry.end, text: `${prefix}.${line}${this.#newline}` })
    } else this.#block(table, false).push(line)
  }

  /** A table that exists only through dotted keys must be continued by dotted keys, in the same section. */
  #dottedSection(parent: Path): { section: Section; entry: Entry } | undefined {
    for (const section of this.#sections) {
      if (section.path.length >= parent.length) continue
      const entry = section.entries.findLast(({ path }) => startsWith(path, parent))
      if (entry) return { section, entry }
    }
    return undefined
  }

  #insertInto(section: Section, line: string): void {
    const lines = this.#lines.get(section)
    if (lines) lines.push(line)
    else this.#lines.set(section, [line])
  }

  #placeLines(): void {
    for (const [section, lines] of this.#lines) {
      const last = section.entries.at(-1)?.end
      const at = last ?? (section.path.length > 0 ? section.bodyStart : this.#rootStart())
      const open = last === undefined && section.path.length === 0 && this.#touches(at)
      this.#edits.push({ start: at, end: at, text: [...lines, ...(open ? [''] : []), ''].join(this.#newline) })
    }
  }

  /** Text follows without a blank line between. */
  #touches(at: number): boolean {
    return at < this.#text.length && !/^\r?\n/.test(this.#text.slice(at, at + 2))
  }

  /** Behind the comment that opens the file, when a blank line sets it apart. */
  #rootStart(): number {
    if (this.#sections.length === 1) return this.#text.length
    const from = this.#sections[0]!.bodyStart
    const opening = /^(?:[ \t]*#[^\n]*\n)+[ \t]*\r?\n/.exec(this.#text.slice(from))
    return from + (opening?.[0].length ?? 0)
  }

  /** A new table (or one more element of an array of tables) at the end of its kin. */
  #append(path: Path, array: boolean, table: Table): void {
    const lines: string[] = []
    const inner: [string, Table][] = []
    for (const [key, value] of Object.entries(table)) {
      if (value === undefined) continue
      if (isTable(value) && !array) inner.push([key, value])
      else lines.push(`${keyText(key)} = ${inline(value, this.#newline)}`)
    }
    if (array || lines.length > 0 || inner.length === 0) this.#block(path, array).push(...lines)
    for (const [key, value] of inner) this.#append([...path, key], false, value)
  }

  #block(path: Path, array: boolean): string[] {
    const key = array ? `${this.#blocks.size} ${JSON.stringify(path)}` : JSON.stringify(path)
    let block = this.#blocks.get(key)
    if (!block) {
      block = { path, array, lines: [] }
      this.#blocks.set(key, block)
    }
    return block.lines
  }

  #placeBlocks(): void {
    let first = this.#edits.length === 0 // something placed before is not in the text yet
    for (const { path, array, lines } of this.#blocks.values()) {
      const at = this.#endOfKin(path)
      const header = this.#newPath(path)
        .filter(part => typeof part === 'string')
        .map(keyText)
        .join('.')
      const head = array ? `[[${header}]]` : `[${header}]`
      const apart = (first && at === 0) || /\n\r?\n$/.test(this.#text.slice(Math.max(0, at - 3), at))
      const text = [...(apart ? [] : ['']), head, ...lines, ...(this.#touches(at) ? [''] : []), ''].join(this.#newline)
      this.#edits.push({ start: at, end: at, text })
      first = false
    }
  }

  /** The path with the new names of renamed tables. */
  #newPath(path: Path): Path {
    const result = [...path]
    for (const renamed of this.#renamed) if (startsWith(path, renamed.path)) result[renamed.path.length - 1] = renamed.to
    return result
  }

  /** Behind the last section that shares the longest part of the path; the end of the file when none does. */
  #endOfKin(path: Path): number {
    for (let length = path.length; length > 0; length--) {
      const kin = this.#sections.findLast(({ path: header }) => header.length >= length && startsWith(header, path.slice(0, length)))
      if (kin) return kin.entries.at(-1)?.end ?? kin.bodyStart
    }
    return this.#text.length
  }

  result(): string {
    this.#placeLines()
    this.#placeBlocks()
    let result = ''
    let at = 0
    for (const { start, end, text } of this.#edits.sort((a, b) => a.start - b.start)) {
      if (start > at) result += this.#text.slice(at, start)
      result += text
      at = Math.max(at, end)
    }
    return result + this.#text.slice(at)
  }
}

function startsWith(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => path[index] === part)
}

function equal(a: Path, b: Path): boolean {
  return a.length === b.length && startsWith(a, b)
}

function keyText(key: string | number): string {
  const name = String(key)
  return /^[A-Za-z0-9_-]+$/.test(name) ? name : stringText(name)
}

/** A value on one line; an array of tables gets one line per element. */
function inline(value: unknown, newline: string): string {
  if (Array.isArray(value)) {
    if (value.length > 0 && value.every(isTable)) {
      return `[${newline}${value.map(item => `  ${inline(item, newline)}`).join(`,${newline}`)}${newline}]`
    }
    return `[${value.map(item => inline(item, newline)).join(', ')}]`
  }
  if (!isTable(value)) return scalar(value)
  const fields = Object.entries(value).filter(([, item]) => item !== undefined)
  if (fields.length === 0) return '{}'
  return `{ ${fields.map(([key, item]) => `${keyText(key)} = ${inlineFlat(item)}`).join(', ')} }`
}

/** Inside an inline table no line may break. */
function inlineFlat(value: unknown): string {
  return Array.isArray(value) ? `[${value.map(inlineFlat).join(', ')}]` : inline(value, ' ')
}

function scalar(value: unknown): string {
  if (typeof value === 'string') return stringText(value)
  const text = stringify({ k: value })
  return text.slice(text.indexOf('=') + 1).trim()
}

function stringText(text: string): string {
  const line = stringify({ k: text })
  return line.slice(line.indexOf('=') + 1).trim()
}
