/** Copies what a plugin brings into a directory of the server: from an archive or a directory, within bounds, and nothing outside of it. */
import { createHash, type Hash } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { lstat, mkdir, readdir, realpath, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { headOf } from '../../kernel/index.ts'
import { isInside } from '../tools/index.ts'

/** Why an archive or a directory cannot be taken; its message may be shown. */
export class UnpackProblem extends Error {}

export interface UnpackLimits {
  /** Files and directories. */
  readonly entries: number
  /** Bytes of all files together. */
  readonly bytes: number
}
const usualLimits: UnpackLimits = { entries: 20_000, bytes: 500 * 1024 * 1024 }

const fileType = 0o170000
const link = 0o120000
const regular = 0o100000

/** What is used of the library; its published types do not know the promises. */
interface Entry {
  readonly fileName: string
  readonly externalFileAttributes: number
  isEncrypted(): boolean
}
interface ZipFile {
  readonly entryCount: number
  readonly comment: string
  eachEntry(): AsyncIterable<Entry>
  openReadStreamPromise(entry: Entry): Promise<Readable>
  close(): void
}
interface Yauzl {
  openPromise(file: string, options: object): Promise<ZipFile>
}

/** Unpacks into an empty directory. Resolves with the comment of the archive. */
export async function unzip(file: string, into: string, signal: AbortSignal, limits: UnpackLimits = usualLimits): Promise<string> {
  const { openPromise } = (await import('yauzl')) as unknown as Yauzl
  // Old archivers of Windows write backslashes: they are taken as slashes, and looked at as those.
  const options = { lazyEntries: true, autoClose: false, strictFileNames: false, validateEntrySize: true }
  const zip = await openPromise(file, options).catch((error: Error) => {
    throw new UnpackProblem(`the archive cannot be read: ${error.message}`)
  })
  const room = new Room(limits)
  try {
    if (zip.entryCount > limits.entries) throw new UnpackProblem(`the archive holds more than ${limits.entries} entries`)
    for await (const entry of zip.eachEntry()) {
      signal.throwIfAborted()
      room.entry()
      await write(zip, entry, into, room, signal).catch(error => {
        throw named(error, entry)
      })
    }
    return zip.comment
  } catch (error) {
    if (error instanceof UnpackProblem || signal.aborted) throw error
    throw new UnpackProblem(`the archive cannot be unpacked: ${(error as Error).message}`)
  } finally {
    zip.close()
  }
}

/** What the disk refuses names the place of the unpacking: people are told the entry. */
function named(error: NodeJS.ErrnoException, { fileName }: Entry): Error {
  if (error.syscall === undefined) return error
  const twice = ['EEXIST', 'EISDIR', 'ENOTDIR'].includes(error.code ?? '')
  const name = headOf(fileName, 200)
  return new UnpackProblem(twice ? `the archive holds ${name} twice` : `the archive cannot be unpacked: ${name}: ${error.code}`, {
    cause: error
  })
}

async function write(zip: ZipFile, entry: Entry, into: string, room: Room, signal: AbortSignal): Promise<void> {
  const mode = entry.externalFileAttributes >>> 16
  const target = join(into, entry.fileName)
  if (!isInside(target, into)) throw new UnpackProblem('an entry of the archive leads out of it')
  if ((mode & fileType) === link) throw new UnpackProblem(`the archive holds a link: ${headOf(entry.fileName, 200)}`)
  if (entry.fileName.endsWith('/')) {
    await mkdir(target, { recursive: true, mode: 0o700 })
    return
  }
  if ((mode & fileType) !== 0 && (mode & fileType) !== regular) throw new UnpackProblem('the archive holds something that is no file')
  if (entry.isEncrypted()) throw new UnpackProblem('the archive is encrypted')
  await mkdir(dirname(target), { recursive: true, mode: 0o700 })
  const source = await zip.openReadStreamPromise(entry)
  await pipeline(source, room.meter(), createWriteStream(target, { flags: 'wx', mode: mode & 0o100 ? 0o700 : 0o600 }), { signal })
}

/** Counts what was taken. */
class Room {
  readonly #limits: UnpackLimits
  #entries = 0
  #bytes = 0

  constructor(limits: UnpackLimits) {
    this.#limits = limits
  }

  entry(): void {
    if (++this.#entries > this.#limits.entries) throw new UnpackProblem(`there are more than ${this.#limits.entries} files`)
  }

  bytes(count: number): void {
    this.#bytes += count
    if (this.#bytes > this.#limits.bytes) throw new UnpackProblem(`the files hold more than ${this.#limits.bytes} bytes together`)
  }

  meter(hash?: Hash): Transform {
    const count = (bytes: number) => this.bytes(bytes)
    return new Transform({
      transform(chunk: Buffer, _encoding, done) {
        try {
          count(chunk.length)
          hash?.update(chunk)
          done(null, chunk)
        } catch (error) {
          done(error as Error)
        }
      }
    })
  }
}

/** Copies a directory, without `.git`. Links inside become what they lead to. Resolves with a digest of names and contents. */
export async function copyTree(from: string, into: string, signal: AbortSignal, limits: UnpackLimits = usualLimits): Promise<string> {
  const root = await realpath(from)
  const copier = new Copier(root, new Room(limits), signal)
  await copier.directory(root, into, 0)
  return copier.digest()
}

const maxDepth = 40

class Copier {
  readonly #root: string
  readonly #room: Room
  readonly #signal: AbortSignal
  readonly #hash = createHash('sha256')

  constructor(root: string, room: Room, signal: AbortSignal) {
    this.#root = root
    this.#room = room
    this.#signal = signal
  }

  digest(): string {
    return `sha256-${this.#hash.digest('base64')}`
  }

  async directory(from: string, into: string, depth: number): Promise<void> {
    if (depth > maxDepth) throw new UnpackProblem('its directories are too deep, or a link leads back')
    await mkdir(into, { recursive: true, mode: 0o700 })
    const names = (await readdir(from)).filter(name => name !== '.git').sort()
    for (const name of names) {
      this.#signal.throwIfAborted()
      this.#room.entry()
      const path = await this.#resolved(join(from, name))
      const found = await stat(path)
      if (found.isDirectory()) await this.directory(path, join(into, name), depth + 1)
      else if (found.isFile()) await this.#file(path, join(into, name), found.mode)
      else throw new UnpackProblem(`${relative(this.#root, path)} is no file and no directory`)
    }
  }

  async #resolved(path: string): Promise<string> {
    if (!(await lstat(path)).isSymbolicLink()) return path
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined || !isInside(real, this.#root))
      throw new UnpackProblem(`the link ${relative(this.#root, path)} leads out of the plugin`)
    return real
  }

  async #file(from: string, into: string, mode: number): Promise<void> {
    this.#hash.update(`${relative(this.#root, from)}\0`)
    const written = createWriteStream(into, { flags: 'wx', mode: mode & 0o100 ? 0o700 : 0o600 })
    await pipeline(createReadStream(from), this.#room.meter(this.#hash), written, { signal: this.#signal })
  }
}
