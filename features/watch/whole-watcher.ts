/** A watcher of the library for large trees, from which nothing is left out. */
import type { Stats } from 'node:fs'
import { lstat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type ChokidarOptions, FSWatcher } from 'chokidar'

/** Watchers of directories are told which file changed. Elsewhere each file needs its own. */
const namesFiles = ['linux', 'darwin', 'win32'].includes(process.platform)
/** Of changes of a file within so many ms the first is looked at, as in the library. */
const againMs = 5
/** Files and directories that are looked at at a time. */
const maxRunning = 16
/** Some file systems keep times in steps, ms. */
const youngMs = 2000

/** As long a directory may be read before a change in it has it read beside that, ms. */
const readingMs = 60_000

/** The library makes one for itself. */
const ownThrottler = undefined as never

/**
 * The library gives each file a watcher of its own, which costs some 10 KB and one of the watches of the machine. What happens to a file is
 * told by the watcher of its directory here. As long as it has none, a change of a file in it is seen by the time of that.
 *
 * What the library leaves out is told here. What takes the place of a link, or a directory that of a file. Files that look like backups of an
 * editor: with `atomic` it is silent about them, and about whatever lies below a directory with a dot in its name. And a link whose way leads through a file, or is too long, counts as one to nothing: at every other
 * error of resolving it the library would read no further in its directory, and never be ready. And what comes into a new directory
 * after the library has read it and before it watches it: such a directory is read again.
 */
export class WholeWatcher extends FSWatcher {
  /** Those that are told by their directories, with the times at which they changed last. */
  readonly #files = new Map<string, number>()
  /** Files and directories that are looked at. */
  #running = 0
  readonly #waiting: (() => void)[] = []

  constructor(options: ChokidarOptions) {
    super(options)
    const handler = this._nodeFsHandler
    const add = handler._addToNodeFs.bind(handler)
    handler._addToNodeFs = (...given) => this.#inTurn(() => add(...given))
    const handleDir = handler._handleDir.bind(handler)
    handler._handleDir = async (...given) => {
      const [dir, stats, , depth, target, helper] = given
      const end = await handleDir(...given)
      if (end && !target && (await this.#isYoung(dir, stats))) {
        void handler._handleRead(dir, false, helper, target, dir, depth, ownThrottler)
        for (const name of this._getWatchedDir(dir).getChildren()) void this.#inTurn(() => this.#look(join(dir, name), true))
      }
      return end
    }
    if (!namesFiles || this.options.usePolling) return
    handler._handleFile = (file, stats) => this.#take(file, stats)
    this.on('raw', (_event, name: string | null, details) => {
      if (name === null) return
      const file = join((details as { readonly watchedPath: string }).watchedPath, name)
      if (this._throttle('watch', file, againMs)) void this.#look(file, false)
    })
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

  /**
   * Something happened to a file, or to a link that it may have taken the place of; or it may have (`doubtful`): a change that is no more than a look
   * at it is none.
   */
  async #look(file: string, doubtful: boolean): Promise<void> {
    const before = this.#files.get(file)
    const isKnown = () => (before === undefined ? this._symlinkPaths.has(file) : this.#files.has(file))
    if (!isKnown()) return // its directory tells what comes
    const now = await lstat(file).catch(() => undefined) // it has gone
    if (this.closed || !isKnown()) return
    if (before === undefined && (!now || now.isSymbolicLink())) return // its directory tells what becomes of links
    if (!now || now.isDirectory()) {
      this._remove(dirname(file), basename(file))
      if (!now) return
      this._incrReadyCount()
      void this._nodeFsHandler._addToNodeFs(file, false, undefined, 1)
      return
    }
    if (now.isSymbolicLink()) this.#files.delete(file)
    else {
      this._symlinkPaths.delete(file)
      this.#files.set(file, now.mtimeMs)
    }
    if (now.mtimeMs !== before || (!doubtful && now.atimeMs <= now.mtimeMs)) void this._emit('change', file, now)
  }

  override _closeFile(path: string): void {
    super._closeFile(path)
    this.#files.delete(path)
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
    return super._throttle(action, path, action === 'readdir' ? readingMs : ms)
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
