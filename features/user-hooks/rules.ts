/** Which rules of the configuration and of packs hold for an event. */
import type { Logger } from '../../kernel/index.ts'
import type { HookEvent, HookRule } from './contract.ts'

export class HookRules {
  readonly #read: () => readonly HookRule[]
  readonly #log: Logger
  /** Expressions that were compiled; null: not one. */
  readonly #expressions = new Map<string, RegExp | null>()
  #byEvent: ReadonlyMap<string, readonly HookRule[]> = new Map()

  constructor(read: () => readonly HookRule[], log: Logger) {
    this.#read = read
    this.#log = log
    this.refresh()
  }

  /** Takes in the rules as they are now. */
  refresh(): void {
    const byEvent = new Map<string, HookRule[]>()
    for (const rule of this.#read()) byEvent.set(rule.event, [...(byEvent.get(rule.event) ?? []), rule])
    this.#byEvent = byEvent
    this.#expressions.clear()
  }

  has(...events: readonly HookEvent[]): boolean {
    return events.some(event => this.#byEvent.has(event))
  }

  /** Rules whose matcher fits; of several with one command in one directory, the first. `cwd`: of those without one. */
  matching(event: HookEvent, subject: string, cwd: string): readonly HookRule[] {
    const seen = new Set<string>()
    return (this.#byEvent.get(event) ?? []).filter(rule => {
      const key = `${rule.cwd ?? cwd}\0${rule.command}`
      if (seen.has(key) || !this.#fits(rule, subject)) return false
      seen.add(key)
      return true
    })
  }

  #fits({ matcher = '', event }: HookRule, subject: string): boolean {
    if (matcher === '') return true
    let expression = this.#expressions.get(matcher)
    if (expression === undefined) {
      try {
        expression = new RegExp(matcher)
      } catch {
        this.#log.warn({ event, matcher }, 'the matcher of a hook is no regular expression: the hook never runs')
        expression = null
      }
      this.#expressions.set(matcher, expression)
    }
    return expression?.test(subject) ?? false
  }
}
