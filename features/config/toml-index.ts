/** Finds the blocks of a TOML text by the tables they speak of. */
import type { Block } from './toml-scan.ts'

/** Names and, inside arrays of tables, positions. */
export type Path = readonly (string | number)[]

/** A table that headers open, an array of tables or one of its elements. */
export interface Node {
  /** Block with its header; undefined when there are only headers below it. */
  readonly block: Block | undefined
  /** Last block of it and of what is below. */
  readonly last: Block
  readonly children: ReadonlyMap<string, Node>
  /** Of an array of tables. */
  readonly elements: readonly Node[] | undefined
}

export function startsWith(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => path[index] === part)
}

/** The node of the document, for a text that is TOML. */
export function indexBlocks(blocks: readonly Block[]): Node {
  const [first, ...rest] = blocks as [Block, ...Block[]]
  const root = new Growing(first)
  root.block = first
  for (const block of rest) {
    let node = root
    node.last = block
    for (const [at, name] of block.names.entries()) {
      node = node.child(name, block)
      if (at < block.names.length - 1) node = node.newest(block)
    }
    if (block.array) node.append(block)
    else node.block = block
  }
  return root
}

/** The node at a path. */
export function find(root: Node, path: Path): Node | undefined {
  let node: Node | undefined = root
  for (const part of path) node = typeof part === 'number' ? node?.elements?.[part] : node?.children.get(part)
  return node
}

/** Blocks of a node and of everything below it, in no particular order. */
export function* blocksOf(node: Node): Generator<Block, void, void> {
  if (node.block) yield node.block
  for (const child of node.children.values()) yield* blocksOf(child)
  for (const element of node.elements ?? []) yield* blocksOf(element)
}

class Growing implements Node {
  block: Block | undefined
  last: Block
  readonly children = new Map<string, Growing>()
  elements: Growing[] | undefined

  constructor(last: Block) {
    this.last = last
  }

  child(name: string, last: Block): Growing {
    let child = this.children.get(name)
    if (!child) {
      child = new Growing(last)
      this.children.set(name, child)
    }
    child.last = last
    return child
  }

  /** On the way to a table below: of an array of tables the newest element. */
  newest(last: Block): Growing {
    const node = this.elements?.at(-1) ?? this
    node.last = last
    return node
  }

  append(block: Block): void {
    const element = new Growing(block)
    element.block = block
    this.elements ??= []
    this.elements.push(element)
  }
}
