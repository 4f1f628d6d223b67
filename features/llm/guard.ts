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
export function guardStream(
  open: () => AsyncIterable<LlmPart>,
  model: ResolvedModel,
  signal: AbortSignal,
  failed: (error: unknown) => void = () => undefined
): AsyncIterableIterator<LlmPart> {
  return new GuardedStream(open, model, signal, failed)
}

type Step = IteratorResult<LlmPart, undefined>

/** Asked for one part at a time. An object of its own instead of a generator: each of thousands of parts passes through. */
class GuardedStream implements AsyncIterableIterator<LlmPart> {
  readonly #open: () => AsyncIterable<LlmPart>
  readonly #model: ResolvedModel
  readonly #signal: AbortSignal
  readonly #failed: (error: unknown) => void
  #parts: AsyncIterator<LlmPart> | undefined
  #over = false
  /** Of the part that is waited for. */
  #answer: (step: Step) => void = () => undefined
  #answered = false
  #thought = false

  constructor(open: () => AsyncIterable<LlmPart>, model: ResolvedModel, signal: AbortSignal, failed: (error: unknown) => void) {
    this.#open = open
    this.#model = model
    this.#signal = signal
    this.#failed = failed
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Step> {
    return new Promise(resolve => {
      this.#answer = resolve
      if (this.#signal.aborted) this.#end()
      if (this.#over) return resolve({ done: true, value: undefined })
      try {
        this.#parts ??= this.#begin()
        this.#parts.next().then(this.#took).catch(this.#broke)
      } catch (error) {
        this.#broke(error)
      }
    })
  }

  async return(): Promise<Step> {
    this.#end()
    return { done: true, value: undefined }
  }

  #begin(): AsyncIterator<LlmPart> {
    this.#signal.addEventListener('abort', this.#end, { once: true })
    return this.#open()[Symbol.asyncIterator]()
  }

  readonly #took = (step: IteratorResult<LlmPart>): void => {
    if (this.#over) return
    if (step.done) this.#last(errorPart('StreamEndError', 'the model stream ended without a finish', this.#model))
    else if (step.value.type === 'error') this.#last({ type: 'error', error: cleanError(step.value.error, this.#model) })
    else if (step.value.type === 'finish') this.#last(this.#finish(step.value))
    else {
      const part = step.value
      if (part.type === 'text') this.#answered ||= part.text !== ''
      else if (part.type === 'tool_call') this.#answered = true
      else if (part.type === 'thinking') this.#thought ||= part.text !== ''
      this.#answer(step)
    }
  }

  readonly #broke = (error: unknown): void => {
    if (this.#over) return
    this.#failed(error)
    this.#last({ type: 'error', error: internalError(error) })
  }

  #finish(part: Finish): LlmPart {
    const cutShort = part.reason === 'filtered' || (this.#thought && (part.reason === 'truncated' || part.reason === 'paused'))
    if (this.#answered || cutShort) return cleanFinish(part, this.#model)
    return errorPart('EmptyResponseError', 'the model answered with no content', this.#model)
  }

  #last(value: LlmPart): void {
    this.#answer({ done: false, value })
    this.#end()
  }

  /** What is waited for ends, too: aborting closes the upstream connection, which an adapter may report as an error of its own. */
  readonly #end = (): void => {
    if (this.#over) return
    this.#over = true
    this.#answer({ done: true, value: undefined })
    this.#signal.removeEventListener('abort', this.#end)
    // Not awaited: an adapter that is stuck must not hold the turn. Its own clean-up failure is reported to the log.
    void new Promise(resolve => resolve(this.#parts?.return?.())).catch(this.#failed)
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
