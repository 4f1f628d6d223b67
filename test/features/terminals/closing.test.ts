/** A terminal whose descriptor has been closed, which the library tells later: by then its number may be that of another file. */
import assert from 'node:assert/strict'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type IPty, spawn } from 'node-pty'
import { Terminal } from '../../../features/terminals/terminal.ts'

/** What the library keeps to itself. */
type Open = IPty & { readonly fd: number; readonly _socket: { destroy(): void; emit(event: 'data', data: Buffer): void } }

/** A terminal with a shell that reads nothing, and what takes the number of its descriptor: a file with `content`. */
function scene(t: TestContext) {
  const pty = spawn('/bin/sh', ['-c', 'stty raw -echo; echo ready; exec sleep 60'], { encoding: null }) as Open
  const printed: string[] = []
  const options = { id: 't', session_id: 's', cwd: '/', shell: '/bin/sh', cols: 80, rows: 24, scrollback: 1024 }
  const terminal = new Terminal(pty, { ...options, now: () => new Date(0), over: () => undefined })
  const connection = { open: true, writable: true, own: () => () => undefined, drained: () => new Promise(() => undefined) }
  const send = ({ payload }: { payload: { data?: string } }) => void printed.push(payload.data ?? '')
  terminal.attach({ ...connection, send } as never, 0)
  t.after(() => terminal.close())
  const dir = mkdtempSync(join(tmpdir(), 'svc-code-test-'))
  const file = join(dir, 'other')
  const replaceBy = (content: string) => {
    writeFileSync(file, content)
    pty._socket.destroy()
    const taken = openSync(file, 'r+')
    t.after(() => {
      closeSync(taken)
      rmSync(dir, { recursive: true })
    })
    assert.equal(taken, pty.fd, 'the number is taken')
  }
  const ready = async () => {
    while (!printed.join('').includes('ready')) await new Promise(setImmediate)
  }
  return { terminal, pty, printed, replaceBy, ready, content: () => readFileSync(file, 'utf8') }
}

test('what is typed into it goes nowhere', async t => {
  const { terminal, ready, replaceBy, content } = scene(t)
  await ready()
  replaceBy('of another')
  assert.equal(terminal.write('typed'), true)
  await terminal.ended
  assert.equal(content(), 'of another')
})

test('nothing is read from it', async t => {
  const { pty, printed, ready, replaceBy, terminal } = scene(t)
  await ready()
  replaceBy('of another')
  pty._socket.emit('data', Buffer.alloc(2048, '.'))
  terminal.kill()
  assert.doesNotMatch(printed.join(''), /of another/)
})

test('a new size is noted', async t => {
  const { terminal, ready, replaceBy } = scene(t)
  await ready()
  replaceBy('of another')
  terminal.resize(100, 30)
  assert.deepEqual([terminal.object().cols, terminal.object().rows], [100, 30])
})
