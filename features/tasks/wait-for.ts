/** WaitFor: waits until a background task ends, and tells of it in place of the message that would. */
import { type Static, Type } from '../../kernel/index.ts'
import type { Tool, ToolEnv, ToolResult, ToolUpdate } from '../tools/index.ts'
import type { TaskTable } from './table.ts'
import { describeTask } from './texts.ts'
import { outputOf, type ToolPorts, unknownTask } from './tool-ports.ts'

const parameters = Type.Object(
  {
    timeout: Type.Integer({ minimum: 1, maximum: 600, description: 'Seconds to wait at most' }),
    task_id: Type.Optional(
      Type.String({ minLength: 1, description: 'The task to wait for; default: whichever of those that run ends first' })
    )
  },
  { additionalProperties: false }
)

const description = `Waits until a background task ends, and shows how it ended.
- Use it only when you can do nothing useful before. Otherwise go on: you get a message when a task ends.
- Without task_id it waits for the first of the tasks that run now. When the time is up they go on; that is no error.`

export function createWaitFor({ tableOf, now }: ToolPorts): Tool<typeof parameters> {
  return {
    name: 'WaitFor',
    description,
    parameters,
    source: 'builtin',
    prepare: ({ timeout, task_id }: Static<typeof parameters>, env) => ({
      description: task_id === undefined ? 'Waiting for a background task' : `Waiting for ${task_id}`,
      // What it waits for may begin with the calls before it.
      accesses: [{ kind: 'exclusive' }],
      approval_argument: task_id ?? 'any',
      async run(progress, signal) {
        const table = await tableOf(env.agent)
        const ended = await firstEnd(table, task_id, env, { timeout, progress, signal })
        if (ended === 'none') return { output: 'No task runs in the background: there is nothing to wait for.' }
        if (ended === 'late')
          return { output: `${timeout} s are over, and no task has ended. They go on; you get a message when one ends.` }
        if (ended === 'aborted') return { output: 'The waiting was aborted; the tasks go on.', is_error: true }
        const task = table.find(ended)
        if (!task) throw unknownTask(ended)
        return { output: `${describeTask(task, now().getTime())}\n\n${await outputOf(task)}` } satisfies ToolResult
      }
    })
  }
}

interface Waiting {
  /** Seconds. */
  readonly timeout: number
  readonly progress: (update: ToolUpdate) => void
  readonly signal: AbortSignal
}

/** The id of the task whose end the result must tell. */
async function firstEnd(
  table: TaskTable,
  task_id: string | undefined,
  { tool_call_id }: ToolEnv,
  { timeout, progress, signal }: Waiting
): Promise<string> {
  const known = task_id === undefined ? undefined : table.find(task_id)
  if (task_id !== undefined && !known) throw unknownTask(task_id)
  // The end of a task that is still live is not on record yet.
  if (known && known.info.status !== 'running' && !table.live(known.info.taskId)) {
    await table.telling.report(known.info.taskId, tool_call_id)
    return known.info.taskId
  }
  const running = known ? [known] : table.list().filter(({ info }) => info.detached && info.status === 'running')
  if (running.length === 0) return 'none'
  if (signal.aborted) return 'aborted'
  return new Promise(resolve => {
    const done = (how: string) => {
      undo()
      clearTimeout(timer)
      clearInterval(ticks)
      signal.removeEventListener('abort', onAbort)
      resolve(how)
    }
    const onAbort = () => done('aborted')
    const undo = table.telling.claim({ task_ids: new Set(running.map(({ info }) => info.taskId)), tool_call_id, take: done })
    const timer = setTimeout(done, timeout * 1000, 'late')
    let seconds = 0
    const ticks = setInterval(() => {
      progress({ kind: 'status', text: `waited ${++seconds} of ${timeout} s`, replace: true })
    }, 1000)
    signal.addEventListener('abort', onAbort, { once: true })
  })
}
