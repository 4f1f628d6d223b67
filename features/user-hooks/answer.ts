/** What the end of a hook's command means: exit 0 allows and may say something, exit 2 blocks, anything else has no say. Pure. */
import { isRecord, jsonOf } from '../../kernel/index.ts'
import { boundText } from '../tools/index.ts'
import type { ShellResult } from '../tools-shell/index.ts'
import type { HookAnswer, HookEvent } from './contract.ts'

type Result = Pick<ShellResult, 'code' | 'stdout' | 'stderr'>

export function answerOf(result: Result, event: HookEvent): HookAnswer {
  const { block, message, ...answer } = meaningOf(result, event)
  return {
    ...answer,
    ...(block === undefined ? {} : { block: bounded(block) }),
    ...(message === undefined ? {} : { message: bounded(message) })
  }
}

/** The model reads it, and again with every step: as much as of a tool. */
const bounded = (text: string): string => boundText(text, { line: Number.POSITIVE_INFINITY }).text

/** What stands for a reason where none was given. That of a Stop hook is what the model goes on with. */
const noReason = (event: HookEvent, done: string): string =>
  event === 'Stop'
    ? 'A hook of the user does not let the turn end here, and gave no reason. Look whether anything of the task is left, and do it.'
    : `A hook ${done} it and gave no reason.`

function meaningOf({ code, stdout, stderr }: Result, event: HookEvent): HookAnswer {
  if (code === 2) return { block: stderr.trim() || noReason(event, 'blocked') }
  if (code !== 0) return {}
  const text = stdout.trim()
  const json = objectOf(text)
  // An object of another kind is what the command has to say, such as the output of a program.
  if (!json || !('message' in json || 'hookSpecificOutput' in json)) return text === '' || text === '{}' ? {} : { message: text }
  const specific = isRecord(json.hookSpecificOutput) ? json.hookSpecificOutput : {}
  const message = textOf(specific.message) ?? textOf(json.message) ?? textOf(specific.additionalContext)
  if (specific.permissionDecision === 'deny')
    return { block: textOf(specific.permissionDecisionReason) ?? message ?? noReason(event, 'denied') }
  return {
    ...(message === undefined ? {} : { message }),
    ...(isRecord(specific.updatedInput) ? { input: specific.updatedInput } : {})
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value.trim() !== '' ? value.trim() : undefined)

function objectOf(text: string): Record<string, unknown> | undefined {
  const value = text.startsWith('{') ? jsonOf(text) : undefined // plain text may begin with a brace, too
  return isRecord(value) ? value : undefined
}
