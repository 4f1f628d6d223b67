/** Public face of the todo pack. */
export { TodoItem, Todos, todoRecord } from './contract.ts'
export { textOf as todoText } from './tool.ts'
