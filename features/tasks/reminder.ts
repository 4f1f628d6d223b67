/** After a compaction the agent may not know any more what runs in the background: it is reminded once. */
import type { Injection } from '../agent/index.ts'
import type { History } from '../history/index.ts'
import type { TaskTable } from './table.ts'
import { describeTask } from './texts.ts'

export const statusVariant = 'background_task_status'

export function statusReminder(table: TaskTable, history: Pick<History, 'reminder'>, now: Date): Injection | undefined {
  const { tasks, compactions } = table.overlooked()
  if (tasks.length === 0 || history.reminder(statusVariant)?.compactions === compactions) return undefined
  const text = [
    'These tasks run in the background. You get a message when one ends: do not start them again, and do not poll.',
    ...tasks.map(task => describeTask(task, now.getTime()))
  ]
  return { text: text.join('\n\n'), facts: { compactions } }
}
