/** The journal of global events. One process of a home owns the shared file; others keep one of their own while they run. */
import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from '../log/log.ts'
import { acquireLock, type Lock } from '../storage/lock.ts'
import { globalStream } from './event-frame.ts'

export interface GlobalPlace {
  readonly path: string
  /** Gives the place back; a file of our own goes away. Call it after the journal is closed. */
  release(): Promise<void>
}

const leftoverMs = 7 * 24 * 60 * 60 * 1000

/** Finds the file for this process's global events: the shared one unless another live process has it. */
export async function globalPlace(dir: string, server_id: string, log: Logger): Promise<GlobalPlace> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  let lock: Lock | undefined
  try {
    lock = await acquireLock(join(dir, `${globalStream}.lock`), { info: { server_id } })
  } catch (err) {
    log.warn({ err }, 'the journal of global events could not be locked; this process uses its own')
  }
  if (lock) {
    await removeLeftovers(dir).catch(err => log.warn({ err }, 'old journals of other processes could not be removed'))
    return { path: join(dir, `${globalStream}.jsonl`), release: () => lock.release() }
  }
  const path = join(dir, `${globalStream}.${server_id}.jsonl`)
  return { path, release: () => rm(path, { force: true }) }
}

/** Files of processes that were killed while another one had the shared file. */
async function removeLeftovers(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!/^__global__\.[^.]+\.jsonl$/.test(name)) continue
    const path = join(dir, name)
    if (Date.now() - (await stat(path)).mtimeMs > leftoverMs) await rm(path, { force: true })
  }
}
