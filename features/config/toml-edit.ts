/** Edits a TOML document in place: only what differs is touched, so comments, order and layout of everything else stay. */
import { isTable, keysOf, own, same, type Table } from './tables.ts'
import { Edits } from './toml-edits.ts'
import { renamedTables } from './toml-rename.ts'
import type { Entry } from './toml-scan.ts'
import type { Segment } from './toml-segment.ts'
import { find, type Node, type Path, segmentsOf, startsWith } from './toml-tree.ts'
import { inline, keyText } from './toml-value.ts'

/**
 * Segments of a document that reads as `next` instead of `before`. The caller reads the result back: rare shapes may come out different.
 * Yields often.
 */
export function* editSegments(
  segments: readonly Segment[],
  root: Node,
  before: Table,
  next: Table
): Generator<void, readonly Segment[], void> {
  const edits = new Edits(segments, root)
  yield* new Editor(edits, root).diff([], before, next)
  return yield* edits.result()
}

class Editor {
  readonly #edits: Edits
  readonly #root: Node

  constructor(edits: Edits, root: Node) {
    this.#edits = edits
    this.#root = root
  }

  /** Takes down what has to change below `path`. */
  *diff(path: Path, before: Table, next: Table): Generator<void, void, void> {
    const keys = keysOf(before)
    const now = keysOf(next)
    const gone = keys.filter((key, at) => key !== now[at] && !Object.hasOwn(next, key))
    const renamed = gone.length > 0 ? renamedTables(before, next) : new Map<string, string>()
    for (const [from, to] of renamed) if (!this.#rename([...path, from], to)) renamed.delete(from)
    const targets = new Set(renamed.values())
    for (const key of gone) if (!renamed.has(key)) this.#remove([...path, key])
    for (const [from, to] of renamed) yield* this.diff([...path, from], own(before, from) as Table, own(next, to) as Table)
    for (let at = 0; at < now.length; at++) {
      const key = now[at]!
      const value = next[key]
      const old = key === keys[at] ? before[key] : own(before, key)
      if (old === value || targets.has(key) || same(old, value)) continue
      yield* this.#change([...path, key], old, value)
      yield
    }
    // An empty table lives on only by a header of its own.
    if (path.length > 0 && Object.keys(next).length === 0 && this.#header(path) === undefined) this.#edits.block(path, false)
  }

  /** Changes the name in every header of a table. False: it stands elsewhere, too, in lines of other tables. */
  #rename(path: Path, to: string): boolean {
    const node = find(this.#root, path)
    const elsewhere = [...this.#above(path)].some(({ entries, rest }) => entries.some(({ names }) => startsWith(names, rest)))
    if (!node || elsewhere) return false
    const at = path.filter(part => typeof part === 'string').length - 1
    for (const segment of segmentsOf(node)) {
      const { start, end } = this.#edits.segments[segment]!.header.extents[at]!
      this.#edits.edit(segment, start, end, keyText(to))
    }
    this.#edits.rename(path, to)
    return true
  }

  *#change(path: Path, old: unknown, value: unknown): Generator<void, void, void> {
    const line = this.#line(path)
    if (line) {
      this.#edits.edit(line.segment, line.entry.valueStart, line.entry.valueEnd, inline(value, this.#edits.newline))
    } else if (isTable(old) && isTable(value)) {
      yield* this.diff(path, old, value)
    } else if (Array.isArray(old) && Array.isArray(value) && value.length > 0 && value.every(isTable) && find(this.#root, path)?.elements) {
      yield* this.#diffTables(path, old as Table[], value)
    } else {
      this.#remove(path)
      this.#add(path, value)
    }
  }

  /** Elements of an array of tables, by position; surplus ones go, new ones come behind the last. */
  *#diffTables(path: Path, before: readonly Table[], next: readonly Table[]): Generator<void, void, void> {
    for (const [index, old] of before.entries()) {
      const element = next[index]
      if (element) yield* this.diff([...path, index], old, element)
      else this.#remove([...path, index])
    }
    for (const element of next.slice(before.length)) this.#append(path, true, element)
  }

  /** Segment with the header of a table. */
  #header(path: Path): number | undefined {
    const segment = find(this.#root, path)?.segment ?? -1
    return segment < 0 ? undefined : segment
  }

  /** Tables above a place whose own lines may speak of it: `b.c = 1` in `[a]` of `a.b`. `rest` is the way from there. */
  *#above(path: Path): Generator<{ readonly segment: number; readonly entries: readonly Entry[]; readonly rest: Path }, void, void> {
    let node: Node | undefined = this.#root
    for (let depth = 0; node && depth < path.length; depth++) {
      if (node.segment >= 0) yield { segment: node.segment, entries: this.#edits.segments[node.segment]!.entries, rest: path.slice(depth) }
      node = find(node, [path[depth]!])
    }
  }

  /** The line with exactly this key. */
  #line(path: Path): { readonly segment: number; readonly entry: Entry } | undefined {
    for (const { segment, entries, rest } of this.#above(path)) {
      const entry = entries.find(({ names }) => names.length === rest.length && startsWith(names, rest))
      if (entry) return { segment, entry }
    }
    return undefined
  }

  /** Takes out all lines of a place. Comments behind the last entry of a removed table stay: they may belong to what follows. */
  #remove(path: Path): void {
    const node = find(this.#root, path)
    if (node) for (const segment of segmentsOf(node)) this.#edits.edit(segment, 0, this.#edits.segments[segment]!.contentEnd, '')
    for (const { segment, entries, rest } of this.#above(path)) {
      for (const { names, start, end } of entries) if (startsWith(names, rest)) this.#edits.edit(segment, start, end, '')
    }
  }

  #add(path: Path, value: unknown): void {
    if (isTable(value)) this.#append(path, false, value)
    else if (path.length === 1 && Array.isArray(value) && value.length > 0 && value.every(isTable)) {
      for (const element of value) this.#append(path, true, element)
    } else this.#addLine(path.slice(0, -1), `${keyText(path.at(-1)!)} = ${inline(value, this.#edits.newline)}`)
  }

  #addLine(table: Path, line: string): void {
    const segment = this.#header(table)
    const dotted = segment === undefined ? this.#dotted(table) : undefined
    if (segment !== undefined) this.#edits.line(segment, line)
    else if (dotted) {
      const { entry, prefix } = dotted
      this.#edits.edit(dotted.segment, entry.end, entry.end, `${prefix}.${line}${this.#edits.newline}`)
    } else this.#edits.block(table, false).push(line)
  }

  /** A table that exists only through dotted keys must be continued by dotted keys, in the same place. */
  #dotted(table: Path): { readonly segment: number; readonly entry: Entry; readonly prefix: string } | undefined {
    for (const { segment, entries, rest } of this.#above(table)) {
      const entry = entries.findLast(({ names }) => startsWith(names, rest))
      if (entry) return { segment, entry, prefix: rest.map(keyText).join('.') }
    }
    return undefined
  }

  /** A new table (or one more element of an array of tables) at the end of its kin. */
  #append(path: Path, array: boolean, table: Table): void {
    const lines: string[] = []
    const inner: [string, Table][] = []
    for (const [key, value] of Object.entries(table)) {
      if (value === undefined) continue
      if (isTable(value) && !array) inner.push([key, value])
      else lines.push(`${keyText(key)} = ${inline(value, this.#edits.newline)}`)
    }
    if (array || lines.length > 0 || inner.length === 0) this.#edits.block(path, array).push(...lines)
    for (const [key, value] of inner) this.#append([...path, key], false, value)
  }
}
