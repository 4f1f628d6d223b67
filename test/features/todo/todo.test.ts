/** The todo list of an agent over the real tool runner: written, read, cleared, remembered, restored. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type CompactionNote, CompactionNotes } from '../../../features/compaction/index.ts'
import { Histories } from '../../../features/history/index.ts'
import permissions from '../../../features/permissions/pack.ts'
import { type TodoItem, Todos } from '../../../features/todo/index.ts'
import todo from '../../../features/todo/pack.ts'
import tools from '../../../features/tools/pack.ts'
import { type Collection, definePack } from '../../../kernel/index.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { insider, type StartOptions, startAgent } from '../agent/start.ts'

async function start(t: TestContext, replies: readonly Reply[], options: StartOptions = {}) {
  const llm = scriptedLlm(...replies)
  const inside = insider()
  let services: { todos: Todos; histories: Histories } | undefined
  let notes: Collection<CompactionNote> | undefined
  const probe = definePack({
    name: 'probe',
    needs: { todos: Todos, histories: Histories },
    setup(ctx, given) {
      services = given
      notes = ctx.collect(CompactionNotes)
    }
  })
  const server = await startAgent(t, llm, { ...options, packs: [tools, permissions, todo, inside.pack, probe, ...(options.packs ?? [])] })
  const host = async () => (await inside.main(server)).host
  return {
    ...server,
    llm,
    list: async () => (await services?.todos.list(await host())) ?? [],
    notes: async () => {
      const agent = await host()
      return await Promise.all((notes?.items() ?? []).map(({ note }) => note(agent)))
    },
    history: async () => await services!.histories.of(await host())
  }
}

const write = (id: string, ...todos: readonly TodoItem[]) => toolCalls({ id, name: 'TodoList', args: { todos } })
const item = (title: string, status: TodoItem['status'] = 'pending'): TodoItem => ({ title, status })
const results = (server: { readonly events: readonly { readonly type: string; readonly payload: unknown }[] }) =>
  server.events.flatMap(({ type, payload }) => (type === 'tool.result' ? [payload as { output: string; isError?: true }] : []))

test('the list is replaced as a whole, read, cleared and shown in the call', async t => {
  const server = await start(t, [
    write('a', item('look', 'done'), item('change', 'in_progress')),
    toolCalls({ id: 'b', name: 'TodoList' }),
    write('c', item('check')),
    write('d'),
    'done'
  ])
  await server.prompt('work')
  await server.settled(1)

  assert.deepEqual(
    results(server).map(({ output }) => output),
    ['Todo list:\n[x] look\n[>] change', 'Todo list:\n[x] look\n[>] change', 'Todo list:\n[ ] check', 'The todo list is empty.']
  )
  const started = server.events.find(({ type }) => type === 'tool.call.started')?.payload as { display?: unknown }
  assert.deepEqual(started.display, { kind: 'todo_list', items: [item('look', 'done'), item('change', 'in_progress')] })
  assert.deepEqual(await server.list(), [])
})

test('an item without a known status is refused and the list stays', async t => {
  const server = await start(t, [write('a', item('one')), write('b', { title: 'two', status: 'later' as 'done' }), 'done'])
  await server.prompt('work')
  await server.settled(1)
  assert.equal(results(server)[1]?.isError, true)
  assert.deepEqual(await server.list(), [item('one')])
})

test('the list survives a restart', async t => {
  const first = await start(t, [write('a', item('one')), 'done'])
  await first.prompt('work')
  await first.settled(1)
  await first.stop()
  const again = await start(t, ['fine'], { home: first.home, session_id: first.session_id })
  assert.deepEqual(await again.list(), [item('one')])
})

test('an open list that nobody looks at for ten answers is shown to the model again, once in ten', async t => {
  const busy = Array.from({ length: 22 }, (_, n) => toolCalls({ id: `r${n}`, name: 'Nothing', args: { n } }))
  const server = await start(t, [write('a', item('one')), ...busy, 'done'])
  await server.prompt('work')
  await server.settled(1)
  const shown = (n: number) => JSON.stringify(server.llm.requests[n]?.messages).split('[ ] one').length - 1
  // Once in the result of the call, then in the reminders.
  assert.deepEqual([shown(1), shown(10), shown(11), shown(20), shown(21), shown(23)], [1, 1, 2, 2, 3, 3])
})

test('a summary of the conversation gets the list, as long as there is one', async t => {
  const server = await start(t, [write('a', item('one')), 'ok', write('b'), 'ok'])
  await server.prompt('first')
  await server.settled(1)
  assert.deepEqual(await server.notes(), ['Todo list:\n[ ] one'])
  await server.prompt('second')
  await server.settled(2)
  assert.deepEqual(await server.notes(), [undefined])
})

test('a list without open items is not brought up again', async t => {
  const busy = Array.from({ length: 12 }, (_, n) => toolCalls({ id: `r${n}`, name: 'Nothing', args: { n } }))
  const server = await start(t, [write('a', item('one', 'done')), ...busy, 'done'])
  await server.prompt('work')
  await server.settled(1)
  assert.ok(!JSON.stringify(server.llm.requests.at(-1)?.messages).includes('system-reminder>\\nYou have not'))
})

test('undo restores the list that was there when the message came', async t => {
  const server = await start(t, [write('a', item('one')), 'ok', write('b', item('two')), write('c', item('three')), 'ok'])
  await server.prompt('first')
  await server.settled(1)
  await server.prompt('second')
  await server.settled(2)
  assert.deepEqual(await server.list(), [item('three')])

  const history = await server.history()
  const { messages } = await history.messages.page({ size: 100 })
  const second = messages.findIndex(({ content }) => JSON.stringify(content).includes('second'))
  const from = (await history.messages.count()) - messages.length + second
  await history.append({ type: 'context.undone', from, context_tokens: 0 })
  assert.deepEqual(await server.list(), [item('one')])

  await history.append({ type: 'context.undone', from: 0, context_tokens: 0 })
  assert.deepEqual(await server.list(), [])
})
