/** The hooks of turns, and what their taps get. */
import { AsyncSeriesBailHook, AsyncSeriesHook, AsyncSeriesWaterfallHook } from 'tapable'
import { serviceToken } from '../../kernel/index.ts'
import type { Origin, WirePart } from '../history/index.ts'
import type { LlmError, LlmRequest } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { ErrorInfo } from './contract.ts'

export interface TurnInfo {
  readonly agent: AgentHost
  readonly turn_id: number
  readonly step: number
  /** The turn's: aborts when the turn is cancelled. */
  readonly signal: AbortSignal
}

/** A prompt whose turn is about to begin. */
export interface PromptInfo {
  readonly agent: AgentHost
  readonly prompt_id: string
  readonly content: readonly WirePart[]
  readonly origin: Origin
  /** It is being steered into the running turn. */
  readonly steered: boolean
  /** Aborts when the prompt is withdrawn meanwhile, or the agent closed. */
  readonly signal: AbortSignal
  /** Gives the model a text behind the prompt: a message of origin `hook_result` with this `event`, told as `hook.result`. */
  add(event: string, text: string): void
}

/** The prompt is not to run. */
export interface PromptRefusal {
  /** What blocks it, for the origin of the message: `UserPromptSubmit`. */
  readonly event: string
  /** Why, for people and the model: an assistant message, told as `hook.result`. */
  readonly reason: string
}

/**
 * Thrown by a tap of `stepBegin`, `beforeStep` or `modelError` that cannot let the turn go on: it fails with this engine error. Any other
 * failure of a tap is logged, and the turn goes on.
 */
export class TurnFailure extends Error {
  override readonly name = 'TurnFailure'
  readonly info: ErrorInfo

  constructor(info: ErrorInfo) {
    super(info.message)
    this.info = info
  }
}

export interface TurnHooks {
  /**
   * Bail, before the turn of a prompt begins and before prompts are steered: the first answer blocks the prompt. It settles as `blocked`
   * without a turn. undefined: no objection. Each tap is waited for at most `before_prompt_ms` (deployment option).
   */
  readonly beforePrompt: AsyncSeriesBailHook<[PromptInfo], PromptRefusal>
  /**
   * Bail, at every step boundary before steered prompts and reminders come in; `step` is the one about to begin. `stop` ends the turn as
   * completed without another request (budgets, costs); undefined: no opinion.
   */
  readonly stepBegin: AsyncSeriesBailHook<[TurnInfo], 'stop'>
  /** Waterfall: what goes to the model. Called before each request. */
  readonly beforeStep: AsyncSeriesWaterfallHook<[LlmRequest, TurnInfo]>
  /** Bail on a failed request: `retry` sends it again at once, `fail` ends the turn; undefined: the usual retry table. */
  readonly modelError: AsyncSeriesBailHook<[LlmError, TurnInfo], 'retry' | 'fail'>
  /**
   * Bail when the model has nothing more to do: a text continues the turn as a user message, unless it was aborted meanwhile. undefined: the
   * turn ends.
   */
  readonly shouldContinue: AsyncSeriesBailHook<[TurnInfo], { readonly text: string; readonly origin: Origin }>
  /** Notify. */
  readonly afterStep: AsyncSeriesHook<[TurnInfo]>
  /**
   * Notify, after `turn.ended` and before the prompt counts as over: the next turn waits for the taps, for each at most `turn_end_ms`
   * (deployment option).
   */
  readonly turnEnd: AsyncSeriesHook<[TurnInfo & { readonly reason: 'completed' | 'cancelled' | 'failed' | 'blocked' }]>
}
export const TurnHooks = serviceToken<TurnHooks>('turn-hooks')

/** Made anew with every activation of the pack. */
export function createTurnHooks(): TurnHooks {
  return {
    beforePrompt: new AsyncSeriesBailHook<[PromptInfo], PromptRefusal>(['prompt'], 'beforePrompt'),
    stepBegin: new AsyncSeriesBailHook<[TurnInfo], 'stop'>(['info'], 'stepBegin'),
    beforeStep: new AsyncSeriesWaterfallHook<[LlmRequest, TurnInfo]>(['request', 'info'], 'beforeStep'),
    modelError: new AsyncSeriesBailHook<[LlmError, TurnInfo], 'retry' | 'fail'>(['error', 'info'], 'modelError'),
    shouldContinue: new AsyncSeriesBailHook(['info'], 'shouldContinue'),
    afterStep: new AsyncSeriesHook(['info'], 'afterStep'),
    turnEnd: new AsyncSeriesHook(['info'], 'turnEnd')
  }
}
