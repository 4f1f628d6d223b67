/** What a policy sees of a call and what it may say. */
import type { ToolExecution } from '../tools/index.ts'
import type { WorkTree } from './git.ts'
import { covers, type Pattern, type Rule } from './rules.ts'
import type { PermissionMode } from './service.ts'

export interface CallFacts {
  readonly tool: string
  readonly execution: ToolExecution
  readonly mode: PermissionMode
  /** Rules of the configuration, in order. */
  readonly rules: readonly Rule[]
  /** Rules of the configuration are missing because they cannot be read. */
  readonly unsure: boolean
  /** Approvals remembered for the session. */
  readonly remembered: readonly Pattern[]
  /** Working directory, symbolic links resolved. */
  readonly cwd: string
  /** The git work tree around the working directory; looked up at the first call. */
  readonly workTree: () => Promise<WorkTree | undefined>
}

/** `deny` carries the text for the model. */
export type Opinion = { readonly kind: 'approve' } | { readonly kind: 'ask' } | { readonly kind: 'deny'; readonly text: string }

/** One rule of judgement; undefined means no opinion. */
export type Policy = (facts: CallFacts) => Opinion | undefined | Promise<Opinion | undefined>

export const approve: Opinion = { kind: 'approve' }
export const ask: Opinion = { kind: 'ask' }

/** The first configured rule of a decision that covers the call. */
export function ruleFor({ rules, tool, execution }: CallFacts, decision: Rule['decision']): Rule | undefined {
  return rules.find(rule => rule.decision === decision && covers(rule.pattern, tool, execution, decision === 'allow' ? 'every' : 'some'))
}

/** Paths the call touches. */
export function pathsOf(facts: CallFacts, kinds?: readonly string[]): string[] {
  return facts.execution.accesses.flatMap(access =>
    access.kind === 'exclusive' || (kinds && !kinds.includes(access.kind)) ? [] : [access.path]
  )
}
