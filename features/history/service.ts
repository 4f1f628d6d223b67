/** The history of an agent: append-only records on disk, folded into messages, projected to what the model sees. */
import { serviceToken } from '../../kernel/index.ts'
import type { LlmMessage, LlmToolCall, TokenUsage } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'

/** Why a message exists. */
export interface Origin {
  readonly kind: string
  readonly [field: string]: unknown
}

/** Content part of the wire (contract 2, Message object). */
export type WirePart = { readonly type: string } & Readonly<Record<string, unknown>>

/** Message of an agent's context, in history order. */
export interface HistoryMessage {
  readonly id: string
  readonly role: 'user' | 'assistant' | 'tool' | 'system'
  readonly created_at: string
  readonly origin?: Origin
  readonly prompt_id?: string
  /** user and system: wire parts as submitted. */
  readonly content: readonly WirePart[]
  /** assistant only. */
  readonly tool_calls?: readonly LlmToolCall[]
  /** tool only. */
  readonly tool_call_id?: string
  readonly tool_name?: string
  readonly is_error?: boolean
  /** tool: text for the model only. */
  readonly note?: string
  readonly turn_id?: number
  readonly step?: number
}

export interface TurnRecord {
  readonly turn_id: number
  readonly origin: Origin
  readonly prompt_id?: string
  readonly started_at: string
  readonly ended_at?: string
  readonly reason?: 'completed' | 'cancelled' | 'failed' | 'blocked'
  readonly interrupt_reason?: string
  /** Last step number that began. */
  readonly steps: number
  readonly error?: { readonly code: string; readonly message: string }
}

export interface PromptRecord {
  readonly prompt_id: string
  /** Empty once the prompt has settled: the message holds it. */
  readonly content: readonly WirePart[]
  readonly created_at: string
  readonly status: 'queued' | 'running' | 'blocked' | 'completed' | 'failed' | 'aborted'
  readonly turn_id?: number
  /** Absent: the user. */
  readonly origin?: Origin
}

/**
 * The records that the fold understands; `time` (ms) is stamped by `append`. Everything else passes by.
 * A `message` without `content` takes that of its accepted prompt. Message ids that are not given follow from the position.
 */
export type CoreRecord =
  | { readonly type: 'prompt.accepted'; readonly prompt_id: string; readonly content: readonly WirePart[]; readonly origin?: Origin }
  | {
      readonly type: 'prompt.settled'
      readonly prompt_ids: readonly string[]
      readonly status: 'completed' | 'failed' | 'aborted' | 'blocked'
    }
  | { readonly type: 'prompt.steered'; readonly prompt_ids: readonly string[]; readonly turn_id: number }
  | {
      readonly type: 'message'
      readonly id?: string
      readonly role: 'user' | 'system'
      readonly content?: readonly WirePart[]
      readonly origin?: Origin
      readonly prompt_id?: string
      readonly turn_id?: number
    }
  | { readonly type: 'turn.started'; readonly turn_id: number; readonly origin: Origin; readonly prompt_id?: string }
  | { readonly type: 'step.begin'; readonly turn_id: number; readonly step: number; readonly step_id: string }
  | {
      readonly type: 'step.message'
      readonly turn_id: number
      readonly step: number
      readonly content: readonly WirePart[]
      readonly tool_calls: readonly LlmToolCall[]
    }
  | {
      readonly type: 'tool.result'
      readonly turn_id: number
      readonly step: number
      readonly tool_call_id: string
      readonly tool_name: string
      readonly content: readonly WirePart[]
      readonly is_error?: boolean
      readonly note?: string
      /** Made up because the call never answered. */
      readonly synthetic?: boolean
    }
  | {
      readonly type: 'step.end'
      readonly turn_id: number
      readonly step: number
      /** `end_turn`, `tool_use`, ..., or `interrupted` and `error`. */
      readonly reason: string
      readonly model?: string
      readonly usage?: TokenUsage
    }
  | {
      readonly type: 'turn.ended'
      readonly turn_id: number
      readonly reason: NonNullable<TurnRecord['reason']>
      readonly interrupt_reason?: string
      readonly error?: { readonly code: string; readonly message: string }
    }

/** A step whose end was not recorded. */
export interface OpenStep {
  readonly turn_id: number
  readonly step: number
  readonly step_id: string
}

/**
 * A record of `agents/<id>/wire.jsonl`: `{ type, ...fields, time }`. Unknown types are kept and skipped by the fold, so packs may add
 * their own (`append({ type: 'permission.mode', mode })`) and read them back with `records(type)`.
 */
export interface HistoryRecord {
  readonly type: string
  readonly time?: number
  readonly [field: string]: unknown
}

export interface History {
  /** Folded messages, oldest first; one that still streams is not among them. Live view: grows while a turn runs. */
  messages(): readonly HistoryMessage[]
  turns(): readonly TurnRecord[]
  prompts(): readonly PromptRecord[]
  prompt(prompt_id: string): PromptRecord | undefined
  /** Sum of usage over the agent's life, and context size in tokens (measured + estimated). */
  usage(): TokenUsage
  contextTokens(): number
  /** Appends records; resolves when on disk. Folding happens at once. `time` is stamped. */
  append(...records: (CoreRecord | HistoryRecord)[]): Promise<void>
  /** Usage by model alias, over the agent's life. */
  usageByModel(): Readonly<Record<string, TokenUsage>>
  /** True when the id was used by a tool call of this agent. */
  hasToolCall(id: string): boolean
  /** The step that was begun and not ended, while it runs or after a crash. */
  openStep(): OpenStep | undefined
  /** Tool calls without a result, in call order. */
  openCalls(): readonly LlmToolCall[]
  /** Records of one type that the fold does not know, oldest first. */
  records(type: string): readonly HistoryRecord[]
  /** Repaired view for the model (engine: projection): every tool call has exactly one result, neighbours merged. */
  project(): LlmMessage[]
}

export interface Histories {
  of(agent: AgentHost): Promise<History>
}
export const Histories = serviceToken<Histories>('history')
