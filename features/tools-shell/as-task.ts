/** A command as a task: waited for, moved to the background, or started there. */
import { shortened } from '../../kernel/index.ts'
import { TaskRefused, type TaskRun, TaskStopped, type Tasks } from '../tasks/index.ts'
import { ToolRefusal, type ToolResult, type ToolUpdate } from '../tools/index.ts'
import { CommandRun, type Killed, type Line, type RunPorts, resultOf, verdictOf } from './command-run.ts'
import { DEFAULT_TIMEOUT_S } from './contract.ts'

export interface BackgroundSettings {
  /** A command over its time in the foreground goes on in the background. */
  readonly auto: boolean
  /** Seconds that a command may take in the background when its call does not say; 0: no limit. */
  readonly seconds: number
}

/** Bytes of what it printed so far, in the result of a call that does not wait any more. */
const SO_FAR_BYTES = 4096

const reasons: Readonly<Record<TaskStopped['why'], Killed>> = {
  timeout: 'timeout',
  output: 'output',
  turn: 'abort',
  user: 'user',
  tool: 'user',
  close: 'close'
}

/** Runs the line as a task of the agent. Throws ToolRefusal when no more tasks may run. */
export async function runAsTask(
  line: Line,
  ports: RunPorts,
  { tasks, settings }: { readonly tasks: Tasks; readonly settings: BackgroundSettings },
  progress: (update: ToolUpdate) => void,
  signal: AbortSignal
): Promise<ToolResult> {
  const { args, env } = line
  const seconds = args.timeout ?? DEFAULT_TIMEOUT_S
  const background = args.run_in_background === true
  const inBackground = background && args.disable_timeout ? 0 : background ? (args.timeout ?? settings.seconds) : settings.seconds
  let shell: CommandRun | undefined
  let result: ToolResult | undefined
  const run = async (task: TaskRun) => {
    const { signal: stopped } = task
    const started = new CommandRun(line, ports, progress, task)
    shell = started
    if (background) started.alone()
    stopped.addEventListener('abort', () => {
      if (stopped.reason instanceof TaskStopped) started.kill(reasons[stopped.reason.why], stopped.reason.grace_ms)
    })
    const ended = await started.ended
    const { end, killed } = ended
    result = resultOf(ended, seconds)
    const verdict = verdictOf(end, killed, seconds)
    if (verdict === undefined) return { status: 'completed' as const, exit_code: 0 }
    const status = killed === undefined ? ('failed' as const) : ('killed' as const)
    return { status, ...(end.kind === 'exit' ? { exit_code: end.code } : { reason: verdict }) }
  }
  const spec = {
    kind: 'process' as const,
    description: args.description ?? firstLine(args.command),
    tool_call_id: env.tool_call_id,
    background,
    timeout_ms: Math.ceil(inBackground * 1000),
    foreground_ms: seconds * 1000,
    overtime: settings.auto && tasks.refusal(env.agent) === undefined ? ('detach' as const) : ('stop' as const),
    facts: () => ({ kind: 'process' as const, command: args.command, pid: shell?.command.pid ?? 0 }),
    run,
    unfinished: () => shell?.output.unfinished ?? '',
    leave: async (file: string, flushed: () => Promise<void>) => (await shell?.leave(file, flushed)) ?? false
  }
  const task = await tasks.start(env.agent, spec).catch((error: unknown) => {
    throw error instanceof TaskRefused ? new ToolRefusal(error.message) : error
  })
  if (background) return { output: tasks.backgroundResult(task.view) }
  const how = await task.foreground(signal)
  if (how === 'ended') return result ?? { output: 'The command ended without a result.', is_error: true }
  shell?.alone()
  const so_far = await task.view.output(SO_FAR_BYTES)
  const moved =
    how === 'overtime'
      ? `The command was still running after ${seconds} s. It goes on in the background.`
      : 'The user moved the command to the background, where it goes on.'
  const printed = so_far.trim() === '' ? '' : `\nIts output so far:\n${so_far.trimEnd()}`
  return { output: `${tasks.backgroundResult(task.view, moved)}${printed}` }
}

function firstLine(command: string): string {
  return shortened(command.trim().split('\n', 1)[0] ?? '', 80)
}
