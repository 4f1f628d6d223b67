/** The review of a plan: how the user's answer is read, and what the model hears of it. Pure. */
import { type ApprovalAnswer, type ApprovalAsk, type InteractionEnd, unattendedFailure } from '../interactions/index.ts'
import type { ToolResult } from '../tools/index.ts'
import type { PlanOption } from './contract.ts'

/** Labels that clients offer of their own accord; no option may have one. */
const own = { approved: ['Approve'], rejected: ['Reject', 'Reject and Exit', 'Revise'] } as const
export const ownLabels: readonly string[] = [...own.approved, ...own.rejected]

/** What the user can choose when these options are shown. */
export const labelsOf = (options: readonly PlanOption[]): NonNullable<ApprovalAsk['labels']> => ({
  approved: [...own.approved, ...options.map(({ label }) => label)],
  rejected: own.rejected
})

/** `carryOut`: plan mode ends and the call answers with the plan; else the call is settled with `result`. */
export type Verdict =
  | { readonly carryOut: true; readonly option?: string; readonly feedback?: string }
  | { readonly carryOut: false; readonly leave: boolean; readonly result: ToolResult }

const unanswered = {
  expired: 'Nobody reviewed the plan in time.',
  unattended: 'Nobody is there to review the plan.',
  withdrawn: 'The plan could not be put to the user.'
}

export function verdictOf(end: InteractionEnd<ApprovalAnswer>, options: readonly PlanOption[]): Verdict {
  const stays = (result: ToolResult): Verdict => ({ carryOut: false, leave: false, result })
  if (end.how !== 'answered') {
    const fault = end.how === 'unattended' && end.fail ? { fail_turn: unattendedFailure('the review of a plan') } : {}
    return stays({ output: `${unanswered[end.how]} Plan mode stays on.`, is_error: true, stop_turn: true, ...fault })
  }
  const { decision, feedback, selected_label: label } = end.answer
  const reason = feedback ? ` They say:\n${feedback}` : ''
  if (decision === 'approved') {
    const option = options.find(each => each.label === label)?.label
    return { carryOut: true, ...(option === undefined ? {} : { option }), ...(feedback ? { feedback } : {}) }
  }
  if (decision === 'cancelled') {
    return stays({ output: `The user dismissed the review without a decision. Plan mode stays on.${reason}` })
  }
  if (label === 'Reject and Exit') {
    const output = `The user rejected the plan and ended plan mode.${reason} Do not carry it out; wait for what the user says next.`
    return { carryOut: false, leave: true, result: { output, is_error: true, stop_turn: true } }
  }
  if (label === 'Revise' || feedback) {
    const wish = feedback ? `.${reason}` : '; they did not say how: look for what is missing, or ask.'
    return stays({
      output: `The user wants the plan to be changed${wish}\nPlan mode stays on: change the plan file, then call ExitPlanMode again.`
    })
  }
  return stays({
    output: 'The user rejected the plan. Plan mode stays on; wait for what the user says next.',
    is_error: true,
    stop_turn: true
  })
}

/** How it came that the plan is carried out. */
export interface Reviewed {
  readonly reviewed: boolean
  readonly option?: string | undefined
  readonly feedback?: string | undefined
}

/** What the model hears of a plan that is to be carried out. Clients find file and plan behind `Plan saved to: ` and the headings. */
export function approvedText(plan: string, file: string, how: Reviewed): string {
  const head = how.reviewed
    ? 'The user approved the plan. Plan mode is off: carry it out now.'
    : 'Plan mode is off. Nobody reviewed the plan, because the session is in auto mode: carry it out on your own judgement.'
  const only = how.option === undefined ? '' : `\nThe user chose one approach; carry out only this one: ${how.option}`
  const title = how.reviewed ? '## Approved Plan:' : '## Plan (auto-approved, not user-reviewed):'
  const said = how.feedback === undefined ? '' : `\nThey say:\n${how.feedback}`
  return `${head}${only}${said}\n\nPlan saved to: ${file}\n\n${title}\n${plan}`
}
