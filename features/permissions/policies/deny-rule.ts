/** The user's deny rules win over every mode and every approval. */
import { type Policy, ruleFor } from '../policy.ts'

export const denyRule: Policy = facts => {
  const rule = ruleFor(facts, 'deny')
  if (!rule) return undefined
  const reason = rule.reason === undefined ? '' : ` Reason: ${rule.reason}`
  return { kind: 'deny', text: `A permission rule of the user forbids this call of ${facts.tool}.${reason}` }
}
