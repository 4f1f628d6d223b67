/** Keeps the promises of a model stream for any adapter: no rejection, one last part, prompt end after abort, no secret in an error text. */
import { PassingFailure, redactText } from '../../kernel/index.ts'
import { secretsIn, withoutSecrets } from './known-secrets.ts'
import { remembered } from './remembered.ts'
import type { LlmError, LlmPart, ResolvedModel } from './request.ts'

/** The error of a failure that is not the provider's: a broken adapter, a missing one. */
function internalError(error: unknown): LlmError {
  const name = error instanceof Error ? error.name : 'Error'
  if (error instanceof PassingFailure) return passing(name)
  return { code: 'internal', name, message: 'the model adapter failed', retryable: false }
}

/** What the start of a pack takes, as a rule, ms. */
const startMs = 300

/** The pack of the adapter comes back by itself, `ms` from now or at once: a later try finds it. */
export function passing(name: string, ms = 0): LlmError {
  const message = 'the pack of the model adapter ended and is starting again'
  return { code: 'internal', name, message, retryable: true, retry_after_ms: ms + startMs }
}

/**
 * Opens the adapter's stream and passes the parts on. Ends after the first `finish` or `error`; adds an error when the adapter throws,
 * stops without one, or finishes without content. After an abort it ends at once, even when the adapter does not. `failed` hears of
 * exceptions (for the log).
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
        yield { type: 'error', error: cleanError(part.error, model) }
        return
      } else if (part.type === 'finish') {
        const cutShort = part.reason === 'filtered' || (thought && (part.reason === 'truncated' || part.reason === 'paused'))
        yield answered || cutShort ? cleanFinish(part, model) : errorPart('EmptyResponseError', 'the model answered with no content', model)
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

/** Upstreams quote what they were sent, in their texts and in the ids of their headers; other people's keys are told by their shape. */
function cleanError(error: LlmError, model: ResolvedModel): LlmError {
  const secrets = secretsOf(model)
  const { message, request_id, trace_id } = error
  return {
    ...error,
    message: redactText(withoutSecrets(message, secrets)),
    ...(request_id !== undefined && { request_id: withoutSecrets(request_id, secrets) }),
    ...(trace_id !== undefined && { trace_id: withoutSecrets(trace_id, secrets) })
  }
}

function cleanFinish(part: Finish, model: ResolvedModel): Finish {
  const secrets = secretsOf(model)
  const { raw_reason, response_id, trace_id } = part
  return {
    ...part,
    ...(raw_reason !== undefined && { raw_reason: withoutSecrets(raw_reason, secrets) }),
    ...(response_id !== undefined && { response_id: withoutSecrets(response_id, secrets) }),
    ...(trace_id !== undefined && { trace_id: withoutSecrets(trace_id, secrets) })
  }
}

type Finish = Extract<LlmPart, { type: 'finish' }>

/** Key, values of custom headers, credentials inside the URL. */
function secretsOf({ api_key, headers, base_url }: ResolvedModel): (string | undefined)[] {
  const values = Object.entries(headers).flatMap(([name, value]) => (name === 'user-agent' || value.length < 6 ? [] : [value]))
  return [api_key, ...values, ...(base_url === undefined ? [] : secretsOfAddress(base_url))]
}

/** Every answer asks, and there are few addresses. */
const secretsOfAddress = remembered(secretsIn)
