/** TOML text to plain tables and back. Comments, order and layout survive an edit; the result is always read back before it is used. */
import { parse, stringify, TomlDate, TomlError } from 'smol-toml'
import { copy, isTable, put, same, type Table } from './tables.ts'

/** The text is not TOML. The message carries the position and never a part of the text. */
export class TomlProblem extends Error {
  readonly line: number
  readonly column: number

  constructor(reason: string, line: number, column: number, cause?: unknown) {
    super(`line ${line}, column ${column}: ${reason}`, { cause })
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

/**
 * The text with `next` as its content: what did not change keeps its comments, order and layout. Where the edit cannot be made
 * in place the whole document is written anew. Throws when `next` has something TOML cannot say.
 */
export async function writeToml(text: string, next: Table): Promise<string> {
  const { patch, TomlFormat, parse: parseEdited } = await import('@decimalturn/toml-patch')
  try {
    const format = TomlFormat.default()
    format.trailingComma = false
    format.inlineTableStart = 3
    const edited = patch(
      text,
      forPatch(next, date => (parseEdited(`d = ${date}`) as Table).d),
      format
    )
    if (same(readToml(edited), next)) return edited
  } catch {
    // the library gave up on this edit; the whole document follows
  }
  return stringify(next)
}

function forPatch(value: unknown, date: (text: string) => unknown): unknown {
  if (value instanceof TomlDate) return date(value.toISOString())
  if (Array.isArray(value)) return value.map(item => forPatch(item, date))
  if (!isTable(value)) return value
  const table: Table = {}
  for (const [key, item] of Object.entries(value)) put(table, key, forPatch(item, date))
  return table
}
