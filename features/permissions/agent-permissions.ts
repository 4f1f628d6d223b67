/** Mode and remembered approvals of one agent, kept in its history. */
import type { History } from '../history/index.ts'
import { type Pattern, parsePattern } from './rules.ts'
import type { PermissionMode } from './service.ts'

const MODE = 'permission.mode'
const RULE = 'permission.rule'

/** Only explicit settings are recorded; without a history they live in memory. */
export class AgentPermissions {
  /** Where nothing was set: the configured default at the time the agent was loaded. */
  readonly fallback: PermissionMode
  readonly #history: History | undefined
  #mode: PermissionMode | undefined
  readonly #rules = new Map<string, Pattern>()

  constructor(history: History | undefined, fallback: PermissionMode) {
    this.fallback = fallback
    this.#history = history
    for (const { mode } of history?.records(MODE) ?? []) if (isMode(mode)) this.#mode = mode
    for (const { rule } of history?.records(RULE) ?? []) if (typeof rule === 'string') this.#keep(rule)
  }

  /** The mode that was set for this agent; undefined when none was. */
  get mode(): PermissionMode | undefined {
    return this.#mode
  }

  get rules(): readonly Pattern[] {
    return [...this.#rules.values()]
  }

  async setMode(mode: PermissionMode): Promise<void> {
    if (this.#mode === mode) return
    await this.#history?.append({ type: MODE, mode })
    this.#mode = mode
  }

  /** Throws on a text that is no rule pattern: it would be forgotten at the next start. */
  async remember(rule: string): Promise<void> {
    if (this.#rules.has(rule)) return
    if (!parsePattern(rule)) throw new Error(`not a permission rule: ${rule.slice(0, 200)}`)
    await this.#history?.append({ type: RULE, rule })
    this.#keep(rule)
  }

  #keep(rule: string): void {
    const pattern = parsePattern(rule)
    if (pattern) this.#rules.set(rule, pattern)
  }
}

function isMode(value: unknown): value is PermissionMode {
  return value === 'manual' || value === 'auto' || value === 'yolo'
}
