/** Nobody is there to answer in auto mode, so questions to the user are denied. */
import type { Policy } from '../policy.ts'

export const autoQuestion: Policy = ({ mode, tool }) =>
  mode === 'auto' && tool === 'AskUserQuestion'
    ? { kind: 'deny', text: 'Questions are not possible in auto mode: decide on your own with what you know.' }
    : undefined
