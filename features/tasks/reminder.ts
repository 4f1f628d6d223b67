/** After a compaction the agent may not know any more what runs in the background: it is reminded once. */
import type { StepInjector } from '../agent/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { TaskTable } from './table.ts'
import { describeTask } from './texts.ts'

const variant = 'background_task_status'

export function statusReminder(tableOf: (agent: AgentHost) => Promise<TaskTable>, now: () => Date): StepInjector {
  return {
    variant,
    async inject({ agent }, history) {
      const { tasks, compactions } = (await tableOf(agent)).overlooked()
      if (tasks.length === 0 || history.reminder(variant)?.compactions === compactions) return undefined
      const text = [
        'These tasks run in the background. You get a message when one ends: do not start them again, and do not poll.',
        ...tasks.map(task => describeTask(task, now().getTime()))
      ]
      return { text: text.join('\n\n'), facts: { compactions } }
    }
  }
}
