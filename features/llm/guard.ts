/** Keeps the promises of a model stream for any adapter: no rejection, one last part, prompt end after abort, no secret in an error text. */
import type { LlmError, LlmPart, ResolvedModel } from './service.ts'

/** The error of a failure that is not the provider's: a broken adapter, a missing one. */
export function internalError(error: unknown): LlmError {
  const name = error instanceof Error ? error.name : 'Error'
  return { code: 'internal', name, message: 'the model adapter failed', retryable: false }
}

/**
 * Opens the adapter's stream and passes the parts on. Ends after the first `finish` or `error`; adds an error when the adapter throws, stops without one, or finishes
 * without content. After an abort it ends at once, even when the adapter does not. `failed` hears of exceptions (for the log).
 */
export async function* guardStream(
  open: () => AsyncIterable<LlmPart>,
  model: ResolvedModel,
  signal: AbortSignal,
  failed: (error: unknown) => void = () => undefined
): AsyncGenerator<LlmPart, void, undefined> {
  if (signal.aborted) return
  let iterator: AsyncIterator<LlmPart> | undefined
  let wake: (() => void) | undefined
  const onAbort = () => wake?.()
  signal.addEventListener('abort', onAbort, { once: true })
  let answered = false
  let thought = false
  try {
    const parts = open()[Symbol.asyncIterator]()
    iterator = parts
    for (;;) {
      const step = await new Promise<IteratorResult<LlmPart> | undefined>((resolve, reject) => {
        wake = () => resolve(undefined)
        parts.next().then(resolve, reject)
      })
      // Aborting closes the upstream connection, which an adapter may report as an error of its own.
      if (step === undefined || signal.aborted) return
      if (step.done) {
        yield errorPart('StreamEndError', 'the model stream ended without a finish', model)
        return
      }
      const part = step.value
      if (part.type === 'text') answered ||= part.text !== ''
      else if (part.type === 'tool_call') answered = true
      else if (part.type === 'thinking') thought ||= part.text !== ''
      else if (part.type === 'error') {
        yield { type: 'error', error: { ...part.error, message: withoutSecrets(part.error.message, model) } }
        return
      } else if (part.type === 'finish') {
        const cutShort = part.reason === 'filtered' || (thought && (part.reason === 'truncated' || part.reason === 'paused'))
        yield answered || cutShort ? part : errorPart('EmptyResponseError', 'the model answered with no content', model)
        return
      }
      yield part
    }
  } catch (error) {
    if (signal.aborted) return
    failed(error)
    yield { type: 'error', error: internalError(error) }
  } finally {
    signal.removeEventListener('abort', onAbort)
    wake = undefined
    // Not awaited: an adapter that is stuck must not hold the turn. Its own clean-up failure is reported to the log.
    void Promise.resolve(iterator?.return?.()).catch(failed)
  }
}

function errorPart(name: string, message: string, model: ResolvedModel): LlmPart {
  return { type: 'error', error: { code: 'provider.api_error', name, message: `${message} (${model.alias})`, retryable: true } }
}

/** Upstream texts may quote what was sent; the key and custom header values must not travel further. */
function withoutSecrets(text: string, model: ResolvedModel): string {
  let clean = text
  const values = Object.entries(model.headers).flatMap(([name, value]) => (name === 'user-agent' || value.length < 6 ? [] : [value]))
  for (const secret of [model.api_key, ...values]) {
    if (secret) clean = clean.replaceAll(secret, '[redacted]')
  }
  return clean
}
