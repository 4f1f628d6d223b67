/** A rule that cannot be read may be one that denies: until it is corrected, nothing goes unasked. */
import { ask, type Policy } from '../policy.ts'

export const unreadableRules: Policy = ({ unsure }) => (unsure ? ask : undefined)
