/** Aborted calls: how long they are waited for, and what the model is told. */

const USER_ABORT = 'The user interrupted this tool call on purpose. Do not repeat it on your own; wait for what the user says next.'
const ABORT = 'The tool call was aborted before it finished.'

/** Whether a turn was aborted by its user: the abort reason is an error (or object) named `UserAbort`. */
export function isUserAbort(signal: AbortSignal): boolean {
  const reason: unknown = signal.reason
  return typeof reason === 'object' && reason !== null && 'name' in reason && reason.name === 'UserAbort'
}

/** What the model is told about a call that the abort ended. */
export function abortText(signal: AbortSignal): string {
  return isUserAbort(signal) ? USER_ABORT : ABORT
}

/** The work's value, or undefined when it still has not ended `graceMs` after the abort. Rejections pass through. */
export async function withGrace<T>(work: Promise<T>, signal: AbortSignal, graceMs: number): Promise<{ readonly value: T } | undefined> {
  let stop: (() => void) | undefined
  const abandoned = new Promise<undefined>(resolve => {
    let timer: NodeJS.Timeout | undefined
    const begin = () => {
      timer = setTimeout(resolve, graceMs, undefined)
    }
    if (signal.aborted) begin()
    else signal.addEventListener('abort', begin, { once: true })
    stop = () => {
      signal.removeEventListener('abort', begin)
      clearTimeout(timer)
    }
  })
  try {
    return await Promise.race([work.then(value => ({ value })), abandoned])
  } finally {
    stop?.()
  }
}
