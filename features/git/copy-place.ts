/** A directory for copies, and what belongs to them, gone after its use. Making and removing files takes a disk far longer than what is in them. */
import { access, constants, mkdir, readdir, rm, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { isAbandoned, lookAtAll, temporaryName, yieldToLoop } from '../../kernel/index.ts'

const PREFIX = 'svc-code-diff-'

/** Files in memory, on Linux. */
const MEMORY = '/dev/shm'
/** `f_type` of a file system that is one. */
const TMPFS = 0x01021994
/** So much is copied there; of what is free a part. */
const MEMORY_BYTES = 32 * 1024 * 1024
const FREE_TIMES = 4
/** Files that are looked at before it yields to the loop. */
const SLICE = 256

/**
 * A directory for copies of these files (absolute), for nobody else to look into: in memory where there is room and `TMPDIR` names no other place,
 * else where the system keeps temporary files.
 */
export async function withCopyPlace<T>(files: readonly string[], use: (place: string) => Promise<T>): Promise<T> {
  const inMemory = process.env.TMPDIR ? false : await hasMemoryFor(await sizeOf(files))
  const place = join(inMemory ? MEMORY : tmpdir(), PREFIX + (await temporaryName()))
  await sweep(tmpdir())
  if (!process.env.TMPDIR) await sweep(MEMORY)
  await mkdir(place, { mode: 0o700 })
  try {
    return await use(place)
  } finally {
    await rm(place, { recursive: true, force: true })
  }
}

async function sizeOf(files: readonly string[]): Promise<number> {
  let bytes = 0
  for (let at = 0; at < files.length; at += SLICE) {
    for (const facts of await lookAtAll(files.slice(at, at + SLICE))) bytes += facts?.isFile() ? facts.size : 0
    await yieldToLoop()
  }
  return bytes
}

async function hasMemoryFor(bytes: number): Promise<boolean> {
  if (process.platform !== 'linux' || bytes > MEMORY_BYTES) return false
  try {
    await access(MEMORY, constants.W_OK | constants.X_OK)
    const { type, bavail, bsize } = await statfs(MEMORY)
    return type === TMPFS && bavail * bsize > bytes * FREE_TIMES
  } catch {
    return false // not there, or not for this user
  }
}

/** Removes the copies of servers that died over a diff, as far as that goes; the next diff tries again. */
async function sweep(dir: string): Promise<void> {
  const names = await readdir(dir).catch(() => [])
  await Promise.allSettled(
    names
      .filter(name => name.startsWith(PREFIX))
      .map(async name => {
        const tree = join(dir, name)
        if (await isAbandoned(tree)) await rm(tree, { recursive: true, force: true })
      })
  )
}
