/** Auto mode approves everything that no deny rule forbids. */
import { approve, type Policy } from '../policy.ts'

export const autoMode: Policy = ({ mode }) => (mode === 'auto' ? approve : undefined)
