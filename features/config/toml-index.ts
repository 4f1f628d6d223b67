/** Finds the blocks of a TOML text by the tables they speak of. */
import type { Block } from './toml-scan.ts'

/** Names and, inside arrays of tables, positions. */
export type Path = readonly (string | number)[]

export function startsWith(path: Path, prefix: Path): boolean {
  return path.length >= prefix.length && prefix.every((part, index) => path[index] === part)
}

/** What headers say about a table, an array of tables or one of its elements. What is below it is looked up when somebody asks. */
class Place {
  /** Its blocks and those of everything below it, in the order of the text. */
  readonly blocks: Block[] = []
  /** With its own header; undefined when there are only headers below it. */
  block: Block | undefined
  readonly #depth: number
  readonly #element: boolean
  #below: ReadonlyMap<string | number, Place> | undefined

  /** `depth`: how many names lead here. */
  constructor(depth: number, element: boolean) {
    this.#depth = depth
    this.#element = element
  }

  add(block: Block): void {
    this.blocks.push(block)
    if (block.names.length === this.#depth && block.array === this.#element) this.block = block
  }

  below(part: string | number): Place | undefined {
    this.#below ??= this.#divide()
    return this.#below.get(part)
  }

  #divide(): Map<string | number, Place> {
    const below = new Map<string | number, Place>()
    let elements = 0
    for (const block of this.blocks) {
      if (block.array && block.names.length === this.#depth && !this.#element) elements++
      const part = elements > 0 ? elements - 1 : block.names[this.#depth]
      if (part === undefined) continue
      const place = below.get(part) ?? (elements > 0 ? new Place(this.#depth, true) : new Place(this.#depth + 1, false))
      below.set(part, place)
      place.add(block)
    }
    return below
  }
}

/** Of a text that is TOML. */
export class BlockIndex {
  readonly #root = new Place(0, false)

  constructor(blocks: readonly Block[]) {
    for (const block of blocks) this.#root.add(block)
  }

  at(path: Path): Place | undefined {
    let place: Place | undefined = this.#root
    for (const part of path) place = place?.below(part)
    return place
  }
}
