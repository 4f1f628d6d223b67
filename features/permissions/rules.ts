/** Permission rules: the pattern language, the configuration's forms of a rule, and matching against a call. */
import { type Static, yieldToLoop } from '../../kernel/index.ts'
import { matchPath, matchText, type RulePart, type ToolExecution } from '../tools/index.ts'
import type { permissionSection } from './contract.ts'

/** `Tool(args)` taken apart. */
interface Pattern {
  /** Glob on the tool's name. */
  readonly tool: string
  /** Handed to the parts of the call; undefined: any arguments. */
  readonly args?: string
  /** A leading `!` in the argument part: everything that does not match. */
  readonly not: boolean
}

type Decision = 'allow' | 'deny' | 'ask'

export interface Rule {
  readonly decision: Decision
  readonly pattern: Pattern
  readonly reason?: string
}

/** The rules that may concern calls of a tool, in order. */
type ToolRules = Readonly<Record<Decision, readonly Rule[]>>

/** A call and the rules that may concern it. */
export interface RuledCall {
  /** Those for its tool. */
  readonly own: ToolRules
  readonly parts: readonly RulePart[]
  readonly execution: Pick<ToolExecution, 'uncertain'>
}

const known = new WeakMap<readonly Rule[], Map<string, ToolRules>>()

/** Worked out once per list of rules and name of a tool. */
export function rulesFor(tool: string, rules: readonly Rule[]): ToolRules {
  const byTool = known.get(rules) ?? new Map<string, ToolRules>()
  known.set(rules, byTool)
  const found = byTool.get(tool)
  if (found) return found
  const own = rules.filter(({ pattern }) => matchText(pattern.tool, tool))
  const of = (decision: Decision) => own.filter(rule => rule.decision === decision)
  const made = { deny: of('deny'), ask: of('ask'), allow: of('allow') }
  byTool.set(tool, made)
  return made
}

/** Parses `Tool`, `Tool(args)`, `Tool(!args)`; empty parentheses mean no arguments given. Undefined when the text is no pattern. */
function parsePattern(text: string): Pattern | undefined {
  const parts = /^([^()\s]+)(?:\(([\s\S]*)\))?$/.exec(text)
  const tool = parts?.[1]
  if (tool === undefined) return undefined
  const inner = parts?.[2] ?? ''
  const not = inner.startsWith('!')
  const args = not ? inner.slice(1) : inner
  return args === '' ? { tool, not: false } : { tool, args, not }
}

/** The first rule of a denying or asking kind that means the call: any part of it is enough, read widely. */
export function ruleFor({ own, parts }: RuledCall, decision: 'deny' | 'ask'): Promise<Rule | undefined> {
  return firstOf(
    own[decision],
    ({ pattern: { args, not } }) => args === undefined || anyOf(parts, part => (not ? !part.covers(args) : part.names(args)))
  )
}

/** Whether the allowing rules together cover the call: each part is covered by one of them, read narrowly. */
export async function allows({ own, parts, execution }: RuledCall): Promise<boolean> {
  const allowing = own.allow.map(rule => rule.pattern)
  const covered = (part: RulePart) =>
    allowing.some(
      ({ args, not }) =>
        args !== undefined && (not ? !execution.uncertain && !part.names(args) && !part.suspects?.(args) : part.covers(args))
    )
  return allowing.some(({ args }) => args === undefined) || (parts.length > 0 && !(await anyOf(parts, part => !covered(part))))
}

/** Whether the call may be meant by a rule of this kind: it does not tell what it does, or something in it may be what the rule means. */
export function mayConcern({ own, parts, execution }: RuledCall, decision: 'deny' | 'ask'): Promise<boolean> {
  return anyOf(own[decision], ({ pattern: { args, not } }) => {
    if (args === undefined) return false
    return execution.uncertain || (!not && anyOf(parts, part => part.suspects?.(args) === true))
  })
}

/** The first that fits. A call may have thousands of parts, and there may be hundreds of rules: yields to the loop in between. */
export async function firstOf<T>(items: readonly T[], fits: (item: T) => boolean | Promise<boolean>): Promise<T | undefined> {
  for (const item of items) {
    if (await fits(item)) return item
    const others = yieldToLoop()
    if (others) await others
  }
  return undefined
}

/** Whether one of them fits. */
async function anyOf<T extends object>(items: readonly T[], fits: (item: T) => boolean | Promise<boolean>): Promise<boolean> {
  return (await firstOf(items, fits)) !== undefined
}

/** Whether a rule of Read or Write means a file as that tool would touch it. */
export function meansPath({ pattern: { args, not } }: Rule, path: string, places: { cwd: string; home: string }): boolean {
  return args === undefined || matchPath(args, path, places) !== not
}

/** What rules judge of a call. */
export function partsOf({ parts, approval_argument: text }: Pick<ToolExecution, 'approval_argument' | 'parts'>): readonly RulePart[] {
  if (parts) return parts
  const matches = (pattern: string) => matchText(pattern, text ?? '')
  return text === undefined ? [] : [{ covers: matches, names: matches }]
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
