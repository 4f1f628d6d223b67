import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import config from '../../../features/config/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import { cancelTask, detachTask, listTasks, readTask, type TaskInfo } from '../../../features/tasks/index.ts'
import tasks from '../../../features/tasks/pack.ts'
import tools from '../../../features/tools/pack.ts'
import { Command } from '../../../features/tools-shell/command.ts'
import shell from '../../../features/tools-shell/pack.ts'
import { type Program, Shell } from '../../../features/tools-shell/shell.ts'
import { definePack, type Pack } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { type Reply, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type Started, startAgent } from '../agent/start.ts'
import { authority } from '../tasks/start.ts'

async function start(
  t: TestContextLike,
  replies: readonly Reply[],
  options: { readonly toml?: string; readonly packs?: readonly Pack[]; readonly config?: Record<string, Record<string, unknown>> } = {}
) {
  const llm = scriptedLlm(...replies)
  const home = await freshDir()
  await writeFile(`${home}/config.toml`, options.toml ?? '[background]\nkill_grace_period_ms = 100\n')
  const packs = [config, tools, authority, shell, ...(options.packs ?? [tasks])]
  const scene = await startAgent(t, llm, { packs, home, ...(options.config && { config: options.config }) })
  const params = { session_id: scene.session_id }
  return {
    ...scene,
    llm,
    params,
    /** Results of tools in the last request to the model. */
    results: (n = llm.requests.length - 1) =>
      (llm.requests[n]?.messages ?? []).flatMap(message =>
        message.role === 'tool' ? [message.content.map(part => ('text' in part ? part.text : '')).join('')] : []
      ),
    async task() {
      const { payload } = await scene.waitFor(({ type }) => type === 'task.started')
      return (payload as { info: TaskInfo }).info
    },
    over: () => scene.waitFor(({ type }) => type === 'task.terminated').then(({ payload }) => (payload as { info: TaskInfo }).info),
    list: async () => (await scene.call(listTasks, { params, query: {} })).data.items
  }
}

const bash = (args: Record<string, unknown>, id = 'call_1') => toolCalls({ id, name: 'Bash', args })
const turns = async (scene: Started, count: number) => {
  let seen = 0
  await scene.waitFor(({ type }) => type === 'turn.ended' && ++seen >= count)
}
const isGone = (pid: number) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}

test('a command in the background answers at once with its task; its end starts a turn with output and exit code', async t => {
  const command = 'echo $$; sleep 0.2; echo done; exit 3'
  const scene = await start(t, [bash({ command, run_in_background: true, description: 'a build' }), 'started', 'noted'])
  await scene.prompt('go')
  await scene.settled(1)
  const { taskId, ...info } = await scene.task()
  const pid = 'pid' in info ? info.pid : 0
  const lines = (scene.results(1)[0] ?? '').split('\n')
  assert.deepEqual(lines.slice(0, 5), [
    `task_id: ${taskId}`,
    `pid: ${pid}`,
    'description: a build',
    'status: running',
    'automatic_notification: true'
  ])
  assert.match(lines.slice(5).join('\n'), /^output_file: \/.*output\.log\nnext_step: .*\nnext_step: .*TaskOutput/)
  const order = scene.events.map(({ type }) => type).filter(type => ['task.started', 'tool.call.started', 'tool.result'].includes(type))
  assert.deepEqual(order, ['tool.call.started', 'task.started', 'tool.result'])
  assert.equal(info.timeoutMs, 600_000, 'the configured limit')
  const end = await scene.over()
  assert.deepEqual([end.status, 'exitCode' in end && end.exitCode], ['failed', 3])
  await turns(scene, 2)
  const { items } = (await scene.call(listMessages, { params: scene.params, query: {} })).data
  const text = JSON.stringify(items.find(item => (item.metadata?.origin as { kind?: string } | undefined)?.kind === 'task')?.content)
  assert.match(text, /a build[\s\S]*exit code 3/)
  assert.match(text, /done/)
  assert.ok(isGone(pid))
})

test('a command over its time goes on in the background with what it printed so far, unless that is switched off', async t => {
  const command = 'echo so far; printf "no end"; sleep 60'
  const scene = await start(t, [bash({ command, timeout: 1 }), 'ok', 'noted'])
  await scene.prompt('go')
  await scene.settled(1)
  const { taskId, timeoutMs } = await scene.task()
  assert.equal(timeoutMs, 600_000)
  const [result] = scene.results(1)
  assert.match(result ?? '', /^The command was still running after 1 s\. It goes on in the background\.\ntask_id: bash-/)
  assert.match(result ?? '', /Its output so far:\nso far\nno end$/)
  const read = await scene.call(readTask, { params: { ...scene.params, task_id: taskId }, query: { with_output: true, output_bytes: 6 } })
  assert.deepEqual([read.data.output_preview, read.data.output_bytes], ['no end', 6])
  assert.equal((await scene.call(cancelTask, { params: { ...scene.params, task_id: taskId } })).code, 0)

  const off = await start(t, [bash({ command, timeout: 1 }), 'ok'], { toml: '[background]\nbash_auto_background_on_timeout = false\n' })
  await off.prompt('go')
  await off.settled(1)
  assert.match(off.results()[0] ?? '', /so far\nno end\nThe command was killed after 1 s \(timeout\)\./)
  assert.deepEqual(
    (await off.list()).map(({ status }) => status),
    ['failed']
  )
})

test('detaching releases the waiting call at once and the turn goes on; the abort of the turn does not reach the command any more', async t => {
  const scene = await start(t, [bash({ command: 'echo $$; sleep 60' }), [{ type: 'wait', until: new Promise(() => undefined) }], 'noted'])
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.progress')
  const [row] = await scene.list()
  assert.deepEqual([row?.kind, row?.status, row?.parent_tool_call_id], ['bash', 'running', 'call_1'])
  const at = { params: { ...scene.params, task_id: row?.id ?? '' } }
  assert.deepEqual((await scene.call(detachTask, at)).data, { detached: true, status: 'running' })
  await scene.llm.arrived(1)
  assert.match(scene.results()[0] ?? '', /^The user moved the command to the background, where it goes on\.\ntask_id: bash-/)
  await scene.call(abortSession, { params: scene.params })
  assert.equal((await scene.list())[0]?.status, 'running')
  const { pid } = (await scene.task()) as { pid: number }
  assert.ok(!isGone(pid))
  await scene.call(cancelTask, at)
  assert.ok(isGone(pid))
  assert.equal((await scene.over()).status, 'killed')
})

test('a command that nobody described is shown by the beginning of its first line, in whole characters', async t => {
  const scene = await start(t, [bash({ command: `echo here; sleep 60 # ${'😀'.repeat(60)}\necho there` }), 'noted'])
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.progress')
  assert.equal((await scene.list())[0]?.description, `echo here; sleep 60 # ${'😀'.repeat(28)}…`)
  await scene.call(abortSession, { params: scene.params })
})

test('the abort of a turn ends a command in the foreground with its turn; a cancel ends it alone', async t => {
  const slow = bash({ command: 'echo here; sleep 60' })
  const scene = await start(t, [slow, slow, 'ok'])
  await scene.prompt('go')
  await scene.waitFor(({ type }) => type === 'tool.progress')
  await scene.call(abortSession, { params: scene.params })
  assert.deepEqual(
    (await scene.list()).map(({ status }) => status),
    ['cancelled']
  )
  await scene.prompt('again')
  let seen = 0
  await scene.waitFor(({ type }) => type === 'tool.progress' && ++seen >= 2)
  const id = (await scene.list())[1]?.id ?? ''
  assert.deepEqual((await scene.call(cancelTask, { params: { ...scene.params, task_id: id } })).data, { cancelled: true })
  await scene.settled(2)
  assert.match(scene.results().at(-1) ?? '', /here\nThe command was killed: the user stopped it\./)
  assert.ok(!scene.events.some(({ type }) => type.startsWith('task.')), 'it was never in the background')
})

test('what goes together is checked before anybody is asked', async t => {
  const rows: readonly (readonly [Record<string, unknown>, RegExp])[] = [
    [{ run_in_background: true }, /description: is required/],
    [{ disable_timeout: true }, /disable_timeout is for run_in_background/],
    [{ timeout: 301 }, /at most 300 s/],
    [{ timeout: 86_401, run_in_background: true, description: 'x' }, /timeout: expected/i],
    [{ timeout: 5, disable_timeout: true, run_in_background: true, description: 'x' }, /exclude each other/]
  ]
  const calls = rows.map(([args], n) => ({ id: `call_${n}`, name: 'Bash', args: { command: `echo ${n}`, ...args } }))
  const scene = await start(t, [toolCalls(...calls), 'ok'])
  await scene.prompt('go')
  await scene.settled(1)
  for (const [n, [, expected]] of rows.entries()) assert.match(scene.results()[n] ?? '', expected)
  assert.deepEqual(await scene.list(), [])
})

test('limits of the background: given, configured, none', async t => {
  const run = (id: string, more: object) => ({
    id,
    name: 'Bash',
    args: { command: `sleep 6${id}`, run_in_background: true, description: id, ...more }
  })
  const calls = [run('1', { timeout: 1000 }), run('2', {}), run('3', { disable_timeout: true })]
  const scene = await start(t, [toolCalls(...calls), 'ok'], { toml: '[task]\nbash_task_timeout_s = 7.5\nmax_running_tasks = 2\n' })
  await scene.prompt('go')
  await scene.settled(1)
  const infos = () => scene.events.flatMap(({ type, payload }) => (type === 'task.started' ? [(payload as { info: TaskInfo }).info] : []))
  assert.deepEqual(
    infos().map(({ timeoutMs }) => timeoutMs),
    [1_000_000, 7500]
  )
  assert.match(scene.results()[2] ?? '', /2 tasks run in the background, and no more may \(background\.max_running_tasks\)/)
  await scene.stop()
  for (const info of infos()) assert.ok('pid' in info && isGone(info.pid), 'no command survives its server')
})

test('without the pack tasks, or without the tools to look after a task, nothing goes to the background', async t => {
  const calls = toolCalls(
    { id: 'a', name: 'Bash', args: { command: 'echo a', run_in_background: true, description: 'x' } },
    { id: 'b', name: 'Bash', args: { command: 'echo b' } }
  )
  const without = await start(t, [calls, 'ok'], { packs: [] })
  await without.prompt('go')
  await without.settled(1)
  assert.match(without.results()[0] ?? '', /Nothing can run in the background here\. Make the call without run_in_background\.$/)
  assert.equal(without.results()[1], 'b')
  assert.ok(!without.llm.requests[0]?.tools.find(({ name }) => name === 'Bash')?.description.includes('run_in_background'))

  const policy = await start(t, [calls, bash({ command: 'sleep 60', timeout: 1 }), 'ok'], { toml: '[tools]\ndisabled = ["TaskStop"]\n' })
  await policy.prompt('go')
  await policy.settled(1)
  const [refused, ran, killed] = policy.results()
  assert.match(refused ?? '', /without TaskList, TaskOutput and TaskStop/)
  assert.equal(ran, 'b')
  assert.match(killed ?? '', /killed after 1 s/)
})

test('clients see every command run: what it prints, and its end unless the task tells it', async t => {
  const scene = await start(t, [
    bash({ command: 'echo one; exit 3' }),
    bash({ command: 'sleep 0.05; echo two', run_in_background: true, description: 'two' }, 'call_2'),
    'done',
    'noted'
  ])
  await scene.prompt('go')
  const { taskId } = await scene.over()
  const told = scene.events.flatMap(({ type, payload }) => {
    if (!/^(shell|tool|task)\.(?!call\.delta|progress)/.test(type)) return [] // progress comes beside them
    const { commandId, toolCallId, isError, update } = payload as Record<string, unknown>
    return [[type, commandId ?? toolCallId, isError, (update as { text?: string } | undefined)?.text].filter(each => each !== undefined)]
  })
  assert.deepEqual(told.slice(0, 5), [
    ['tool.call.started', 'call_1'],
    ['shell.started', 'call_1'],
    ['shell.output', 'call_1', 'one\n'],
    ['shell.completed', 'call_1', true],
    ['tool.result', 'call_1', true]
  ])
  const behind = told.filter(([type, id]) => id === 'call_2' && String(type).startsWith('shell.'))
  assert.deepEqual(behind, [
    ['shell.started', 'call_2'],
    ['shell.output', 'call_2', 'two\n']
  ])
  const tasks = scene.events.flatMap(({ type, payload }) => (type === 'shell.output' ? [(payload as { taskId?: string }).taskId] : []))
  assert.equal(tasks[1], taskId)
})

/** A program of another pack, until the pack tools-shell goes. `said` resolves when it has printed something. */
async function programOf(t: TestContextLike, script: string, kill_grace_ms = 5000) {
  const said = latch()
  let program: Program | undefined
  const probe = definePack({
    name: 'probe',
    needs: { commands: Shell },
    setup(_ctx, { commands }) {
      program = commands.start({ program: 'sh', args: ['-c', script], cwd: '/', onText: () => said.open() })
    }
  })
  const { kernel } = await start(t, [], { packs: [tasks, probe], config: { 'tools-shell': { kill_grace_ms } } })
  await said.opened
  assert.ok(program?.pid !== undefined && !isGone(program.pid))
  return { kernel, pid: program.pid, ended: program.ended }
}

test('a program that another pack started ends with the pack', async t => {
  const { kernel, pid, ended } = await programOf(t, 'echo on; exec sleep 600')

  await kernel.unload('tools-shell')

  assert.ok(isGone(pid))
  assert.equal(await ended, 'it was ended by SIGTERM')
})

test('a program that ends by nothing polite is killed soon when the pack goes, whatever grace commands have else', async t => {
  const { kernel, pid, ended } = await programOf(t, "trap '' TERM; echo on; while :; do sleep 600; done", 600_000)

  await kernel.unload('tools-shell')

  assert.ok(isGone(pid))
  assert.equal(await ended, 'it was ended by SIGKILL')
})

test('the whole output of a command in the background is in its file, cleaned as the model gets it', async t => {
  const command = "printf '\\033[1mred\\033[0m 10%%\\r20%%\\nend'"
  const scene = await start(t, [bash({ command, run_in_background: true, description: 'x' }), 'ok'])
  await scene.prompt('go')
  const { taskId } = await scene.over()
  await turns(scene, 1)
  const path = /output_file: (\S+)/.exec(scene.results(1)[0] ?? '')?.[1] ?? ''
  assert.ok(path.endsWith(`/tasks/${taskId}/output.log`))
  assert.equal(await readFile(path, 'utf8'), '20%\nend')
})

test('what a command prints while the server lets go of it is in its file, in its place', { timeout: 20_000 }, async () => {
  const cwd = await freshDir()
  const [file, marked] = [join(cwd, 'output'), join(cwd, 'marked')]
  const line = 'read go; echo first; touch marked; read go; echo second'
  const given = { shell: '/bin/sh', command: line, cwd, env: process.env, mark: 'left.1', talks: true, onText() {} }
  const command = new Command({ ...given, killGraceMs: 0, drainMs: 0 })

  await command.leave(file, async () => {
    await command.write('go\n')
    while (!existsSync(marked)) await new Promise(resolve => setTimeout(resolve, 2))
    for (let pass = 0; pass < 3; pass++) await new Promise(setImmediate) // so that it was read
  })
  await command.write('go\n')

  while (!(await readFile(file, 'utf8')).includes('second')) await new Promise(resolve => setTimeout(resolve, 2))
  assert.equal(await readFile(file, 'utf8'), 'first\nsecond\n')
})
