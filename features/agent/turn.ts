/**
 * The turn loop: model requests and their tool calls until the model has nothing more to do. One function with ports; it knows no
 * permissions, compaction or tools, and never rejects: what went wrong is in the result.
 */
import type { CoreRecord, HistoryRecord, WirePart } from '../history/index.ts'
import type { LlmError, LlmRequest, LlmToolCall, TokenUsage } from '../llm/index.ts'
import { type CallPorts, runCalls } from './calls.ts'
import type { ErrorInfo } from './contract.ts'
import { pause } from './retry.ts'
import { runStep, type StepOutcome, type StepPorts } from './step.ts'

export interface StepAt {
  readonly turn_id: number
  /** From 1. */
  readonly step: number
}

export interface TurnPorts extends CallPorts, StepPorts {
  /** At every step boundary, first of all; `stop` ends the turn as completed. */
  stepBegin(at: StepAt): Promise<'stop' | undefined>
  /** What waits for a step boundary (steered prompts, reminders), to be recorded with the begin of the step. */
  beforeStep(at: StepAt): Promise<readonly (CoreRecord | HistoryRecord)[]>
  /** What goes to the model; called before each request. Throws when the model cannot be resolved. */
  request(at: StepAt): Promise<LlmRequest>
  /** `retry`: the same step is sent again at once. `fail`: the turn ends. undefined: the retry table decides. */
  modelError(error: LlmError, at: StepAt): Promise<'retry' | 'fail' | undefined>
  /** The step's response and results are recorded; runs before `turn.step.completed`. */
  measured(): void
  afterStep(at: StepAt): Promise<void>
  /** The model has nothing more to do: true when something was added to go on with. After false nothing can be added any more. */
  more(at: StepAt): Promise<boolean>
  /** Delay before the next attempt, ms. */
  retryDelay(failedAttempt: number, error: LlmError): number
  /** Engine error of an exception. */
  describe(error: unknown): ErrorInfo
  newId(): string
  record(...records: (CoreRecord | HistoryRecord)[]): Promise<void>
}

export interface TurnInput {
  readonly turn_id: number
  /** 0: no limit. */
  readonly max_steps: number
  /** Attempts per step, the first included. */
  readonly max_attempts: number
}

export interface TurnResult {
  readonly reason: 'completed' | 'cancelled' | 'failed'
  readonly interrupt_reason?: 'max_steps' | 'filtered' | 'error'
  readonly error?: ErrorInfo
  readonly steps: number
}

/** Requests that `modelError` may send again within one step. */
const maxRecoveries = 5
const finishNames: Readonly<Record<string, string>> = { completed: 'end_turn', tool_calls: 'tool_use', truncated: 'max_tokens' }

type Response = Extract<StepOutcome, { kind: 'response' }>

export async function runTurn(ports: TurnPorts, input: TurnInput, signal: AbortSignal): Promise<TurnResult> {
  const { turn_id } = input
  let step = 0
  let attempt = 1
  /** Id of the step that was announced and neither completed nor interrupted. */
  let open: string | undefined
  /** `step.begin` is recorded, `step.end` is not. */
  let begun = false
  const ids = () => ({ turnId: turn_id, step, ...(open === undefined ? {} : { stepId: open }) })

  const end = async (reason: string, spent: { model?: string; usage?: TokenUsage } = {}, before: readonly CoreRecord[] = []) => {
    begun = false
    await ports.record(...before, { type: 'step.end', turn_id, step, reason, ...spent })
  }
  /** Closes the open step, if any, and tells why. */
  const interrupt = async (reason: 'aborted' | 'max_steps' | 'error', message?: string) => {
    if (begun) await end(reason === 'error' ? 'error' : 'interrupted')
    if (open === undefined && reason !== 'max_steps') return
    ports.emit('stepInterrupted', { ...ids(), reason, ...(message === undefined ? {} : { message }) })
    open = undefined
  }
  const cancelled = async (): Promise<TurnResult> => {
    await interrupt('aborted')
    return { reason: 'cancelled', steps: step }
  }
  const failed = async (error: ErrorInfo, interrupt_reason: NonNullable<TurnResult['interrupt_reason']>): Promise<TurnResult> => {
    await interrupt(interrupt_reason === 'max_steps' ? 'max_steps' : 'error', `[${error.code}] ${error.message}`)
    return { reason: 'failed', interrupt_reason, error, steps: step }
  }
  const message = (content: readonly WirePart[], tool_calls: readonly LlmToolCall[]): CoreRecord[] =>
    content.length + tool_calls.length > 0 ? [{ type: 'step.message', turn_id, step, content, tool_calls }] : []
  const seal = async (content: readonly WirePart[], tool_calls: readonly LlmToolCall[]) => {
    const records = message(content, tool_calls)
    if (records.length > 0) await ports.record(...records)
  }

  /** Sends the request, and again as long as `modelError` repaired it and nothing was announced yet. */
  const ask = async (ready: Promise<void>): Promise<{ outcome: StepOutcome; request: LlmRequest; give_up: boolean }> => {
    for (let recovery = 0; ; recovery++) {
      const request = await ports.request({ turn_id, step })
      const outcome = await runStep(ports, request, turn_id, signal, ready)
      if (outcome.kind !== 'error') return { outcome, request, give_up: false }
      const verdict = await ports.modelError(outcome.error, { turn_id, step })
      if (verdict !== 'retry' || outcome.begun || recovery >= maxRecoveries) return { outcome, request, give_up: verdict === 'fail' }
      if (signal.aborted) return { outcome: { kind: 'aborted', content: [] }, request, give_up: false }
    }
  }

  /** True when the turn goes on with another attempt. */
  const retry = async (error: LlmError): Promise<boolean> => {
    if (!error.retryable || attempt >= input.max_attempts) return false
    const delayMs = ports.retryDelay(attempt, error)
    await end('error')
    ports.emit('stepRetrying', {
      ...ids(),
      failedAttempt: attempt,
      nextAttempt: attempt + 1,
      maxAttempts: input.max_attempts,
      delayMs,
      errorName: error.name,
      errorMessage: error.message,
      ...(error.status === undefined ? {} : { statusCode: error.status })
    })
    attempt++
    await pause(delayMs, signal)
    return true
  }

  /** Records the response, runs its calls and completes the step. */
  const complete = async (response: Response, request: LlmRequest): Promise<'on' | 'over' | 'aborted'> => {
    // A response cut at the token limit may hold half an argument list: its calls are not run.
    const calls = response.finish.reason === 'truncated' ? [] : response.calls
    const called = calls.length > 0
    if (called) await seal(response.content, calls)
    const stop = called && (await runCalls(ports, { turn_id, step }, calls, signal))
    const spent = { model: request.model.alias, ...(response.usage ? { usage: response.usage } : {}) }
    const reason = signal.aborted ? 'interrupted' : stop ? 'end_turn' : finishName(response, calls)
    await end(reason, spent, called ? [] : message(response.content, calls))
    ports.measured()
    if (signal.aborted) return 'aborted'
    ports.emit('stepCompleted', {
      ...ids(),
      ...(response.usage ? { usage: response.usage } : {}),
      finishReason: reason,
      providerFinishReason: response.finish.reason,
      ...(response.finish.raw === undefined ? {} : { rawFinishReason: response.finish.raw }),
      ...response.timing
    })
    open = undefined
    await ports.afterStep({ turn_id, step })
    return stop || (!called && !(await ports.more({ turn_id, step }))) ? 'over' : 'on'
  }

  try {
    for (;;) {
      if (signal.aborted) return await cancelled()
      if (input.max_steps > 0 && step >= input.max_steps) {
        return await failed(
          { code: 'loop.max_steps_exceeded', message: `the turn reached ${input.max_steps} steps`, retryable: false },
          'max_steps'
        )
      }
      if ((await ports.stepBegin({ turn_id, step: step + 1 })) === 'stop') return { reason: 'completed', steps: step }
      step++
      const records = await ports.beforeStep({ turn_id, step })
      const step_id = ports.newId()
      // The request need not wait for the disk, only what is told about it.
      const ready = ports.record(...records, { type: 'step.begin', turn_id, step, step_id }).then(() => {
        begun = true
        open = step_id
        ports.emit('stepStarted', ids())
      })
      ready.catch(() => undefined) // whoever waits for it hears of it
      const { outcome, request, give_up } = await ask(ready).finally(() => ready)
      if (outcome.kind === 'aborted') {
        await seal(outcome.content, [])
        return await cancelled()
      }
      if (outcome.kind === 'error') {
        if (signal.aborted) return await cancelled()
        if (!give_up && (await retry(outcome.error))) continue
        return await failed(errorInfo(outcome.error), outcome.error.code === 'provider.filtered' ? 'filtered' : 'error')
      }
      attempt = 1
      if (outcome.finish.reason === 'filtered') {
        await seal(outcome.content, [])
        return await failed({ code: 'provider.filtered', message: 'the provider filtered the answer', retryable: false }, 'filtered')
      }
      const next = await complete(outcome, request)
      if (next === 'aborted') return await cancelled()
      if (next === 'over') return { reason: 'completed', steps: step }
    }
  } catch (error) {
    return await failed(ports.describe(error), 'error').catch(
      () => ({ reason: 'failed', interrupt_reason: 'error', error: ports.describe(error), steps: step }) as const
    )
  }
}

function finishName(response: Response, calls: readonly LlmToolCall[]): string {
  const { reason } = response.finish
  if (calls.length > 0) return 'tool_use'
  return reason === 'tool_calls' ? 'other' : (finishNames[reason] ?? reason)
}

/** An upstream failure as events tell it. */
export function errorInfo(error: LlmError): ErrorInfo {
  const details = {
    ...(error.status === undefined ? {} : { statusCode: error.status }),
    ...(error.request_id === undefined ? {} : { requestId: error.request_id }),
    ...(error.trace_id === undefined ? {} : { traceId: error.trace_id })
  }
  const { code, message, name, retryable } = error
  return { code, message, name, retryable, ...(Object.keys(details).length > 0 ? { details } : {}) }
}
