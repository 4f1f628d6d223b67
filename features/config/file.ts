/** The configuration file on disk: read complete, replaced atomically, changed under a lock that other processes respect. */
import { type BigIntStats, constants } from 'node:fs'
import { chmod, mkdir, open, readFile, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withLock } from '../../kernel/index.ts'
import type { Table } from './tables.ts'
import { readToml, TomlProblem, writeToml } from './toml.ts'

/** What the file holds right now. `problem`: it cannot be used. A missing file is empty. */
export interface FileContent {
  readonly text: string
  readonly table?: Table
  readonly problem?: FileProblem
}

/** Why the file cannot be used: its text (a position is named) or the file system. Never a part of the text. */
export class FileProblem extends Error {}

export class ConfigFile {
  readonly path: string
  #stamp: string | undefined
  #last: FileContent | undefined

  constructor(home: string) {
    this.path = join(home, 'config.toml')
  }

  /** Content as of now; the same object as before while the file did not change. A file that cannot be read is a problem, not a failure. */
  async read(): Promise<FileContent> {
    try {
      const stamp = await stampOf(this.path)
      if (this.#last && stamp === this.#stamp) return this.#last
      const content = decode(await bytesOf(this.path))
      this.#stamp = stamp // taken before the read: a write in between is seen next time
      if (this.#last?.text !== content.text) this.#last = content
      return this.#last as FileContent
    } catch (error) {
      const { code, syscall } = error as NodeJS.ErrnoException
      if (!syscall) throw error
      this.#stamp = undefined
      return { text: '', problem: new FileProblem(`${code ?? 'unknown error'} (${syscall})`, { cause: error }) }
    }
  }

  /**
   * Read-modify-write. `change` gets the latest table (its own copy to edit) and answers the next one, or undefined to leave
   * the file alone. Resolves when the new content is on disk. Throws FileProblem while the file cannot be used.
   */
  async change(change: (table: Table) => Table | undefined): Promise<FileContent> {
    return withLock(`${this.path}.lock`, async () => {
      this.#stamp = undefined // a stamp could be too coarse to tell two writes within one tick
      const before = await this.read()
      if (!before.table) throw before.problem
      const next = change(before.table)
      if (next === undefined) return before
      const text = await writeToml(before.text, before.table, next)
      const stamp = await replace(this.path, text)
      this.#last = { text, table: next } // writeToml has read it back
      this.#stamp = stamp
      return this.#last
    })
  }
}

function decode(bytes: Uint8Array): FileContent {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    return { text: Buffer.from(bytes).toString('latin1'), problem: new FileProblem('not UTF-8', { cause: error }) }
  }
  try {
    return { text, table: readToml(text) }
  } catch (error) {
    if (error instanceof TomlProblem) return { text, problem: new FileProblem(error.message, { cause: error }) }
    throw error
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
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600)
  let stamp: string
  try {
    try {
      await handle.writeFile(text)
      await handle.sync()
      stamp = stampText(await handle.stat({ bigint: true }))
    } finally {
      await handle.close()
    }
    await chmod(temporary, 0o600) // a leftover of a crash may have been made with other rights
    await rename(temporary, target)
  } catch (error) {
    await unlink(temporary).catch(() => undefined) // the first error tells more
    throw error
  }
  await syncDirectory(dirname(target))
  return stamp
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
