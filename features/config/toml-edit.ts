/** Edits a TOML text in place: only what differs is touched, so comments, order and layout of everything else stay. */
import { stringify } from 'smol-toml'
import { yieldToLoop } from '../../kernel/index.ts'
import { isTable, own, same, type Table } from './tables.ts'
import { TomlProblem } from './toml.ts'
import { Edits, inline, keyText, newlineOf } from './toml-edits.ts'
import { BlockIndex, type Path, startsWith } from './toml-index.ts'
import { TomlReader } from './toml-reader.ts'
import { renamedValues } from './toml-rename.ts'
import type { Entry } from './toml-scan.ts'

/** A text with its content. */
interface TomlDocument {
  readonly text: string
  readonly table: Table
}

/**
 * The document with `next` as its content: what did not change keeps its comments, order and layout. The new text is read back; an edit
 * that does not say `next` is given up and the whole document is written anew. A long text is worked on in shares of the event loop. A
 * reader that knows the text has less to read.
 */
export async function editToml({ text, table }: TomlDocument, next: Table, reader = new TomlReader()): Promise<TomlDocument> {
  const lines = text === '' || text.endsWith('\n') ? text : text + newlineOf(text)
  const index = new BlockIndex(await reader.blocks(lines))
  await yieldToLoop()
  const edits = new Edits(lines, index)
  new Editor(edits, index).diff([], table, next)
  await yieldToLoop()
  const edited = await edits.result()
  try {
    const content = await reader.read(edited)
    await yieldToLoop()
    if (same(content, next)) return { text: edited, table: content }
  } catch (error) {
    if (!(error instanceof TomlProblem)) throw error
  }
  const anew = stringify(next)
  return { text: anew, table: await reader.read(anew) }
}

class Editor {
  readonly #edits: Edits
  readonly #index: BlockIndex

  constructor(edits: Edits, index: BlockIndex) {
    this.#edits = edits
    this.#index = index
  }

  /** Takes down what has to change below `path`. */
  diff(path: Path, before: Table, next: Table): void {
    const gone = Object.keys(before).filter(key => !Object.hasOwn(next, key))
    const renamed = gone.length > 0 ? renamedValues(before, next) : new Map<string, string>()
    for (const [from, to] of renamed) if (!this.#rename([...path, from], to, own(before, from))) renamed.delete(from)
    const targets = new Set(renamed.values())
    for (const key of gone) if (!renamed.has(key)) this.#remove([...path, key])
    for (const [from, to] of renamed) {
      this.#change([...path, from], own(before, from), own(next, to))
    }
    for (const key of Object.keys(next)) {
      const value = next[key]
      const old = own(before, key)
      if (!Object.is(old, value) && !targets.has(key)) this.#change([...path, key], old, value)
    }
    // An empty table lives on only by a header of its own.
    if (path.length > 0 && Object.keys(next).length === 0 && !this.#index.at(path)?.block) this.#edits.table(path, false)
  }

  /** Changes the name in every header and line that has it. False: there is none, or it is a value at the top, where every name has its own meaning. */
  #rename(path: Path, to: string, value: unknown): boolean {
    if (!isTable(value) && path.length === 1) return false
    const lines = [...this.#above(path)].flatMap(({ entries, rest }) =>
      entries.filter(({ names }) => startsWith(names, rest)).map(({ extents }) => extents[rest.length - 1]!)
    )
    const at = path.filter(part => typeof part === 'string').length - 1
    const headers = isTable(value) ? (this.#index.at(path)?.blocks ?? []).map(({ extents }) => extents[at]!) : []
    for (const { start, end } of [...lines, ...headers]) this.#edits.edit(start, end, keyText(to))
    this.#edits.rename(path, to)
    return lines.length + headers.length > 0
  }

  #change(path: Path, old: unknown, value: unknown): void {
    const entry = this.#entry(path)
    if (!entry && isTable(old) && isTable(value)) {
      this.diff(path, old, value)
    } else if (same(old, value)) {
      return
    } else if (entry) {
      this.#edits.edit(entry.valueStart, entry.valueEnd, inline(value, this.#edits.newline))
    } else if (Array.isArray(old) && Array.isArray(value) && value.length > 0 && value.every(isTable) && this.#index.at([...path, 0])) {
      this.#diffTables(path, old as Table[], value)
    } else {
      this.#remove(path)
      this.#add(path, value)
    }
  }

  /** Elements of an array of tables, by position; surplus ones go, new ones come behind the last. */
  #diffTables(path: Path, before: readonly Table[], next: readonly Table[]): void {
    for (const [index, old] of before.entries()) {
      const element = next[index]
      if (element) this.diff([...path, index], old, element)
      else this.#remove([...path, index])
    }
    for (const element of next.slice(before.length)) this.#append(path, true, element)
  }

  /** Tables above a place whose own lines may speak of it: `b.c = 1` in `[a]` of `a.b`. `rest` is the way from there. */
  *#above(path: Path): Generator<{ readonly entries: readonly Entry[]; readonly rest: Path }, void, void> {
    for (const depth of path.keys()) {
      const block = this.#index.at(path.slice(0, depth))?.block
      if (block) yield { entries: block.entries, rest: path.slice(depth) }
    }
  }

  /** The line with exactly this key. */
  #entry(path: Path): Entry | undefined {
    for (const { entries, rest } of this.#above(path)) {
      const entry = entries.find(({ names }) => names.length === rest.length && startsWith(names, rest))
      if (entry) return entry
    }
    return undefined
  }

  /** Takes out all lines of a place. Comments behind the last entry of a removed table stay: they may belong to what follows. */
  #remove(path: Path): void {
    for (const block of this.#index.at(path)?.blocks ?? []) this.#edits.remove(block.start, block.contentEnd)
    for (const { entries, rest } of this.#above(path)) {
      for (const { names, start, end } of entries) if (startsWith(names, rest)) this.#edits.remove(start, end)
    }
  }

  #add(path: Path, value: unknown): void {
    if (isTable(value)) this.#append(path, false, value)
    else if (path.length === 1 && Array.isArray(value) && value.length > 0 && value.every(isTable)) {
      for (const element of value) this.#append(path, true, element)
    } else this.#addLine(path.slice(0, -1), `${keyText(path.at(-1)!)} = ${inline(value, this.#edits.newline)}`)
  }

  #addLine(table: Path, line: string): void {
    const block = this.#index.at(table)?.block
    const dotted = block ? undefined : this.#dotted(table)
    if (block) this.#edits.line(block, line)
    else if (dotted) this.#edits.edit(dotted.end, dotted.end, `${dotted.prefix}.${line}${this.#edits.newline}`)
    else this.#edits.table(table, false).push(line)
  }

  /** A table that exists only through dotted keys must be continued by dotted keys, in the same place. */
  #dotted(table: Path): { readonly end: number; readonly prefix: string } | undefined {
    for (const { entries, rest } of this.#above(table)) {
      const entry = entries.findLast(({ names }) => startsWith(names, rest))
      if (entry) return { end: entry.end, prefix: this.#edits.newPath(table).slice(-rest.length).map(keyText).join('.') }
    }
    return undefined
  }

  /** A new table (or one more element of an array of tables) at the end of its kin. */
  #append(path: Path, array: boolean, table: Table): void {
    const lines: string[] = []
    const inner: [string, Table][] = []
    for (const [key, value] of Object.entries(table)) {
      if (isTable(value) && !array) inner.push([key, value])
      else lines.push(`${keyText(key)} = ${inline(value, this.#edits.newline)}`)
    }
    if (array || lines.length > 0 || inner.length === 0) this.#edits.table(path, array).push(...lines)
    for (const [key, value] of inner) this.#append([...path, key], false, value)
  }
}
