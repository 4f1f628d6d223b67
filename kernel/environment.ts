/** What every part of one kernel shares: handed down whole. */
import type { Guard } from './lifecycle/guard.ts'
import type { Logger } from './log/log.ts'
import type { FilledOptions } from './options.ts'

export interface Environment {
  /** Options with their defaults; `home` is absolute. */
  readonly options: FilledOptions
  readonly log: Logger
  readonly guard: Guard
  now(): Date
  /** Monotonic ULID. */
  newId(): string
}
