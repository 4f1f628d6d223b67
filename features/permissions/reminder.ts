/** What the model is told of the permission mode: that nobody is asked in auto mode, and when that is over. */
import type { Injection } from '../agent/index.ts'
import type { PermissionMode } from './contract.ts'

export const modeVariant = 'permission_mode'

const alone =
  'Auto mode is on: tool calls run without approval, and nobody answers questions. Work on your own until the task is done: where you would ask, take the sensible course, say which, and go on. The rules of the user still hold: a call that is denied stays denied. Be all the more careful with what cannot be undone.'
const together = 'Auto mode is off: calls that need an approval are asked for again, and you may ask the user.'

/** `last`: the mode in the newest reminder that the model still sees. */
export function modeReminder(mode: PermissionMode, last: unknown): Injection | undefined {
  if (mode === 'auto') return last === 'auto' ? undefined : { text: alone, facts: { mode } }
  return last === 'auto' ? { text: together, facts: { mode } } : undefined
}
