/** Aborted calls: how long they are waited for, and what the model is told. */
import { DeveloperError, firstAbort, isPromise, late, waitAtMost } from '../../kernel/index.ts'

const USER_ABORT = 'The user interrupted this tool call on purpose. Do not repeat it on your own; wait for what the user says next.'
const ABORT = 'The tool call was aborted before it finished.'
const NOT_BEGUN = 'The tool call was aborted before it began, and had no effect.'
const GONE =
  'The tool call was ended because its tool was taken out of the server. What it did until then stays; do not assume that it succeeded.'

/** Whether a turn was aborted by its user: the abort reason is an error (or object) named `UserAbort`. */
export function isUserAbort(signal: AbortSignal): boolean {
  const reason: unknown = signal.reason
  return typeof reason === 'object' && reason !== null && 'name' in reason && reason.name === 'UserAbort'
}

/** Reason of the signal of a call whose time was up. */
class CallTimeout extends Error {
  override readonly name = 'CallTimeout'

  constructor(ms: number) {
    super(
      `The tool call was ended because it took longer than ${ms / 1000} s. What it did until then stays; do not assume that it succeeded.`
    )
  }
}

/** The signal, which also aborts after `ms` (0: never) with a CallTimeout. `end` when the call is over. */
export function limited(signal: AbortSignal, ms: number): { readonly signal: AbortSignal; end(): void } {
  if (ms === 0) return { signal, end: () => undefined }
  const own = new AbortController()
  const timer = setTimeout(() => own.abort(new CallTimeout(ms)), ms)
  const first = firstAbort(signal, own.signal)
  return {
    signal: first.signal,
    end() {
      clearTimeout(timer)
      first.end()
    }
  }
}

/** The work's value; rejects when it takes longer than `ms`. `what` names it. */
export async function inTime<T>(work: T | Promise<T>, ms: number, what: string): Promise<T> {
  if (!isPromise(work)) return work
  const value = await waitAtMost(work, ms)
  if (value === late) throw new Error(`${what} took longer than ${ms} ms`)
  return value
}

/** What the model is told about a call that the abort ended. `begun`: it was at work. */
export function abortText(signal: AbortSignal, begun = true): string {
  if (signal.reason instanceof CallTimeout) return signal.reason.message
  if (signal.reason instanceof DeveloperError && signal.reason.code === 'pack_inactive') return GONE
  if (isUserAbort(signal)) return USER_ABORT
  return begun ? ABORT : NOT_BEGUN
}

/** The work's value, or undefined when it still has not ended `graceMs` after the abort. Rejections pass through. */
export function withGrace<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<{ readonly value: T } | undefined> {
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined
    const begin = () => {
      timer = setTimeout(resolve, graceMs, undefined)
    }
    const stop = () => {
      signal.removeEventListener('abort', begin)
      clearTimeout(timer)
    }
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { once: true })
    work.then(
      value => {
        stop()
        resolve({ value })
      },
      (error: unknown) => {
        stop()
        reject(error)
      }
    )
  })
}
