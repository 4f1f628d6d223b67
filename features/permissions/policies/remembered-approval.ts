/** What the user approved for the session needs no second answer. */
import { approve, type Policy } from '../policy.ts'
import { covers } from '../rules.ts'

export const rememberedApproval: Policy = ({ remembered, tool, execution }) =>
  remembered.some(pattern => covers(pattern, tool, execution, 'every')) ? approve : undefined
