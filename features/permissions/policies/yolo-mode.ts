/** Yolo mode approves what the earlier policies did not hold back. */
import { approve, type Policy } from '../policy.ts'

export const yoloMode: Policy = ({ mode }) => (mode === 'yolo' ? approve : undefined)
