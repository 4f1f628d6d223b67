/** Wires the todo list: the tool, its state, the reminder. */
import { definePack } from '../../kernel/index.ts'
import { StepInjectors } from '../agent/index.ts'
import { CompactionNotes } from '../compaction/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { Tools } from '../tools/index.ts'
import { Todos, todoRecord } from './contract.ts'
import { reminderVariant, todoState } from './state.ts'
import { createTodoList, reminderOf, textOf } from './tool.ts'

export default definePack({
  name: 'todo',
  description: 'TodoList: the steps of a task, kept by the agent and seen by the user',
  area: 'Tools',
  needs: { histories: Histories },
  provides: [Todos],
  setup(ctx, { histories }) {
    const stateOf = async (agent: AgentHost) => (await (await histories.of(agent)).track(todoState)).value
    const read = async (agent: AgentHost) => (await stateOf(agent)).todos

    ctx.contribute(HistoryStates, todoState)
    ctx.provide(Todos, { list: read })
    ctx.contribute(
      Tools,
      createTodoList({
        read,
        write: async (agent, todos) => (await histories.of(agent)).append(todoRecord.of({ todos }))
      })
    )
    ctx.contribute(CompactionNotes, {
      name: 'todo',
      async note(agent) {
        const todos = await read(agent)
        return todos.length === 0 ? undefined : textOf(todos)
      }
    })
    ctx.contribute(StepInjectors, {
      variant: reminderVariant,
      // Subagents have short tasks and a caller who looks at the outcome.
      inject({ agent }, history) {
        if (agent.record.type !== 'main') return undefined
        const state = history.tracked(todoState)
        return state ? reminderOf(state) : history.track(todoState).then(({ value }) => reminderOf(value))
      }
    })
  }
})
