/** What the records say of the list: its items, and for how many answers nobody has looked at it. */
import { coreRecord, recordTypes, type StateSpec } from '../history/index.ts'
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
  records: recordTypes(todoRecord, 'step.message', 'tool.begin', 'message'),
  initial: () => ({ todos: [], answers: 0 }),
  reduce(state, record) {
    // Called for every record: by its type first.
    switch (record.type) {
      case todoRecord.type:
        return todoRecord.is(record) ? { todos: record.todos, answers: 0 } : state
      case 'step.message': // an empty list is nothing to be reminded of
        return state.todos.length > 0 ? { ...state, answers: state.answers + 1 } : state
      case 'tool.begin':
        return state.answers > 0 && record.tool_name === toolName ? { ...state, answers: 0 } : state
      case 'message': {
        const core = state.answers > 0 ? coreRecord(record) : undefined
        return core?.type === 'message' && core.origin?.variant === reminderVariant ? { ...state, answers: 0 } : state
      }
      default:
        return state
    }
  }
}
