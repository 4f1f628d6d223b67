/** A watcher of the library for large trees, from which nothing is left out. */
import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ChokidarOptions, FSWatcher } from 'chokidar'

/** Watchers of directories are told which file changed. Elsewhere each file needs its own. */
const namesFiles = ['linux', 'darwin', 'win32'].includes(process.platform)
/** Changes of one path within so many ms are looked at once, behind them. */
const againMs = 5
/** As long the library removes no path twice, ms. */
const removedMs = 100
/** Files and directories that are looked at at a time. */
const maxRunning = 16
/** Some file systems keep times in steps, ms. */
const youngMs = 2000

/** As long a directory may be read before a change in it has it read beside that, ms. */
const readingMs = 60_000

type Kind = 'file' | 'directory' | 'link'

/** Numbers of removed ones are used again, times of birth are not known everywhere. */
const identityOf = ({ ino, birthtimeMs }: Stats) => ino + birthtimeMs

/** The library makes one for itself. */
const ownThrottler = undefined as never

/**
 * The library gives each file a watcher of its own, which costs some 10 KB and one of the watches of the machine. What happens to a file is
 * told by the watcher of its directory here. As long as it has none, a change of a file in it is seen by the time of that.
 *
 * What the library leaves out is told here. What takes the place of something else under its name before the library has looked: a file that of a
 * link, a new directory that of a removed one, whose watcher would never hear of it. Files that look like backups of an editor: with `atomic` it
 * is silent about them, and about whatever lies below a directory with a dot in its name. And a link whose way leads through a file, or is too long, counts as one to nothing: at every other
 * error of resolving it the library would read no further in its directory, and never be ready. And what comes into a new directory
 * after the library has read it and before it watches it: such a directory is read again.
 */
export class WholeWatcher extends FSWatcher {
  /** Those that are told by their directories, with the times at which they changed last. */
  readonly #files = new Map<string, number>()
  /** Which directories are watched: a number that another one under the name does not have. */
  readonly #directories = new Map<string, number>()
  /** Paths that are looked at soon. */
  readonly #soon = new Map<string, NodeJS.Timeout>()
  /** Files and directories that are looked at. */
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(options: ChokidarOptions) {
    super({ ...options, ignorePermissionErrors: true }) // else it leaves out files that their owner may not read
    const handler = this._nodeFsHandler
    const add = handler._addToNodeFs.bind(handler)
    handler._addToNodeFs = (...given) => this.#inTurn(() => add(...given))
    const handleDir = handler._handleDir.bind(handler)
    handler._handleDir = async (...given) => {
      const [dir, stats, , depth, target, helper] = given
      if (stats.isDirectory()) this.#directories.set(dir, identityOf(stats))
      const end = await handleDir(...given)
      if (end && !target && (await this.#isYoung(dir, stats))) {
        void handler._handleRead(dir, false, helper, target, dir, depth, ownThrottler)
        for (const name of this._getWatchedDir(dir).getChildren()) void this.#inTurn(() => this.#look(join(dir, name), true))
      }
      return end
    }
    if (!namesFiles || this.options.usePolling) return
    handler._handleFile = (file, stats) => this.#take(file, stats)
    this.on('raw', (event, name: string | null, details) => {
      if (name === null) return
      const { watchedPath } = details as { readonly watchedPath: string }
      const path = join(watchedPath, name)
      if (event === 'rename' || !this.#directories.has(path)) this.#lookSoon(path)
      if (event === 'rename' && name === basename(watchedPath)) this.#lookSoon(watchedPath) // it is gone, perhaps
    })
  }

  /** The library takes each backslash of a path that it is asked for as a slash, which it is on Windows alone. */
  override add(path: string): this {
    this._incrReadyCount()
    void this._nodeFsHandler._addToNodeFs(path, true, undefined, 0)
    return this
  }

  /** The library would look at all files of a tree at once. The newest first: so few wait. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (this.#running < maxRunning) this.#running++
    else await new Promise<void>(resolve => this.#waiting.push(resolve))
    try {
      return await work()
    } finally {
      const next = this.#waiting.pop()
      if (next) next()
      else this.#running--
    }
  }

  /** In place of a watcher of its own. */
  #take(file: string, stats: Stats): undefined {
    const siblings = this._getWatchedDir(dirname(file))
    if (this.closed || siblings.has(basename(file))) return
    siblings.add(basename(file))
    this.#files.set(file, stats.mtimeMs)
    void this._emit('add', file, stats)
  }

  #lookSoon(path: string, ms = againMs): void {
    if (this.#soon.has(path) || this.#knownAs(path) === undefined) return // its directory tells what comes
    const look = () => {
      this.#soon.delete(path)
      void this.#look(path, false)
    }
    this.#soon.set(path, setTimeout(look, ms))
  }

  #knownAs(path: string): Kind | undefined {
    if (this.#files.has(path)) return 'file'
    if (this.#directories.has(path)) return 'directory'
    return this._symlinkPaths.has(path) ? 'link' : undefined
  }

  /** Something happened there, or may have (`doubtful`): a change that is no more than a look at a file is none. */
  async #look(path: string, doubtful: boolean): Promise<void> {
    const known = this.#knownAs(path)
    const before = this.#files.get(path)
    if (known === undefined || (doubtful && known === 'directory')) return
    const now = await lstat(path).catch(() => undefined) // it has gone
    if (this.closed || this.#knownAs(path) !== known) return
    if (!now) {
      if (known === 'file') this._remove(dirname(path), basename(path)) // of others their directory tells it
      return
    }
    if (now.isDirectory() ? this.#directories.get(path) !== identityOf(now) : known === 'directory') {
      this.#replace(path, known)
      return
    }
    if (known === 'directory' || (known === 'link' && now.isSymbolicLink())) return
    if (now.isSymbolicLink()) this.#files.delete(path)
    else {
      this._symlinkPaths.delete(path)
      this.#files.set(path, now.mtimeMs)
    }
    if (now.mtimeMs !== before || (!doubtful && now.atimeMs <= now.mtimeMs)) void this._emit('change', path, now)
  }

  /** A directory came, or something else in the place of one: what was there goes with all that was in it, and what is there now is found anew. */
  #replace(path: string, known: Kind): void {
    if (this._throttled.get('remove')?.has(path)) {
      this.#lookSoon(path, removedMs)
      return
    }
    this._remove(dirname(path), basename(path), known === 'directory')
    this._incrReadyCount()
    void this._nodeFsHandler._addToNodeFs(path, false, undefined, 1)
  }

  override _closeFile(path: string): void {
    super._closeFile(path)
    this.#files.delete(path)
    this.#directories.delete(path)
  }

  /** The directory changed lately, perhaps after it was read. */
  async #isYoung(dir: string, { mtimeMs }: Stats): Promise<boolean> {
    const now = await lstat(dir).catch(() => undefined) // gone, which its own watcher tells
    return now !== undefined && (now.mtimeMs !== mtimeMs || Date.now() - mtimeMs < youngMs)
  }

  /**
   * What changes in a directory while it is read has it read once more behind that. The library forgets after a second that something changed;
   * large directories take longer.
   */
  override _throttle(...[action, path, ms]: Parameters<FSWatcher['_throttle']>): ReturnType<FSWatcher['_throttle']> {
    const throttled = super._throttle(action, path, action === 'readdir' ? readingMs : ms)
    if (throttled) (throttled.timeoutObject as NodeJS.Timeout).unref() // of a reading that a close cut off it is not taken back
    return throttled
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
