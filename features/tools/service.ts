/** The hooks around a call, who decides about it, and the port the agent uses. */
import { AsyncSeriesBailHook, AsyncSeriesWaterfallHook, SyncHook } from 'tapable'
import { guardHook, serviceToken } from '../../kernel/index.ts'
import type { LlmTool, LlmToolCall } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { Tool, ToolDisplay, ToolEnv, ToolExecution, ToolResult, ToolUpdate, TurnFault } from './tool.ts'

/** A prepared call on its way to execution. */
export interface ToolCallContext {
  /** As the model made it. */
  readonly call: LlmToolCall
  /** What it runs with: the arguments of the model, unless a guard or the authority rewrote them. */
  readonly args: Readonly<Record<string, unknown>>
  readonly tool: Tool
  readonly execution: ToolExecution
  readonly env: ToolEnv
  /** Aborts with the turn, and when the pack of the tool leaves. */
  readonly signal: AbortSignal
}

/** Settles a call with an error result, before it runs. */
export interface ToolDenial {
  readonly kind: 'deny'
  /** Text for the model. */
  readonly output: string
  /** Ends the turn after this batch. */
  readonly stop_turn?: boolean
  /** As in `ToolResult`. */
  readonly fail_turn?: TurnFault
}

/** The call is to be made with other arguments: it is validated, prepared and decided about anew, from the first guard on. */
export interface ToolRewrite {
  readonly kind: 'rewrite'
  /** In place of the arguments. */
  readonly args: Readonly<Record<string, unknown>>
  /** Why, as a sentence for the model. */
  readonly reason?: string
}

export interface ToolHooks {
  /**
   * Bail, in stages (guards -100, dedupe 0): a guard that answers refuses or rewrites the call, undefined means no objection. No guard can
   * permit. Each guard rewrites a call at most once: asked again about what became of it, it can still refuse, and what else it would
   * change is not heard. While the pack of a guard is starting again, its guard refuses.
   */
  readonly before: AsyncSeriesBailHook<[ToolCallContext], ToolDenial | ToolRewrite | undefined>
  /** Waterfall on the result of a call that ran or was denied. */
  readonly after: AsyncSeriesWaterfallHook<[ToolResult, ToolCallContext]>
  /** Notify: a call was refused that was not understood. No such tool, arguments that do not fit it; there is nothing that would have run. */
  readonly misunderstood: SyncHook<[MisunderstoodCall]>
}

export interface MisunderstoodCall extends Pick<ToolCallContext, 'call' | 'args'> {
  readonly agent: AgentHost
  /** What the model is told. */
  readonly result: ToolResult
}
export const ToolHooks = serviceToken<ToolHooks>('tool-hooks')

/** The hooks of one activation of the pack. */
export function createToolHooks(): ToolHooks {
  return {
    before: guardHook(new AsyncSeriesBailHook(['context'], 'toolCall.before')),
    after: new AsyncSeriesWaterfallHook(['result', 'context'], 'toolCall.after'),
    misunderstood: new SyncHook(['call'], 'toolCall.misunderstood')
  }
}

/** Somebody must consent. */
export interface ToolQuestion {
  readonly kind: 'ask'
  /** Asks, and answers what was decided. Called at most once, and not at all when the call itself is refused (`ToolExecution.check`). */
  ask(): Promise<ToolDecision | ToolRewrite>
}

/** `note`: told to the model with the result. */
export type ToolDecision = { readonly kind: 'run'; readonly note?: string } | ToolDenial

/** What the authority says of a call. It rewrites a call at most once; the second time the call is refused. */
export type ToolVerdict = ToolDecision | ToolRewrite | ToolQuestion

/**
 * Decides whether a call may run, after every guard had no objection. There is one authority or none; a call runs only when the
 * authority, or whoever it asks, answered `run`. Without one, with one that throws or answers anything else, it is refused.
 */
export interface ToolAuthority {
  permit(context: ToolCallContext): Promise<ToolVerdict>
  /** What a search may show: whether a file (absolute path, links resolved) is free of rules that deny reading it. */
  readable(env: Pick<ToolEnv, 'agent' | 'cwd'>): Promise<(path: string) => boolean>
}
export const ToolAuthority = serviceToken<ToolAuthority>('tool-authority')

/** How the agent sees tools; results come in call order. Provided by the tools pack, used by the turn. */
export interface ToolRunner {
  /**
   * Tool list for the model, filtered by policy. It stays the same throughout a turn, because providers cache requests by their beginning:
   * tools that come, go or are switched off meanwhile show in the next turn. Calls are judged by what is there when they are made.
   */
  list(agent: AgentHost, turn_id: number): readonly LlmTool[]
  /** What users wrote to switch tools on or off for this agent and what means none, in words. Default: nothing. */
  unmatched?(agent: AgentHost): readonly string[]
  /**
   * Prepares all calls in order (validation, permission), then executes. Never rejects. Events go through `report`:
   * `started` after the decision (also for denied calls), `progress`, and `finished` in completion order. Nobody waits for the report of
   * `started`, which resolves when clients have heard of it, before the call runs.
   */
  run(input: ToolRunInput): Promise<readonly ToolOutcome[]>
}

export interface ToolRunInput {
  readonly agent: AgentHost
  readonly turn_id: number
  readonly calls: readonly LlmToolCall[]
  readonly signal: AbortSignal
  readonly report: (event: ToolReport) => void | Promise<void>
}

export type ToolReport =
  | {
      readonly type: 'started'
      readonly call: LlmToolCall
      /** What it runs with. */
      readonly args: Readonly<Record<string, unknown>>
      /** Who changed the arguments, in order; absent: they are those of the model. */
      readonly changed_by?: readonly string[]
      /** It was decided, or found out, that the call does not run. */
      readonly refused?: boolean
      readonly description?: string
      readonly display?: ToolDisplay
    }
  | { readonly type: 'progress'; readonly call: LlmToolCall; readonly update: ToolUpdate }
  | { readonly type: 'finished'; readonly call: LlmToolCall; readonly result: ToolResult }

export interface ToolOutcome {
  readonly call: LlmToolCall
  readonly result: ToolResult
}

export const ToolRunner = serviceToken<ToolRunner>('tool-runner')
