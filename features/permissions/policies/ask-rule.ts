/** The user's ask rules: asked in manual and in yolo mode. */
import { ask, type Policy, ruleFor } from '../policy.ts'

export const askRule: Policy = facts => (ruleFor(facts, 'ask') ? ask : undefined)
