/** Worker: watches paths. In its own thread, because a large tree holds up the event loop for a second while it is read. */
import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { parentPort } from 'node:worker_threads'
import { type ChokidarOptions, FSWatcher } from 'chokidar'
import { type FileChange, type Trouble, WatchTrouble } from './change.ts'
import { Place } from './place.ts'
import type { PlaceOptions } from './spot.ts'

export type ToWatcher =
  | ({ readonly kind: 'open'; readonly id: number; readonly max: number } & PlaceOptions)
  | { readonly kind: 'close'; readonly id: number }

export type FromWatcher = { readonly id: number } & (
  | { readonly kind: 'opened' }
  | { readonly kind: 'changed'; readonly changes: readonly FileChange[] }
  | { readonly kind: 'unknown'; readonly count: number }
  | { readonly kind: 'refused' | 'lost'; readonly trouble: Trouble; readonly message: string }
)

/** Some file systems keep times in steps, ms. */
const youngMs = 2000

/** The library makes one for itself. */
const ownThrottler = undefined as never

const places = new Map<number, Promise<Place | undefined>>()
let entries = 0

const tell = (message: FromWatcher) => parentPort?.postMessage(message)

/**
 * What the library leaves out is told here. Files that look like backups of an editor: with `atomic` it is silent about them, and about whatever lies
 * below a directory with a dot in its name. And a link whose way leads through a file, or is too long, counts as one to nothing: at every other
 * error of resolving it the library would read no further in its directory, and never be ready. And what comes into a new directory
 * after the library has read it and before it watches it: such a directory is read again.
 */
export class WholeWatcher extends FSWatcher {
  constructor(options: ChokidarOptions) {
    super(options)
    const handler = this._nodeFsHandler
    const handleDir = handler._handleDir.bind(handler)
    handler._handleDir = async (...given) => {
      const [dir, stats, , depth, target, helper] = given
      const end = await handleDir(...given)
      if (end && !target && (await this.#isYoung(dir, stats)))
        void handler._handleRead(dir, false, helper, target, dir, depth, ownThrottler)
      return end
    }
  }

  /** The directory changed lately, perhaps after it was read. */
  async #isYoung(dir: string, { mtimeMs }: Stats): Promise<boolean> {
    const now = await lstat(dir).catch(() => undefined) // gone, which its own watcher tells
    return now !== undefined && (now.mtimeMs !== mtimeMs || Date.now() - mtimeMs < youngMs)
  }

  override _isIgnored(path: string, stats?: Stats): boolean {
    return this.options.ignored.some(matcher => typeof matcher === 'function' && matcher(path, stats))
  }

  override _readdirp(...given: Parameters<FSWatcher['_readdirp']>): ReturnType<FSWatcher['_readdirp']> {
    const stream = super._readdirp(...given)
    if (!stream) return stream
    const failed = stream._onError.bind(stream)
    stream._onError = (error: NodeJS.ErrnoException) =>
      failed(error.syscall === 'realpath' ? Object.assign(error, { code: 'ENOENT' }) : error)
    return stream
  }
}

function watch(path: string, options: ChokidarOptions): FSWatcher {
  const watcher = new WholeWatcher(options)
  watcher.add(path)
  return watcher
}

function open({ id, max, root, path, recursive }: Extract<ToWatcher, { kind: 'open' }>): Promise<Place | undefined> {
  const ports = {
    watch,
    count: (change: number) => {
      entries += change
      return entries <= max
    },
    changed: (changes: readonly FileChange[]) => tell({ kind: 'changed', id, changes }),
    unknown: (count: number) => tell({ kind: 'unknown', id, count }),
    lost: ({ trouble, message }: WatchTrouble) => tell({ kind: 'lost', id, trouble, message })
  }
  return Place.open({ root, path, recursive }, ports).then(
    place => {
      tell({ kind: 'opened', id })
      return place
    },
    error => {
      const { trouble, message } = WatchTrouble.of(error)
      tell({ kind: 'refused', id, trouble, message })
      return undefined
    }
  )
}

parentPort?.on('message', (message: ToWatcher) => {
  if (message.kind === 'open') places.set(message.id, open(message))
  else {
    const place = places.get(message.id)
    places.delete(message.id)
    void place?.then(opened => opened?.close())
  }
})
