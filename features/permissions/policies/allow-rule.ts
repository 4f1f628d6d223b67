/** The user's allow rules. */
import { approve, type Policy, ruleFor } from '../policy.ts'

export const allowRule: Policy = facts => (ruleFor(facts, 'allow') ? approve : undefined)
