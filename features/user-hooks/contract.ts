/** Rules of hooks, who contributes them, and what a command answers. */
import { extensionPoint } from '../../kernel/index.ts'
import type { hookEvents } from '../config/index.ts'

/** A moment at which a command of the user may run. */
export type HookEvent = (typeof hookEvents)[number]

/** A command and when it runs. */
export interface HookRule {
  readonly event: HookEvent
  /** Run by the shell. */
  readonly command: string
  /** Regular expression over the event's subject; empty or absent: always; one that is none: never. */
  readonly matcher?: string
  /** Seconds, 1 to 600; default 30. */
  readonly timeout?: number
  /** Absolute; default: the session's working directory. */
  readonly cwd?: string
  readonly env?: Readonly<Record<string, string>>
}

/** Rules of packs (plugins), after those of the configuration. Where they change, they are contributed anew. */
export interface HookSource {
  rules(): readonly HookRule[]
}
export const HookSources = extensionPoint<HookSource>('hook-sources', undefined, { rules: 'function' })

/** What one command answered. A command that fails, or says nothing that is understood, has no say. */
export interface HookAnswer {
  /** Why what it was asked about must not be. */
  readonly block?: string
  /** For the model. */
  readonly message?: string
  /** Arguments in place of those of a tool call. */
  readonly input?: Readonly<Record<string, unknown>>
}
