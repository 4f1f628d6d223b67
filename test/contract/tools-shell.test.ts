/** Bash at the edges: what is left of a command when its turn was aborted. */
import assert from 'node:assert/strict'
import { readFile, realpath } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'

/** Whether a process of the group still runs (not just waits to be reaped). */
async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

test('an aborted command that ignores SIGTERM is gone when the abort is answered, and its output is kept', {
  skip: process.platform !== 'linux'
}, async t => {
  const { prompt, api, session_id, cwd, waitFor } = await conversation(t)
  const command = `trap '' TERM; sleep 300 & echo $$ $! > pids; echo so far; sleep 301`
  await prompt([{ tool: { name: 'Bash', args: { command }, id: 'c1' } }], { permission_mode: 'yolo' })
  await waitFor(event => event.type === 'tool.progress' && JSON.stringify(event.payload).includes('so far'))
  const pids = (await readFile(join(cwd, 'pids'), 'utf8')).trim().split(' ').map(Number)

  assert.deepEqual((await api('POST', `/sessions/${session_id}:abort`)).data, { aborted: true })

  assert.deepEqual(await Promise.all(pids.map(runs)), [false, false])
  const { items } = (await api('GET', `/sessions/${session_id}/messages?role=tool`)).data
  assert.match(items[0].content[0].output, /interrupted this tool call on purpose[\s\S]*so far[\s\S]*aborted/)
})

test('the shell that the prompt names is the one that runs', async t => {
  const { turn, upstream } = await conversation(t)
  const { results } = await turn([['Bash', { command: 'echo "shell: $(readlink /proc/$$/exe)"' }]])
  const [system] = upstream.requests[0]!.body.messages as { role: string; content: unknown }[]
  const named = /The shell of Bash is ([\w/.-]+)\./.exec(JSON.stringify(system?.content))?.[1] ?? ''
  assert.equal(results[0]?.output, `shell: ${await realpath(named)}`)
})
