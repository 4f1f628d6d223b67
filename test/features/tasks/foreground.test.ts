/** Tasks that stay in the foreground: what is kept of them, and what is not. */
import assert from 'node:assert/strict'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { scriptedLlm } from '../../helpers/scripted-llm.ts'
import { startTasks } from './start.ts'

test('of the tasks that ended in the foreground the newest 50 are listed', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const ids: string[] = []
  for (let n = 0; n < 52; n++) {
    const { task, end } = await scene.hold()
    ids.push(task.id)
    end()
    await task.ended
  }
  const listed = (await scene.tasks.list(await scene.main())).map(({ info }) => info.taskId)
  assert.deepEqual(listed.sort(), ids.slice(2).sort())
})

test('a call that was aborted before it waits stops its task', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const { task } = await scene.hold()
  assert.equal(await task.foreground(AbortSignal.abort()), 'ended')
  assert.equal((await task.ended).info.status, 'killed')
})

test('what a task had begun to print and not finished when it ended is part of its output', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const { task, run, end } = await scene.hold({ unfinished: () => 'half a line' })
  run.output('a line\n')
  assert.equal(await task.view.output(1000), 'a line\nhalf a line')
  end()
  assert.equal(await (await task.ended).output(1000), 'a line\nhalf a line')
})

test('the file of a task that printed much and stayed in the foreground goes with its end', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const main = await scene.main()
  const { task, run, end } = await scene.hold()
  run.output('x'.repeat(1024 * 1024 + 1))
  const { output_path } = task.view
  assert.equal(output_path, join(main.dir, 'tasks', task.id, 'output.log'))
  end()
  const ended = await task.ended
  assert.equal(ended.output_path, undefined)
  await assert.rejects(access(join(main.dir, 'tasks', task.id)))
  assert.equal((await ended.output(100)).length, 100)
})

test('what a task printed that ended in the foreground can be read as while it ran, within what a session keeps of all', async t => {
  const scene = await startTasks(t, scriptedLlm('ok'))
  const main = await scene.main()
  const children = ['agent-0', 'agent-1'].map(() => main.session.createAgent({ type: 'sub', parent_agent_id: 'main' }))
  const agents = [main, ...(await Promise.all(children))]
  const mib = 1024 * 1024
  const ids: string[] = []
  const sizes = () =>
    Promise.all(
      agents.slice(0, ids.length).map(async (agent, at) => {
        const view = await scene.tasks.find(agent, ids[at] ?? '')
        return [await view?.output(100_000), await view?.output(5 * mib)].map(text => text?.length)
      })
    )
  for (const agent of agents) {
    const { task, run, end } = await scene.hold({}, agent)
    run.output('x'.repeat(mib - 1))
    ids.push(task.id)
    assert.deepEqual((await sizes()).at(-1), [100_000, mib - 1])
    end()
    await task.ended
    assert.deepEqual((await sizes()).at(-1), [100_000, mib - 1])
  }
  assert.deepEqual(await sizes(), [
    [4096, 4096],
    [100_000, mib - 1],
    [100_000, mib - 1]
  ])
})
