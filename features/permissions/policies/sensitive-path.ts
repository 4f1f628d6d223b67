/** Files that usually hold credentials are never touched unasked. */
import { isSensitive } from '../../tools/index.ts'
import { ask, type Policy, pathsOf } from '../policy.ts'

export const sensitivePath: Policy = facts => (pathsOf(facts).some(isSensitive) ? ask : undefined)
