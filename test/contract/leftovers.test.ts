/** What becomes of processes that a command leaves behind, and of commands whose server was killed. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdir, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ownProcess } from '../../kernel/index.ts'
import { type Running, serve } from '../helpers/cli.ts'
import { conversation } from '../helpers/conversation.ts'
import { place } from '../helpers/scene.ts'
import { freshDir } from '../helpers/temp.ts'

const skip = process.platform !== 'linux'

/** Whether a process still runs (not just waits to be collected). */
async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

/** How many of the processes run. */
async function running(pids: readonly number[]): Promise<number> {
  return (await Promise.all(pids.map(runs))).filter(Boolean).length
}

/** The process ids that a command wrote to the file, once all are there. */
async function pidsIn(file: string, count: number): Promise<number[]> {
  for (;;) {
    const text = await readFile(file, 'utf8').catch(() => '')
    const pids = text.split('\n').slice(0, -1).map(Number)
    if (pids.length >= count) return pids
    await new Promise(resolve => setTimeout(resolve, 2))
  }
}

/** A server process on a home of its own whose model calls Bash with the prompt's text. */
async function commands(t: TestContext) {
  const { home, cwd } = await place(t, body => {
    const messages = body.messages as { role: string }[]
    if (messages.at(-1)?.role === 'tool') return [{ text: 'done' }]
    const command = /run:(.*):run/.exec(JSON.stringify(messages))?.[1] ?? 'true'
    return [{ tool: { name: 'Bash', args: { command }, id: 'c1' } }]
  })
  const post = async (server: Running, path: string, body: unknown) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body)
    })
    const { code, msg, data } = (await answer.json()) as { code: number; msg: string; data: { id: string } }
    assert.equal(code, 0, msg)
    return data
  }
  return {
    home,
    cwd,
    async run(server: Running, command: string) {
      const { id } = await post(server, '/sessions', { metadata: { cwd } })
      await post(server, `/sessions/${id}/prompts`, { content: [{ type: 'text', text: `run:${command}:run` }], permission_mode: 'yolo' })
    }
  }
}

/** Programs that stay in the group, leave it, leave it without any variable, and do that from a parent that ends at once; then the shell itself. */
const straying = [
  'sleep 301 & echo $! >> pids',
  'setsid sleep 302 & echo $! >> pids',
  'env -i setsid sleep 303 & echo $! >> pids',
  "env -i setsid sh -c 'sleep 304 & echo $! >> pids'",
  'set -m; sleep 305 & echo $! >> pids',
  'echo $$ >> pids; wait'
].join('; ')
/** Processes of it. */
const COUNT = 6

/** An MCP server that answers nothing and hears neither the end of its input nor a polite signal. */
const deaf = { command: 'sh', args: ['-c', "trap '' TERM HUP INT PIPE; echo $$ >> pids; while :; do sleep 1; done"] }

test('commands and MCP servers of a killed server are gone after the next start, also those that left their group or hear nothing', {
  skip
}, async t => {
  const { home, cwd, run } = await commands(t)
  const servers = join(home, 'mcp.json')
  await writeFile(servers, JSON.stringify({ mcpServers: { deaf: { ...deaf, cwd } } }))
  const first = await serve(t, home, '--port', '0')
  await run(first, straying)
  const pids = await pidsIn(join(cwd, 'pids'), COUNT + 1)
  first.child.kill('SIGKILL')
  await first.ended
  assert.equal(await running(pids), COUNT + 1)
  await rm(servers)

  await serve(t, home, '--port', '0')

  assert.equal(await running(pids), 0)
  assert.deepEqual(await readdir(join(home, 'server', 'commands')), [])
})

test('a server that starts leaves the commands of another one on the same home alone', { skip }, async t => {
  const { home, cwd, run } = await commands(t)
  const first = await serve(t, home, '--port', '0')
  await run(first, straying)
  const pids = await pidsIn(join(cwd, 'pids'), COUNT)

  await serve(t, home, '--port', '0')

  assert.equal(await running(pids), COUNT)
  first.child.kill('SIGTERM')
  await first.ended
  assert.equal(await running(pids), 0)
})

test('what a command left in the background ends with it, and the result says so', { skip }, async t => {
  const { turn, cwd } = await conversation(t)
  const command = straying.replace('wait', 'echo over').replaceAll(' &', ' >/dev/null 2>&1 &')
  const { results } = await turn([['Bash', { command }]], { permission_mode: 'yolo' })
  const pids = (await pidsIn(join(cwd, 'pids'), COUNT)).slice(0, -1)
  assert.equal(await running(pids), 0)
  assert.match(results[0]?.output ?? '', /^over\n.*still running in the background.*ended/)
  const { results: quiet } = await turn([['Bash', { command: 'echo over' }]], { permission_mode: 'yolo' })
  assert.equal(quiet[0]?.output, 'over')
})

test('an abort ends what a command started, also what left its group', { skip }, async t => {
  const { prompt, api, waitFor, session_id, cwd } = await conversation(t)
  await prompt([{ tools: [{ name: 'Bash', args: { command: straying }, id: 'c1' }] }], { permission_mode: 'yolo' })
  const pids = await pidsIn(join(cwd, 'pids'), COUNT)
  await api('POST', `/sessions/${session_id}:abort`)
  await waitFor(event => event.type === 'turn.ended')
  assert.equal(await running(pids), 0)
})

test('a process that has the id of a recorded command but began at another time is left alone; records of other machines stay a day', {
  skip
}, async t => {
  const home = await freshDir()
  const dir = join(home, 'server', 'commands')
  await mkdir(dir, { recursive: true })
  const innocent = spawn('sleep', ['304'], { detached: true, stdio: 'ignore' })
  t.after(() => innocent.kill('SIGKILL'))
  const { where } = await ownProcess()
  const gone = { pid: 2 ** 22 + 1, start: 'then' }
  const lines = (server: object) => [server, { pid: innocent.pid, start: 'then' }].map(each => `${JSON.stringify(each)}\n`).join('')
  await writeFile(join(dir, 'gone.jsonl'), lines({ ...gone, where }))
  await writeFile(join(dir, 'foreign.jsonl'), lines({ ...gone, where: 'another machine' }))
  await writeFile(join(dir, 'old.jsonl'), lines({ ...gone, where: 'another machine' }))
  await utimes(join(dir, 'old.jsonl'), 1, 1)

  await conversation(t, { home })

  assert.deepEqual(await readdir(dir), ['foreign.jsonl'])
  assert.equal(await runs(innocent.pid ?? 0), true)
})
