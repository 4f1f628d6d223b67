/** The TodoList tool, and the reminder for a model that has forgotten its list. */
import type { Static } from '../../kernel/index.ts'
import type { Injection } from '../agent/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { Tool } from '../tools/index.ts'
import { type TodoItem, todoListParameters } from './contract.ts'
import { type TodoState, toolName } from './state.ts'

export interface TodoPorts {
  readonly read: (agent: AgentHost) => Promise<readonly TodoItem[]>
  /** Resolves when the list is on disk. */
  readonly write: (agent: AgentHost, todos: readonly TodoItem[]) => Promise<void>
}

export function createTodoList({ read, write }: TodoPorts): Tool<typeof todoListParameters> {
  return {
    name: toolName,
    description:
      'Keeps the list of steps of your task, which the user sees. Give the whole list each time: it replaces the one before; an empty one ' +
      'clears it, and without `todos` it is read. Use it for work of three steps and more; leave it out for what one or two calls settle. ' +
      'Have one item in_progress while you work, mark an item done as soon as it is (not several at the end), and only when it really is: ' +
      'tests that fail or a part that is missing keep it open. Add what you find on the way, drop what is no longer needed.',
    parameters: todoListParameters,
    source: 'builtin',
    prepare({ todos }: Static<typeof todoListParameters>, { agent }) {
      return {
        description: todos === undefined ? 'Reading the todo list' : 'Updating the todo list',
        ...(todos === undefined ? {} : { display: { kind: 'todo_list', items: todos } }),
        accesses: [{ kind: todos === undefined ? 'look' : 'change', thing: 'todo' }],
        async run() {
          if (todos) await write(agent, todos)
          return { output: textOf(todos ?? (await read(agent))) }
        }
      }
    }
  }
}

const marks: Readonly<Record<TodoItem['status'], string>> = { pending: '[ ]', in_progress: '[>]', done: '[x]' }

/** The list as the model reads it. */
export function textOf(todos: readonly TodoItem[]): string {
  if (todos.length === 0) return 'The todo list is empty.'
  return `Todo list:\n${todos.map(({ title, status }) => `${marks[status]} ${title}`).join('\n')}`
}

/** After so many answers without a look at it, an open list is shown again. */
const forgottenAfter = 10

export function reminderOf({ todos, answers }: TodoState): Injection | undefined {
  if (answers < forgottenAfter || todos.every(({ status }) => status === 'done')) return undefined
  return {
    text: `You have not looked at your todo list for a while. Bring it up to date if it is behind, or clear it if it no longer fits; otherwise go on. Do not mention this reminder.\n\n${textOf(todos)}`
  }
}
