/** What the turns that are taken back began in the background: it ends with them, and the model hears nothing of it. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import config from '../../../features/config/pack.ts'
import interactions from '../../../features/interactions/pack.ts'
import subagents from '../../../features/subagents/pack.ts'
import { listTasks, type TaskInfo } from '../../../features/tasks/index.ts'
import tasks from '../../../features/tasks/pack.ts'
import tools from '../../../features/tools/pack.ts'
import shell from '../../../features/tools-shell/pack.ts'
import { undoSession } from '../../../features/undo/index.ts'
import undo from '../../../features/undo/pack.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { copyOfHome, type StartOptions, startAgent } from '../agent/start.ts'
import { authority } from '../tasks/start.ts'

const packs = [config, tools, authority, interactions, shell, tasks, subagents, undo]
const sleep = (id: string, command = 'sleep 60') => ({ id, name: 'Bash', args: { command, run_in_background: true, description: id } })
const agent = (id: string, prompt: string, background: boolean) => ({
  id,
  name: 'Agent',
  args: { prompt, description: id, subagent_type: 'coder', run_in_background: background }
})
const long = 'That is all there is to say, at length. '.repeat(10)

/** Each agent answers by what it was told last. */
async function start(t: TestContext, script: Readonly<Record<string, Reply>>, options: StartOptions = {}) {
  const llm = scriptedLlm(({ messages }) => {
    const said = JSON.stringify(messages.slice(messages.findLastIndex(({ role }) => role === 'assistant') + 1))
    return Object.entries(script).find(([word]) => said.includes(word))?.[1] ?? long
  })
  const home = options.home ?? (await freshDir())
  await writeFile(`${home}/config.toml`, '[background]\nkill_grace_period_ms = 100\n')
  const scene = await startAgent(t, llm, { ...options, home, packs })
  const params = { session_id: scene.session_id }
  const infos = (type: string) => scene.events.flatMap(event => (event.type === type ? [(event.payload as { info: TaskInfo }).info] : []))
  return {
    ...scene,
    llm,
    infos,
    /** Turns that began because a task ended. */
    told: () => scene.events.filter(({ type, payload }) => type === 'turn.started' && (payload as Turn).origin.kind === 'task').length,
    undo: (count = 1) => scene.call(undoSession, { params, body: { count } }),
    running: async () => (await scene.call(listTasks, { params, query: { status: 'running' } })).data.items.map(task => task.description),
    async turn(text: string) {
      const { prompt_id } = await scene.prompt(text)
      await scene.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
    }
  }
}

interface Turn {
  readonly origin: { readonly kind: string }
}

const isGone = (pid: number) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

test('commands and agents that a turn began are over when it was taken back; those of turns that are left go on', async t => {
  const scene = await start(t, {
    first: toolCalls(sleep('kept')),
    second: toolCalls(sleep('stopped'), agent('working', 'go deep', true)),
    'go deep': toolCalls(sleep('deep'), { id: 'wait', name: 'WaitFor', args: { timeout: 600 } })
  })
  await scene.turn('first')
  await scene.turn('second')
  await scene.waitFor(({ type, payload }) => type === 'task.started' && (payload as { info: TaskInfo }).info.description === 'deep')
  assert.deepEqual((await scene.running()).sort(), ['deep', 'kept', 'stopped', 'working'])

  const reply = await scene.undo()

  assert.equal(reply.code, 0)
  assert.deepEqual(await scene.running(), ['kept'])
  assert.deepEqual(
    scene
      .infos('task.terminated')
      .map(({ description, status }) => `${description} ${status}`)
      .sort(),
    ['deep killed', 'stopped killed', 'working killed']
  )
  for (const info of scene.infos('task.terminated')) if (info.kind === 'process') assert.ok(isGone(info.pid))
  await scene.turn('third')
  assert.equal(scene.told(), 0, 'no turn began because of them')
  const told = JSON.stringify(scene.llm.requests.at(-1)?.messages)
  assert.ok(!told.includes('stopped') && !told.includes('working') && !told.includes('<notification'), told)
})

test('a command that an agent left behind goes with the turn that started the agent', async t => {
  const scene = await start(t, { first: toolCalls(agent('helper', 'go deep', false)), 'go deep': toolCalls(sleep('deep')) })
  await scene.turn('first')
  assert.deepEqual(await scene.running(), ['deep'])
  assert.equal((await scene.undo()).code, 0)
  assert.deepEqual(await scene.running(), [])
})

test('the end of a task that was told in a turn of its own goes with the turn that began it; in a turn that is left it stays', async t => {
  const scene = await start(t, { first: toolCalls(sleep('quick', 'until [ -e go ]; do sleep 0.01; done')) })
  await scene.turn('first')
  await writeFile(join(scene.cwd, 'go'), '')
  let ended = false // the turn that tells of it
  await scene.waitFor(({ type, payload }) => {
    ended ||= type === 'turn.ended' && (payload as { turnId: number }).turnId === 1
    return ended && type === 'event.session.work_changed' && !(payload as { busy: boolean }).busy
  })
  assert.equal((await scene.undo()).code, 0)
  await scene.turn('second')
  assert.doesNotMatch(JSON.stringify(scene.llm.requests.at(-1)?.messages), /quick|<notification/)
})

test('a server that dies behind the undo does not tell of the work either', async t => {
  const scene = await start(t, { first: toolCalls(sleep('stopped')) })
  await scene.turn('zero')
  await scene.turn('first')
  // As a process that died between the record and the end of the work leaves it.
  assert.equal((await scene.undo()).code, 0)
  const home = await copyOfHome(scene.home)
  const again = await start(t, {}, { home, session_id: scene.session_id })
  await again.turn('second')
  assert.doesNotMatch(JSON.stringify(again.llm.requests.at(-1)?.messages), /stopped|<notification/)
})
