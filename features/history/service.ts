/** The history of an agent: append-only records on disk, folded into messages, projected to what the model sees. */
import { serviceToken, type Slot } from '../../kernel/index.ts'
import type { LlmContent, LlmMessage, LlmToolCall, TokenUsage } from '../llm/index.ts'
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
  /** Last step number that began. */
  readonly steps: number
  readonly error?: { readonly code: string; readonly message: string }
}

export interface PromptRecord {
  readonly prompt_id: string
  readonly content: readonly WirePart[]
  readonly created_at: string
  readonly status: 'queued' | 'running' | 'blocked' | 'completed' | 'failed' | 'aborted'
  readonly turn_id?: number
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
  /** Folded messages, oldest first. Live view: grows while a turn runs. */
  messages(): readonly HistoryMessage[]
  turns(): readonly TurnRecord[]
  prompts(): readonly PromptRecord[]
  prompt(prompt_id: string): PromptRecord | undefined
  /** Sum of usage over the agent's life, and context size in tokens (measured + estimated). */
  usage(): TokenUsage
  contextTokens(): number
  /** Appends records; resolves when on disk. Folding happens at once. `time` is stamped. */
  append(...records: HistoryRecord[]): Promise<void>
  /** Records of one type, oldest first. */
  records(type: string): readonly HistoryRecord[]
  /** Repaired view for the model (engine: projection): every tool call has exactly one result, neighbours merged. */
  project(): LlmMessage[]
  /** Partial assistant message while a step streams; replaced by the sealed one at step end. In memory only. */
  setPartial(parts: readonly LlmContent[] | undefined): void
}

/** Slot: `await agent.get(HistorySlot)`. */
export type HistorySlot = Slot<Promise<History>, AgentHost>

export interface Histories {
  of(agent: AgentHost): Promise<History>
}
export const Histories = serviceToken<Histories>('history')
