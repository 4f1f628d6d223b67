/** What the tools of tasks share: where tasks are, and how output is shown. */
import type { AgentHost } from '../sessions/index.ts'
import { boundText, ToolRefusal } from '../tools/index.ts'
import type { TaskView } from './service.ts'
import type { TaskTable } from './table.ts'

export interface ToolPorts {
  readonly tableOf: (agent: AgentHost) => Promise<TaskTable>
  readonly now: () => Date
}

/** Bytes of output that TaskOutput shows. */
const OUTPUT_BYTES = 32 * 1024

export const unknownTask = (id: string) => new ToolRefusal(`There is no task ${id}. TaskList shows those that there are.`)

/** The end of the output, within what a result may hold. */
export async function outputOf(task: TaskView, bytes = OUTPUT_BYTES): Promise<string> {
  const text = await task.output(bytes)
  if (text.trim() === '') return task.info.status === 'running' ? 'It printed nothing so far.' : 'It printed nothing.'
  const cut = Buffer.byteLength(text) < task.output_size
  return `${cut ? 'The end of its output:' : 'Its output:'}\n${boundText(text.trimEnd(), { line: Number.POSITIVE_INFINITY }).text}`
}
