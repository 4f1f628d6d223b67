/** Waiting: at most so long, until it is in vain, for one's place in a queue, and for the others in this process. */

/** Also of another realm or library. */
export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof (value as Partial<PromiseLike<unknown>> | null | undefined)?.then === 'function'
}

/** What a timer of Node can count, ms; with more it fires at once. */
export const longestMs = 2 ** 31 - 1

/** What `waitAtMost` resolves to when the limit came first. */
export const late: unique symbol = Symbol('late')

/**
 * Resolves with the work's value, or with `late` after `ms` (never, when no timer can count that); rejects as the work does. The work itself
 * goes on: end it by its signal.
 */
export function waitAtMost<T>(work: Promise<T>, ms: number): Promise<T | typeof late> {
  if (ms > longestMs) return work
  return new Promise((resolve, reject) => {
    const limit = setTimeout(resolve, ms, late)
    work.then(
      value => {
        clearTimeout(limit)
        resolve(value)
      },
      (error: unknown) => {
        clearTimeout(limit)
        reject(error)
      }
    )
  })
}

/** The work's end, or the signal's reason if that comes first: the work itself goes on, for whoever else waits, and may never end. */
export function untilAborted<T>(work: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return work
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    void Promise.resolve(work) // one of another library may answer nothing to `then`
      .then(resolve, reject)
      .finally(() => signal.removeEventListener('abort', abort))
  })
}

/**
 * A signal that aborts with the first of these, until `end`. In place of `AbortSignal.any`, whose signals stay in memory for good while anything
 * listens to them, with all that it holds, and leave a trace in every source that lives on.
 */
export function firstAbort(...sources: readonly AbortSignal[]): { readonly signal: AbortSignal; readonly end: () => void } {
  const own = new AbortController()
  const abort = (event: Event) => own.abort((event.target as AbortSignal).reason)
  const aborted = sources.find(source => source.aborted)
  if (aborted) own.abort(aborted.reason)
  else for (const source of sources) source.addEventListener('abort', abort, { once: true })
  const end = () => {
    for (const source of sources) source.removeEventListener('abort', abort)
  }
  return { signal: own.signal, end }
}

/** Does the work under a signal that aborts with the first of these, as long as it takes (`firstAbort`). */
export async function underFirstAbort<T>(sources: readonly AbortSignal[], work: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const { signal, end } = firstAbort(...sources)
  try {
    return await work(signal)
  } finally {
    end()
  }
}

/** A queue: work that is put into it runs one after the other, whatever becomes of the work before. */
export function inOrder(): <T>(work: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve()
  return work => {
    const done = last.then(work)
    last = done.catch(() => undefined) // whoever asked hears of it
    return done
  }
}

/** Does the work for each item, at most so many at a time; resolves to what it answered, in the order of the items. */
export async function aFewAtOnce<I, T>(items: readonly I[], most: number, work: (item: I) => Promise<T>): Promise<T[]> {
  const answers: T[] = []
  const rest = items.entries()
  const worker = async () => {
    for (const [at, item] of rest) answers[at] = await work(item)
  }
  await Promise.all(Array.from({ length: most }, worker))
  return answers
}

/** What all streams together may take of one pass of the event loop, ms. */
const sliceMs = 3

let began = 0
let counting = false
/** Somebody who waited went on in this pass. */
let resumed = false

/**
 * Asks whether it is time to yield to the event loop. Undefined: go on. A promise: await it first; it resolves in a later pass.
 * Work that loops over data which is already there (parsed events, journal lines, frames to hand over) calls this between items; work that
 * begins beside much of its kind (a request, the end of an answer), before it begins.
 */
export function yieldToLoop(): Promise<void> | undefined {
  return isOver() ? nextPass() : undefined
}

/** Those that wait for their turn: who yields again and again is behind whoever came meanwhile. */
const waiting: (() => void)[] = []
/** So many of them go on in one pass at most: of thousands few have time to. */
const perPass = 64
let calls = 0

/** Resolves in the next pass of the event loop; in a later one when those that wait take more than a pass may. */
export function nextPass(): Promise<void> {
  return new Promise(waitForPass)
}

function waitForPass(goOn: () => void): void {
  waiting.push(goOn)
  call()
}

function call(): void {
  if (calls >= perPass || calls >= waiting.length) return
  calls++
  setImmediate(goOn)
}

/** The first of those that wait goes on, when there is time. */
function goOn(): void {
  calls--
  if (!isOver() || !resumed) {
    resumed = true // the first of a pass goes on, whatever else took its time
    waiting.shift()?.()
  }
  call()
}

/** Resolves behind what goes on in the next pass: for what follows from something, when nobody waits for it as they do for that. */
export function laterPass(): Promise<void> {
  return new Promise(resolve => waitForPass(() => waitForPass(resolve)))
}

/** The time of this pass is used up. */
function isOver(): boolean {
  const now = performance.now()
  if (!counting) {
    counting = true
    began = now
    setImmediate(endPass)
  }
  return now - began > sliceMs
}

function endPass(): void {
  counting = false
  resumed = false
}
