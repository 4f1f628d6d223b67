import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { test } from 'node:test'
import { type IPty, spawn as spawnPty } from 'node-pty'
import { archiveSession, createSession, readRuntime, Sessions, setRuntime } from '../../../features/sessions/index.ts'
import type { LiveSession } from '../../../features/sessions/live.ts'
import sessions from '../../../features/sessions/pack.ts'
import { closeTerminal, createTerminal, listTerminals, readTerminal } from '../../../features/terminals/index.ts'
import terminals from '../../../features/terminals/pack.ts'
import { Terminal } from '../../../features/terminals/terminal.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { keptOf } from '../../helpers/collected.ts'
import { withEnvironment } from '../../helpers/environment.ts'
import { freshDir } from '../../helpers/temp.ts'

const bodyOf = (given: Record<string, unknown>) => ({ runtime_id: 'local', cols: 80, rows: 24, ...given })

async function start(t: TestContextLike, config: Record<string, Record<string, unknown>> = {}) {
  const cwd = await realpath(await freshDir())
  let isKept = () => false
  const probe = definePack({
    name: 'probe',
    needs: { sessions: Sessions },
    setup(_ctx, { sessions: service }) {
      isKept = () => service.allLoaded().some(session => (session as LiveSession).isKept) // the only class of sessions
    }
  })
  const kernel = await startTestKernel(t, { packs: [workspaces, sessions, terminals, probe], config })
  const session_id = (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  const params = { session_id }
  const open = async (body: Record<string, unknown> = {}) => {
    const reply = await kernel.call(createTerminal, { params, body: bodyOf({ shell: '/bin/sh', ...body }) })
    assert.equal(reply.code, 0, reply.msg)
    return reply.data
  }
  const socket = async () => {
    const client = await kernel.connect()
    const ask = (type: string, terminal_id: string, payload: object = {}) => client.request(type, { session_id, terminal_id, ...payload })
    /** What was printed so far, as one text. */
    const printed = () =>
      client.frames.flatMap(({ type, payload }) => (type === 'terminal_output' ? [(payload as { data: string }).data] : [])).join('')
    const shows = (text: string | RegExp) =>
      client.next(({ type }) => type === 'terminal_output' && new RegExp(text).test(printed().slice(-4000)))
    return { client, ask, printed, shows }
  }
  return { ...kernel, cwd, session_id, params, open, socket, isKept: () => isKept() }
}

// The first of this file: the library that opens terminals is loaded with the first of them, and takes its time.
test('terminals that are asked for at once are not more than are allowed', async t => {
  const { call, params } = await start(t, { terminals: { max_per_session: 2 } })
  const ask = () => call(createTerminal, { params, body: bodyOf({ shell: '/bin/sh' }) })
  const codes = (await Promise.all([ask(), ask(), ask(), ask()])).map(({ code }) => code)
  assert.deepEqual(codes.sort(), [0, 0, 40926, 40926])
})

test('Backspace takes back a whole letter, however many bytes it has', async t => {
  const { open, socket } = await start(t)
  const { ask, shows } = await socket()
  const terminal = await open()
  await ask('terminal_attach', terminal.id)
  await ask('terminal_input', terminal.id, { data: 'read line; echo "[$line]"\n' })
  await ask('terminal_input', terminal.id, { data: 'grü\u{1F600}\x7f\x7fas\n' })
  await shows('\\[gras\\]')
})

test('a terminal runs a shell in the directory of the session, takes keys, and shows its end', async t => {
  const { open, socket, cwd, call, params, isKept } = await start(t)
  const terminal = await open({ cols: 100, rows: 30 })
  assert.ok(isKept(), 'its session stays loaded')
  assert.match(terminal.id, /^term_/)
  assert.deepEqual([terminal.cwd, terminal.shell, terminal.cols, terminal.rows, terminal.status], [cwd, '/bin/sh', 100, 30, 'running'])

  const { client, ask, shows, printed } = await socket()
  assert.deepEqual((await ask('terminal_attach', terminal.id)).payload?.attached, true)
  await ask('terminal_input', terminal.id, { data: 'pwd; stty size; echo "SVC=[$SVC_CODE_PASSWORD]" grüß\n' })
  await shows('SVC=\\[\\] grüß')
  assert.ok(printed().includes(cwd))
  assert.match(printed(), /30 100/)
  await ask('terminal_resize', terminal.id, { cols: 120, rows: 40 })
  await ask('terminal_input', terminal.id, { data: 'stty size\n' })
  await shows('40 120')
  await ask('terminal_input', terminal.id, { data: 'exit 3\n' })
  const exit = await client.next(({ type }) => type === 'terminal_exit')
  assert.deepEqual(exit.payload, { exit_code: 3 })
  assert.ok(!isKept())
  const { data } = await call(readTerminal, { params: { ...params, terminal_id: terminal.id } })
  assert.deepEqual([data.status, data.exit_code, data.cols, typeof data.exited_at], ['exited', 3, 120, 'string'])
  assert.equal((await ask('terminal_input', terminal.id, { data: 'x' })).code, 40414)
})

test('whoever attaches gets what is kept, from where it was, and several may watch', async t => {
  const { open, socket } = await start(t)
  const { id } = await open()
  const one = await socket()
  await one.ask('terminal_attach', id)
  await one.ask('terminal_input', id, { data: 'echo first\n' })
  await one.shows('first\\r\\n')
  const seen = one.client.frames.filter(({ type }) => type === 'terminal_output')
  const seqs = seen.map(({ seq }) => seq)
  assert.deepEqual(
    seqs,
    [...seqs.keys()].map(n => n + 1)
  )

  const two = await socket()
  const attached = await two.ask('terminal_attach', id, { since_seq: 1 })
  assert.equal(attached.payload?.replayed, two.client.frames.filter(({ type }) => type === 'terminal_output').length)
  await one.ask('terminal_detach', id)
  const known = one.printed()
  await two.ask('terminal_input', id, { data: 'echo second\n' })
  await two.shows('second\\r\\n')
  assert.equal(one.printed(), known)
})

test('closing a terminal ends what runs in it, is told at once, and can be done again', async t => {
  const { open, socket, call, params } = await start(t)
  const { id } = await open()
  const { client, ask, shows, printed } = await socket()
  await ask('terminal_attach', id)
  await ask('terminal_input', id, { data: 'sleep 1000 & echo "pid=$!"; wait\n' })
  await shows('pid=\\d+')
  const pid = Number(/pid=(\d+)/.exec(printed())?.[1])

  assert.deepEqual((await call(closeTerminal, { params: { ...params, terminal_id: id } })).data, { closed: true })
  assert.deepEqual((await client.next(({ type }) => type === 'terminal_exit')).payload, { exit_code: null })
  assert.equal((await call(closeTerminal, { params: { ...params, terminal_id: id } })).code, 0)
  assert.deepEqual((await ask('terminal_close', id)).payload, { closed: true })
  assert.equal((await call(listTerminals, { params })).data.items[0]?.status, 'exited')
  const gone = () => {
    try {
      process.kill(pid, 0)
      return false
    } catch {
      return true
    }
  }
  while (!gone()) await new Promise(resolve => setTimeout(resolve, 2))
})

test('a shell that does not lead its session yet is ended, too', async () => {
  const child = spawn('sleep', ['1000'], { stdio: 'ignore' })
  const exited = once(child, 'exit')
  let exit = (_end: { exitCode: number; signal: number }) => {}
  const kill = (signal: NodeJS.Signals) => process.kill(child.pid!, signal)
  const onExit = (listener: typeof exit) => {
    exit = listener
  }
  const pty = { pid: child.pid, onData: () => undefined, onExit, kill }
  const options = {
    id: 't',
    session_id: 's',
    cwd: '/',
    shell: 'sleep',
    cols: 80,
    rows: 24,
    scrollback: 1024,
    now: () => new Date(),
    over: () => {}
  }
  const terminal = new Terminal(pty as unknown as IPty, options)
  const closed = terminal.close()
  assert.equal(terminal.object().status, 'exited', 'it is told at once')
  assert.match(String((await exited)[1]), /^SIG(?:HUP|KILL)$/)
  exit({ exitCode: 0, signal: 1 })
  await closed
})

test('archiving the session and the end of the server end its terminals', async t => {
  const { open, socket, call, params, stop } = await start(t)
  const { id } = await open()
  const { client, ask } = await socket()
  await ask('terminal_attach', id)
  await call(archiveSession, { params })
  await client.next(({ type }) => type === 'terminal_exit')
  await open()
  await stop()
})

test('a flood of output neither fills memory nor holds up others, and what is kept is bounded', async t => {
  const { open, socket, call, params } = await start(t, { terminals: { scrollback_chars: 4096 } })
  const { id } = await open()
  const { ask, shows, client } = await socket()
  await ask('terminal_attach', id)
  await ask('terminal_input', id, { data: 'head -c 500000 /dev/zero | tr "\\\\0" x; echo; echo d""one\n' })
  assert.equal((await call(listTerminals, { params })).code, 0)
  await shows('done\\r')
  assert.ok(client.frames.length > 10)
  const late = await socket()
  await late.ask('terminal_attach', id)
  const kept = late.printed().length
  assert.ok(kept > 0 && kept <= 70_000, `${kept}`)
})

test('characters come whole wherever reads and frames cut them, and the rest of one that ends the output is shown', async t => {
  const { cwd, open, socket } = await start(t)
  const text = 'a世é😀\n'.repeat(30_000)
  await writeFile(join(cwd, 'text'), text)
  const { ask, client, printed } = await socket()
  const { id } = await open()
  await ask('terminal_attach', id)
  await ask('terminal_input', id, { data: 'stty -echo; clear; echo beg""in; cat text; printf "\\344\\270"; exit\n' })
  await client.next(({ type }) => type === 'terminal_exit')
  const shown = printed().split('begin\r\n')[1] ?? ''
  assert.equal(shown, `${text.replaceAll('\n', '\r\n')}\ufffd`)
  const frames = client.frames.filter(({ type }) => type === 'terminal_output')
  assert.ok(frames.length < 60, `${frames.length} frames`)
})

test('wrong places and shells are refused with their codes', async t => {
  const { call, params, cwd, session_id } = await start(t)
  await mkdir(join(cwd, 'sub'))
  await symlink('/', join(cwd, 'out'))
  await symlink('/nowhere/at/all', join(cwd, 'dangling'))
  await writeFile(join(cwd, 'file'), '')
  const codeOf = async (body: Record<string, unknown>) => (await call(createTerminal, { params, body: bodyOf(body) })).code
  assert.equal(await codeOf({ cwd: 'sub', shell: '/bin/sh' }), 0)
  for (const bad of ['/tmp', '\\x', 'C:\\x', 'nope', 'file', 'a\0b']) assert.equal(await codeOf({ cwd: bad }), 40001, bad)
  for (const bad of ['..', 'out', 'out/tmp', 'sub/../..', 'dangling']) assert.equal(await codeOf({ cwd: bad }), 41304, bad)
  assert.equal(await codeOf({ cwd: 'sub/..', shell: '/bin/sh' }), 0)
  await writeFile(join(cwd, 'own'), '#!/bin/sh\n', { mode: 0o755 })
  for (const bad of ['/no/such/shell', '/tmp', './own', join(cwd, 'file')]) assert.equal(await codeOf({ shell: bad }), 40001, bad)
  assert.equal(await codeOf({ runtime_id: 'other' }), 40420)
  assert.equal(await codeOf({ cols: 0 }), 40001)
  assert.equal((await call(readTerminal, { params: { session_id, terminal_id: 'nope' } })).code, 40414)
  assert.equal((await call(listTerminals, { params: { session_id: 'session_nope' } })).code, 40401)
  await rm(cwd, { recursive: true })
  assert.equal(await codeOf({}), 40001)
  await writeFile(cwd, '')
  const { code, details } = await call(createTerminal, { params, body: bodyOf({}) })
  assert.deepEqual([code, details?.[0]?.message], [40001, `${cwd} is not a directory`])
})

test('without SHELL and with nothing on PATH a terminal runs /bin/sh', async t => {
  withEnvironment(t, { SHELL: undefined, PATH: '/nowhere' })
  const { call, params } = await start(t)
  const { code, data } = await call(createTerminal, { params, body: bodyOf({}) })
  assert.deepEqual([code, data?.shell], [0, '/bin/sh'])
})

test('for a user who may not log in, as services have one, a terminal runs a shell all the same', async t => {
  const none = join(await freshDir(), 'nologin')
  await writeFile(none, '#!/bin/sh\n', { mode: 0o755 })
  withEnvironment(t, { SHELL: none, PATH: '/nowhere' })
  const { call, params } = await start(t)
  const { code, data } = await call(createTerminal, { params, body: bodyOf({}) })
  assert.deepEqual([code, data?.shell], [0, '/bin/sh'])
})

test('where the system gives no pseudo terminal, that is said', async t => {
  const { call, params } = await start(t)
  const { loadNativeModule } = createRequire(import.meta.url)('node-pty/lib/utils')
  t.mock.method(loadNativeModule('pty').module, 'fork', () => {
    throw new Error('forkpty(3) failed.')
  })
  const { code, msg } = await call(createTerminal, { params, body: bodyOf({}) })
  assert.equal(code, 40926)
  assert.match(msg, /no pseudo terminal/)
})

test('this machine is the only runtime of a session', async t => {
  const { call, params } = await start(t)
  const { workspace_id, runtime_id } = (await call(readRuntime, { params })).data
  assert.deepEqual([workspace_id.slice(0, 3), runtime_id], ['wd_', 'local'])
  assert.deepEqual((await call(setRuntime, { params, body: { runtime_id: 'local' } })).data, { workspace_id, runtime_id })
  assert.equal((await call(setRuntime, { params, body: { runtime_id: 'cloud' } })).code, 40420)
  assert.equal((await call(setRuntime, { params, body: { runtime_id: '' } })).code, 40001)
})

test('more terminals than are allowed are refused', async t => {
  const { call, params, open, isKept } = await start(t, { terminals: { max_per_session: 2 } })
  const first = await open()
  const second = await open()
  assert.equal((await call(createTerminal, { params, body: bodyOf({}) })).code, 40926)

  const close = ({ id }: { readonly id: string }) => call(closeTerminal, { params: { ...params, terminal_id: id } })
  await close(first)
  assert.equal(isKept(), true)
  const third = await open()
  for (const terminal of [second, third]) await close(terminal)
  assert.equal(isKept(), false, 'nothing of the session runs any more')
})

test('of the terminals that have ended the newest keep what they printed', async t => {
  const { open, socket } = await start(t)
  const { client, ask, printed } = await socket()
  const ids: string[] = []
  for (let n = 0; n < 17; n++) {
    const { id } = await open()
    ids.push(id)
    await ask('terminal_attach', id)
    await ask('terminal_input', id, { data: 'exit\n' })
    await client.next(frame => frame.type === 'terminal_exit' && (frame as { terminal_id?: string }).terminal_id === id)
  }
  assert.ok(printed().length > 0)
  const replayed = async (id: string | undefined) => Number((await ask('terminal_attach', id ?? '')).payload?.replayed)
  assert.equal(await replayed(ids[0]), 1)
  assert.ok((await replayed(ids[1])) > 1)
})

test('a terminal that has ended keeps nothing of its shell in memory, and answers as before', async () => {
  const open = () => {
    const pty = spawnPty('/bin/sh', ['-c', 'echo out; exit 3'], {})
    const options = { id: 't', session_id: 's', cwd: '/', shell: '/bin/sh', cols: 80, rows: 24, scrollback: 1024 }
    return { terminal: new Terminal(pty, { ...options, now: () => new Date(0), over: () => undefined }), shell: new WeakRef(pty) }
  }
  const known = [open(), open(), open()]
  await Promise.all(known.map(({ terminal }) => terminal.ended))
  assert.equal(await keptOf(known.map(({ shell }) => shell)), 0)
  for (const { terminal } of known) {
    assert.deepEqual([terminal.object().status, terminal.object().exit_code], ['exited', 3])
    terminal.resize(100, 30)
    await terminal.close()
    const sent: unknown[] = []
    terminal.attach({ send: (frame: unknown) => void sent.push(frame) } as never, 0)
    assert.match(JSON.stringify(sent), /out.*"exit_code":3/)
  }
})
