/** Reads the versions of a TOML text: what did not change is not parsed again. */
import { yieldToLoop } from '../../kernel/index.ts'
import { freeze, own, put, type Table } from './tables.ts'
import { readToml, TomlProblem } from './toml.ts'
import { Block, type Header, readHeader, scanBlock, scanRoot } from './toml-scan.ts'

/** A block without its place. */
interface Piece extends Header {
  readonly text: string
  /** The table that the header names, frozen; made at first use. */
  content?: Table
}

/** A text in blocks; `pieces` are all but the first. */
interface Cut {
  readonly text: string
  readonly blocks: readonly [root: Block, ...others: Block[]]
  readonly pieces: readonly Piece[]
}

/** A header, as far as a look at the line tells: a line inside a value may begin with a bracket, too. */
const header = /[ \t]*\[/y
const nextHeader = /\n(?=[ \t]*\[)/g

/**
 * All that a parser carries from one statement to the next are the tables made so far. So blocks that are parsed alone say together what the
 * whole text says, provided that no two of them speak of the same table; where that cannot be told, the whole text is parsed at once. What a
 * block says is kept as long as versions have it: a new version costs what is new in it, and the rest are the same objects. All is done in
 * shares of the event loop.
 */
export class TomlReader {
  /** Those of the last version. */
  #pieces: readonly Piece[] = []
  #places: ReadonlyMap<string, number> | undefined
  #last: Cut | undefined

  /** As `readToml`; parts of the result are frozen. */
  async read(text: string): Promise<Table> {
    const cut = await this.#cut(text)
    const joined = await this.#join(cut)
    const content = joined ?? readToml(text) // of a problem the whole text tells the position
    this.#pieces = joined ? cut.pieces : []
    this.#places = undefined
    this.#last = cut
    return content
  }

  /** The blocks of a text that is TOML, the first one without a header. */
  async blocks(text: string): Promise<readonly Block[]> {
    const { blocks } = this.#last?.text === text ? this.#last : await this.#cut(text)
    return blocks
  }

  async #cut(text: string): Promise<Cut> {
    const root = scanRoot(text)
    const blocks: Cut['blocks'] & Block[] = [new Block(text, 0, root.end, root)]
    const pieces: Piece[] = []
    let place = 0
    for (let at = root.end; at < text.length; ) {
      const known = this.#isAt(place, text, at) ? place : this.#find(text, at)
      const piece = this.#pieces[known] ?? newPiece(text.slice(at, scanBlock(text, at).end))
      const end = at + piece.text.length
      blocks.push(new Block(text, at, end, piece))
      pieces.push(piece)
      at = end
      if (known >= 0) place = known + 1
      if (pieces.length % 64 === 0) await yieldToLoop()
    }
    return { text, blocks, pieces }
  }

  /** What was a whole block of a valid text is one wherever a block begins and a line with a bracket, or nothing, follows. */
  #isAt(place: number, text: string, start: number): boolean {
    const piece = this.#pieces[place]?.text
    if (piece === undefined || !text.startsWith(piece, start)) return false
    header.lastIndex = start + piece.length
    return header.lastIndex === text.length || (piece.endsWith('\n') && header.test(text))
  }

  /** Place of the piece that is here now; -1: it is new. */
  #find(text: string, start: number): number {
    this.#places ??= new Map(this.#pieces.map((piece, place) => [piece.text, place]))
    nextHeader.lastIndex = start
    return this.#places.get(text.slice(start, nextHeader.test(text) ? nextHeader.lastIndex : text.length)) ?? -1
  }

  /** What the blocks say together. Undefined where that cannot be told, and for what is not TOML. */
  async #join({ text, blocks: [root], pieces }: Cut): Promise<Table | undefined> {
    const names = root.entries.map(entry => entry.names[0]!)
    // These may meet tables of the same name.
    const tops = new Set([...names, ...pieces.filter(({ array }) => array).map(piece => piece.names[0])])
    const isOpening = ({ names: [top] }: Piece) => tops.has(top)
    try {
      const opening = readToml([text.slice(0, root.end), ...pieces.filter(isOpening).map(piece => piece.text)].join(''))
      const content: Table = {}
      for (const name of names) put(content, name, own(opening, name))
      const tables = new HeadedTables(content)
      for (const piece of pieces) {
        const [top] = piece.names as [string]
        if (tops.has(top)) put(content, top, own(opening, top))
        else {
          if (!piece.content) await yieldToLoop()
          piece.content ??= contentOf(piece)
          if (!tables.add(piece.names, piece.content)) return undefined
        }
      }
      return Object.keys(opening).every(name => Object.hasOwn(content, name)) ? content : undefined
    } catch (error) {
      if (error instanceof TomlProblem) return undefined
      throw error
    }
  }
}

/** A copy of the text: a part of another one would keep that in memory as a whole. */
function newPiece(text: string): Piece {
  const copy = Buffer.from(text).toString()
  const { names, array } = readHeader(copy, 0)
  return { text: copy, names, array }
}

function contentOf({ text, names }: Piece): Table {
  let content = readToml(text)
  for (const name of names) content = own(content, name) as Table
  return freeze(content)
}

/** Puts tables into the places that their headers name. */
class HeadedTables {
  readonly #content: Table
  /** Tables that further headers may add to; what stands in lines is closed. */
  readonly #open = new Set<unknown>()
  readonly #headed = new Set<unknown>()

  constructor(content: Table) {
    this.#content = content
  }

  /** False: something else speaks of this table, too. */
  add(names: readonly string[], table: Table): boolean {
    const last = names.at(-1)!
    let above = this.#content
    for (const name of names.slice(0, -1)) {
      const next = this.#opened(above, name)
      if (!next) return false
      above = next
    }
    const there = own(above, last)
    if (there === undefined) {
      put(above, last, table)
      this.#headed.add(table)
      return true
    }
    if (!this.#open.has(there) || this.#headed.has(there)) return false
    this.#headed.add(there)
    return Object.entries(table).every(([key, value]) => {
      if (Object.hasOwn(there as Table, key)) return false
      put(there as Table, key, value)
      return true
    })
  }

  /** The table of a name on the way. */
  #opened(above: Table, name: string): Table | undefined {
    const there = own(above, name)
    if (this.#open.has(there)) return there as Table
    const isHeaded = this.#headed.has(there)
    if (there !== undefined && !isHeaded) return undefined
    const open = { ...(there as Table | undefined) }
    put(above, name, open)
    this.#open.add(open)
    if (isHeaded) this.#headed.add(open)
    return open
  }
}
