/** Calls of one response see what the calls before them did, also where no file is touched. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContextLike } from '../../kernel/testing.ts'
import { type Call, type ConversationOptions, conversation } from '../helpers/conversation.ts'

/** Results of these calls, in one response, without anybody being asked. */
async function together(t: TestContextLike, calls: readonly Call[], options: ConversationOptions = {}): Promise<string[]> {
  const { turn } = await conversation(t, { toml: 'default_permission_mode = "auto"', ...options })
  return (await turn(calls)).results.map(({ output }) => output)
}

test('a scheduled prompt is listed behind the call that makes it', async t => {
  const [, listed] = await together(t, [
    ['CronCreate', { cron: '0 9 * * *', prompt: 'look at the mail' }],
    ['CronList', {}]
  ])
  assert.match(listed ?? '', /prompt: look at the mail/)
})

test('a todo list is read as the calls before left it', async t => {
  const [, full, , empty] = await together(t, [
    ['TodoList', { todos: [{ title: 'the one step', status: 'pending' }] }],
    ['TodoList', {}],
    ['TodoList', { todos: [] }],
    ['TodoList', {}]
  ])
  assert.deepEqual([full, empty], ['Todo list:\n[ ] the one step', 'The todo list is empty.'])
})

test('a goal is made, limited, shown and completed in the order of the calls', async t => {
  const [, , shown, , gone] = await together(t, [
    ['CreateGoal', { objective: 'all is well' }],
    ['SetGoalBudget', { value: 2, unit: 'turns' }],
    ['GetGoal', {}],
    ['UpdateGoal', { status: 'complete' }],
    ['GetGoal', {}]
  ])
  assert.equal(JSON.parse(shown ?? '').budget.turnBudget, 2)
  assert.equal(gone, 'null')
})

test('a task in the background is listed behind the call that starts it, and not behind the one that stops it', async t => {
  const { turn } = await conversation(t, { toml: 'default_permission_mode = "yolo"' }) // auto mode asks nothing
  const question = { question: 'Which one?', options: [{ label: 'this' }, { label: 'that' }] }
  const begun = await turn([
    ['AskUserQuestion', { questions: [question], background: true }],
    ['TaskList', {}]
  ])
  const task_id = /task_id: (\S+)/.exec(begun.results[0]?.output ?? '')?.[1]
  assert.match(begun.results[1]?.output ?? '', new RegExp(`task_id: ${task_id}`))
  const { results } = await turn([
    ['TaskStop', { task_id }],
    ['TaskList', {}]
  ])
  assert.equal(results[1]?.output, 'No task runs in the background.')
})

test('nothing is changed behind the call that begins plan mode', async t => {
  const { turn, cwd } = await conversation(t, { toml: 'default_permission_mode = "yolo"' })
  const { results } = await turn([
    ['EnterPlanMode', {}],
    ['Write', { path: 'made.txt', content: 'x' }],
    ['CronCreate', { cron: '0 9 * * *', prompt: 'x' }]
  ])
  assert.match(results[0]?.output ?? '', /Plan mode is on/)
  for (const { output, is_error } of results.slice(1)) assert.ok(is_error && /Plan mode begins with a call before/.test(output), output)
  assert.ok(!existsSync(join(cwd, 'made.txt')))
})
