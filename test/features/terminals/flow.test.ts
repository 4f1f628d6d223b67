/** How a terminal and its clients go along: who attaches twice, who is slow, what ends it, and what the shell may know. */
import assert from 'node:assert/strict'
import { realpath } from 'node:fs/promises'
import { test } from 'node:test'
import type { IPty } from 'node-pty'
import { createSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import { createTerminal, readTerminal } from '../../../features/terminals/index.ts'
import terminals from '../../../features/terminals/pack.ts'
import { Terminal } from '../../../features/terminals/terminal.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import type { Connection } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { freshDir } from '../../helpers/temp.ts'

async function start(t: TestContextLike) {
  const kernel = await startTestKernel(t, { packs: [workspaces, sessions, terminals] })
  const cwd = await realpath(await freshDir())
  const { id: session_id } = (await kernel.call(createSession, { body: { metadata: { cwd } } })).data
  const body = { runtime_id: 'local', cols: 80, rows: 24, shell: '/bin/sh' }
  const { id: terminal_id } = (await kernel.call(createTerminal, { params: { session_id }, body })).data
  const client = await kernel.connect()
  const ask = (type: string, payload: object = {}) => client.request(type, { session_id, terminal_id, ...payload })
  const printed = () =>
    client.frames.flatMap(({ type, payload }) => (type === 'terminal_output' ? [(payload as { data: string }).data] : [])).join('')
  const shows = async (text: RegExp) => {
    if (!text.test(printed())) await client.next(() => text.test(printed()))
  }
  const read = async () => (await kernel.call(readTerminal, { params: { session_id, terminal_id } })).data
  return { ask, client, printed, shows, read }
}

test('who attaches twice gets everything once', async t => {
  const { ask, client, shows } = await start(t)
  await ask('terminal_attach')
  await ask('terminal_attach', { since_seq: 1000 })
  await ask('terminal_input', { data: 'echo "the $((40 + 2))"\n' })
  await shows(/the 42\r\n/)
  const seqs = client.frames.flatMap(({ type, seq }) => (type === 'terminal_output' ? [seq] : []))
  assert.deepEqual(seqs, [...new Set(seqs)])
})

test('a shell that a signal ended has no exit code, one that ended by itself has its own', async t => {
  for (const [keys, code] of [
    ['kill -9 $$\n', null],
    ['exit 3\n', 3]
  ] as const) {
    const { ask, client, read } = await start(t)
    await ask('terminal_attach')
    await ask('terminal_input', { data: keys })
    assert.deepEqual((await client.next(({ type }) => type === 'terminal_exit')).payload, { exit_code: code })
    assert.deepEqual([(await read()).status, (await read()).exit_code], ['exited', code])
  }
})

test('a shell knows no credentials of the server', async t => {
  const names = ['KEY', 'TOKEN', 'PASSWORD', 'SECRET', 'HEADERS'].map(kind => `SVC_CODE_TEST_${kind}`)
  for (const name of [...names, 'SVC_CODE_TEST_PLAIN']) process.env[name] = `value-of-${name}`
  t.after(() => {
    for (const name of [...names, 'SVC_CODE_TEST_PLAIN']) delete process.env[name]
  })
  const { ask, printed, shows } = await start(t)
  await ask('terminal_attach')
  await ask('terminal_input', { data: 'env; echo "en""d"\n' })
  await shows(/^end\r$/m)
  assert.deepEqual(
    [...printed().matchAll(/value-of-(\w+)/g)].map(([, name]) => name),
    ['SVC_CODE_TEST_PLAIN']
  )
})

test('what takes no notice of the polite end is killed half a second later', async t => {
  const { ask, printed, shows } = await start(t)
  await ask('terminal_attach')
  await ask('terminal_input', { data: `sh -c 'trap "" HUP; echo "pid=$$."; while :; do sleep 600; done'\n` })
  await shows(/pid=\d+\./)
  const pid = Number(/pid=(\d+)\./.exec(printed())?.[1])
  await ask('terminal_close')
  const isThere = () => {
    try {
      process.kill(pid, 0)
      return true
    } catch {
      return false
    }
  }
  while (isThere()) await new Promise(resolve => setTimeout(resolve, 2))
})

test('what is typed and not read is bounded: more is refused whole, and taken again when its program has read', async t => {
  const { ask, printed, shows } = await start(t)
  await ask('terminal_attach')
  await ask('terminal_input', { data: 'stty raw -echo; echo "pid""=$$."; kill -STOP $$; head -c 900000 | cksum\n' })
  await shows(/pid=\d+\./)
  const text = 'x'.repeat(900_000)
  assert.deepEqual([(await ask('terminal_input', { data: text })).code, (await ask('terminal_input', { data: text })).code], [0, 40926])
  assert.equal((await ask('terminal_resize', { cols: 90, rows: 30 })).code, 0)

  process.kill(Number(/pid=(\d+)/.exec(printed())?.[1]), 'SIGCONT')
  await shows(/\d+ 900000\r?\n/)
  assert.equal((await ask('terminal_input', { data: '\nexit\n' })).code, 0)
})

test('a text that is longer than what may wait arrives whole where nothing waits', async t => {
  const { ask, shows } = await start(t)
  await ask('terminal_attach')
  await ask('terminal_input', { data: 'stty raw -echo; echo rea""dy; head -c 3000002 | cksum\n' })
  await shows(/ready/)
  assert.equal((await ask('terminal_input', { data: `${'é'.repeat(1_500_000)}\n\n` })).code, 0)
  await shows(/\b3992933270 3000002\b/)
})

const frameBytes = 64 * 1024

/** A terminal over a shell that only counts, and clients that take its output when they are told to. */
function scene() {
  let print: (data: Buffer) => void = () => undefined
  const asked: string[] = []
  const pty = {
    pid: 2 ** 22 + 1,
    onData: (listener: typeof print) => {
      print = listener
    },
    onExit: () => undefined,
    kill: () => undefined,
    pause: () => asked.push('pause'),
    resume: () => asked.push('resume')
  } as unknown as IPty
  const options = { id: 't', session_id: 's', cwd: '/', shell: 'sh', cols: 80, rows: 24, scrollback: 4 * frameBytes }
  const terminal = new Terminal(pty, { ...options, now: () => new Date(0), over: () => undefined })
  const attach = (writable: boolean, room = Number.POSITIVE_INFINITY) => {
    let drained = latch()
    const client = {
      writable,
      open: true,
      got: [] as (number | string)[],
      /** Takes what was sent, and so many frames more. */
      async takes(more = Number.POSITIVE_INFINITY) {
        room = more
        this.writable = this.open
        const before = drained
        drained = latch()
        before.open()
        await passes()
      }
    }
    const connection = {
      get writable() {
        return client.writable
      },
      get open() {
        return client.open
      },
      drained: () => (client.writable || !client.open ? Promise.resolve() : drained.opened),
      send({ type, seq }: { readonly type: string; readonly seq?: number }) {
        client.got.push(seq ?? type)
        if (--room <= 0) client.writable = false
      },
      own: (undo: () => void) => undo
    } as unknown as Connection
    terminal.attach(connection, 0)
    return Object.assign(client, { connection })
  }
  const passes = async () => {
    for (let pass = 0; pass < 5; pass++) await new Promise(setImmediate)
  }
  /** A whole frame, which goes out at once. */
  const prints = async () => {
    print(Buffer.alloc(frameBytes, 'x'))
    await passes()
  }
  return { asked, attach, prints, terminal }
}

test('nothing more is read from the shell while a client has not taken its output', async () => {
  const { asked, attach, prints } = scene()
  const client = attach(false)
  await prints()
  assert.deepEqual(asked, ['pause'])
  await client.takes()
  await prints()
  assert.deepEqual(
    [asked, client.got],
    [
      ['pause', 'resume'],
      [1, 2]
    ]
  )
})

test('a client that takes nothing holds up no other', async () => {
  const { asked, attach, prints } = scene()
  const [slow, quick] = [attach(false), attach(true)]
  for (let n = 0; n < 3; n++) await prints()
  assert.deepEqual([asked, slow.got, quick.got], [[], [1], [1, 2, 3]])
})

test('a client that was slow goes on from where it was, with what is still kept, and then gets what comes', async () => {
  const { attach, prints } = scene()
  const slow = attach(true, 2)
  attach(true)
  for (let n = 0; n < 3; n++) await prints()
  await slow.takes()
  await prints()
  assert.deepEqual(slow.got, [1, 2, 3, 4])

  slow.writable = false
  for (let n = 0; n < 6; n++) await prints()
  await slow.takes(1)
  assert.deepEqual(slow.got, [1, 2, 3, 4, 5, 7], 'four frames are kept, and it took one of them')
  await slow.takes()
  assert.deepEqual(slow.got, [1, 2, 3, 4, 5, 7, 8, 9, 10])
})

test('a client that was slow hears of the end behind the output', async () => {
  const { attach, prints, terminal } = scene()
  const [slow, quick] = [attach(false), attach(true)]
  for (let n = 0; n < 2; n++) await prints()
  terminal.kill()
  assert.deepEqual([slow.got, quick.got], [[1], [1, 2, 'terminal_exit']])
  await slow.takes()
  assert.deepEqual(slow.got, [1, 2, 'terminal_exit'])
})

test('the shell goes on when the clients that held it up let go of it', async () => {
  const { asked, attach, prints, terminal } = scene()
  const [first, second] = [attach(false), attach(false)]
  await prints()
  terminal.detach(first.connection)
  assert.deepEqual(asked, ['pause'])
  second.open = false
  await second.takes()
  assert.deepEqual(asked, ['pause', 'resume'])
})
