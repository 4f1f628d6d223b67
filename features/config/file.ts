/** The configuration file on disk: read complete, replaced atomically, changed under a lock that other processes respect. */
import type { BigIntStats } from 'node:fs'
import { type FileHandle, mkdir, open, readFile, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { breathe, withLock } from '../../kernel/index.ts'
import { freeze, type Table } from './tables.ts'
import { readLongToml, TomlProblem } from './toml.ts'
import { editToml } from './toml-edit.ts'

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
  #stamp: string | undefined
  #known: Known | undefined

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
      if (!syscall) throw error
      this.#stamp = undefined
      return { problem: new FileProblem(`${code ?? 'unknown error'} (${syscall})`, { cause: error }) }
    }
  }

  /**
   * Read-modify-write. `change` gets the latest table (frozen) and answers the next one, or undefined to leave the file alone. Resolves when
   * the new content is on disk. Throws FileProblem while the file cannot be used. Callers wait for each other.
   */
  async change(change: (table: Table) => Table | undefined | Promise<Table | undefined>): Promise<FileContent> {
    return withLock(`${this.path}.lock`, async () => {
      // The file itself, for a stamp could be too coarse to tell two writes within one tick.
      const { text, table, problem } = await this.#read()
      if (text === undefined || !table) throw problem
      const next = await change(table)
      if (next === undefined) return { table }
      await breathe()
      const edited = await editToml({ text, table }, next)
      this.#stamp = await replace(this.path, edited.text)
      return this.#keep(edited.text, edited.table)
    })
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
      return this.#keep(text, await readLongToml(text))
    } catch (error) {
      if (!(error instanceof TomlProblem)) throw error
      this.#known = { text, problem: new FileProblem(error.message, { cause: error }) }
      return this.#known
    }
  }

  #keep(text: string, table: Table): Known {
    this.#known = { text, table: freeze(table) }
    return this.#known
  }
}

async function bytesOf(path: string): Promise<Uint8Array> {
  try {
    return await readFile(path)
  } catch (error) {
    if (isMissing(error)) return new Uint8Array()
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

/** A replaced file has another inode, even within one tick of the clock. */
function stampText({ ino, size, mtimeNs }: BigIntStats): string {
  return `${ino} ${size} ${mtimeNs}`
}

/** Answers the stamp of the new content. Through a temporary file beside the real one, so that a link to a file elsewhere stays a link. The lock serialises callers. */
async function replace(path: string, text: string): Promise<string> {
  const target = await realpath(path).catch((error: unknown) => {
    if (isMissing(error)) return path
    throw error
  })
  const temporary = join(dirname(target), `${basename(target)}~`)
  const handle = await create(temporary)
  let stamp: string
  try {
    try {
      await handle.writeFile(text)
      await handle.sync()
      stamp = stampText(await handle.stat({ bigint: true }))
    } finally {
      await handle.close()
    }
    await rename(temporary, target)
  } catch (error) {
    await unlink(temporary).catch(() => undefined) // the first error tells more
    throw error
  }
  await syncDirectory(dirname(target))
  return stamp
}

/** Opens a new file for its owner alone. What a crash left there goes: it may have been made with other rights. */
async function create(path: string): Promise<FileHandle> {
  const fresh = () => open(path, 'wx', 0o600)
  try {
    return await fresh()
  } catch (error) {
    if (isMissing(error)) await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    else if ((error as NodeJS.ErrnoException).code === 'EEXIST') await unlink(path)
    else throw error
    return fresh()
  }
}

/** Flushes the new name. Best effort: some platforms cannot open or flush a directory. */
async function syncDirectory(path: string): Promise<void> {
  const handle = await open(path, 'r').catch(() => undefined) // as above
  if (!handle) return
  try {
    await handle.sync()
  } catch {
    // as above
  } finally {
    await handle.close()
  }
}

function isMissing(error: unknown): boolean {
  const { code } = error as NodeJS.ErrnoException
  return code === 'ENOENT' || code === 'ENOTDIR'
}
