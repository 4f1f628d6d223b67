/** The file system as the file tools need it; another implementation (a remote machine, a test) can stand in. */
import { createReadStream } from 'node:fs'
import { access, appendFile, constants, readFile, stat, statfs, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isMissing, makeDirs, replaceFile } from '../../kernel/index.ts'
import { leadsTo } from '../tools/index.ts'

export interface FileFacts {
  readonly kind: 'file' | 'directory' | 'other'
  readonly size: number
  readonly mtimeMs: number
  /** Names of the file (hard links). */
  readonly links: number
}

/** Paths are absolute. Failures reject with Node's errno codes. */
export interface FileOps {
  /** Undefined when nothing is there. Symbolic links are followed. */
  stat(path: string): Promise<FileFacts | undefined>
  /** Where the path leads, also when nothing is there yet. */
  leadsTo(path: string): Promise<string>
  /** Whether the file may be changed. */
  mayWrite(path: string): Promise<boolean>
  /** Whether files may be made in the directory. */
  mayFill(path: string): Promise<boolean>
  /** Whether the directory can be read, and what is in it reached. */
  maySearch(path: string): Promise<boolean>
  /** The bytes in chunks. */
  read(path: string, signal: AbortSignal): AsyncIterable<Uint8Array>
  readAll(path: string): Promise<Buffer>
  /** Replaces or creates the file, complete or not at all; mode and owner of an existing file stay. Makes missing directories. */
  replace(path: string, content: Uint8Array): Promise<void>
  /** Makes missing directories and the file. */
  append(path: string, content: Uint8Array): Promise<void>
}

/** Types of file systems (`statfs`) in which the kernel makes all files, whatever the mode of a directory says: proc and sysfs. */
const kernelFiles = [0x9fa0, 0x62656572]

/**
 * Without waiting for whoever is at the other end: a pipe may take the place of a file that was looked at, and a thread of the server would wait
 * there for ever. The library takes numbers, whatever its types say.
 */
const noWait = constants.O_NONBLOCK ?? 0
const atOnce = constants.O_RDONLY | noWait
const atEndAtOnce = constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | noWait

const may = (path: string, rights: number) =>
  access(path, rights).then(
    () => true,
    () => false // whatever the reason, what is to be done would fail for it, too
  )
const mayWrite = (path: string) => may(path, constants.W_OK)

export const nodeFileOps: FileOps = {
  async stat(path) {
    try {
      const found = await stat(path)
      return {
        kind: found.isFile() ? 'file' : found.isDirectory() ? 'directory' : 'other',
        size: found.size,
        mtimeMs: found.mtimeMs,
        links: found.nlink
      }
    } catch (error) {
      if (isMissing(error)) return undefined
      throw error
    }
  },
  leadsTo,
  mayWrite,
  async mayFill(path) {
    if (!(await mayWrite(path))) return false
    const found = await statfs(path).catch(() => undefined) // not every system tells
    return found === undefined || !kernelFiles.includes(found.type)
  },
  maySearch: path => may(path, constants.R_OK | constants.X_OK),
  read: (path, signal) => createReadStream(path, { flags: atOnce as never, highWaterMark: 256 * 1024, signal }) as AsyncIterable<Buffer>,
  readAll: path => readFile(path, { flag: atOnce }),
  async replace(path, content) {
    await makeDirs(dirname(path))
    const old = await stat(path).catch(() => undefined) // absent: a new file
    try {
      await replaceFile(path, [content], { like: old, mode: 0o666, unserialised: true })
    } catch (error) {
      // The directory takes no new file, but the file itself may be writable; one with other names would change under these, too.
      if (old?.nlink !== 1 || !isDenied(error)) throw error
      await writeFile(path, content)
    }
  },
  async append(path, content) {
    await makeDirs(dirname(path))
    await appendFile(path, content, { flag: atEndAtOnce })
  }
}

const codeOf = (error: unknown) => (error as NodeJS.ErrnoException | undefined)?.code
const isDenied = (error: unknown) => ['EACCES', 'EPERM', 'EROFS'].includes(codeOf(error) ?? '')
