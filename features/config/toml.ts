/** TOML text to plain tables. */
import { parse, TomlError } from 'smol-toml'
import { yieldToLoop } from '../../kernel/index.ts'
import { copy, isTable, own, put, type Table } from './tables.ts'
import { type Block, scanToml } from './toml-scan.ts'

/** The text is not TOML. The message carries the position and never a part of the text. */
export class TomlProblem extends Error {
  readonly line: number
  readonly column: number

  constructor(reason: string, line: number, column: number) {
    super(`line ${line}, column ${column}: ${reason}`)
    this.name = 'TomlProblem'
    this.line = line
    this.column = column
  }
}

/** Parses to tables with ordinary prototypes. Integers beyond 2^53 stay exact (bigint). Throws TomlProblem. */
export function readToml(text: string): Table {
  try {
    return copy(parse(text, { integersAsBigInt: 'asNeeded' })) as Table
  } catch (error) {
    if (!(error instanceof TomlError)) throw error
    // The library's message goes on with the offending lines; those may hold a key.
    const reason = (error.message.split('\n')[0] ?? '').replace(/^Invalid TOML document: /, '')
    throw new TomlProblem(reason, error.line, error.column)
  }
}

/** Texts up to this length are parsed at once: some 2 ms. */
const PART_CHARS = 16_384

/** As `readToml`; a long text is parsed in parts, in shares of the event loop. */
export async function readLongToml(text: string, partChars = PART_CHARS): Promise<Table> {
  if (text.length <= partChars) return readToml(text)
  return (await readParts(text, partChars)) ?? readToml(text)
}

/**
 * All that a parser carries from one statement to the next are the tables made so far. So parts that parse alone say together what the
 * whole text says, provided that no two of them speak of the same table. Undefined where that cannot be told, and for what is not TOML.
 */
async function readParts(text: string, partChars: number): Promise<Table | undefined> {
  const blocks = await scanToml(text)
  const headers = blocks.filter(({ array }) => !array).map(({ names }) => JSON.stringify(names))
  if (new Set(headers).size < headers.length) return undefined
  try {
    const [first, ...rest] = partsOf(text, blocks, partChars)
    const content = readToml(first!)
    for (const part of rest) {
      await yieldToLoop()
      if (!join(content, readToml(part))) return undefined
    }
    return inOrder(content, blocks)
  } catch (error) {
    if (error instanceof TomlProblem) return undefined // the whole text tells the position
    throw error
  }
}

/** The first part has all tables whose top name the lines without a header use, or an array of tables: they may meet each other. */
function partsOf(text: string, blocks: readonly Block[], partChars: number): string[] {
  const [root, ...tables] = blocks as [Block, ...Block[]]
  const together = new Set([...root.entries, ...tables.filter(({ array }) => array)].map(({ names }) => names[0]))
  const parts = [text.slice(0, root.end)]
  let last: Block | undefined
  for (const block of tables) {
    const piece = text.slice(block.start, block.end)
    if (together.has(block.names[0])) parts[0] += piece
    else if (last && (parts.at(-1)!.length < partChars || isKin(last, block))) parts[parts.length - 1] += piece
    else parts.push(piece)
    if (!together.has(block.names[0])) last = block
  }
  return parts
}

/** `[providers.p]` and `[providers.p.env]`. */
function isKin({ names: [a, b] }: Block, { names: [c, d] }: Block): boolean {
  return a === c && b === d
}

/** Adds a part to the content. False: both speak of the same table. */
function join(content: Table, part: Table): boolean {
  return Object.entries(part).every(([key, value]) => {
    const there = own(content, key)
    if (there === undefined) put(content, key, value)
    else if (!isTable(there) || !isTable(value)) return false
    else {
      for (const [name, item] of Object.entries(value)) {
        if (Object.hasOwn(there, name)) return false
        put(there, name, item)
      }
    }
    return true
  })
}

/** Top-level keys in the order in which the text names them. */
function inOrder(content: Table, blocks: readonly Block[]): Table | undefined {
  const ordered: Table = {}
  const names = [...blocks[0]!.entries, ...blocks.slice(1)].map(({ names }) => names[0]!)
  for (const name of names) if (Object.hasOwn(content, name)) put(ordered, name, content[name])
  return Object.keys(ordered).length === Object.keys(content).length ? ordered : undefined
}
