/** The journals of a home on files: `<home>/server/events/<id>.jsonl`. */
import { createReadStream } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Fence } from '../storage/fences.ts'
import { ensureDir, type FileCalls, removeFile, replaceFile, unlessMissing } from '../storage/files.ts'
import { LineFiles } from '../storage/line-file.ts'
import { acquireLock } from '../storage/lock.ts'
import type { EngineEnvironment } from '../storage/ports.ts'
import { globalStream } from './event-frame.ts'
import type { Journals } from './journal.ts'
import { JournalFile } from './journal-file.ts'

export interface FileJournalsOptions {
  /** Absolute path, made with the first journal; default `<home>/server/events`. */
  readonly dir?: string
  /** Files kept open between writes; default 128. */
  readonly handles?: number
  /** Default: those of Node. */
  readonly files?: FileCalls
}

/** A killed process loses nothing; lines reach the medium within a second. */
export function createJournals(env: EngineEnvironment, options: FileJournalsOptions = {}): Journals {
  const { dir = join(env.home, 'server', 'events') } = options
  /** Of the journals that are open, by path. */
  const fences = new Map<string, Fence>()
  const lines = new LineFiles({
    fenceOf: path => fences.get(path),
    flush: 'later',
    handles: options.handles ?? 128,
    files: options.files,
    warn: (path, text, fields) => env.log.warn({ path, ...fields }, `event journal: ${text}`)
  })
  const shared = join(dir, `${globalStream}.jsonl`)
  let place: Promise<GlobalPlace> | undefined
  const pathOf = async (id: string) => {
    if (id !== globalStream) return join(dir, `${id}.jsonl`)
    place ??= takeGlobalPlace(dir, shared, env)
    return (await place).path
  }
  return {
    async open(id, fence) {
      const path = await pathOf(id)
      // Whoever had the session may still write to the file that it has open.
      const isShared = fence?.overtaken && fences.get(path) !== fence
      const own = async () => isShared && (await unlessMissing(replaceFile(path, createReadStream(path), { unserialised: true })))
      if (fence) fences.set(path, fence)
      else fences.delete(path)
      return JournalFile.open(env, path, lines, own, () => {
        if (fences.get(path) === fence) fences.delete(path) // whoever opens it next has a lease of its own
      })
    },
    find: async id => JournalFile.find(env, id === globalStream && !place ? shared : await pathOf(id), lines),
    remove: async id => {
      if (id === globalStream) return
      const path = await pathOf(id)
      await lines.release(path)
      await removeWithQuarantined(path)
    },
    close: async () => {
      await lines.close()
      await (await place)?.release()
    }
  }
}

interface GlobalPlace {
  readonly path: string
  /** Gives the place back; a file of our own goes away. */
  release(): Promise<unknown>
}

const leftoverMs = 7 * 24 * 60 * 60 * 1000

/** The file for this process's global events: the shared one, unless another live process has it or it cannot be locked. */
async function takeGlobalPlace(dir: string, shared: string, { server_id, log }: EngineEnvironment): Promise<GlobalPlace> {
  try {
    await ensureDir(dir)
    const lock = await acquireLock(join(dir, `${globalStream}.lock`), { info: { server_id } })
    if (lock) {
      await removeLeftovers(dir).catch(err => log.warn({ err }, 'old journals of other processes could not be removed'))
      return { path: shared, release: () => lock.release() }
    }
  } catch (err) {
    log.warn({ err }, 'the journal of global events could not be locked; this process uses its own')
  }
  const path = join(dir, `${globalStream}.${server_id}.jsonl`)
  return { path, release: () => removeFile(path) }
}

/** A file and what was quarantined of it. */
async function removeWithQuarantined(path: string): Promise<void> {
  await removeFile(path)
  const quarantined = `${basename(path)}.damaged-`
  const names = await readdir(dirname(path)).catch(() => [] as string[]) // no journal was made yet
  for (const name of names) if (name.startsWith(quarantined)) await removeFile(join(dirname(path), name))
}

/** Files of processes that were killed while another one had the shared file. */
async function removeLeftovers(dir: string): Promise<void> {
  for (const name of await readdir(dir)) {
    if (!/^__global__\.[^.]+\.jsonl$/.test(name)) continue
    const path = join(dir, name)
    if (Date.now() - (await stat(path)).mtimeMs > leftoverMs) await removeFile(path)
  }
}
