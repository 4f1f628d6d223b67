/** The configuration file on disk: read complete, replaced atomically, changed under a lock that other processes respect. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { AppError, type FileStamp, FileUnusable, invalid, isMissing, readBounded, yieldToLoop } from '../../kernel/index.ts'
import { lockBounded, replaceBounded } from './given-file.ts'
import { freeze, shared, type Table } from './tables.ts'
import { TomlProblem } from './toml.ts'
import { editToml } from './toml-edit.ts'
import { TomlReader } from './toml-reader.ts'

/** No configuration is larger; the start reads as much of it. */
const mostBytes = 8 * 1024 * 1024

/** What the file holds right now. `problem`: it cannot be used. A missing file is empty. */
export interface FileContent {
  readonly table?: Table
  readonly problem?: FileProblem
}

/** Why the file cannot be used: its text (a position is named) or the file system. Never a part of the text. */
export class FileProblem extends Error {}

/** What was read last. `text` is undefined for bytes that are no text. */
interface Known extends FileContent {
  readonly text: string | undefined
}

export class ConfigFile {
  readonly path: string
  readonly #reader = new TomlReader()
  #stamp: string | undefined
  #known: Known | undefined
  /** The last one that was read. */
  #table: Table = freeze({})

  constructor(home: string) {
    this.path = join(home, 'config.toml')
  }

  /** Content as of now; the same object as before while the file did not change. A file that cannot be read is a problem, not a failure. */
  async read(): Promise<FileContent> {
    try {
      const stamp = await stampOf(this.path)
      if (this.#known && stamp === this.#stamp) return this.#known
      const known = await this.#read()
      this.#stamp = stamp // taken before the read: a write in between is seen next time
      return known
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException
      if (!syscall && !(error instanceof FileProblem)) throw error
      this.#stamp = undefined
      if (error instanceof FileProblem) return { problem: error }
      return { problem: new FileProblem(`${code ?? 'unknown error'} (${syscall})`, { cause: error }) }
    }
  }

  /**
   * Read-modify-write. `change` gets the latest table (frozen) and answers the next one, or undefined to leave the file alone. Resolves when
   * the new content is on disk. Throws what `change` throws, and 40001 when the file cannot be used, read or written. Callers wait for each
   * other.
   */
  change(change: (table: Table) => Table | undefined | Promise<Table | undefined>): Promise<FileContent> {
    const saved = lockBounded(this.path, async lock => {
      // The file itself, for a stamp could be too coarse to tell two writes within one tick.
      const { text, table, problem } = await this.#read()
      if (text === undefined || !table) throw problem
      const next = await change(table)
      if (next === undefined) return { table }
      await yieldToLoop()
      const edited = await editToml({ text, table }, next, this.#reader)
      this.#stamp = stampText(await replaceBounded(this.path, edited.text, mostBytes, { confirm: () => lock.confirm() }))
      return this.#keep(edited.text, edited.table)
    })
    return saved.catch(refusal)
  }

  async #read(): Promise<Known> {
    const bytes = await bytesOf(this.path)
    let text: string
    try {
      text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
    } catch (error) {
      this.#known = { text: undefined, problem: new FileProblem('not UTF-8', { cause: error }) }
      return this.#known
    }
    if (this.#known?.text === text) return this.#known
    try {
      return this.#keep(text, await this.#reader.read(text))
    } catch (error) {
      if (!(error instanceof TomlProblem)) throw error
      this.#known = { text, problem: new FileProblem(error.message, { cause: error }) }
      return this.#known
    }
  }

  /** What a new version says as the one before stays the same objects. */
  #keep(text: string, table: Table): Known {
    this.#table = freeze(shared(this.#table, table, true))
    this.#known = { text, table: this.#table }
    return this.#known
  }
}

const unsaved = (why: string, cause: unknown) => invalid([{ path: '', message: `config.toml could not be saved: ${why}` }], cause)

/** Every reason why a save failed is a 40001 (contract 1, Configuration, rule 5); bugs stay bugs. */
function refusal(error: unknown): never {
  if (error instanceof FileProblem) {
    throw invalid([{ path: '', message: `config.toml cannot be used, fix it first: ${error.message}` }], error)
  }
  if (error instanceof FileUnusable) throw unsaved(error.message, error)
  if (AppError.is(error)) {
    if (error.spec.code === 40001) throw error
    throw unsaved(error.message, error)
  }
  const { code, syscall } = error as NodeJS.ErrnoException
  if (syscall) throw unsaved(`${code ?? 'unknown'} (${syscall})`, error)
  throw error
}

/** Empty for a missing file. */
async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return await readBounded(path, mostBytes)
  } catch (error) {
    if (isMissing(error)) return new Uint8Array()
    if (error instanceof FileUnusable) throw new FileProblem(error.message, { cause: error })
    throw error
  }
}

async function stampOf(path: string): Promise<string> {
  try {
    return stampText(await stat(path, { bigint: true }))
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}

function stampText({ ino, size, mtimeNs }: FileStamp): string {
  return `${ino} ${size} ${mtimeNs}`
}
