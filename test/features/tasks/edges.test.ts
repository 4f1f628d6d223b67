import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readSnapshot } from '../../../features/session-views/index.ts'
import { archiveSession, createSession, restoreSession } from '../../../features/sessions/index.ts'
import { cancelTask, detachTask, listTasks, readTask, type TaskInfo } from '../../../features/tasks/index.ts'
import { startedRecord } from '../../../features/tasks/records.ts'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { copyOfHome, historyOnDisk } from '../agent/start.ts'
import { afterRestart, startTasks, type TaskScene, told } from './start.ts'

const ends = ({ events }: TaskScene) =>
  events.flatMap(({ type, payload }) => (type === 'task.terminated' ? [(payload as { info: TaskInfo }).info.status] : []))

test('a session that is not loaded has no tasks, and asking does not load it', async t => {
  const first = await startTasks(t, scriptedLlm('ok'))
  const { end, task } = await first.hold({ background: true })
  end()
  await task.ended
  const { session_id } = first
  const scene = await startTasks(t, scriptedLlm('ok'), { home: await copyOfHome(first.home), session_id })
  const at = { params: { session_id, task_id: task.id } }
  assert.deepEqual((await scene.call(listTasks, { params: { session_id }, query: {} })).data, { items: [] })
  assert.equal((await scene.call(readTask, { ...at, query: { with_output: false, output_bytes: 0 } })).code, 40406)
  assert.equal((await scene.call(cancelTask, at)).code, 40406)
  assert.equal((await scene.call(detachTask, at)).code, 40406)
  assert.equal(scene.sessions.loaded(session_id), undefined)
})

test('a session that was at work for a task of a killed server is told to rest, and not to be at work once more', async t => {
  const first = await startTasks(t, scriptedLlm('ok', 'ok'))
  const { session_id } = first
  await first.prompt('go')
  await first.settled(1)
  await first.hold({ background: true })
  await first.call(readSnapshot, { params: { session_id } }) // answers when all events are on disk

  const next = await startTasks(t, scriptedLlm('ok'), { home: await copyOfHome(first.home), session_id })
  await next.call(readSnapshot, { params: { session_id } })

  await next.waitFor(({ type }) => type === 'task.terminated')
  await next.call(readSnapshot, { params: { session_id } })
  const told = next.events.filter(({ type }) => type === 'event.session.work_changed' || type === 'task.terminated')
  assert.deepEqual(
    told.slice(0, 2).map(({ type, payload }) => [type, (payload as { busy?: boolean }).busy]),
    [
      ['task.terminated', undefined],
      ['event.session.work_changed', false]
    ]
  )
})

test('archiving stops what runs; a restored session starts tasks as before', async t => {
  const llm = scriptedLlm('ok')
  const scene = await startTasks(t, llm)
  const params = { session_id: scene.session_id }
  await scene.hold({ background: true })
  await scene.call(archiveSession, { params })
  assert.deepEqual(ends(scene), ['killed'])
  assert.equal(llm.requests.length, 0, 'no turn begins in an archived session')
  await scene.call(restoreSession, { params })
  const { end, task } = await scene.hold({ background: true })
  end()
  await task.ended
  await scene.waitFor(({ type }) => type === 'turn.ended')
  assert.equal(told(llm).length, 2, 'with the first turn both ends are told')
})

test('an end that nobody was told of when the session is archived begins no turn at the next start; the next turn tells it', async t => {
  const waits = [{ type: 'wait', until: new Promise<never>(() => undefined) }] as const
  const first = await startTasks(t, scriptedLlm(waits))
  const { end, task } = await first.hold({ background: true })
  await first.prompt('go')
  await first.waitFor(({ type }) => type === 'turn.step.started')
  end()
  await task.ended
  const { session_id } = first
  await first.call(archiveSession, { params: { session_id } })
  await first.call(restoreSession, { params: { session_id } })

  const next = await afterRestart(t, first)

  assert.deepEqual([next.begun, next.told.length], [['user'], 1])
})

test('when the pack leaves, its tasks end and say so; when it is back, they are known', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const { task } = await scene.hold({ background: true })
  const busy = () => scene.events.filter(({ type }) => type === 'event.session.work_changed').at(-1)?.payload as { busy: boolean }
  await scene.kernel.unload('tasks')
  assert.equal((await task.ended).info.status, 'killed')
  assert.deepEqual(ends(scene), ['killed'])
  assert.equal(busy().busy, false)
  assert.equal((await scene.call(listTasks, { params: { session_id: scene.session_id }, query: {} })).code, 40400)
  await scene.kernel.load('tasks')
  await scene.waitFor(({ type }) => type === 'task.started')
  const tables = await scene.tasksNow().list(await scene.main())
  assert.deepEqual(
    tables.map(({ info }) => [info.taskId, info.status]),
    [[task.id, 'killed']]
  )
})

test('the tasks of an agent that could not be read once are read again, and meanwhile those of others are listed', async t => {
  let broken = false
  const history = historyOnDisk(
    () => undefined,
    () => {
      if (broken) throw new Error('no descriptors')
    }
  )
  const scene = await startTasks(t, scriptedLlm('ok'), { history })
  const session = await scene.sessions.load(scene.session_id)
  const { task } = await scene.hold({ background: true })
  const child = await session.createAgent({ type: 'sub', parent_agent_id: 'main' })
  broken = true
  await assert.rejects(scene.tasks.list(child))
  broken = false

  const { items } = (await scene.call(listTasks, { params: { session_id: scene.session_id }, query: {} })).data
  assert.deepEqual(
    items.map(({ id }) => id),
    [task.id]
  )
  assert.deepEqual(await scene.tasks.list(child), [])
})

test('a task of a subagent is listed when it is in the background, told with the next turn of its agent, and starts none', async t => {
  const llm = scriptedLlm('ok')
  const scene = await startTasks(t, llm)
  await scene.main()
  const session = await scene.sessions.load(scene.session_id)
  const child = await session.createAgent({ type: 'sub', parent_agent_id: 'main' })
  const params = { session_id: scene.session_id }
  const foreground = await scene.hold({}, child)
  const { task, end } = await scene.hold({ background: true }, child)
  const { items } = (await scene.call(listTasks, { params, query: {} })).data
  assert.deepEqual(
    items.map(({ id }) => id),
    [task.id]
  )
  const started = await scene.waitFor(({ type }) => type === 'task.started')
  assert.equal(started.subject, child.id)
  assert.match(scene.tasks.backgroundResult(task.view), /while you are at work; if your report needs it, WaitFor it first/)
  assert.equal((await scene.call(detachTask, { params: { ...params, task_id: foreground.task.id } })).data.detached, true)
  end()
  foreground.end()
  await Promise.all([task.ended, foreground.task.ended])
  assert.equal(scene.sessions.loaded(scene.session_id)?.work.busy, false)
  assert.equal(llm.requests.length, 0)
})

test('a copied journal has the records and not the tasks: its agent is told, clients are not', async t => {
  const first = await startTasks(t, scriptedLlm('ok'))
  const { task } = await first.hold({ background: true, description: 'of the other session' })
  const history = await first.history()
  const info = { ...task.view.info, taskId: 'bash-forked00' }
  await history.append(startedRecord.of({ session_id: 'session_other', agent_id: 'main', info }))
  const llm = scriptedLlm('ok')
  const scene = await startTasks(t, llm, { home: await copyOfHome(first.home), session_id: first.session_id })
  await scene.prompt('go')
  await scene.settled(1)
  assert.equal(told(llm).length, 2)
  assert.match(told(llm).find(text => text.includes('bash-forked00')) ?? '', /belongs to the conversation that this one was copied from/)
  const { items } = (await scene.call(listTasks, { params: { session_id: scene.session_id }, query: {} })).data
  assert.deepEqual(
    items.map(({ id }) => id),
    [task.id]
  )
  assert.deepEqual(ends(scene), ['lost'], 'nobody is told of the end of a task that goes on elsewhere')
})

test('two sessions count their tasks apart', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const { data } = await scene.call(createSession, { body: { metadata: { cwd: scene.cwd } } })
  const other = await (await scene.sessions.load(data.id)).main()
  await scene.hold({ background: true })
  const { end, task } = await scene.hold({ background: true }, other)
  const list = async (session_id: string) => (await scene.call(listTasks, { params: { session_id }, query: {} })).data.items.length
  assert.deepEqual([await list(scene.session_id), await list(data.id)], [1, 1])
  end()
  await task.ended
  assert.equal(scene.sessions.loaded(scene.session_id)?.work.busy, true)
})
