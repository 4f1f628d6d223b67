/** What the agent reads of its tasks: the notification of an end, the result of a call that goes on in the background, the lines of a task. */
import { asData } from '../history/index.ts'
import type { TaskInfo } from './contract.ts'
import { endOf } from './output.ts'
import type { TaskEntry } from './records.ts'
import type { TaskView } from './service.ts'

/** Bytes of the output in a notification. */
const PREVIEW_BYTES = 3000

const nouns = { process: 'command', agent: 'agent', question: 'question' } as const

/** `key: value` lines. Line breaks in values become blanks. */
function lines(facts: Readonly<Record<string, string | number | boolean | null | undefined>>): string {
  return Object.entries(facts)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `${key}: ${String(value).replaceAll(/(?<!\s)\s*\n\s*/g, ' ')}`)
    .join('\n')
}

/** Seconds, one decimal below ten. */
function seconds({ startedAt, endedAt }: TaskInfo, now: number): string {
  const s = Math.max(0, ((endedAt ?? now) - startedAt) / 1000)
  return s < 10 ? s.toFixed(1) : String(Math.round(s))
}

/** A task as TaskList and TaskOutput show it. */
export function describeTask({ info, output_path, output_size }: TaskView, now: number): string {
  return lines({
    task_id: info.taskId,
    kind: info.kind,
    description: info.description,
    status: info.status,
    ...(info.kind === 'process' ? { command: info.command, pid: info.pid, exit_code: info.exitCode ?? undefined } : {}),
    ...(info.kind === 'agent' ? { agent_id: info.agentId, subagent_type: info.subagentType } : {}),
    background: info.detached ?? false,
    started_at: new Date(info.startedAt).toISOString(),
    seconds: seconds(info, now),
    reason: info.stopReason,
    output_bytes: output_size,
    output_file: output_path
  })
}

/** The result of a call whose work goes on in the background. */
export function backgroundResult({ info, output_path, agent }: TaskView, before?: string): string {
  const facts = lines({
    task_id: info.taskId,
    ...(info.kind === 'process' ? { pid: info.pid } : {}),
    ...(info.kind === 'agent' ? { agent_id: info.agentId } : {}),
    description: info.description,
    status: info.status,
    automatic_notification: true,
    output_file: output_path
  })
  const next = [
    agent.record.type === 'sub'
      ? 'next_step: Go on with other work. You get a message when it ends while you are at work; if your report needs it, WaitFor it first.'
      : 'next_step: Go on with other work. You get a message when it ends; do not sleep and do not poll.',
    'next_step: TaskOutput shows its output so far, TaskStop ends it. WaitFor waits, for when you can do nothing without it.'
  ]
  return [...(before === undefined ? [] : [before]), facts, ...next].join('\n')
}

const titles = {
  running: 'Background task is running',
  completed: 'Background task completed',
  failed: 'Background task failed',
  timed_out: 'Background task ran out of time',
  killed: 'Background task was stopped',
  lost: 'Background task was lost'
} as const

/** How it ended, as a sentence. */
function endOfTask(info: TaskInfo): string {
  // An agent is taken up again by its own id, which looks like that of its task.
  const agent = info.kind === 'agent' && info.agentId !== undefined ? `${info.agentId}, task ` : ''
  const what = `The ${nouns[info.kind]} "${info.description}" (${agent}${info.taskId})`
  const took = `after ${seconds(info, info.endedAt ?? info.startedAt)} s`
  const reason = info.stopReason === undefined ? '' : ` ${info.stopReason}`
  if (info.status === 'lost') return `${what} is lost.${reason}`
  if (info.status === 'killed') return `${what} was stopped ${took}.${reason}`
  if (info.status === 'timed_out') return `${what} was stopped ${took}, its time was up.`
  const code = info.kind === 'process' && info.exitCode !== null ? ` with exit code ${info.exitCode}` : ''
  return `${what} ${info.status === 'failed' ? 'failed' : 'ended'} ${took}${code}.${reason}`
}

/** How to go on with an agent that has not completed, or with those that one call started. */
export function resumeHint(...agentIds: readonly string[]): string {
  const ids = agentIds.map(id => `"${id}"`).join(' or ')
  return `To go on with ${agentIds.length === 1 ? 'it' : 'one of its agents'}, call Agent with resume ${ids}.`
}

export const notificationId = ({ taskId, status }: TaskInfo) => `task:${taskId}:${status}`

/** The message that tells the agent. `path`: of the file with all of the output. */
export function notification({ info, end }: TaskEntry, path: string): string {
  const { tail = '', output_size = 0, saved = false, hint } = end ?? {}
  const cut = Buffer.byteLength(tail) < output_size ? 'The end of its output:' : 'Its output:'
  const preview = endOf(Buffer.from(tail), PREVIEW_BYTES)
  return [
    `<notification id="${notificationId(info)}" type="task.${info.status}" source_kind="background_task" source_id="${info.taskId}">`,
    `Title: ${titles[info.status]}`,
    `Severity: ${info.status === 'completed' ? 'info' : 'warning'}`,
    quoted(endOfTask(info).replace(/\s+/g, ' ')),
    ...(hint === undefined ? [] : [hint]),
    ...(saved && output_size > 0 ? [`<output-file path="${path}" bytes="${output_size}" />`] : []),
    ...(preview.trim() === ''
      ? []
      : [preview === tail ? cut : 'The end of its output:', '<output>', quoted(preview.trimEnd()), '</output>']),
    '</notification>'
  ].join('\n')
}

/** What would end the notification or its output, or look like another one. */
const ownTags = /<(?=\s*\/\s*(?:output|notification)\s*>|\s*notification(?:\s[^<>]*)?>)/gi
/** Neither what a program printed nor what a task is called ends the notification or speaks as the system. */
const quoted = (text: string) => asData(text).replaceAll(ownTags, '&lt;')
