/** Permission rules: the pattern language, the configuration's forms of a rule, and matching against a call. */
import type { Static } from '../../kernel/index.ts'
import { matchText, type RuleReading, type ToolExecution } from '../tools/index.ts'
import type { permissionSection } from './contract.ts'

/** `Tool(args)` taken apart. */
export interface Pattern {
  /** Glob on the tool's name. */
  readonly tool: string
  /** Handed to the call's matcher; undefined: any arguments. */
  readonly args?: string
  /** A leading `!` in the argument part: every call that does not match. */
  readonly not: boolean
}

export interface Rule {
  readonly decision: 'allow' | 'deny' | 'ask'
  readonly pattern: Pattern
  readonly reason?: string
}

/** Parses `Tool`, `Tool(args)`, `Tool(!args)`; empty parentheses mean no arguments given. Undefined when the text is no pattern. */
export function parsePattern(text: string): Pattern | undefined {
  const parts = /^([^()\s]+)(?:\(([\s\S]*)\))?$/.exec(text)
  const tool = parts?.[1]
  if (tool === undefined) return undefined
  const inner = parts?.[2] ?? ''
  const not = inner.startsWith('!')
  const args = not ? inner.slice(1) : inner
  return args === '' ? { tool, not: false } : { tool, args, not }
}

/**
 * Whether a pattern covers a call; allowing patterns are read as `every`, others as `some`. A call without a matcher is covered only by
 * patterns without arguments.
 */
export function covers(pattern: Pattern, tool: string, execution: ToolExecution, reading: RuleReading): boolean {
  if (!matchText(pattern.tool, tool)) return false
  if (pattern.args === undefined) return true
  if (!execution.matches) return false
  if (!pattern.not) return execution.matches(pattern.args, reading)
  return !execution.matches(pattern.args, reading === 'every' ? 'some' : 'every')
}

/** The rules of the configuration in list order: `rules` first, then the shorthand tables. Rules of scope `session-runtime` do not count. */
export function rulesOf(value: Static<typeof permissionSection.schema>): Rule[] {
  const rules: Rule[] = []
  for (const { decision, pattern, scope, reason } of value.rules ?? []) {
    const parsed = parsePattern(pattern)
    if (parsed && scope !== 'session-runtime') rules.push({ decision, pattern: parsed, ...(reason === undefined ? {} : { reason }) })
  }
  for (const decision of ['deny', 'ask', 'allow'] as const) {
    for (const { tool, match, pattern, reason } of value[decision] ?? []) {
      const parsed = parsePattern(`${tool}(${match ?? pattern ?? ''})`)
      if (parsed) rules.push({ decision, pattern: parsed, ...(reason === undefined ? {} : { reason }) })
    }
  }
  return rules
}
