/** Finds the blocks of a TOML text by the tables they speak of. */
import type { Block } from './toml-scan.ts'

/** Names and, inside arrays of tables, positions. */
export type Path = readonly (string | number)[]

export function startsWith(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => path[index] === part)
}

/** What headers say about a table, an array of tables or one of its elements. */
export interface Place {
  /** With its own header; undefined when there are only headers below it. */
  readonly block: Block | undefined
  /** Its blocks and those of everything below it, in the order of the text. */
  readonly blocks: readonly Block[]
}

/** Of a text that is TOML. */
export class BlockIndex {
  readonly #places = new Map<string, { block: Block | undefined; readonly blocks: Block[] }>()

  constructor(blocks: readonly Block[]) {
    const lengths = new Map<string, number>()
    for (const block of blocks) {
      const path: (string | number)[] = []
      const below = [this.#place(path)]
      for (const [at, name] of block.names.entries()) {
        path.push(name)
        below.push(this.#place(path))
        const array = JSON.stringify(path)
        if (block.array && at === block.names.length - 1) lengths.set(array, (lengths.get(array) ?? 0) + 1)
        const length = lengths.get(array)
        if (length === undefined) continue
        path.push(length - 1) // the newest element
        below.push(this.#place(path))
      }
      for (const place of below) place.blocks.push(block)
      below.at(-1)!.block = block
    }
  }

  at(path: Path): Place | undefined {
    return this.#places.get(JSON.stringify(path))
  }

  #place(path: Path) {
    const key = JSON.stringify(path)
    const place = this.#places.get(key) ?? { block: undefined, blocks: [] }
    this.#places.set(key, place)
    return place
  }
}
