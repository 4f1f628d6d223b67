/** The last failure of an agent: as a state of its records, and in words for whoever runs the server. */
import { AppError } from '../../kernel/index.ts'
import { coreRecord, recordTypes, type StateSpec } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ErrorInfo } from './contract.ts'
import { type Retry, remainingMs } from './retry.ts'
import type { Failure } from './service.ts'

/** Whom a failed request was for, as far as it got. */
export interface Asked {
  readonly provider_id?: string
  /** Alias. */
  readonly model?: string
}

/** What the details of a readiness error say of it. */
export function askedOf(error: unknown): Asked {
  const { provider_id, model_id } = (AppError.is(error) ? (error.details ?? {}) : {}) as Readonly<Record<string, unknown>>
  return {
    ...(typeof provider_id === 'string' ? { provider_id } : {}),
    ...(typeof model_id === 'string' ? { model: model_id } : {})
  }
}

export interface Failures {
  readonly last?: Failure
}

/** The newest failed turn or attempt; gone when a turn completes, or an attempt after it does. */
export const failureState: StateSpec<Failures> = {
  name: 'agent.failure',
  version: 1,
  records: recordTypes('step.end', 'turn.ended'),
  initial: () => ({}),
  reduce(state, given) {
    const record = coreRecord(given)
    if (record?.type === 'step.end') {
      const { turn_id, retry, interrupted, provider_id, model } = record
      if (!retry) return interrupted || !state.last ? state : {}
      const { failed_attempt, max_attempts, delay_ms, error_name, error_message, code = 'provider.api_error', status } = retry
      return {
        last: {
          at: new Date(record.time ?? 0).toISOString(),
          turn_id,
          code,
          message: error_message,
          name: error_name,
          retryable: true,
          ...(status === undefined ? {} : { status }),
          ...asked({ provider_id, model }),
          retry: { failed_attempt, max_attempts, delay_ms }
        }
      }
    }
    if (record?.type !== 'turn.ended') return state
    const { turn_id, error, reason, provider_id, model } = record
    if (reason === 'completed') return state.last ? {} : state
    if (!error) return state.last?.retry ? { last: withoutRetry(state.last) } : state
    const { code, message, name, retryable, details } = error as typeof error & Partial<ErrorInfo>
    const status = statusIn(details)
    return {
      last: {
        at: new Date(record.time ?? 0).toISOString(),
        turn_id,
        code,
        message,
        ...(name === undefined ? {} : { name }),
        retryable: retryable ?? false,
        ...(status === undefined ? {} : { status }),
        ...asked({ provider_id, model })
      }
    }
  }
}

/** HTTP status among the details of an engine error. */
export function statusIn(details: ErrorInfo['details']): number | undefined {
  const { statusCode } = (details ?? {}) as { readonly statusCode?: unknown }
  return typeof statusCode === 'number' ? statusCode : undefined
}

function asked({ provider_id, model }: { provider_id?: string | undefined; model?: string | undefined }): Asked {
  return { ...(provider_id === undefined ? {} : { provider_id }), ...(model === undefined ? {} : { model }) }
}

function withoutRetry({ retry: _, ...failure }: Failure): Failure {
  return failure
}

type Told = Pick<Failure, 'code' | 'message' | 'status' | 'provider_id' | 'model'>

/** Facts of a failure for the log. */
export function failureFacts({ id, session }: AgentHost, turn_id: number, { code, status, provider_id, model }: Told): object {
  return { session_id: session.id, agent_id: id, turn_id, code, status, provider_id, model }
}

/** One line: where, what (`the turn failed`), at whom, why, and what to look at. */
export function failureLine({ id, session }: AgentHost, what: string, failure: Told): string {
  const { code, message, provider_id, model } = failure
  const who = id === 'main' ? session.id : `${session.id}, agent ${id}`
  const whom = [...(provider_id === undefined ? [] : [`provider ${provider_id}`]), ...(model === undefined ? [] : [`model ${model}`])].join(
    ', '
  )
  const hint = advice(failure)
  return `${who}: ${what} [${code}]${whom === '' ? '' : ` at ${whom}`}: ${message}${hint === undefined ? '' : ` (${hint})`}`
}

/** A longer wait is told at once. */
const longWaitMs = 30_000

/** What a person should hear of a failed attempt: the second in a row that failed in the same way, and a long wait. undefined: nothing. */
export function loudRetry({ failed_attempt, max_attempts, delay_ms, same }: Retry, baseMs: number): string | undefined {
  const seconds = Math.ceil((delay_ms + remainingMs(failed_attempt + 1, max_attempts, baseMs)) / 1_000)
  const more = max_attempts - failed_attempt
  if (same === 2) return `failed twice in the same way, ${more} more ${more === 1 ? 'attempt' : 'attempts'} in the next ${seconds} s`
  return same < 2 && delay_ms >= longWaitMs
    ? `attempt ${failed_attempt} failed, the next one is in ${Math.ceil(delay_ms / 1_000)} s`
    : undefined
}

/** What a person can look at. */
function advice({ code, status, provider_id = 'the provider', model = 'the model' }: Told): string | undefined {
  const provider = provider_id === 'the provider' ? provider_id : `provider ${provider_id}`
  switch (code) {
    case 'provider.auth_error':
    case 'auth.token_unauthorized':
      return `check the credential of ${provider}`
    case 'auth.token_missing':
      return `give ${provider} an api_key, or auth = "none" if it takes none`
    case 'provider.connection_error':
      return `check base_url of ${provider}, and that it can be reached`
    case 'provider.api_error':
      return status === 404 ? `check base_url of ${provider}, and which model ${model} names` : undefined
    case 'model.not_configured':
    case 'model.not_found':
      return 'GET /api/v1/auth tells what is missing'
    case 'loop.max_steps_exceeded':
      return 'loop_control.max_steps_per_turn is the limit'
    default:
      return undefined
  }
}
