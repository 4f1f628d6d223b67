/** Runs the extraction in a worker, one page after the other, and puts up with the plain text when the time is over. */
import { extname } from 'node:path'
import { Worker } from 'node:worker_threads'
import { inOrder } from '../../kernel/index.ts'
import type { Extracted, ExtractTask } from './extract-worker.ts'

/** Of the worker's heap. */
const heapMb = 512

export class Extractor {
  readonly #limitMs: number
  readonly #queued = inOrder()

  /** `limitMs`: how long the article may be looked for. */
  constructor(limitMs: number) {
    this.#limitMs = limitMs
  }

  /** Undefined when the page has no words that could be found in time. Rejects with the signal's reason after an abort. */
  extract(task: ExtractTask, signal: AbortSignal): Promise<Extracted | undefined> {
    return this.#queued(() => run(task, this.#limitMs, signal))
  }
}

function run(task: ExtractTask, limitMs: number, signal: AbortSignal): Promise<Extracted | undefined> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(`./extract-worker${extname(import.meta.url)}`, import.meta.url), {
      workerData: task,
      resourceLimits: { maxOldGenerationSizeMb: heapMb }
    })
    let found: Extracted | undefined
    const finish = (settle: () => void) => {
      clearTimeout(timer)
      signal.removeEventListener('abort', abort)
      void worker.terminate()
      settle()
    }
    const timer = setTimeout(() => finish(() => resolve(found)), limitMs)
    const abort = () => finish(() => reject(signal.reason))
    signal.addEventListener('abort', abort, { once: true })
    let answers = 0
    worker.on('message', (answer: Extracted) => {
      found = answer
      if (++answers === 2) finish(() => resolve(found))
    })
    worker.once('error', () => finish(() => resolve(found))) // out of memory: the plain text stands in
  })
}
