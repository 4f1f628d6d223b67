/** What the records say of the list: its items, and for how many answers nobody has looked at it. */
import { coreRecord, type StateSpec } from '../history/index.ts'
import { type TodoItem, todoRecord } from './contract.ts'

export const toolName = 'TodoList'
export const reminderVariant = 'todo_list_reminder'

export interface TodoState {
  readonly todos: readonly TodoItem[]
  /** Answers of the model since it last called the tool, or was reminded. */
  readonly answers: number
}

export const todoState: StateSpec<TodoState> = {
  name: 'todo',
  version: 2,
  rewinds: true,
  initial: () => ({ todos: [], answers: 0 }),
  reduce(state, record) {
    if (todoRecord.is(record)) return { todos: record.todos, answers: 0 }
    const core = coreRecord(record)
    const reminded = core?.type === 'message' && core.origin?.variant === reminderVariant
    const called = core?.type === 'tool.begin' && core.tool_name === toolName
    if (reminded || called) return { ...state, answers: 0 }
    // An empty list is nothing to be reminded of.
    return core?.type === 'step.message' && state.todos.length > 0 ? { ...state, answers: state.answers + 1 } : state
  }
}
