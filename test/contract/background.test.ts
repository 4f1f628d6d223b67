/** Commands in the background whose server is killed, stopped, or stopped and told to leave them running. */
import assert from 'node:assert/strict'
import { appendFile, readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Running, serve } from '../helpers/cli.ts'
import { place } from '../helpers/scene.ts'

const skip = process.platform !== 'linux'

/** Whether a process still runs (not just waits to be collected). */
async function runs(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '')
  return stat !== '' && !/\) [ZX] /.test(stat)
}

interface Task {
  readonly id: string
  readonly status: string
  readonly output_preview?: string
}

/** A home whose model starts a command in the background that prints a line whenever the file `more` grows; then says what it was told. */
async function ticking(t: TestContext) {
  const command = 'echo $$ > pid; for i in 1 2 3; do echo tick $i; head -n $i > /dev/null < <(tail -n +$i -f more); done; sleep 300'
  const { home, cwd, upstream } = await place(t, body => {
    const messages = body.messages as { role: string }[]
    if (messages.length > 3 || messages.at(-1)?.role === 'tool') return [{ text: 'done' }]
    return [{ tool: { name: 'Bash', args: { command, run_in_background: true, disable_timeout: true, description: 'ticks' }, id: 'c1' } }]
  })
  await appendFile(join(cwd, 'more'), '')
  const api = async <T>(server: Running, method: string, path: string, body?: unknown) => {
    const headers = { authorization: `Bearer ${server.token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) }
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const { code, msg, data } = (await answer.json()) as { code: number; msg: string; data: T }
    assert.equal(code, 0, msg)
    return data
  }
  let id = ''
  const prompt = async (server: Running, text: string) => {
    const before = upstream.requests.length
    await api(server, 'POST', `/sessions/${id}/prompts`, { content: [{ type: 'text', text }], permission_mode: 'yolo' })
    await upstream.arrived(before)
  }
  return {
    home,
    cwd,
    upstream,
    prompt,
    async begin(server: Running) {
      id = (await api<{ id: string }>(server, 'POST', '/sessions', { metadata: { cwd } })).id
      await prompt(server, 'go')
      for (;;) {
        const pid = Number(await readFile(join(cwd, 'pid'), 'utf8').catch(() => ''))
        const [task] = await this.tasks(server)
        if (pid > 0 && task && (await saved(home, task.id)).includes('tick 1')) return { pid, task: task.id }
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    },
    async tasks(server: Running) {
      await api(server, 'GET', `/sessions/${id}/status`) // loads it
      return (await api<{ items: Task[] }>(server, 'GET', `/sessions/${id}/tasks`)).items
    },
    output: async (server: Running, task: string) =>
      (await api<Task>(server, 'GET', `/sessions/${id}/tasks/${task}?with_output=true`)).output_preview ?? ''
  }
}

/** What a task printed, as it is on disk. */
async function saved(home: string, task: string): Promise<string> {
  const file = (await readdir(home, { recursive: true })).find(name => name.endsWith(join(task, 'output.log')))
  return file === undefined ? '' : await readFile(join(home, file), 'utf8')
}

/** What the model was told of tasks in its last request. */
const told = (body: Record<string, unknown> | undefined) =>
  JSON.stringify(body?.messages).match(/task\.(?:lost|killed)[\s\S]*?<\/notification>/g) ?? []

test('a command in the background is gone with its server, killed or stopped, and the next one says so', { skip }, async t => {
  const scene = await ticking(t)
  const first = await serve(t, scene.home, '--port', '0')
  const { pid, task } = await scene.begin(first)
  first.child.kill('SIGKILL')
  await first.ended
  const second = await serve(t, scene.home, '--port', '0')
  assert.equal(await runs(pid), false)
  assert.deepEqual(
    (await scene.tasks(second)).map(({ id, status }) => [id, status]),
    [[task, 'failed']]
  )
  assert.match(await scene.output(second, task), /tick 1/)
  await scene.prompt(second, 'and now?')
  assert.equal(told(scene.upstream.requests.at(-1)?.body).length, 1)
  assert.match(told(scene.upstream.requests.at(-1)?.body)[0] ?? '', /The server ended while it ran/)
})

test('a command that is left running goes on without its server and writes on; the next server says that it was left', {
  skip
}, async t => {
  const scene = await ticking(t)
  await appendFile(join(scene.home, 'config.toml'), '\n[background]\nkeep_alive_on_exit = true\n')
  const first = await serve(t, scene.home, '--port', '0')
  const { pid, task } = await scene.begin(first)
  t.after(() => process.kill(-pid, 'SIGKILL'))
  first.child.kill('SIGTERM')
  assert.equal((await first.ended).code, 0)
  assert.ok(await runs(pid))
  await appendFile(join(scene.cwd, 'more'), 'a\n')
  const second = await serve(t, scene.home, '--port', '0')
  assert.deepEqual(
    (await scene.tasks(second)).map(({ id, status }) => [id, status]),
    [[task, 'failed']]
  )
  while (!(await scene.output(second, task)).includes('tick 2')) await new Promise(resolve => setTimeout(resolve, 2))
  assert.ok(await runs(pid), 'no server ends what was left on purpose')
  await scene.prompt(second, 'and now?')
  assert.match(told(scene.upstream.requests.at(-1)?.body)[0] ?? '', /stopped and left it running/)
})
