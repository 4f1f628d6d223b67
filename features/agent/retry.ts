/** When something that failed is tried again. */
import { setTimeout as delay } from 'node:timers/promises'
import { longestMs } from '../../kernel/index.ts'
import type { LlmError } from '../llm/index.ts'

const maxDelayMs = 32_000

/** An attempt that failed and is followed by another one. */
export interface Retry {
  /** From 1. */
  readonly failed_attempt: number
  readonly max_attempts: number
  readonly delay_ms: number
  /** How many attempts in a row failed in this very way. */
  readonly same: number
}

/** Delay before the next attempt in ms: what the upstream asked for, else doubling from `baseMs` up to 32 s, plus up to 25 % at random. */
export function retryDelay(failedAttempt: number, error: LlmError, baseMs: number, random: () => number = Math.random): number {
  if (error.retry_after_ms !== undefined && error.retry_after_ms > 0) return error.retry_after_ms
  return Math.round(backoff(failedAttempt, baseMs) * (1 + random() * 0.25) * 10) / 10
}

/** Doubles with every failed attempt (from 1) from `baseMs` up to 32 s. */
export function backoff(failedAttempt: number, baseMs: number): number {
  return Math.min(baseMs * 2 ** (failedAttempt - 1), maxDelayMs)
}

/** How long the attempts after a failed one take at least, ms, when all of them fail at once. */
export function remainingMs(failedAttempt: number, maxAttempts: number, baseMs: number): number {
  let sum = 0
  for (let attempt = failedAttempt; attempt < maxAttempts; attempt++) sum += backoff(attempt, baseMs)
  return sum
}

/** Resolves after `ms`, or as soon as the signal aborts. */
export async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms > 0) await delay(Math.min(ms, longestMs), undefined, { signal }).catch(() => undefined) // it aborted
}
