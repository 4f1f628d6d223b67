import assert from 'node:assert/strict'
import fs, { closeSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import type { Tasks } from '../../../features/tasks/index.ts'
import { ToolAuthority } from '../../../features/tools/index.ts'
import { apart, type Launcher } from '../../../features/tools-shell/apart.ts'
import { createBash } from '../../../features/tools-shell/bash.ts'
import type { Command } from '../../../features/tools-shell/command.ts'
import { commandEnv, findShell, hiddenFrom } from '../../../features/tools-shell/environment.ts'
import toolsShell from '../../../features/tools-shell/pack.ts'
import { OutputPipes } from '../../../features/tools-shell/pipes.ts'
import { CommandRecord } from '../../../features/tools-shell/record.ts'
import { createShell, Shell } from '../../../features/tools-shell/shell.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel, stub } from '../../../kernel/testing.ts'
import { startChild } from '../../helpers/child.ts'
import { latch } from '../../helpers/latch.ts'
import { noDescriptors } from '../../helpers/no-descriptors.ts'
import { warnings } from '../../helpers/temp.ts'
import { fakeAgent, scene, type TestLike, temporary } from '../tools/fakes.ts'

async function bash(t: TestLike, launcher?: Launcher, killGraceMs = 200) {
  const agent = await fakeAgent(t, { cwd: await temporary() })
  const running = new Set<Command>()
  const onRecord = new Set<string>()
  let ids = 0
  let marks = 0
  const told: [string, unknown][] = []
  const pipes = new OutputPipes(join(await temporary(), 'pipes'))
  t.after(() => pipes.close())
  const ports = {
    shell: findShell(),
    pipes,
    ...(launcher ? { launcher } : {}),
    hidden: () => hiddenFrom([], []),
    record: {
      begin() {
        const mark = `bash-test-${process.pid}.${marks++}`
        onRecord.add(mark)
        return mark
      },
      started: async () => undefined,
      ended: (mark: string) => void onRecord.delete(mark)
    },
    own(command: Command) {
      running.add(command)
      return () => running.delete(command)
    },
    killGraceMs,
    drainMs: 50
  }
  const tool = createBash({
    ...ports,
    home: '/srv/home',
    tasks: () => undefined,
    background: () => ({ auto: true, seconds: 600 }),
    newId: () => `id${ids++}`,
    events:
      () =>
      (...event) =>
        void told.push(event)
  })
  const stage = await scene(t, [tool], { agent })
  t.after(() => assert.deepEqual([running.size, onRecord.size], [0, 0]))
  return {
    ...stage,
    running,
    shell: createShell(ports),
    told,
    cwd: agent.session.cwd,
    async bash(args: Record<string, unknown>, signal?: AbortSignal) {
      const [result] = await stage.run([['call', 'Bash', JSON.stringify(args)]], signal ? { signal } : {})
      return { ...result, output: String(result?.output) }
    },
    /** The process ids in the first line that the command prints. */
    async pids(): Promise<number[]> {
      for (;;) {
        const text = stage.reports.flatMap(report => (report.type === 'progress' ? [report.update.text ?? ''] : [])).join('')
        if (text.includes('\n')) return text.trim().split(' ').map(Number)
        await new Promise(resolve => setTimeout(resolve, 2))
      }
    },
    /** Live output so far. */
    live: () => stage.reports.flatMap(report => (report.type === 'progress' ? [report.update] : []))
  }
}

/** Whether the process has ended; a zombie that nobody has collected yet has ended, too. */
async function isGone(pid: number): Promise<boolean> {
  try {
    process.kill(pid, 0)
    return /\) [ZX] /.test(await readFile(`/proc/${pid}/stat`, 'utf8'))
  } catch {
    return true
  }
}

async function ended(pid: number): Promise<void> {
  while (!(await isGone(pid))) await new Promise(resolve => setTimeout(resolve, 2))
}

test('a command that finds no descriptor left fails alone, and the next one runs', async t => {
  const { bash: run } = await bash(t)
  const again = noDescriptors(t)
  const refused = await run({ command: 'echo one' })
  assert.equal(refused.is_error, true)
  assert.match(refused.output, /EMFILE/)
  again()
  assert.equal((await run({ command: 'echo one' })).output, 'one')
})

test('a command whose call is aborted before it begins does not begin in the background either', async t => {
  const [asked, ready] = [latch(), latch()]
  const started: unknown[] = []
  const tasks = { refusal: () => undefined, start: async (_agent: unknown, spec: unknown) => void started.push(spec) } as unknown as Tasks
  let looks = 0
  const pipes = {
    async ready() {
      if (++looks < 2) return // beside the reading of the line
      asked.open()
      await ready.opened
    },
    take: () => undefined
  }
  const ports = { shell: '/bin/sh', pipes, home: '/srv/home', tasks: () => tasks, background: () => ({ auto: true, seconds: 600 }) }
  const { run } = await scene(t, [createBash(ports as unknown as Parameters<typeof createBash>[0])], {})
  const turn = new AbortController()
  const args = { command: 'sleep 60', run_in_background: true, description: 'sleeps' }
  const ended = run([['call', 'Bash', JSON.stringify(args)]], { signal: turn.signal })
  await asked.opened
  turn.abort()
  ready.open()

  assert.equal((await ended)[0]?.is_error, true)
  await new Promise(setImmediate)
  assert.deepEqual(started, [])
})

test('what runs is on record also where the disk is slow, which holds up nobody twice', async t => {
  const home = await temporary()
  const record = await CommandRecord.open(home, 'run', warnings() as never)
  const file = join(home, 'server', 'commands', 'run.jsonl')
  const lines = async () => (await readFile(file, 'utf8').catch(() => '')).split('\n').length - 1
  const { writeFileSync } = fs
  t.mock.method(fs, 'writeFileSync', (...args: Parameters<typeof writeFileSync>) => {
    writeFileSync(...args)
    for (const began = performance.now(); performance.now() - began < 6; );
  })
  const appendFileSync = t.mock.method(fs, 'appendFileSync')
  syncBuiltinESMExports()
  t.after(() => syncBuiltinESMExports())
  const mark = record.begin()
  assert.equal(await lines(), 1)
  await record.started(mark, process.pid)
  while ((await lines()) < 2);
  assert.equal(appendFileSync.mock.callCount(), 0)
  record.ended(mark)
  while ((await lines()) > 0);
})

test('the output of both streams is the result, and arrives live', async t => {
  const { bash: run, live, reports, told } = await bash(t)
  const result = await run({ command: 'echo one; sleep 0.05; echo two >&2', description: 'counts' })
  assert.equal(result.output, 'one\ntwo')
  assert.equal(result.is_error, undefined)
  assert.deepEqual(live(), [
    { kind: 'stdout', text: 'one\n' },
    { kind: 'stderr', text: 'two\n' }
  ])
  assert.deepEqual(told, [
    ['started', { commandId: 'call' }],
    ['output', { commandId: 'call', update: { kind: 'stdout', text: 'one\n' } }],
    ['output', { commandId: 'call', update: { kind: 'stderr', text: 'two\n' } }],
    ['completed', { commandId: 'call', isError: false }]
  ])
  const started = reports.find(report => report.type === 'started')
  assert.match(started?.type === 'started' ? (started.description ?? '') : '', /^Running: echo one/)
})

test('a command may open its own output by name', async t => {
  const { output, is_error } = await (await bash(t)).bash({
    command: 'echo one > /dev/stderr; echo two | tee /dev/stderr; echo three > /dev/fd/1'
  })
  assert.equal(is_error, undefined)
  assert.deepEqual(output.split('\n').sort(), ['one', 'three', 'two', 'two'])
})

test('no pipe is made before a command wants one', { skip: process.platform !== 'linux' }, async t => {
  const pipes = new OutputPipes(join(await temporary(), 'pipes'))
  t.after(() => pipes.close())
  assert.equal(pipes.take(), undefined)
  await pipes.ready()
  const { read, write } = pipes.take()!
  for (const end of [read, write]) closeSync(end)
})

test('a failing command answers its output and its exit code as an error', async t => {
  const { bash: run } = await bash(t)
  assert.deepEqual(await run({ command: 'echo no; exit 3' }), { output: 'no\nThe command failed with exit code 3.', is_error: true })
})

test('it runs in the working directory or in cwd, without input, in a plain terminal', async t => {
  const { bash: run, cwd } = await bash(t)
  await mkdir(join(cwd, 'sub'))
  assert.equal((await run({ command: 'pwd' })).output, cwd)
  assert.equal((await run({ command: 'pwd; cat; echo $NO_COLOR $TERM', cwd: 'sub' })).output, `${join(cwd, 'sub')}\n1 dumb`)
  assert.match((await run({ command: 'pwd', cwd: 'nowhere' })).output, /does not exist/)
})

test('characters split between chunks stay whole', async t => {
  const { bash: run } = await bash(t)
  assert.equal((await run({ command: "printf '\\xe2\\x82'; sleep 0.05; printf '\\xac'" })).output, '€')
})

test('a command over its time is killed with everything it started', { timeout: 30_000 }, async t => {
  const { bash: run } = await bash(t)
  const result = await run({ command: 'sleep 60 & echo $!; wait', timeout: 1 })
  assert.equal(result.is_error, true)
  assert.match(result.output, /killed after 1 s/)
  await ended(Number.parseInt(result.output, 10))
})

test('a background process that holds the output open neither hangs the call nor survives it', { timeout: 30_000 }, async t => {
  const { bash: run } = await bash(t)
  const result = await run({ command: 'sleep 60 & echo $!' })
  assert.equal(result.is_error, undefined)
  await ended(Number.parseInt(result.output, 10))
})

test('an abort kills a command and what it started, even when both ignore the polite signal, and keeps its output', {
  timeout: 30_000
}, async t => {
  const { bash: run, pids, running } = await bash(t)
  const control = new AbortController()
  const result = run({ command: "trap '' TERM; sleep 60 & echo $$ $!; wait; sleep 60" }, control.signal)
  const started = await pids()
  control.abort(new Error('shutdown'))
  const { output } = await result
  assert.deepEqual(await Promise.all(started.map(isGone)), [true, true], 'gone with the answer, not some time later')
  assert.equal(running.size, 0)
  assert.match(output, /aborted[\s\S]*\d+ \d+\n[\s\S]*killed: the call was aborted/)
})

test('escape sequences and the earlier states of progress bars are left out, also between chunks', async t => {
  const { bash: run } = await bash(t)
  const rows: readonly (readonly [string, string])[] = [
    ["printf '\\033[1;31mred\\033[0m and \\033]8;;http://x\\033\\\\link\\033]8;;\\007\\n'", 'red and link'],
    ["for i in 1 2 3; do printf '\\r%d0%%' $i; done; printf '\\ndone\\n'", '30%\ndone'],
    ["printf 'a\\r\\nb\\r\\n'", 'a\nb'],
    ["printf 'abx\\bc\\n'", 'abc'],
    ["printf '\\033[3'; sleep 0.05; printf '1mred\\n'", 'red'],
    ["printf 'no end\\033[K'", 'no end'],
    ["i=0; while [ $i -lt 20000 ]; do printf '\\r%d' $i; i=$((i+1)); done; echo", '19999']
  ]
  for (const [command, shown] of rows) assert.equal((await run({ command })).output, shown, command)
})

test('long output is cut in the middle and kept whole on disk', async t => {
  const { bash: run } = await bash(t)
  const result = await run({ command: 'seq 1 40000; echo end' })
  assert.ok(result.output.length < 51_000)
  assert.match(result.output, /^1\n2\n/)
  assert.match(result.output, /\[\.\.\.truncated\]/)
  assert.match(result.output, /\nend\n/)
  const path = /whole output is in (\S+)/.exec(result.output)?.[1] ?? ''
  const whole = await readFile(path, 'utf8')
  assert.ok(whole.startsWith('1\n2\n') && whole.endsWith('40000\nend\n'))
  assert.equal(whole.split('\n').length, 40_002)
})

test('long output that the disk does not take is cut all the same, and no file is promised', { timeout: 30_000 }, async t => {
  const { bash: run, agent } = await bash(t)
  for (let n = 0; n < 5; n++) await mkdir(join(agent.dir, 'tool-results', `id${n}-Bash.log`), { recursive: true })
  const { output, is_error } = await run({ command: 'seq 1 400000; echo end' })
  assert.notEqual(is_error, true)
  assert.match(output, /\nend\n[\s\S]*cut in the middle\.$/)
})

test('a flood is stopped', async t => {
  const { bash: run } = await bash(t)
  const result = await run({ command: 'yes flood' })
  assert.equal(result.is_error, true)
  assert.match(result.output, /more than 16 MiB/)
})

test('a session is closed only when its commands and what they started are gone, whatever grace a command has else', {
  timeout: 10_000
}, async t => {
  const { bash: run, agent, pids } = await bash(t, undefined, 20_000)
  const result = run({ command: "trap '' TERM; sleep 60 & echo $$ $!; wait; sleep 60" })
  const started = await pids()
  assert.deepEqual(await agent.closeHost(), [])
  assert.deepEqual(await Promise.all(started.map(isGone)), [true, true])
  assert.match((await result).output, /ended by SIGKILL/)
})

test('commands end with their server also when it ends without closing anything, and need one listener together', {
  timeout: 30_000
}, async t => {
  const server = startChild(t, 'commands')
  await server.atLeast(12)
  const started = server.lines.map(Number)
  t.after(async () => {
    for (const pid of started) if (!(await isGone(pid))) process.kill(pid, 'SIGKILL')
  })
  server.say('end')
  assert.equal(await server.end(), 3)
  await Promise.all(started.map(ended))
  assert.equal(server.lines.length, 12, server.lines[12])
})

test('a command that has ended leaves nothing for the close of its session', async t => {
  const { bash: run, agent } = await bash(t)
  const held = () => [agent.scope.size, process.listenerCount('exit')]
  await run({ command: 'true' })
  const before = held()
  await run({ command: 'true a' })
  assert.deepEqual(held(), before)
})

test('the kept output is for its owner only', async t => {
  const { bash: run } = await bash(t)
  const path = /whole output is in (\S+)/.exec((await run({ command: 'seq 1 20000' })).output)?.[1] ?? ''
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.equal((await stat(dirname(path))).mode & 0o777, 0o700)
})

test('a directory that leads elsewhere when the command starts is refused', async t => {
  const { bash: run, cwd, hooks } = await bash(t)
  for (const name of ['one', 'two']) await mkdir(join(cwd, name))
  await symlink('one', join(cwd, 'link'))
  hooks.before.tapPromise('swap', async () => {
    await rm(join(cwd, 'link'))
    await symlink('two', join(cwd, 'link'))
    return undefined
  })
  assert.match((await run({ command: 'touch made', cwd: 'link' })).output, /leads elsewhere now/)
  assert.deepEqual(await readdir(join(cwd, 'two')), [])
})

test("the server's own secrets stay out of the environment of commands", () => {
  const env = commandEnv(
    { PATH: '/bin', SVC_CODE_MODEL_API_KEY: 'k', SVC_CODE_PASSWORD: 'p', SVC_CODE_HOME: '/h', GIT_TERMINAL_PROMPT: '1' },
    hiddenFrom([], []),
    '/bin/sh',
    'mark'
  )
  const added = { NO_COLOR: '1', TERM: 'dumb', GIT_TERMINAL_PROMPT: '1', SHLVL: '1', SHELL: '/bin/sh', SVC_CODE_COMMAND: 'mark' }
  assert.deepEqual(env, { PATH: '/bin', SVC_CODE_HOME: '/h', ...added })
})

test('keys of the configuration stay out of them, by value and by the names of env tables; projects beside them and short values do not', () => {
  const records = [
    { p: { api_key: 'key-of-p', custom_headers: { 'X-Team': 'header-of-p' }, base_url: 'http://public-host' } },
    { q: { env: { Q_API_KEY: 'key-of-q', Q_PROJECT: 'project-of-q' }, api_key: 'short' } }
  ]
  const hidden = hiddenFrom(records, ['MY_*'])
  const isHidden = (name: string, value: string) => hidden(name, value)
  const kept = ['a key-of-p b', 'header-of-p', 'key-of-q'].map(value => isHidden('ANY', value))
  assert.deepEqual([...kept, isHidden('Q_API_KEY', 'another'), isHidden('MY_LOGIN', 'x')], [true, true, true, true, true])
  const given = ['project-of-q', 'http://public-host', 'short'].map(value => isHidden('ANY', value))
  assert.deepEqual([...given, isHidden('Q_PROJECT', 'another'), isHidden('NOT_MY', 'x')], [false, false, false, false, false])
})

test("what is run with an input does not run the user's start files, whatever started the server", async t => {
  const { shell, cwd } = await bash(t)
  await writeFile(join(cwd, '.bashrc'), 'echo from bashrc\n')
  const level = process.env.SHLVL
  delete process.env.SHLVL
  t.after(() => {
    if (level !== undefined) process.env.SHLVL = level
  })
  const { stdout } = await shell.run({ command: 'cat', cwd, env: { HOME: cwd }, input: 'the input\n', timeout_ms: 30_000 })
  assert.equal(stdout, 'the input\n')
})

test('a command that is longer than the system takes as one argument runs like any other', async t => {
  const { bash: run } = await bash(t)
  const text = 'grün '.repeat(40_000)

  const { output, is_error } = await run({
    command: `x=1; cat <<'EOF' | wc -c\n${text}\nEOF\necho $x "$0"; readlink /proc/$$/fd/3; exit 3`
  })

  assert.deepEqual(output.split('\n'), [`${Buffer.byteLength(text) + 1}`, `1 ${findShell()}`, 'The command failed with exit code 3.'])
  assert.equal(is_error, true)
})

test('a command that the system refuses to start says so, and nothing stays on record', async t => {
  const { shell, cwd } = await bash(t)

  const { code, trouble } = await shell.run({ command: 'true', cwd, env: { LONG: 'x'.repeat(200_000) }, timeout_ms: 10_000 })

  assert.equal(code, undefined)
  assert.match(trouble ?? '', /could not be started: .*E2BIG/)
})

const separate = await apart()
const cannot = 'refusal' in separate && separate.refusal

test('a command that is kept apart sees nothing of the memory of the server, and works as others do', { skip: cannot }, async t => {
  const { bash: run } = await bash(t, separate)
  for (const file of ['mem', 'maps', 'environ']) {
    const { output, is_error } = await run({ command: `head -c 1 /proc/${process.pid}/${file}` })
    assert.equal(is_error, true, file)
    assert.match(output, /denied|not permitted/i)
  }
  const { output } = await run({ command: `echo a > x; cat x; id -u; sleep 60 & setsid sleep 60 & printf ${'b'.repeat(200_000)} | wc -c` })
  assert.match(output, new RegExp(`^a\\n${process.getuid?.()}\\n200000\\nProcesses of the command were still running`))
})

test('where commands cannot be kept apart none runs, and each says why', async t => {
  const { PATH } = process.env
  process.env.PATH = '/nowhere'
  const launcher = await apart()
  process.env.PATH = PATH
  const { bash: run } = await bash(t, launcher)
  const { output, is_error } = await run({ command: 'echo a' })
  assert.equal(is_error, true)
  assert.match(output, /could not be started: commands are to be kept apart .* this system cannot: .*unshare/)
})

test('a command of another pack that has not begun when the server stops does not begin', async t => {
  let shell: Shell | undefined
  const other = definePack({
    name: 'other',
    needs: { shell: Shell },
    setup(_ctx, needs) {
      shell = needs.shell
    }
  })
  const { home, stop } = await startTestKernel(t, { packs: [stub(ToolAuthority, {}), toolsShell, other] })
  const ran = shell?.run({ command: 'echo ran', cwd: home, timeout_ms: 10_000 })
  await stop()
  assert.deepEqual(await ran, { code: undefined, stdout: '', stderr: '', trouble: 'it was aborted' })
})
