/** The watched paths of this process, shared by whoever asks; the worker that watches them lives while there are some. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { type FileChange, WatchTrouble } from './change.ts'
import type { FileWatches, WatchListener, WatchRequest } from './service.ts'
import { isPlain, type PlaceOptions } from './spot.ts'
import type { FromWatcher, ToWatcher } from './watch-worker.ts'

/** The worker outlives the last path by so long: a client that reconnects does not start it anew. */
const idleMs = 5000

interface Watched extends PlaceOptions {
  readonly id: number
  readonly users: Set<User>
  readonly opened: Promise<void>
  readonly settle: (trouble?: WatchTrouble) => void
}

interface User {
  readonly path: string
  readonly recursive: boolean
  readonly listener: WatchListener
}

/** Whether a watch of `of` tells what happens at `path`; both relative, the root is empty. */
export function covers(of: { readonly path: string; readonly recursive: boolean }, path: string): boolean {
  if (of.path === path) return true
  const below = of.path === '' ? path : path.startsWith(`${of.path}/`) ? path.slice(of.path.length + 1) : undefined
  return below !== undefined && (of.recursive || !below.includes('/'))
}

/** The directory above; that of the root is the root. */
export const above = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')))

/** What of the changes each one watches. From each path upwards: a batch may be long, and so may be the list of those who watch. */
export function shares<U extends Pick<User, 'path' | 'recursive'>>(
  users: Iterable<U>,
  changes: readonly FileChange[]
): Map<U, FileChange[]> {
  const own = new Map<U, FileChange[]>()
  const byPath = new Map<string, U[]>()
  for (const user of users) {
    own.set(user, [])
    const { path } = user
    const others = byPath.get(path)
    if (others) others.push(user)
    else byPath.set(path, [user])
  }
  for (const change of changes) {
    const path = change.path === '.' ? '' : change.path
    for (let at = path; ; at = above(at)) {
      for (const user of byPath.get(at) ?? []) if (covers(user, path)) own.get(user)?.push(change)
      if (at === '') break
    }
  }
  return own
}

export class Watchers implements FileWatches {
  readonly #max: number
  readonly #guard: (call: () => void) => void
  readonly #watched = new Map<number, Watched>()
  #worker: Worker | undefined
  #idle: NodeJS.Timeout | undefined
  #next = 0
  #closed = false

  /** `max`: files and directories that are watched at most, over all paths. `guard` calls listeners. */
  constructor(max: number, guard: (call: () => void) => void) {
    this.#max = max
    this.#guard = guard
  }

  async watch({ root, path: given = '', recursive = true }: WatchRequest, listener: WatchListener): Promise<() => void> {
    const path = given === '.' ? '' : given
    const user: User = { path, recursive, listener }
    const plain = await isPlain({ root, path, recursive }).catch((error: unknown) => {
      throw WatchTrouble.of(error)
    })
    if (this.#closed) throw new WatchTrouble('failed', 'file watching is off')
    const watched = this.#covering(root, path, recursive, plain) ?? this.#open(root, path, recursive)
    watched.users.add(user)
    const release = () => this.#release(watched, user)
    try {
      await watched.opened
      return release
    } catch (error) {
      release()
      if (watched.path === path) throw error
      return await this.watch({ root, path, recursive }, listener) // a watch of more than this was refused
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    this.#loseAll(new WatchTrouble('failed', 'file watching is off'))
    await worker?.terminate()
  }

  /** One that tells what happens there. Behind a link (not `plain`) only one of the same path does. */
  #covering(root: string, path: string, recursive: boolean, plain: boolean): Watched | undefined {
    for (const each of this.#watched.values()) {
      const same = each.path === path
      if (each.root === root && (each.recursive || (!recursive && same)) && (same || (plain && covers(each, path)))) return each
    }
    return undefined
  }

  #open(root: string, path: string, recursive: boolean): Watched {
    const id = this.#next++
    let settle: Watched['settle'] = () => undefined
    const opened = new Promise<void>((resolve, reject) => {
      settle = trouble => (trouble ? reject(trouble) : resolve())
    })
    opened.catch(() => undefined) // whoever waits for it hears
    const watched: Watched = { id, root, path, recursive, users: new Set(), opened, settle }
    clearTimeout(this.#idle)
    try {
      this.#send({ kind: 'open', id, root, path, recursive, max: this.#max })
    } catch (error) {
      throw WatchTrouble.of(error) // no thread can be had
    }
    this.#watched.set(id, watched)
    return watched
  }

  #release(watched: Watched, user: User): void {
    if (!watched.users.delete(user) || watched.users.size > 0 || !this.#watched.delete(watched.id)) return
    this.#drop(watched.id)
  }

  /** The worker need not watch it any more; without anything to watch it ends. */
  #drop(id: number): void {
    this.#send({ kind: 'close', id })
    if (this.#watched.size > 0 || this.#closed) return
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      void this.#worker?.terminate()
      this.#worker = undefined
    }, idleMs).unref()
  }

  #send(message: ToWatcher): void {
    if (!this.#worker && message.kind === 'close') return
    this.#worker ??= this.#start()
    this.#worker.postMessage(message)
  }

  #start(): Worker {
    const worker = new Worker(new URL(`./watch-worker${extname(import.meta.url)}`, import.meta.url))
    worker.unref()
    const end = (error?: Error) => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      this.#loseAll(new WatchTrouble('failed', `the watcher has ended${error ? `: ${error.message}` : ''}`))
    }
    worker.on('message', (message: FromWatcher) => this.#take(message))
    worker.on('error', end)
    worker.on('exit', () => end())
    return worker
  }

  #loseAll({ trouble, message }: WatchTrouble): void {
    for (const id of [...this.#watched.keys()]) this.#take({ kind: 'lost', id, trouble, message })
  }

  #take(message: FromWatcher): void {
    const watched = this.#watched.get(message.id)
    if (!watched) return
    switch (message.kind) {
      case 'opened':
        watched.settle()
        break
      case 'refused':
      case 'lost': {
        const trouble = new WatchTrouble(message.trouble, message.message)
        this.#watched.delete(watched.id)
        watched.settle(trouble)
        this.#drop(watched.id)
        if (message.kind === 'lost') this.#each(watched, ({ listener }) => listener.lost?.(trouble))
        break
      }
      case 'unknown':
        this.#each(watched, ({ listener }) => listener.unknown(message.count))
        break
      case 'changed':
        for (const [user, own] of shares(watched.users, message.changes)) if (own.length > 0) this.#guard(() => user.listener.changed(own))
    }
  }

  #each(watched: Watched, call: (user: User) => void): void {
    for (const user of [...watched.users]) this.#guard(() => call(user))
  }
}
