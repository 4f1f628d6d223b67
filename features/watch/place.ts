/** One watched path: a directory, a file, or what is not there yet. Runs in the worker; changes are told by path as it was asked for. */
import type { Stats } from 'node:fs'
import { lstat, realpath, stat } from 'node:fs/promises'
import { dirname, join, relative, sep } from 'node:path'
import type { ChokidarOptions, FSWatcher } from 'chokidar'
import { type FileChange, WatchTrouble } from './change.ts'
import { findSpot, isSame, type PlaceOptions, type Spot } from './spot.ts'

/** Changes of so long go to the main thread together. */
const batchMs = 50
const maxBatch = 5000
/** Where the machine has no watches left: how often files are looked at, and how many at most. */
const pollMs = 2000
const maxPolled = 2000

export interface PlacePorts {
  readonly watch: (path: string, options: ChokidarOptions) => FSWatcher
  /** Counts entries over all places; false: there are too many. */
  readonly count: (change: number) => boolean
  readonly changed: (changes: readonly FileChange[]) => void
  /** So many changes that are not known one by one. */
  readonly unknown: (count: number) => void
  /** It is over. */
  readonly lost: (trouble: WatchTrouble) => void
}

interface Seen extends FileChange {
  /** Absolute. */
  readonly file: string
  /** Where its directory must be, absolute, links resolved. */
  readonly dir: string
}

const kindOf = (event: string, link: boolean) => (event.endsWith('Dir') ? 'directory' : link ? 'symlink' : 'file')
const insideGit = /(?:^|[/\\])\.git[/\\]/
const noneLeft = new Set(['ENOSPC', 'EMFILE', 'ENFILE'])
/** What lies there is not told, and a directory that cannot be read is never ready. Other errors are of one file, which is left out. */
const broken = new Set(['EIO', 'ENOMEM', 'ENODEV', 'ENXIO', 'ESTALE', 'ETIMEDOUT', 'ENOTCONN', 'EHOSTDOWN'])

export class Place {
  readonly #options: PlaceOptions
  readonly #ports: PlacePorts
  #spot: Spot | undefined
  #watcher: FSWatcher | undefined
  #polling = false
  #entries = 0
  /** What is there, absolute: what was never told cannot be told to be gone. */
  readonly #known = new Map<string, FileChange['kind']>()
  /** Links that were looked at, absolute, with their inodes. */
  readonly #links = new Map<string, number>()
  /** Those that lead nowhere: the library tells nothing of them. */
  readonly #dangling = new Set<string>()
  #seen: Seen[] = []
  #dropped = 0
  /** Something was removed or renamed, so that another place may have to be watched. */
  #doubtful = false
  /** The watcher is to begin again; what changes meanwhile is not known. */
  #restart = false
  #timer: NodeJS.Timeout | undefined
  #flushing = false
  #closed = false

  private constructor(options: PlaceOptions, ports: PlacePorts) {
    this.#options = options
    this.#ports = ports
  }

  /** Resolves when every change from now on is told. Rejects with WatchTrouble. */
  static async open(options: PlaceOptions, ports: PlacePorts): Promise<Place> {
    const place = new Place(options, ports)
    try {
      await place.#settle(false)
      return place
    } catch (error) {
      await place.close()
      throw WatchTrouble.of(error)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    await this.#release()
  }

  async #release(): Promise<void> {
    const watcher = this.#watcher
    this.#watcher = undefined
    this.#ports.count(-this.#entries)
    this.#entries = 0
    this.#known.clear()
    this.#links.clear()
    this.#dangling.clear()
    await watcher?.close()
  }

  /** Watches the path where it is now; `fresh`: what is found there has just come. */
  async #settle(fresh: boolean): Promise<void> {
    for (let appeared = fresh; !this.#closed; appeared = true) {
      const spot = await findSpot(this.#options)
      this.#spot = spot
      await this.#release()
      if (this.#closed) return // nobody would close what is begun now
      await this.#watch(spot, appeared)
      if (isSame(await findSpot(this.#options), spot)) return // else it came, or went, before the watcher was ready
    }
  }

  async #watch(spot: Spot, fresh: boolean): Promise<void> {
    const { base, only } = spot
    let ready = false
    let reject: (trouble: WatchTrouble) => void = () => undefined
    const fail = (trouble: WatchTrouble) => (ready ? this.#fail(trouble) : reject(trouble))
    const take = (event: string, file: string, link: boolean, told: boolean): void => {
      if (!this.#counted(event)) fail(new WatchTrouble('too_many', `too many files to watch below ${this.#options.path || '.'}`))
      else if (told) this.#take(spot, event, file, link)
      else if (event.startsWith('add')) this.#known.set(file, kindOf(event, link))
    }
    const tells = () => ready || (fresh && only === undefined)
    const watcher = this.#ports.watch(base, {
      ignoreInitial: false,
      followSymlinks: false,
      ignored: (file, stats) => {
        if (insideGit.test(relative(base, file))) return true
        if (stats?.isSymbolicLink()) void this.#look(watcher, file, stats, tells(), take)
        return false
      },
      ...(only === undefined && this.#options.recursive ? {} : { depth: 0 }),
      ...(this.#polling ? { usePolling: true, interval: pollMs, binaryInterval: pollMs } : {})
    })
    this.#watcher = watcher
    try {
      await new Promise<void>((resolve, refuse) => {
        reject = refuse
        watcher.on('all', (event, file, stats) => {
          if (this.#watcher !== watcher) return
          const link = stats?.isSymbolicLink() ?? this.#known.get(file) === 'symlink'
          if (event.startsWith('unlink')) this.#links.delete(file)
          if (!this.#dangling.delete(file)) take(event, file, link, tells())
          else if (event === 'addDir') {
            this.#counted('unlink') // a directory in its place counts for itself
            take(event, file, link, tells())
          } else if (!link) take('change', file, link, tells()) // something else in its place; else it leads somewhere now
        })
        watcher.on('raw', event => {
          if (this.#watcher === watcher && (event === 'rename' || this.#dangling.size > 0)) this.#doubt()
        })
        watcher.on('error', error => {
          if (this.#watcher !== watcher) return
          const { code = '' } = error as NodeJS.ErrnoException
          if (noneLeft.has(code)) fail(new WatchTrouble('exhausted', 'the machine has no file watches left'))
          else if (broken.has(code)) fail(new WatchTrouble('failed', `the disk cannot be read (${code})`))
        })
        watcher.on('ready', resolve)
      })
      ready = true
    } catch (error) {
      if (this.#polling || WatchTrouble.of(error).trouble !== 'exhausted') throw error
      this.#polling = true
      await this.#release()
      await this.#watch(spot, fresh)
    }
  }

  /** A link that the library comes upon: one that leads nowhere is told here. */
  async #look(
    watcher: FSWatcher,
    file: string,
    { ino }: Stats,
    told: boolean,
    take: (event: string, file: string, link: boolean, told: boolean) => void
  ): Promise<void> {
    if (this.#watcher !== watcher || this.#links.get(file) === ino) return
    this.#links.set(file, ino)
    const leads = await stat(file).then(
      () => true,
      () => false
    )
    if (leads || this.#watcher !== watcher) return
    const event = this.#known.has(file) ? 'change' : 'add'
    this.#dangling.add(file)
    take(event, file, true, told)
  }

  /** Links to nothing that are gone. */
  async #forgetLinks(): Promise<void> {
    const spot = this.#spot
    for (const file of [...this.#dangling]) {
      if (await lstat(file).catch(() => undefined)) continue // gone, mostly
      if (this.#spot !== spot || !spot || !this.#dangling.delete(file)) continue
      this.#links.delete(file)
      this.#counted('unlink')
      this.#take(spot, 'unlink', file, true)
    }
  }

  #counted(event: string): boolean {
    if (event.startsWith('unlink')) {
      if (this.#entries-- > 0) this.#ports.count(-1)
      else this.#entries = 0
      return true
    }
    if (!event.startsWith('add')) return true
    this.#entries++
    return this.#ports.count(1) && !(this.#polling && this.#entries > maxPolled)
  }

  #take({ base, only, direct }: Spot, event: string, file: string, link: boolean): void {
    if (event.startsWith('unlink') || event === 'addDir') this.#doubt()
    const below = relative(base, file).split(sep).join('/')
    const itself = only === undefined ? below === '' : below === only
    if (only !== undefined && itself && !direct) this.#doubt()
    if (only !== undefined && !(direct && itself)) return
    // A directory in place of the path is told by its own watcher, and its end by whoever finds that it has gone.
    if (itself && (only === undefined ? event === 'unlinkDir' : event.endsWith('Dir'))) return
    const { path } = this.#options
    const change = event.startsWith('add') ? 'created' : event === 'change' ? 'modified' : 'deleted'
    const kind = kindOf(event, link)
    const told = only === undefined ? [path, below].filter(part => part !== '').join('/') : path
    const dir = only === undefined && itself ? base : dirname(file)
    if (this.#seen.length >= maxBatch) this.#dropped++
    else this.#seen.push({ path: told || '.', change, kind, file, dir })
    this.#schedule()
  }

  #doubt(): void {
    this.#doubtful = true
    this.#schedule()
  }

  #schedule(): void {
    if (this.#closed || this.#flushing) return
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      this.#flushing = true
      void this.#flush().finally(() => {
        this.#flushing = false
        if (this.#seen.length > 0 || this.#doubtful || this.#restart) this.#schedule()
      })
    }, batchMs)
  }

  async #flush(): Promise<void> {
    const doubtful = this.#doubtful
    this.#doubtful = false
    try {
      if (doubtful) await this.#forgetLinks()
      const moved = !(await this.#send())
      if (this.#restart) {
        this.#restart = false
        await this.#settle(false)
        this.#ports.unknown(1)
      } else if (doubtful || moved) await this.#follow()
    } catch (error) {
      this.#lose(WatchTrouble.of(error))
    }
  }

  /** Sends what was seen; false where a directory is not what it was. A link may stand in its place: what came through it is of another place. */
  async #send(): Promise<boolean> {
    const [seen, dropped] = [this.#seen, this.#dropped]
    this.#seen = []
    this.#dropped = 0
    const isReal = new Map<string, boolean>()
    const stillThere = new Set<Seen>()
    for (const [at, each] of seen.entries()) {
      const { dir, file, change, kind } = each
      if (!isReal.has(dir)) isReal.set(dir, (await realpath(dir).catch(() => undefined)) === dir) // gone counts as changed
      const stats = isReal.get(dir) ? await lstat(file).catch(() => undefined) : undefined // gone
      if (!stats) continue
      if (change === 'deleted') stillThere.add(each)
      else if (kind !== 'directory' && !stats.isDirectory()) seen[at] = { ...each, kind: stats.isSymbolicLink() ? 'symlink' : 'file' }
    }
    if (this.#closed) return true
    const kept = seen.filter(each => {
      const { dir, file, change, kind } = each
      if (change === 'deleted') return !stillThere.has(each) && this.#known.delete(file)
      if (isReal.get(dir)) this.#known.set(file, kind)
      return isReal.get(dir)
    })
    const allReal = [...isReal.values()].every(real => real)
    if (dropped > 0) this.#ports.unknown(kept.length + dropped)
    else if (kept.length > 0) this.#ports.changed(kept.map(({ path, change, kind }) => ({ path, change, kind })))
    return allReal
  }

  /** Goes where the path is now. */
  async #follow(): Promise<void> {
    const before = this.#spot
    const now = await findSpot(this.#options)
    if (this.#closed || (before && isSame(before, now))) return
    if (before && before.only === undefined) this.#tellGone(before.base)
    await this.#settle(true)
    // A file that came with a directory above it: the watcher of that directory tells what comes later.
    const spot = this.#spot
    if (!spot?.direct || before?.direct) return
    const stats = await lstat(join(spot.base, spot.only ?? '')).catch(() => undefined) // not there
    if (stats) this.#ports.changed([{ path: this.#options.path, change: 'created', kind: stats.isSymbolicLink() ? 'symlink' : 'file' }])
  }

  /** The whole tree, from its leaves. */
  #tellGone(base: string): void {
    const files = [...this.#known].filter(([file]) => file !== base).sort(([a], [b]) => (a < b ? 1 : -1))
    const { path } = this.#options
    if (files.length > maxBatch) {
      this.#ports.unknown(files.length)
      return
    }
    const gone = files.map(([file, kind]) => ({
      path: [path, relative(base, file).split(sep).join('/')].filter(part => part !== '').join('/'),
      kind
    }))
    this.#ports.changed([...gone, { path: path || '.', kind: 'directory' as const }].map(each => ({ ...each, change: 'deleted' as const })))
  }

  /** The watcher, which was ready, cannot go on. */
  #fail(trouble: WatchTrouble): void {
    if (trouble.trouble === 'exhausted' && this.#restart) return // of another directory: every one that came says so
    if (trouble.trouble !== 'exhausted' || this.#polling) {
      this.#lose(trouble)
      return
    }
    this.#polling = true
    this.#restart = true
    this.#schedule()
  }

  #lose(trouble: WatchTrouble): void {
    if (this.#closed) return
    void this.close()
    this.#ports.lost(trouble)
  }
}
