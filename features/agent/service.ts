/** Agents at work: the prompt queue, turns, steering and aborting. */
import { type ErrorSpec, errorSpec, serviceToken, Type } from '../../kernel/index.ts'
import type { Origin, WirePart } from '../history/index.ts'
import type { LlmRequest, ResolvedModel, TokenUsage } from '../llm/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { ErrorInfo } from './contract.ts'
import type { AgentProfile } from './extension-points.ts'
import type { StatusPlace } from './status-facts.ts'

export const PromptMissing = errorSpec('prompt_missing', 40402, 'prompt not found')
export const PromptCompleted = errorSpec('prompt_completed', 40903, 'prompt already completed', 200, {
  data: Type.Object({ aborted: Type.Literal(false) })
})
export const PromptInUse = errorSpec('prompt_in_use', 40927, 'prompt_id is in use')

export interface Prompt {
  readonly prompt_id: string
  readonly user_message_id: string
  readonly status: 'running' | 'queued' | 'blocked'
  readonly content: readonly WirePart[]
  readonly created_at: string
}

export interface PromptInput {
  readonly content: readonly WirePart[]
  readonly prompt_id?: string
  readonly origin?: Origin
}

/**
 * When a notice gets its message. `newTurn`: with a turn of its own. `activeOrNewTurn`: with the next step of the running turn, else with a
 * turn of its own. `activeOrNextTurn`: with the next step of the running turn, else when some turn starts. `activeTurnOnly`: with the next
 * step of the running turn or never.
 */
export type Admission = 'newTurn' | 'activeOrNewTurn' | 'activeOrNextTurn' | 'activeTurnOnly'

/** Something that the model should hear of and no user wrote. */
export interface NoticeInput {
  /** A text, or content parts. */
  readonly content: string | readonly WirePart[]
  /** Of its message, and of the turn that it starts. */
  readonly origin: Origin
  /** Default `activeOrNewTurn`. */
  readonly admission?: Admission
  /** May share a step with other notices; of those that may not, each gets a step of its own. Default true. */
  readonly mergeable?: boolean
  /** Void when a turn ends that did not take it. Default false; `activeTurnOnly` always is. */
  readonly turn_scoped?: boolean
  /**
   * Id of its message, default a new one. A notice whose id the agent knows is not taken again, unless its message was taken back: whoever
   * injects anew after a crash tells nothing twice.
   */
  readonly id?: string
}

/**
 * What becomes of a notice. `starts`: a turn begins with it, at once or after those that wait. `joins`: it comes with the next step of the
 * running turn. `waits`: it comes when some turn starts. `refused`: no turn runs that could take it. `known`: it came before.
 */
export type NoticeFate = 'starts' | 'joins' | 'waits' | 'refused' | 'known'

/** The newest failure of an agent: a turn that failed, or an attempt after which another one follows (`retry`). */
export interface Failure {
  readonly at: string
  readonly turn_id: number
  /** Engine code, as in the event `error`: `provider.auth_error`. */
  readonly code: string
  readonly message: string
  /** Class of the error: `AuthError`. */
  readonly name?: string
  /** The same request may succeed later. */
  readonly retryable: boolean
  /** HTTP status of the provider. */
  readonly status?: number
  readonly provider_id?: string
  /** Alias. */
  readonly model?: string
  /** The turn goes on with another attempt, `delay_ms` after `at`. */
  readonly retry?: { readonly failed_attempt: number; readonly max_attempts: number; readonly delay_ms: number }
}

/** How a prompt ended. */
export interface PromptOutcome {
  readonly prompt_id: string
  /** Undefined: it never ran. */
  readonly turn_id?: number
  readonly reason: 'completed' | 'cancelled' | 'failed' | 'blocked'
  /** `user_cancelled`, `aborted`, `max_steps`, `filtered`, `error`; undefined when the turn completed. */
  readonly interrupt_reason?: string
  readonly error?: ErrorInfo
  /** Last text of the assistant in the turn; empty when there was none. */
  readonly text: string
  /** That text was cut at the output limit. */
  readonly truncated: boolean
  readonly steps: number
  /** Tokens of the turn. */
  readonly usage: TokenUsage
}

/** The same of what no prompt began. */
export type TurnOutcome = Omit<PromptOutcome, 'prompt_id'>

/** What the agent is set to; persisted. */
export interface AgentSettings {
  /** Model alias; undefined until bound. */
  readonly model?: string
  /** Nobody chose the model: it was the default one when a turn needed one. While there is none of that name, the default one of now counts. */
  readonly model_by_default?: boolean
  /** Effort level; undefined = default of the model. */
  readonly thinking?: string
  readonly profile?: string
  /**
   * Names, and globs for tools of MCP servers (`mcp__db__*`). They bind the agents that come from this one, too; those of the main agent bind
   * the whole session.
   */
  readonly disabled_tools?: readonly string[]
}

/** A tool between its start and its result (contract 2, snapshot). */
export interface RunningTool {
  readonly tool_call_id: string
  readonly name: string
  readonly args: Readonly<Record<string, unknown>>
  readonly description?: string
  readonly display?: { readonly kind: string } & Readonly<Record<string, unknown>>
  readonly last_progress?: { readonly kind: 'stdout' | 'stderr' | 'progress' | 'status'; readonly text?: string; readonly percent?: number }
}

export interface InFlightTurn {
  readonly turn_id: number
  /** Text of the message that still streams; empty once the history has it. */
  readonly assistant_text: string
  /** Where the text begins in the turn, UTF-16 units: with its length it is the offset of the next delta. */
  readonly assistant_offset: number
  readonly thinking_text: string
  readonly thinking_offset: number
  readonly running_tools: readonly RunningTool[]
  readonly current_prompt_id?: string
  /** Prompts that were steered into the turn and are no messages yet: they are with its next step. */
  readonly steered_prompts?: readonly { readonly prompt_id: string; readonly content: readonly WirePart[] }[]
}

export interface ExclusiveOptions {
  /** Default SessionBusy (40901). */
  readonly refusal?: ErrorSpec
  /** It ends soon by itself: no model and no user is waited for. */
  readonly brief?: boolean
}

/** The engine of one agent. */
export interface Agent {
  readonly host: AgentHost
  settings(): AgentSettings
  /** Applies and persists settings. An unknown model throws ModelUnresolved (40113), an unknown profile or effort 40001. */
  configure(change: Partial<AgentSettings>): Promise<void>
  /** Tells clients the status (`agent.status.updated`), with the facts of packs and with what changed beside them. */
  announce(change?: { readonly permission?: string }): void
  /** Resolved model of the next turn. Throws 40110..40113. */
  model(): ResolvedModel
  /** Effort of the next turn; empty until a model is bound. */
  effort(): string
  /** True for every prompt that this agent ever accepted. */
  knows(prompt_id: string): boolean
  /** Throws 40903 or 40927 when the id cannot be submitted any more. */
  checkPromptId(prompt_id: string): void
  /** Accepts a prompt (durable before it resolves) and starts it when idle. Throws 40903, 40927. */
  submit(input: PromptInput): Promise<Prompt>
  /**
   * Submits a prompt and resolves when it has ended, whatever became of it. The signal aborts it, as its user when the reason says so
   * (`isUserAbort`). Rejects only when nothing was accepted: with what `submit` throws, or the reason of a signal that was aborted before.
   */
  run(input: PromptInput, signal?: AbortSignal): Promise<PromptOutcome>
  /** As `run`, with a notice that has a turn of its own (`inject`): nobody is told of it as a prompt. */
  runNotice(notice: Pick<NoticeInput, 'content' | 'origin'>, signal?: AbortSignal): Promise<TurnOutcome>
  /**
   * Gives the model a notice: durable before it resolves, delivered exactly once, told to nobody as a prompt. Prompts go before notices that
   * start a turn; notices keep their order. One that waits for the running turn keeps it going.
   */
  inject(notice: NoticeInput): Promise<NoticeFate>
  /** Takes a notice back that is no message yet; on record when it resolves. False: none of this id waits. */
  withdrawNotice(id: string): Promise<boolean>
  /**
   * Runs `work` while no turn runs; prompts and notices that come meanwhile are accepted and begin when it has ended. Throws `refusal` (default
   * SessionBusy, 40901) when a turn runs or waits, or other exclusive work goes on; `brief` work is waited for instead, in the order of the
   * calls, and so are, for a second, the taps of the end of a turn. The signal aborts when the agent is closed or its session archived, which
   * wait for the end of `work`. Work that takes long announces itself (`session.work.background`).
   */
  exclusive<T>(work: (signal: AbortSignal) => Promise<T>, options?: ExclusiveOptions): Promise<T>
  /**
   * What the next request to the model would be, as the running turn is bound or the next one will be: before the hooks, with everything that
   * is on record. Throws what keeps a turn from running (40110..40113).
   */
  draft(): Promise<LlmRequest>
  active(): Prompt | undefined
  queued(): readonly Prompt[]
  /** Merges queued prompts into the running turn. Throws PromptMissing. */
  steer(prompt_ids: readonly string[]): Promise<void>
  /**
   * Aborts a prompt; resolves when it has ended. One that waits (queued, or steered and not taken yet) never runs; one that runs, or was
   * taken by the running turn, ends that turn. Throws PromptMissing, PromptCompleted.
   */
  abortPrompt(prompt_id: string): Promise<void>
  /**
   * Cancels the running turn, if any; resolves when it has ended. `user` false: programmatic (shutdown); a user's abort also ends
   * exclusive work by its signal.
   */
  abort(user: boolean): Promise<void>
  /** Withdraws what waits and cancels the running turn; resolves when nothing is left. */
  end(): Promise<void>
  inFlight(): InFlightTurn | undefined
  /** Undefined when nothing failed since the last turn that completed. */
  lastFailure(): Failure | undefined
  /** Tokens spent, and context size as `token_counting.strategy` wants it told, for the snapshot and the status rollup. */
  usage(): {
    readonly total: TokenUsage
    readonly context_tokens: number
    readonly max_context_tokens?: number
    readonly turn_count: number
  }
}

export interface Agents {
  /** Known profiles: `agent` (default), `coder`, `explore`, `plan`, those of packs, and those of a session. */
  profiles(session?: Session): readonly AgentProfile[]
  /** What packs say (`StatusFacts`) of an agent, or of a session without one, with built-in values where nobody does. */
  facts(of: AgentHost | Session, place: StatusPlace): Readonly<Record<string, unknown>>
  of(host: AgentHost): Promise<Agent>
  /** Whether `of` was called since its session was loaded: an agent that is not open runs nothing. */
  isOpen(host: AgentHost): boolean
  /** Model of the next turn, for who cannot wait; undefined while the agent is not open, and when there is none. */
  modelOf(host: AgentHost): ResolvedModel | undefined
  /** Main agent of a session. */
  main(session_id: string): Promise<Agent>
}
export const Agents = serviceToken<Agents>('agents')
