/** TOML text to plain tables. */
import { parse, TomlError } from 'smol-toml'
import { copy, type Table } from './tables.ts'

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
