/** What a history is made of: messages, prompts, turns. */
import type { LlmToolCall } from '../llm/index.ts'

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
  /** A hook blocked it: clients read it, the model never does. */
  readonly blocked?: boolean
  /** user and system: wire parts as submitted. */
  readonly content: readonly WirePart[]
  /** assistant only. */
  readonly tool_calls?: readonly LlmToolCall[]
  /** assistant: it broke off inside a tool call. */
  readonly cut?: boolean
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
  readonly error?: { readonly code: string; readonly message: string } & Readonly<Record<string, unknown>>
}

export interface PromptRecord {
  readonly prompt_id: string
  /** Empty once the prompt has settled: the message holds it. */
  readonly content: readonly WirePart[]
  readonly created_at: string
  /** `steered`: handed to the running turn, not a message yet. */
  readonly status: 'queued' | 'steered' | 'running' | 'blocked' | 'completed' | 'failed' | 'aborted'
  readonly turn_id?: number
  /** Absent: the user. */
  readonly origin?: Origin
}

/** The newest undo. */
export interface LastUndo {
  /** In ms. */
  readonly time: number
  /** Text of the newest prompt that was left and had begun. */
  readonly last_prompt?: string
  /** The newest prompt that waited then. */
  readonly waiting?: string
}

/** A step whose end was not recorded. */
export interface OpenStep {
  readonly turn_id: number
  readonly step: number
  readonly step_id: string
  /** Its message is on record. */
  readonly answered?: boolean
  /** What it spent counts already. */
  readonly spent?: boolean
  /** `told` of the message, until a call was told or answered. */
  readonly told?: { readonly text?: number; readonly thinking?: number }
  /** It failed, and waits for its next attempt. */
  readonly waits?: true
}
