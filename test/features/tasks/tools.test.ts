import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import { listTools } from '../../../features/tools/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, historyOnDisk, wireOf } from '../agent/start.ts'
import { afterRestart, startTasks, told } from './start.ts'

type Llm = ReturnType<typeof scriptedLlm>
/** Results of tools in a request to the model; the last one by default. */
const results = (llm: Llm, n = llm.requests.length - 1) =>
  (llm.requests[n]?.messages ?? []).flatMap(message =>
    message.role === 'tool' ? [message.content.map(part => ('text' in part ? part.text : '')).join('')] : []
  )
const call = (name: string, args: unknown, id = 'call_1') => toolCalls({ id, name, args })

test('TaskList shows what runs, TaskOutput the end of the output, both as key: value lines', async t => {
  const ids: string[] = []
  const llm = scriptedLlm(
    () =>
      toolCalls(
        { id: 'a', name: 'TaskList', args: {} },
        { id: 'b', name: 'TaskList', args: { active_only: false, limit: 1 } },
        { id: 'c', name: 'TaskOutput', args: { task_id: ids[0] } },
        { id: 'd', name: 'TaskOutput', args: { task_id: 'bash-unknown1' } }
      ),
    'ok'
  )
  const scene = await startTasks(t, llm)
  const first = await scene.hold({ background: true, description: 'first\nline' })
  await scene.hold({ description: 'in the foreground' })
  const second = await scene.hold({ background: true, description: 'second' })
  ids.push(first.task.id)
  first.run.output(`${'x'.repeat(40_000)}\nend\n`)
  await scene.prompt('go')
  await scene.settled(1)
  const [all = '', newest = '', output = '', unknown = ''] = results(llm)
  assert.match(
    all,
    new RegExp(`^task_id: ${ids[0]}\nkind: process\ndescription: first line\nstatus: running\ncommand: held\npid: 1\nbackground: true`)
  )
  assert.ok(!all.includes('in the foreground'))
  assert.match(newest, new RegExp(`^task_id: ${second.task.id}\n`))
  assert.match(output, /output_bytes: 40005\noutput_file: \S+\n\nThe end of its output:\nx+\nend$/)
  assert.ok(output.length < 34_000)
  assert.match(unknown, /There is no task bash-unknown1/)
})

test('TaskStop stops a task and is all that the agent hears of it; one that is over is reported', async t => {
  let id = ''
  const llm = scriptedLlm(
    () => call('TaskStop', { task_id: id, reason: 'not needed' }),
    () => call('TaskStop', { task_id: id }, 'call_2'),
    'ok'
  )
  const scene = await startTasks(t, llm)
  id = (await scene.hold({ background: true })).task.id
  await scene.prompt('go')
  await scene.settled(1)
  const [stopped = '', over = ''] = results(llm)
  assert.match(stopped, /status: killed[\s\S]*reason: not needed/)
  assert.match(over, /status: killed/)
  const end = scene.events.find(({ type }) => type === 'task.terminated')?.payload as { info: { terminalNotificationSuppressed?: boolean } }
  assert.equal(end.info.terminalNotificationSuppressed, true)
  await scene.prompt('again')
  await scene.settled(2)
  assert.deepEqual(told(llm), [])
})

test('calls of one response see a task as the ones before left it', async t => {
  let id = ''
  const llm = scriptedLlm(
    () =>
      toolCalls(
        { id: 'before', name: 'TaskOutput', args: { task_id: id } },
        { id: 'stop', name: 'TaskStop', args: { task_id: id } },
        { id: 'behind', name: 'TaskOutput', args: { task_id: id } }
      ),
    'ok'
  )
  const scene = await startTasks(t, llm)
  id = (await scene.hold({ background: true })).task.id
  await scene.prompt('go')
  await scene.settled(1)
  const states = results(llm).map(text => /^status: (\w+)$/m.exec(text)?.[1])
  assert.deepEqual(states, ['running', 'killed', 'killed'])
})

test('WaitFor answers with the first task that ends, and no notification follows; the others still tell', async t => {
  const llm = scriptedLlm(() => call('WaitFor', { timeout: 600 }), 'ok')
  const scene = await startTasks(t, llm)
  const [one, two] = [
    await scene.hold({ background: true, description: 'one' }),
    await scene.hold({ background: true, description: 'two' })
  ]
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.call.started')
  await new Promise(setImmediate)
  two.run.output('result of two')
  two.end()
  await scene.settled(1)
  assert.match(results(llm)[0] ?? '', new RegExp(`^task_id: ${two.task.id}[\\s\\S]*status: completed[\\s\\S]*result of two$`))
  assert.deepEqual(told(llm), [])
  one.end()
  await scene.waitFor(({ type, payload }) => type === 'turn.ended' && (payload as { turnId: number }).turnId === 1)
  assert.equal(told(llm).length, 1)
  assert.match(told(llm)[0] ?? '', /"one"/)
})

test('WaitFor by id for a task that is over tells of it once, also when its notification was on the way', async t => {
  let id = ''
  const more = latch()
  const llm = scriptedLlm(() => [{ type: 'wait', until: more.opened }, ...call('WaitFor', { timeout: 1, task_id: id })], 'ok')
  const scene = await startTasks(t, llm)
  const { task, end } = await scene.hold({ background: true })
  id = task.id
  await scene.prompt('go')
  await llm.arrived(0)
  end()
  while (!(await wireOf(scene)).some(({ type }) => type === 'notice.accepted')) await new Promise(resolve => setTimeout(resolve, 2))
  more.open()
  await scene.settled(1)
  assert.match(results(llm)[0] ?? '', /status: completed/)
  await scene.prompt('again')
  await scene.settled(2)
  assert.deepEqual(told(llm), [])
  const again = scriptedLlm('ok')
  const next = await startTasks(t, again, { home: await copyOfHome(scene.home), session_id: scene.session_id })
  await next.prompt('go')
  await next.settled(1)
  assert.deepEqual(told(again), [])
})

test('WaitFor by id for a task whose end the disk refuses at first is all that tells of it', async t => {
  let id = ''
  const [more, refused] = [latch(), latch()]
  let refusals = 0
  const history = historyOnDisk(records => {
    if (!records.some(({ type }) => type === 'task.terminated') || ++refusals > 2) return
    refused.open()
    throw new Error('no space')
  })
  const llm = scriptedLlm(() => [{ type: 'wait', until: more.opened }, ...call('WaitFor', { timeout: 600, task_id: id })], 'ok', 'ok')
  const scene = await startTasks(t, llm, { history })
  const { task, end } = await scene.hold({ background: true })
  id = task.id
  await scene.prompt('go')
  await llm.arrived(0)
  end()
  await refused.opened
  more.open()
  await scene.settled(1)
  await task.ended
  await scene.prompt('again')
  await scene.settled(2)

  assert.match(results(llm)[0] ?? '', /status: completed/)
  assert.deepEqual(told(llm), [])
})

test('the agent hears of a task whose end the disk refused until the WaitFor for it was aborted', async t => {
  let id = ''
  let refuses = true
  const refused = latch()
  const history = historyOnDisk(records => {
    if (!refuses || !records.some(({ type }) => type === 'task.terminated')) return
    refused.open()
    throw new Error('no space')
  })
  const llm = scriptedLlm(() => call('WaitFor', { timeout: 600, task_id: id }), 'ok', 'ok')
  const scene = await startTasks(t, llm, { history })
  const { task, end } = await scene.hold({ background: true })
  id = task.id
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.call.started')
  end()
  await refused.opened
  await scene.call(abortSession, { params: { session_id: scene.session_id } })
  await scene.settled(1)
  refuses = false
  await task.ended
  await scene.prompt('again')
  await scene.settled(2)

  assert.equal(told(llm).length, 1)
})

test('WaitFor by id also ends with a task that ends in the foreground, and every call that waits for one ends with it', async t => {
  let id = ''
  const wait = (call_id: string) => ({ id: call_id, name: 'WaitFor', args: { timeout: 600 + Number(call_id) - 1, task_id: id } })
  const llm = scriptedLlm(
    () => call('WaitFor', { timeout: 600, task_id: id }),
    'ok',
    () => toolCalls(wait('0'), wait('1')),
    'ok'
  )
  const scene = await startTasks(t, llm)
  const first = await scene.hold()
  id = first.task.id
  const calls = async (count: number) => {
    let seen = 0
    await scene.waitFor(({ type }) => type === 'tool.call.started' && ++seen >= count)
    await new Promise(setImmediate)
  }
  await scene.prompt('go')
  await calls(1)
  first.end()
  await scene.settled(1)
  assert.match(results(llm)[0] ?? '', /status: completed[\s\S]*background: false/)
  const second = await scene.hold({ background: true })
  id = second.task.id
  await scene.prompt('again')
  await calls(3)
  second.end()
  await scene.settled(2)
  assert.deepEqual(
    results(llm)
      .slice(1)
      .map(text => /status: (\w+)/.exec(text)?.[1]),
    ['completed', 'completed']
  )
})

test('WaitFor: its time is up, nothing runs, it is aborted', async t => {
  const llm = scriptedLlm(
    call('WaitFor', { timeout: 1 }),
    call('WaitFor', { timeout: 1 }, 'b'),
    call('WaitFor', { timeout: 600 }, 'c'),
    'ok'
  )
  const scene = await startTasks(t, llm)
  const { end } = await scene.hold({ background: true })
  await scene.prompt('go')
  await llm.arrived(2)
  assert.match(results(llm)[0] ?? '', /^1 s are over, and no task has ended/)
  const called = (id: string) =>
    scene.waitFor(({ type, payload }) => type === 'tool.call.started' && (payload as { toolCallId: string }).toolCallId === id)
  await called('c')
  await scene.call(abortSession, { params: { session_id: scene.session_id } })
  end()
  await scene.waitFor(({ type, payload }) => type === 'turn.ended' && (payload as { turnId: number }).turnId === 1)
  assert.equal(told(llm).length, 1, 'an end that nobody waits for any more is told')
})

test('a process that dies while WaitFor answers tells of the task at the next start', async t => {
  let id = ''
  const llm = scriptedLlm(() => call('WaitFor', { timeout: 600, task_id: id }), [{ type: 'wait', until: new Promise(() => undefined) }])
  const scene = await startTasks(t, llm)
  const { task, end } = await scene.hold({ background: true })
  id = task.id
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.call.started')
  await new Promise(setImmediate)
  end()
  await llm.arrived(1)
  const home = await copyOfHome(scene.home)
  // As if the result had not come to the disk any more.
  const file = `${home}/${(await readdir(home, { recursive: true })).find(name => name.endsWith('agents/main/wire.jsonl'))}`
  const lines = (await readFile(file, 'utf8')).trimEnd().split('\n')
  await writeFile(file, `${lines.slice(0, lines.findIndex(line => line.includes('"task.reported"')) + 1).join('\n')}\n`)
  const again = scriptedLlm('ok')
  const next = await startTasks(t, again, { home, session_id: scene.session_id })
  await next.main()
  await again.arrived(0)
  assert.equal(told(again).length, 1)
})

test('an end whose message was taken back is told with the next turn, once', async t => {
  const llm = scriptedLlm('noted', 'ok')
  const scene = await startTasks(t, llm)
  const { end } = await scene.hold({ background: true })
  end()
  await scene.waitFor(({ type }) => type === 'turn.ended')
  await scene.waitFor(({ type, payload }) => type === 'event.session.work_changed' && !(payload as { busy: boolean }).busy)
  const history = await scene.history()
  const { number } = (await wireOf(scene)).find(
    ({ type, origin }) => type === 'message' && (origin as { kind?: string })?.kind === 'task'
  ) as { number?: number }
  await history.append({ type: 'context.undone', from: Number(number), context_tokens: 0, turns: 1 })
  for (const n of [1, 2]) {
    await scene.prompt(`prompt ${n}`)
    await scene.settled(n)
    assert.equal(told(llm).length, 1)
  }
})

test('an end whose message was taken back begins no turn at the next start; the next turn tells it', async t => {
  const first = await startTasks(t, scriptedLlm('noted'))
  const { end } = await first.hold({ background: true })
  end()
  await first.waitFor(({ type }) => type === 'turn.ended')
  await first.waitFor(({ type, payload }) => type === 'event.session.work_changed' && !(payload as { busy: boolean }).busy)
  const message = (await wireOf(first)).find(({ type, origin }) => type === 'message' && (origin as { kind?: string })?.kind === 'task')
  await (await first.history()).append({ type: 'context.undone', from: Number(message?.number), context_tokens: 0, turns: 1 })

  const next = await afterRestart(t, first)

  assert.deepEqual([next.begun, next.told.length], [['user'], 1])
})

test('after a compaction the agent is reminded once of what runs', async t => {
  const llm = scriptedLlm('ok')
  const scene = await startTasks(t, llm)
  const { task } = await scene.hold({ background: true })
  await scene.prompt('go')
  await scene.settled(1)
  const history = await scene.history()
  await history.append({ type: 'context.compacted', messages: [{ role: 'user', content: [{ type: 'text', text: 'summary' }] }] })
  const reminders = () => JSON.stringify(llm.requests.at(-1)?.messages).match(/These tasks run in the background/g)?.length ?? 0
  for (const n of [2, 3]) {
    await scene.prompt(`prompt ${n}`)
    await scene.settled(n)
    assert.equal(reminders(), 1)
  }
  assert.match(JSON.stringify(llm.requests.at(-1)?.messages), new RegExp(task.id))
})

test('the flag wait_for takes WaitFor away', async t => {
  const home = await freshDir()
  await writeFile(`${home}/config.toml`, '[experimental]\nwait_for = false\n')
  const scene = await startTasks(t, scriptedLlm('ok'), { home, packs: [config] })
  await scene.main()
  const { tools } = (await scene.call(listTools, { query: { session_id: scene.session_id } })).data
  const active = tools.filter(tool => tool.active).map(({ name }) => name)
  assert.deepEqual([active.includes('TaskStop'), active.includes('WaitFor')], [true, false])
})
