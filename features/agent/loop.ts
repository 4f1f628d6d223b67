/**
 * The turn loop: model requests and their tool calls until the model has nothing more to do. One function with ports; it knows no
 * permissions, compaction or tools, and never rejects: what went wrong is in the result. What it records is told from the records.
 */
import { randomUUID } from 'node:crypto'
import { type CoreRecord, type HistoryRecord, textOf, type WirePart } from '../history/index.ts'
import type { LlmError, LlmRequest, LlmToolCall } from '../llm/index.ts'
import { type CallPorts, type CallsOutcome, runCalls } from './calls.ts'
import type { ErrorInfo } from './contract.ts'
import { type Asked, askedOf } from './failure.ts'
import { pause, type Retry, retryDelay } from './retry.ts'
import { runStep, type StepOutcome, type StepPorts } from './step.ts'
import { reminder } from './user-message.ts'

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
  /** The step's response is recorded, and its calls run next. */
  answered(): void
  /** The step's response and results are recorded, and its end was told; also when the turn was aborted meanwhile. */
  afterStep(at: StepAt): Promise<void>
  /** Nobody wants to hear of the end of a step or to go on behind it, and nothing waits: then the turn is over, and takes nothing more. */
  closes(): boolean
  /** The model has nothing more to do: true when something was added to go on with. After false nothing can be added any more. */
  more(at: StepAt): Promise<boolean>
  /** Engine error of an exception. */
  describe(error: unknown): ErrorInfo
  /** The request failed and is sent again after `delay_ms`. */
  retrying(error: LlmError, attempt: Retry & StepAt & Asked): void
  /** Results, that nobody knows them, of calls whose results the disk refused. */
  openCalls(at: StepAt): readonly CoreRecord[]
  /** Offsets behind what the open step has told in deltas, by kind; undefined when it told nothing. */
  told(): { readonly text?: number; readonly thinking?: number } | undefined
}

interface TurnInput {
  readonly turn_id: number
  /** 0: no limit. */
  readonly max_steps: number
  /** Attempts per step, the first included. */
  readonly max_attempts: number
  /** First delay before a failed request is sent again. */
  readonly retry_base_ms: number
}

export interface TurnResult {
  readonly reason: 'completed' | 'cancelled' | 'failed'
  readonly interrupt_reason?: 'max_steps' | 'filtered' | 'error'
  readonly error?: ErrorInfo
  readonly steps: number
  /** Last text of the assistant. */
  readonly text: string
  /** It was cut at the output limit. */
  readonly truncated: boolean
  /** The end of the last step, to be recorded with that of the turn. */
  readonly unsaved: readonly CoreRecord[]
  /** With an error: whom the last request was for. */
  readonly asked?: Asked
}

/** Requests that `modelError` may send again within one step. */
const maxRecoveries = 5
/** Answers in a row that the provider may pause, or cut inside a tool call. */
const maxPauses = 20
const maxCuts = 3
const finishNames: Readonly<Record<string, string>> = { completed: 'end_turn', tool_calls: 'tool_use', truncated: 'max_tokens' }

const noCalls: CallsOutcome = { stop: false, last: [] }

type Response = Extract<StepOutcome, { kind: 'response' }>
type AnswerFacts = Pick<Extract<CoreRecord, { type: 'step.message' }>, 'cut' | 'model' | 'usage'>
type StepEnd = Omit<Extract<CoreRecord, { type: 'step.end' }>, 'type' | 'time' | 'turn_id' | 'step' | 'step_id'>

export async function runTurn(ports: TurnPorts, input: TurnInput, signal: AbortSignal): Promise<TurnResult> {
  const { turn_id } = input
  let step = 0
  let attempt = 1
  let pauses = 0
  let cuts = 0
  /** The answer before lost its call. */
  let lostBefore = false
  /** Id of the step that began and neither completed nor was interrupted; it may wait for its next attempt. */
  let open: string | undefined
  /** What it said is on record. */
  let answered = false
  let text = ''
  let truncated = false
  let unsaved: readonly CoreRecord[] = []
  let asked: Asked = {}
  /** How the last attempt failed, and how many before it in the same way. */
  let failure = { like: '', same: 0 }

  const result = (facts: Pick<TurnResult, 'reason' | 'interrupt_reason' | 'error'>): TurnResult => ({
    ...facts,
    steps: step,
    text,
    truncated,
    unsaved,
    ...(facts.error ? { asked } : {})
  })

  const stepEnd = (facts: StepEnd): CoreRecord => {
    const step_id = open
    if (!facts.retry) open = undefined
    return { type: 'step.end', turn_id, step, ...(step_id === undefined ? {} : { step_id }), ...facts }
  }
  const end = async (facts: StepEnd, before: readonly CoreRecord[] = [], after: readonly CoreRecord[] = []) => {
    const step_id = open
    await ports.record(...before, stepEnd(facts), ...after).catch((error: unknown) => {
      open = step_id
      throw error
    })
  }
  /** Ends the open step, if any, and says why; what the disk refuses of it goes with the end of the turn. */
  const interrupt = async (
    interrupted: 'aborted' | 'max_steps' | 'error',
    facts: Partial<StepEnd> = {},
    said: readonly CoreRecord[] = []
  ) => {
    const reason = interrupted === 'error' ? 'error' : 'interrupted'
    const ends = open !== undefined || interrupted === 'max_steps'
    const records = [...said, ...ports.openCalls({ turn_id, step }), ...(ends ? [stepEnd({ reason, interrupted, ...facts })] : [])]
    if (records.length === 0) return
    await ports.record(...records).catch(() => {
      unsaved = records
    })
  }
  const cancelled = async (content: readonly WirePart[] = []): Promise<TurnResult> => {
    await interrupt('aborted', {}, message(content, []))
    return result({ reason: 'cancelled' })
  }
  const failed = async (
    error: ErrorInfo,
    interrupt_reason: NonNullable<TurnResult['interrupt_reason']>,
    content: readonly WirePart[] = [],
    lost = false
  ): Promise<TurnResult> => {
    const facts = { message: `[${error.code}] ${error.message}`, ...(lost ? { lost } : {}) }
    await interrupt(interrupt_reason === 'max_steps' ? 'max_steps' : 'error', facts, message(content, []))
    return result({ reason: 'failed', interrupt_reason, error })
  }
  const message = (content: readonly WirePart[], tool_calls: readonly LlmToolCall[], facts: AnswerFacts = {}): CoreRecord[] => {
    if (content.length + tool_calls.length === 0) return []
    const said = textOf(content)
    // A paused answer goes on in the next one.
    if (said !== '') text = pauses > 0 ? text + said : said
    const told = ports.told()
    return [{ type: 'step.message', turn_id, step, content, tool_calls, ...facts, ...(told ? { told } : {}) }]
  }

  /** Sends the request, and again as long as `modelError` repaired it and nothing was announced yet. */
  const ask = async (ready: Promise<void>): Promise<{ outcome: StepOutcome; request: LlmRequest; give_up: boolean }> => {
    for (let recovery = 0; ; recovery++) {
      const request = await ports.request({ turn_id, step })
      asked = { provider_id: request.model.provider_id, model: request.model.alias }
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
    const delay_ms = retryDelay(attempt, error, input.retry_base_ms)
    const { name: error_name, message: error_message, status, code } = error
    const like = JSON.stringify([code, status, error_message])
    failure = { like, same: failure.like === like ? failure.same + 1 : 1 }
    const times = { failed_attempt: attempt, max_attempts: input.max_attempts, delay_ms }
    const facts = { ...times, error_name, error_message, code }
    await end({ reason: 'error', ...asked, retry: { ...facts, ...(status === undefined ? {} : { status }) } })
    ports.retrying(error, { ...times, ...asked, turn_id, step, same: failure.same })
    attempt++
    await pause(delay_ms, signal)
    return true
  }

  /** Records the response, runs its calls and completes the step. */
  const complete = async (response: Response, request: LlmRequest): Promise<'on' | 'over' | 'aborted' | ErrorInfo> => {
    const { usage, timing, finish } = response
    // An answer that was cut at the token limit may hold half an argument list: its calls are not run, and the model is told.
    const cut = finish.reason === 'truncated' && response.calls.length > 0
    const calls = cut ? [] : response.calls
    const called = calls.length > 0
    // Its provider made nothing of the call. The model may make it right; a provider that says so of every answer is taken at its text.
    const lost = finish.reason === 'tool_calls' && !called && !lostBefore
    const model = request.model.alias
    if (called) {
      await ports.record(...message(response.content, calls, usage ? { model, usage } : {}))
      answered = true
      ports.answered()
    }
    const { stop, fault, last } = called ? await runCalls(ports, { turn_id, step }, calls, signal) : noCalls
    truncated = finish.reason === 'truncated'
    const facts = {
      reason: signal.aborted ? 'interrupted' : stop ? 'end_turn' : finishName(response, calls),
      provider_reason: finish.reason,
      ...(finish.raw === undefined ? {} : { raw_reason: finish.raw }),
      model,
      ...(usage ? { usage } : {}),
      ...timing
    }
    const again = cut ? [reminder(turn_id, 'cut_call', cutText(response.calls))] : lost ? [reminder(turn_id, 'lost_call', lostText)] : []
    const paused = finish.reason === 'paused' && !called && response.content.length > 0
    const said = called ? last : message(response.content, calls, cut ? { cut } : {})
    const goesOn = called || cut || lost || paused
    if (!goesOn && !signal.aborted && ports.closes()) {
      unsaved = [...said, stepEnd(facts)]
      return 'over'
    }
    await end(signal.aborted ? { ...facts, interrupted: 'aborted' } : facts, said, signal.aborted ? [] : again)
    await ports.afterStep({ turn_id, step })
    if (signal.aborted) return 'aborted'
    if (fault) return { ...fault, retryable: false }
    if (stop) return 'over'
    pauses = paused ? pauses + 1 : 0
    cuts = cut ? cuts + 1 : 0
    lostBefore = lost
    if (pauses > maxPauses) return unfinished('the provider paused its answer again and again')
    if (cuts > maxCuts) return unfinished('the answers were cut inside a tool call again and again: the output limit is too small for it')
    if (goesOn || (await ports.more({ turn_id, step }))) return 'on'
    return signal.aborted ? 'aborted' : 'over'
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
      if ((await ports.stepBegin({ turn_id, step: step + 1 })) === 'stop') {
        await interrupt('aborted') // it waited for its next attempt
        return result({ reason: 'completed' })
      }
      if (signal.aborted) return await cancelled()
      step++
      answered = false
      const records = await ports.beforeStep({ turn_id, step })
      const step_id = randomUUID()
      // The request need not wait for the disk, only what is told about it.
      const ready = ports.record(...records, { type: 'step.begin', turn_id, step, step_id }).then(() => {
        open = step_id
      })
      ready.catch(() => undefined) // whoever waits for it hears of it
      const { outcome, request, give_up } = await ask(ready).finally(() => ready)
      if (outcome.kind === 'aborted') return await cancelled(outcome.content)
      if (outcome.kind === 'error') {
        const { error, content } = outcome
        if (signal.aborted) return await cancelled(content)
        if (!give_up && (await retry(error))) continue
        // Nothing takes the place of what clients saw.
        return await failed(errorInfo(error), error.code === 'provider.filtered' ? 'filtered' : 'error', content)
      }
      attempt = 1
      failure = { like: '', same: 0 }
      if (outcome.finish.reason === 'filtered') {
        const error = { code: 'provider.filtered', message: 'the provider filtered the answer', retryable: false }
        return await failed(error, 'filtered', outcome.content)
      }
      const next = await complete(outcome, request)
      if (typeof next === 'object') return await failed(next, 'error')
      if (next === 'aborted') return await cancelled()
      if (next === 'over') return result({ reason: 'completed' })
    }
  } catch (error) {
    asked = { ...asked, ...askedOf(error) }
    const facts = { reason: 'failed', interrupt_reason: 'error', error: ports.describe(error) } as const
    return await failed(facts.error, 'error', [], !answered && ports.told() !== undefined).catch(() => result(facts))
  }
}

const unfinished = (text: string): ErrorInfo => ({ code: 'provider.api_error', message: text, retryable: false })

/** For the model, when its answer ended inside a call. */
function cutText(calls: readonly LlmToolCall[]): string {
  const names = [...new Set(calls.map(call => call.name))].join(', ')
  return `Your last answer reached the output limit inside a tool call (${names}). Nothing of it was run. Make the call again in smaller pieces, for example several edits in place of one.`
}

const lostText =
  'Your last answer was to end in a tool call, but no call arrived, so nothing was run. Make the call again, or answer without one.'

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
