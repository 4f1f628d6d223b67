/** The worker that searches, from the first search until nobody has searched for a while. */
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { acquireLock, invalid, type Lock } from '../../kernel/index.ts'
import type { FromSearcher, SearchAnswer, SearchRequest, ToSearcher } from './search-worker.ts'
import type { TouchedSession } from './session-index.ts'

/** How often a process that only reads tries to become the one that keeps the snapshots. */
const retryMs = 5000

interface Waiting {
  resolve(answer: SearchAnswer): void
  reject(error: unknown): void
}

export class Searcher {
  readonly #home: string
  readonly #idleMs: number
  readonly #waiting = new Map<number, Waiting>()
  #worker: Worker | undefined
  #lock: Lock | undefined
  #lockTriedAt = -Infinity
  #locking: Promise<void> | undefined
  #idle: NodeJS.Timeout | undefined
  #next = 0
  #closed = false

  constructor(home: string, idleMs: number) {
    this.#home = home
    this.#idleMs = idleMs
  }

  /** Rejects with 40001 for a query or a page token that cannot be used. */
  async search(request: SearchRequest, live: boolean, touched: readonly TouchedSession[], signal: AbortSignal): Promise<SearchAnswer> {
    await this.#tryLock()
    signal.throwIfAborted()
    if (this.#closed) throw new Error('search is off')
    const worker = this.#started()
    const id = this.#next++
    clearTimeout(this.#idle)
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject })
        signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        worker.postMessage({ kind: 'search', id, request, live, touched } satisfies ToSearcher)
      })
    } finally {
      this.#waiting.delete(id)
      if (this.#waiting.size === 0) this.#idle = setTimeout(() => void this.#stop(), this.#idleMs).unref()
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#stop()
  }

  async #stop(): Promise<void> {
    clearTimeout(this.#idle)
    const worker = this.#worker
    this.#worker = undefined
    this.#fail(new Error('search is off'))
    await worker?.terminate()
    await this.#locking
    if (this.#worker) return // somebody searches again: it writes, and keeps the lock
    const lock = this.#lock
    this.#lock = undefined
    this.#lockTriedAt = -Infinity
    await lock?.release()
  }

  /** One process of a home keeps the snapshots; the others read them, and the journals. */
  async #tryLock(): Promise<void> {
    if (this.#lock || performance.now() - this.#lockTriedAt < retryMs) return
    this.#locking ??= acquireLock(join(this.#home, 'search', 'lock'))
      .catch(() => undefined) // a directory that cannot be written: this process reads
      .then(async lock => {
        this.#lockTriedAt = performance.now()
        if (this.#closed) await lock?.release()
        else this.#lock = lock
        if (this.#lock) this.#worker?.postMessage({ kind: 'writes', writes: true } satisfies ToSearcher)
      })
      .finally(() => {
        this.#locking = undefined
      })
    await this.#locking
  }

  #started(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(new URL(`./search-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: { home: this.#home }
    })
    this.#worker = worker
    worker.unref()
    if (this.#lock) worker.postMessage({ kind: 'writes', writes: true } satisfies ToSearcher)
    const end = (error?: Error) => {
      if (this.#worker !== worker) return
      this.#worker = undefined
      this.#fail(error ?? new Error('the searching thread has ended'))
    }
    worker.on('message', (message: FromSearcher) => this.#take(message))
    worker.on('error', end)
    worker.on('exit', () => end())
    return worker
  }

  #take(message: FromSearcher): void {
    const waiting = this.#waiting.get(message.id)
    if (message.kind === 'answer') waiting?.resolve(message.answer)
    else if (message.kind === 'refused') waiting?.reject(invalid([{ path: `body.${message.field}`, message: message.message }]))
    else waiting?.reject(new Error(message.message))
  }

  #fail(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error)
    this.#waiting.clear()
  }
}
