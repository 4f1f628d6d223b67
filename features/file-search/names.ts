/** Searches of file names, done in a thread that starts with the first one and ends when nobody has asked for a while. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { developerError } from '../../kernel/index.ts'
import type { NameQuery, NamesAnswer, NamesTask } from './names-task.ts'

/** What the thread may hold; more ends it, and the next query starts a new one. */
const HEAP_MB = 768

interface Waiting {
  resolve(answer: NamesAnswer): void
  reject(error: unknown): void
}

export class Names {
  readonly #idleMs: number
  #worker: Worker | undefined
  #timer: NodeJS.Timeout | undefined
  #last = 0
  readonly #waiting = new Map<number, Waiting>()

  /** `idleMs`: the names are forgotten this long after the last query. */
  constructor(idleMs: number) {
    this.#idleMs = idleMs
  }

  async find(query: NameQuery, signal: AbortSignal): Promise<NamesAnswer> {
    signal.throwIfAborted()
    const id = ++this.#last
    clearTimeout(this.#timer)
    const stop = () => this.#settle(id, waiting => waiting.reject(signal.reason))
    signal.addEventListener('abort', stop, { once: true })
    try {
      return await new Promise((resolve, reject) => {
        this.#waiting.set(id, { resolve, reject })
        this.#running().postMessage({ id, query } satisfies NamesTask)
      })
    } finally {
      signal.removeEventListener('abort', stop)
      this.#waiting.delete(id) // it is there yet where no thread could be had
    }
  }

  async close(): Promise<void> {
    clearTimeout(this.#timer)
    const worker = this.#worker
    this.#ended(worker, developerError('pack_leaving'))
    await worker?.terminate()
  }

  #running(): Worker {
    if (this.#worker) return this.#worker
    const worker = new Worker(new URL(`./names-worker${extname(import.meta.url)}`, import.meta.url), {
      resourceLimits: { maxOldGenerationSizeMb: HEAP_MB },
      env: {}
    })
    worker.unref()
    worker.on('message', (answer: NamesAnswer) =>
      this.#settle(answer.id, waiting =>
        answer.problem === undefined ? waiting.resolve(answer) : waiting.reject(new Error(answer.problem))
      )
    )
    worker.once('error', error => this.#ended(worker, error))
    worker.once('exit', () => this.#ended(worker, new Error('the thread of the names ended')))
    this.#worker = worker
    return worker
  }

  #settle(id: number, settle: (waiting: Waiting) => void): void {
    const waiting = this.#waiting.get(id)
    this.#waiting.delete(id)
    if (waiting) settle(waiting)
    if (this.#waiting.size > 0) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => void this.close(), this.#idleMs)
    this.#timer.unref()
  }

  #ended(worker: Worker | undefined, error: unknown): void {
    if (worker === undefined || worker !== this.#worker) return
    this.#worker = undefined
    for (const waiting of this.#waiting.values()) waiting.reject(error)
    this.#waiting.clear()
  }
}
