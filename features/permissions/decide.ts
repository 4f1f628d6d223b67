/** The permission chain: policies from top to bottom, the first opinion wins, nobody's opinion means ask. */
import { allowRule } from './policies/allow-rule.ts'
import { askRule } from './policies/ask-rule.ts'
import { autoMode } from './policies/auto-mode.ts'
import { autoQuestion } from './policies/auto-question.ts'
import { denyRule } from './policies/deny-rule.ts'
import { gitControl } from './policies/git-control.ts'
import { rememberedApproval } from './policies/remembered-approval.ts'
import { safeTool } from './policies/safe-tool.ts'
import { sensitivePath } from './policies/sensitive-path.ts'
import { unreadableRules } from './policies/unreadable-rules.ts'
import { workTreeWrite } from './policies/work-tree-write.ts'
import { yoloMode } from './policies/yolo-mode.ts'
import { ask, type CallFacts, type Opinion, type Policy } from './policy.ts'

const chain: readonly Policy[] = [
  autoQuestion,
  denyRule,
  unreadableRules,
  autoMode,
  rememberedApproval,
  askRule,
  allowRule,
  sensitivePath,
  gitControl,
  yoloMode,
  safeTool,
  workTreeWrite
]

export async function decide(facts: CallFacts): Promise<Opinion> {
  for (const policy of chain) {
    const opinion = await policy(facts)
    if (opinion) return opinion
  }
  return ask
}
