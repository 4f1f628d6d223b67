/** TaskList, TaskOutput, TaskStop and WaitFor: how an agent looks after its tasks. */
import { type Static, type TObject, Type } from '../../kernel/index.ts'
import type { Tool, ToolResult } from '../tools/index.ts'
import { newTask, type TaskView } from './service.ts'
import { describeTask } from './texts.ts'
import { outputOf, type ToolPorts, unknownTask } from './tool-ports.ts'
import { createWaitFor } from './wait-for.ts'

const closed = { additionalProperties: false }
const taskId = Type.String({ minLength: 1, description: 'Id of the task: bash-..., agent-... or question-...' })

const listParameters = Type.Object(
  {
    active_only: Type.Optional(Type.Boolean({ description: 'Only tasks that still run; default true' })),
    limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 100, description: 'The newest so many; default 20' }))
  },
  closed
)
const outputParameters = Type.Object({ task_id: taskId }, closed)
const stopParameters = Type.Object(
  { task_id: taskId, reason: Type.Optional(Type.String({ description: 'Why, for the record; default "Stopped by TaskStop"' })) },
  closed
)

/** Calls of one response see a task as the ones before left it. */
const thingOf = (task_id: string) => `task:${task_id}`

export function createTools(ports: ToolPorts): readonly Tool<TObject>[] {
  const { tableOf, now } = ports
  const describe = (task: TaskView) => describeTask(task, now().getTime())

  const list: Tool<typeof listParameters> = {
    name: 'TaskList',
    description: `Lists your background tasks: commands, agents and questions that run beside the conversation.
- Use it when you do not know any more what runs, not to wait: you get a message when a task ends.
- active_only false also shows tasks that are over.`,
    parameters: listParameters,
    source: 'builtin',
    prepare: async ({ active_only = true, limit = 20 }: Static<typeof listParameters>, env) => ({
      description: 'Listing background tasks',
      accesses: [
        { kind: 'look', thing: newTask.thing },
        ...(await tableOf(env.agent)).list().map(({ info }) => ({ kind: 'look' as const, thing: thingOf(info.taskId) }))
      ],
      approval_argument: active_only ? 'active' : 'all',
      async run() {
        const all = (await tableOf(env.agent)).list().filter(({ info }) => info.detached && (!active_only || info.status === 'running'))
        const shown = all.slice(-limit)
        if (shown.length === 0) return { output: active_only ? 'No task runs in the background.' : 'There are no background tasks.' }
        const more = all.length > shown.length ? [`${all.length - shown.length} older ones are not shown.`] : []
        return { output: [...shown.map(describe), ...more].join('\n\n') }
      }
    })
  }

  const output: Tool<typeof outputParameters> = {
    name: 'TaskOutput',
    description: `Shows the state of a background task and the end of its output (32 KiB), without waiting.
- The whole output is in the file output_file; use Read or Grep on it for more.
- You get a message when the task ends: do not call this again and again to wait for it. WaitFor waits.`,
    parameters: outputParameters,
    source: 'builtin',
    prepare: ({ task_id }: Static<typeof outputParameters>, env) => ({
      description: `Reading the output of ${task_id}`,
      accesses: [{ kind: 'look', thing: thingOf(task_id) }],
      approval_argument: task_id,
      async run() {
        const task = (await tableOf(env.agent)).find(task_id)
        if (!task) throw unknownTask(task_id)
        return { output: `${describe(task)}\n\n${await outputOf(task)}` }
      }
    })
  }

  const stop: Tool<typeof stopParameters> = {
    name: 'TaskStop',
    description: `Stops a background task and waits until it is gone.
- Use it for tasks that you started and that are of no use any more, for example a server after the tests.
- You get no message about a task that you stopped yourself. Stopping one that is over is no error.`,
    parameters: stopParameters,
    source: 'builtin',
    async prepare({ task_id, reason = 'Stopped by TaskStop' }: Static<typeof stopParameters>, env) {
      const table = await tableOf(env.agent)
      const found = table.find(task_id)
      if (!found) throw unknownTask(task_id)
      return {
        description: `Stopping ${task_id}: ${found.info.description}`,
        display: { kind: 'task_stop', task_id, task_description: found.info.description },
        accesses: [{ kind: 'change', thing: thingOf(task_id) }],
        approval_argument: task_id,
        async run(): Promise<ToolResult> {
          await table.stop(task_id, 'tool', { reason, silent: true })
          const task = table.find(task_id) ?? found
          return { output: `${describe(task)}\n\n${await outputOf(task, 4096)}` }
        }
      }
    }
  }
  return [list, output, stop, createWaitFor(ports)]
}
