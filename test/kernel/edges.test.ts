/** Edges of the door: the last value that is let in and the first that is not. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { rename, stat, utimes, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { BanTable } from '../../kernel/access/gate.ts'
import { tokenPath } from '../../kernel/access/token.ts'
import { binary, defineRoute, Type } from '../../kernel/index.ts'
import { type Bound, startHttp, tempHome } from './http-fixture.ts'

const base = { path: '/api/v1/thing', summary: 'x', data: Type.Unknown() } as const
const get: Bound = [defineRoute({ ...base, method: 'GET' }), () => 'got']
const body = Type.Object({}, { additionalProperties: true })
const post: Bound = [defineRoute({ ...base, method: 'POST', body: Type.Unknown(), bodyLimit: 20 }), ({ body: given }) => given]
const json = { 'content-type': 'application/json' }

test('a name that only ends like a local or allowed one is refused', async t => {
  const http = await startHttp(t, { host: 'my.box', allowedHosts: ['.dev.example', 'box.example'] })
  http.mount(get)
  const ask = async (host: string) => (await http.send('GET', base.path, { headers: { host } })).status
  for (const host of [
    'evil-localhost',
    'evillocalhost',
    'localhost.',
    'my.box.evil',
    'evil-my.box',
    'dev.example.evil',
    'xbox.example',
    '.dev.example.x'
  ])
    assert.equal(await ask(host), 403, host)
  for (const host of ['a.localhost', 'my.box', 'MY.BOX:80', 'a.b.dev.example']) assert.equal(await ask(host), 200, host)
})

test('a page whose origin only looks local or own gets no CORS headers', async t => {
  const http = await startHttp(t, { allowedHosts: ['box.example'] })
  http.mount(get)
  const allowed = async (host: string, origin: string) =>
    (await http.send('GET', base.path, { headers: { host, origin } })).headers['access-control-allow-origin']
  for (const origin of ['http://evil-localhost', 'http://localhost.evil', 'http://evillocalhost:80', 'http://127.0.0.1.evil'])
    assert.equal(await allowed('localhost', origin), undefined, origin)
  for (const origin of ['http://xbox.example', 'http://box.example.evil', 'http://a.box.example'])
    assert.equal(await allowed('box.example', origin), undefined, origin)
  assert.equal(await allowed('box.example', 'http://box.example:8080'), 'http://box.example:8080')
  assert.equal(await allowed('box.localhost', 'http://localhost'), 'http://localhost')
})

test('without authentication a foreign page may still ask for headers', async t => {
  const http = await startHttp(t, { dangerousBypassAuth: true })
  http.mount(get)
  assert.equal((await http.send('HEAD', base.path, { headers: { origin: 'http://evil.example' } })).status, 200)
  assert.equal((await http.send('OPTIONS', base.path, { headers: { origin: 'http://evil.example' } })).status, 204)
})

test('a wrong token in a frame is no failed authentication of its address', async t => {
  const http = await startHttp(t, { host: '0.0.0.0' })
  http.mount(get)
  for (let n = 0; n < 12; n++) assert.equal(await http.gate.checkToken('wrong'), false)
  assert.equal((await http.send('GET', base.path)).status, 200)
})

test('ten failures within any minute are a ban, whenever the first one was', () => {
  const table = new BanTable()
  const fail = (count: number, now: number) => {
    for (let n = 0; n < count; n++) table.fail('a', now)
  }
  fail(1, 0)
  fail(4, 50_000)
  fail(5, 61_000)
  assert.equal(table.banned('a', 61_000), false)
  fail(1, 110_000)
  assert.equal(table.banned('a', 110_000), true)
})

test('failures that are older than a minute count no more, nor do those before a ban', () => {
  const table = new BanTable()
  for (let n = 0; n < 9; n++) table.fail('a', 0)
  table.fail('other', 60_000)
  table.fail('a', 60_001)
  assert.equal(table.banned('a', 60_001), false)
  for (let n = 0; n < 8; n++) table.fail('a', 60_001)
  assert.equal(table.banned('a', 60_001), false)
  table.fail('a', 60_001)
  assert.deepEqual([table.banned('a', 60_001), table.banned('a', 120_000), table.banned('a', 120_001)], [true, true, false])
  table.fail('a', 120_001)
  assert.equal(table.banned('a', 120_001), false)
})

test('a token that is replaced within one tick of the clock of the disk is seen', async t => {
  const http = await startHttp(t)
  http.mount(get)
  const path = tokenPath(http.home)
  const { atime, mtime } = await stat(path)
  await utimes(path, atime, mtime) // both files get a time that the system call can write
  assert.equal((await http.send('GET', base.path)).status, 200)
  const token = 'x'.repeat(http.token.length)
  await writeFile(`${path}.new`, `${token}\n`, { mode: 0o600 })
  await utimes(`${path}.new`, atime, mtime)
  await rename(`${path}.new`, path)
  assert.equal((await http.send('GET', base.path, { token })).status, 200)
})

test('a path that is encoded more often than anybody would read it needs a token', async t => {
  const http = await startHttp(t)
  for (const path of ['/%252525252561pi/v1', '/%25252525252561pi/v1', '/%25252525257e'])
    assert.equal((await http.send('GET', path, { token: null })).status, 401, path)
  assert.equal((await http.send('GET', '/%257e', { token: null })).status, 404)
})

test('every unreserved character means the same encoded, reserved ones do not', async t => {
  const http = await startHttp(t)
  http.mount([defineRoute({ ...base, method: 'GET', path: '/api/v1/aZ09-._~' }), () => 'there'])
  const ask = async (path: string) => (await http.send('GET', path)).status
  assert.equal(await ask('/api/v1/%61%5A%30%39%2D%2E%5F%7E'), 200)
  assert.equal(await ask('/api%2Fv1/aZ09-._~'), 404)
})

test('a JSON body may have exactly its limit, announced or not', async t => {
  const http = await startHttp(t)
  http.mount(post)
  const ways: Record<string, string>[] = [{}, { 'transfer-encoding': 'chunked' }]
  for (const more of ways) {
    const send = async (size: number) =>
      (await http.send('POST', base.path, { headers: { ...json, ...more }, body: `"${'x'.repeat(size - 2)}"` })).json
    assert.equal((await send(20)).code, 0)
    assert.deepEqual((await send(21)).details, [{ path: 'body', message: 'is larger than 20 bytes' }])
  }
})

test('a JSON body may be 256 levels deep', async t => {
  const http = await startHttp(t)
  http.mount([defineRoute({ ...base, method: 'POST', body: Type.Unknown() }), () => 'taken'])
  const send = async (levels: number) =>
    (await http.send('POST', base.path, { headers: json, body: '['.repeat(levels) + ']'.repeat(levels) })).json
  assert.equal((await send(256)).data, 'taken')
  assert.deepEqual((await send(257)).details, [{ path: 'body', message: 'is nested more than 256 levels deep' }])
})

test('no spelling of __proto__ reaches a handler', async t => {
  const http = await startHttp(t)
  http.mount([defineRoute({ ...base, method: 'POST', body }), ({ body: given }) => JSON.stringify(given)])
  for (const key of ['__proto__', '\\u005f_proto__', '__prot\\u006F__', '\\u005F\\u005fproto\\u005f_']) {
    const text = `{"a":{"${key}":{"admin":true}},"b":1}`
    assert.equal((await http.send('POST', base.path, { headers: json, body: text })).json.data, '{"a":{},"b":1}', key)
  }
})

test('a connection outlives an unread body within the limit, and no larger one', async t => {
  const http = await startHttp(t, { bodyLimitBytes: 10 })
  const post = (length: number) => `POST /api/v1/nope HTTP/1.1\r\nHost: localhost\r\nContent-Length: ${length}\r\n\r\n`
  const last = 'GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n'
  assert.match(await http.raw(`${post(10)}0123456789${last}`), /^HTTP\/1\.1 401 [\s\S]*HTTP\/1\.1 404 /)
  const cut = await http.raw(post(11))
  assert.match(cut, /^HTTP\/1\.1 401 [\s\S]*Connection: close/i)
})

test('headers beyond what is read are 431', async t => {
  const http = await startHttp(t)
  assert.match(
    await http.raw(`GET / HTTP/1.1\r\nHost: localhost\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`),
    /^HTTP\/1\.1 431 Request Header Fields Too Large/
  )
})

const file = defineRoute({ ...base, method: 'GET', binary: { types: ['*/*'] } })

test('a range may name the date of the file, and have blanks', async t => {
  const path = join(await tempHome(), 'file')
  await writeFile(path, '0123456789')
  const http = await startHttp(t)
  http.mount([file, () => binary({ file: path })])
  const ask = async (headers: Record<string, string>) => (await http.send('GET', base.path, { headers })).text
  const date = (await stat(path)).mtime.toUTCString()
  assert.equal(await ask({ range: 'bytes=2-4', 'if-range': date }), '234')
  assert.equal(await ask({ range: 'bytes=2-4', 'if-range': new Date(0).toUTCString() }), '0123456789')
  assert.equal(await ask({ range: 'bytes= 2-4 ' }), '234')
})

test('a pipe in place of a file is an error, not a wait', async t => {
  const path = join(await tempHome(), 'pipe')
  await promisify(execFile)('mkfifo', [path])
  const http = await startHttp(t)
  http.mount([file, () => binary({ file: path })])
  assert.equal((await http.send('GET', base.path)).json.code, 50001)
})

test('a stream that is not sent to its end is destroyed', async t => {
  const http = await startHttp(t)
  let stream = new Readable({ read() {} })
  let entered: () => void = () => undefined
  http.mount([
    file,
    () => {
      entered()
      return binary({ stream, type: 'a/b' })
    }
  ])
  stream.push('some')
  await Promise.all([once(stream, 'close'), http.send('HEAD', base.path)])

  stream = new Readable({ read() {} })
  const asked = new Promise<void>(resolve => {
    entered = resolve
  })
  const req = request({ port: http.port, path: base.path, headers: { authorization: `Bearer ${http.token}` } })
  req.on('error', () => undefined)
  req.end()
  await asked
  const closed = once(stream, 'close')
  req.destroy()
  await closed
})
