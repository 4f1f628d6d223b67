/** TOML text to plain tables and back. Comments, order and layout survive an edit; the result is always read back before it is used. */
import { setImmediate } from 'node:timers/promises'
import { parse, stringify, TomlError } from 'smol-toml'
import { copy, same, type Table } from './tables.ts'
import { editToml } from './toml-edit.ts'

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

/**
 * The text with `next` as its content: what did not change keeps its comments, order and layout. An edit that does not read back
 * as `next` is given up and the whole document is written anew. Throws when `next` has something TOML cannot say.
 */
export async function writeToml(text: string, before: Table, next: Table): Promise<string> {
  await setImmediate() // the steps of a large file go one by one, so that none holds the event loop for long
  const edited = editToml(text, before, next)
  await setImmediate()
  return readsAs(edited, next) ? edited : stringify(next)
}

function readsAs(text: string, expected: Table): boolean {
  try {
    return same(readToml(text), expected)
  } catch (error) {
    if (error instanceof TomlProblem) return false
    throw error
  }
}
