/** The configuration file on disk: read complete, replaced atomically, changed under a lock that other processes respect. */
import { constants } from 'node:fs'
import { chmod, mkdir, open, readFile, realpath, rename, stat, unlink } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { withLock } from '../../kernel/index.ts'
import type { Table } from './tables.ts'
import { readToml, TomlProblem, writeToml } from './toml.ts'

/** What the file holds right now. `problem`: it cannot be used. A missing file is empty. */
export interface FileContent {
  readonly text: string
  readonly table?: Table
  readonly problem?: TomlProblem
}

export class ConfigFile {
  readonly path: string
  #stamp: string | undefined
  #last: FileContent | undefined

  constructor(home: string) {
    this.path = join(home, 'config.toml')
  }

  /** Content as of now; the same object as before while the file did not change. */
  async read(): Promise<FileContent> {
    const stamp = await stampOf(this.path)
    if (this.#last && stamp === this.#stamp) return this.#last
    const content = decode(await bytesOf(this.path))
    this.#stamp = stamp
    if (this.#last?.text !== content.text) this.#last = content
    return this.#last as FileContent
  }

  /**
   * Read-modify-write. `change` gets the latest table (its own copy to edit) and answers the next one, or undefined to leave
   * the file alone. Resolves when the new content is on disk. Throws TomlProblem while the file cannot be parsed.
   */
  async change(change: (table: Table) => Table | undefined): Promise<FileContent> {
    return withLock(`${this.path}.lock`, async () => {
      this.#stamp = undefined // a stamp could be too coarse to tell two writes within one tick
      const before = await this.read()
      if (!before.table) throw before.problem
      const next = change(before.table)
      if (next === undefined) return before
      const text = await writeToml(before.text, next)
      await replace(this.path, text)
      this.#stamp = undefined
      return this.read()
    })
  }
}

function decode(bytes: Uint8Array): FileContent {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    return { text: Buffer.from(bytes).toString('latin1'), problem: new TomlProblem('not UTF-8', 1, 1, error) }
  }
  try {
    return { text, table: readToml(text) }
  } catch (error) {
    if (error instanceof TomlProblem) return { text, problem: error }
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
    const { ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true })
    return `${ino} ${size} ${mtimeNs} ${ctimeNs}`
  } catch (error) {
    if (isMissing(error)) return 'missing'
    throw error
  }
}

/** Through a temporary file beside the real one, so that a link to a file elsewhere stays a link. The lock serialises callers. */
async function replace(path: string, text: string): Promise<void> {
  const target = await realpath(path).catch((error: unknown) => {
    if (isMissing(error)) return path
    throw error
  })
  const temporary = join(dirname(target), `${basename(target)}~`)
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const handle = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC, 0o600)
  try {
    try {
      await handle.writeFile(text)
      await handle.sync()
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
