/** The todo list of an agent: its items, the tool's parameters, its record, and the service. */
import { oneOf, type Static, serviceToken, Type } from '../../kernel/index.ts'
import { defineRecord } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'

export const TodoItem = Type.Object(
  {
    title: Type.String({ minLength: 1, maxLength: 1000, description: 'What is to be done, as a short phrase' }),
    status: oneOf(['pending', 'in_progress', 'done'])
  },
  { additionalProperties: false }
)
export type TodoItem = Static<typeof TodoItem>

export const todoListParameters = Type.Object(
  {
    todos: Type.Optional(
      Type.Array(TodoItem, { maxItems: 100, description: 'The whole list as it is now; empty: clear it. Left out: read it' })
    )
  },
  { additionalProperties: false }
)

/** The whole list, each time it changes. */
export const todoRecord = defineRecord('todo.list', Type.Object({ todos: Type.Unsafe<readonly TodoItem[]>(Type.Array(TodoItem)) }))

export interface Todos {
  /** The list of an agent now, in order; empty when it has none. */
  list(agent: AgentHost): Promise<readonly TodoItem[]>
}
export const Todos = serviceToken<Todos>('todos')
