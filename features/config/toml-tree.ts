/** Puts the segments of a document together: their common content, and an index from tables to segments. */
import { put, type Table } from './tables.ts'
import type { Segment } from './toml-segment.ts'

/** Names and, inside arrays of tables, positions. */
export type Path = readonly (string | number)[]

/** A table that headers open, an array of tables or one of its elements. */
export interface Node {
  /** Segment with its header; -1: there are only headers below it. */
  readonly segment: number
  /** Last segment of it and of what is below. */
  readonly last: number
  readonly children: ReadonlyMap<string, Node> | undefined
  /** Of an array of tables. */
  readonly elements: readonly Node[] | undefined
}

export function startsWith(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => path[index] === part)
}

export interface Tree {
  readonly root: Node
  /**
   * Content of the document, frozen; undefined when only a parser can tell it: the text is not TOML, or there are headers below tables
   * that dotted keys made.
   */
  readonly table: Table | undefined
}

/**
 * A parser reads one statement after the other, and all it carries from one to the next are the tables made so far. So segments that
 * parse alone parse together, too, provided that no header meets a value or names a table twice. This is checked here, a little too
 * strictly. Yields between segments.
 */
export function* plant(segments: readonly Segment[]): Generator<void, Tree, void> {
  const root = new Growing(-1, {}, true)
  const tree = new Planter(root)
  for (let index = 0; index < segments.length; index++) {
    tree.add(segments[index]!, index)
    if (index % 32 === 31) yield
  }
  for (let at = 0; at < tree.made.length; at++) {
    Object.freeze(tree.made[at])
    if (at % 256 === 255) yield
  }
  return { root, table: tree.plain ? root.value : undefined }
}

/** The node at a path. */
export function find(root: Node, path: Path): Node | undefined {
  let node: Node | undefined = root
  for (const part of path) node = typeof part === 'number' ? node?.elements?.[part] : node?.children?.get(part)
  return node
}

/** Segments of a node and of everything below it, in no particular order. */
export function* segmentsOf(node: Node): Generator<number, void, void> {
  if (node.segment >= 0) yield node.segment
  for (const child of node.children?.values() ?? []) yield* segmentsOf(child)
  for (const element of node.elements ?? []) yield* segmentsOf(element)
}

class Growing implements Node {
  segment: number
  last: number
  children: Map<string, Growing> | undefined
  elements: Growing[] | undefined
  /** What it holds so far. */
  value: Table
  /** The values of its elements. */
  list: Table[] | undefined
  /** `value` was made here; else it is the body of the segment, which others share. */
  made: boolean

  constructor(segment: number, value: Table, made: boolean) {
    this.segment = segment
    this.last = segment
    this.value = value
    this.made = made
    this.children = undefined
    this.elements = undefined
    this.list = undefined
  }
}

const nothing: Table = Object.freeze({})

class Planter {
  readonly #root: Growing
  /** Tables and arrays to freeze. */
  readonly made: object[]
  plain = true

  constructor(root: Growing) {
    this.#root = root
    this.made = [root.value]
  }

  add({ names, array, body }: Segment, index: number): void {
    if (!body) this.plain = false
    let node = this.#root
    node.last = index
    for (let at = 0; at < names.length - 1; at++) node = this.#through(node, names[at]!, index)
    const name = names.at(-1)
    if (name === undefined) this.#fill(node, index, body ?? nothing)
    else if (array) this.#element(node, name, index, body ?? nothing)
    else this.#table(node, name, index, body ?? nothing)
  }

  #table(parent: Growing, name: string, index: number, body: Table): void {
    const there = parent.children?.get(name)
    if (!there) this.#child(parent, name, new Growing(index, body, false))
    else if (there.segment < 0 && !there.elements) this.#fill(there, index, body)
    else this.plain = false
  }

  #element(parent: Growing, name: string, index: number, body: Table): void {
    let node = parent.children?.get(name)
    if (!node) {
      node = new Growing(-1, nothing, false)
      node.elements = []
      node.list = []
      this.made.push(node.list)
      this.#child(parent, name, node)
    }
    if (!node.elements) this.plain = false
    node.last = index
    node.elements?.push(new Growing(index, body, false))
    node.list?.push(body)
  }

  /** The table behind a name on the way to another one; of an array of tables the newest. It can take more from here on. */
  #through(parent: Growing, name: string, index: number): Growing {
    const node = parent.children?.get(name)
    if (!node) {
      const made = new Growing(-1, {}, true)
      made.last = index
      this.made.push(made.value)
      this.#child(parent, name, made)
      return made
    }
    node.last = index
    const table = node.elements?.at(-1) ?? node
    table.last = index
    if (!table.made) {
      table.value = { ...table.value }
      table.made = true
      this.made.push(table.value)
      if (node.list) node.list[node.list.length - 1] = table.value
      else put(parent.value, name, table.value)
    }
    return table
  }

  #child(parent: Growing, name: string, child: Growing): void {
    if (Object.hasOwn(parent.value, name)) this.plain = false
    parent.children ??= new Map()
    parent.children.set(name, child)
    put(parent.value, name, child.list ?? child.value)
  }

  /** Gives a table that exists so far only through what is below it (or the root) its own entries. */
  #fill(node: Growing, index: number, body: Table): void {
    node.segment = index
    node.last = index
    for (const [key, value] of Object.entries(body)) {
      if (Object.hasOwn(node.value, key)) this.plain = false
      put(node.value, key, value)
    }
  }
}
