/** A process that dies behind any record of a session with tasks: the next one tells the agent of every end exactly once. */
import assert from 'node:assert/strict'
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { LlmRequest } from '../../../features/llm/index.ts'
import { latch } from '../../helpers/latch.ts'
import { scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { copyOfHome, wireOf } from '../agent/start.ts'
import { startTasks } from './start.ts'

const textOf = ({ content }: LlmRequest['messages'][number]) => content.map(part => ('text' in part ? part.text : '')).join('\n')

/** How often the model was told that a task is over. */
function tellings({ messages }: LlmRequest, id: string): number {
  const notified = messages.filter(message => message.role === 'user' && textOf(message).includes(`id="task:${id}:`))
  const answered = messages.filter(
    message => message.role === 'tool' && new RegExp(`^task_id: ${id}\n[\\s\\S]*\nseconds: `).test(textOf(message))
  )
  return notified.length + answered.length
}

test('wherever the journal ends, every end is told once', { timeout: 120_000 }, async t => {
  const ids: string[] = []
  const more = latch()
  const llm = scriptedLlm(
    'noted',
    () => [{ type: 'wait', until: more.opened }, ...toolCalls({ id: 'a', name: 'WaitFor', args: { timeout: 60, task_id: ids[2] } })],
    () => toolCalls({ id: 'b', name: 'TaskStop', args: { task_id: ids[3] } }),
    'ok'
  )
  const scene = await startTasks(t, llm)
  const tasks = []
  for (const description of ['starts a turn', 'joins one', 'is waited for', 'is stopped', 'goes on']) {
    tasks.push(await scene.hold({ background: true, description }))
    ids.push(tasks.at(-1)?.task.id ?? '')
  }
  const turns = (count: number) => {
    let seen = 0
    return scene.waitFor(({ type }) => type === 'turn.ended' && ++seen >= count)
  }
  tasks[0]?.end()
  await turns(1)
  await scene.prompt('go')
  await llm.arrived(1)
  tasks[1]?.end({ status: 'failed', exit_code: 1 })
  while (!(await wireOf(scene)).some(({ type }) => type === 'notice.accepted')) await new Promise(resolve => setTimeout(resolve, 2))
  more.open()
  await scene.waitFor(({ type }) => type === 'tool.call.started')
  await new Promise(setImmediate)
  tasks[2]?.end()
  await turns(2)

  const home = await copyOfHome(scene.home)
  const wire = join(home, (await readdir(home, { recursive: true })).find(name => name.endsWith('agents/main/wire.jsonl')) ?? '')
  const lines = (await readFile(wire, 'utf8')).trimEnd().split('\n')
  assert.ok(lines.length > 30)
  const first = lines.findIndex(line => line.includes('"task.started"')) + 1
  for (let kept = first; kept <= lines.length; kept++) {
    // The others change nothing for tasks.
    if (!/"type":"(?:task|notice|turn)\.|"type":"message"|"type":"tool\.result"/.test(lines[kept - 1] ?? '')) continue
    const copy = await copyOfHome(home)
    const known = lines.slice(0, kept)
    await writeFile(wire.replace(home, copy), `${known.join('\n')}\n`)
    await rm(join(copy, 'server', 'events'), { recursive: true, force: true })
    const again = scriptedLlm('ok')
    const next = await startTasks(t, again, { home: copy, session_id: scene.session_id })
    const prompt_id = (await next.prompt('what is there?')).prompt_id
    await next.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
    const request = again.requests.at(-1) as LlmRequest
    for (const [at, id] of ids.entries()) {
      if (!known.some(line => line.includes('"task.started"') && line.includes(id))) continue
      const stopped = known.some(line => line.includes('"task.terminated"') && line.includes(id) && line.includes('Suppressed'))
      const expected = stopped && !known.some(line => line.includes('"tool.result"') && line.includes(id)) ? 0 : 1
      assert.equal(tellings(request, id), expected, `${kept} of ${lines.length} records, task ${at}: ${known.at(-1)?.slice(0, 200)}`)
    }
    await next.stop()
  }
})
