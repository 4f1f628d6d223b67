import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, open, stat, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { defineRoute } from '../../kernel/contract.ts'
import { binary, etagMatches, type FileReply, fileEtag, parseRange, type StreamReply } from '../../kernel/http/bytes.ts'
import { Type } from '../../kernel/shapes.ts'
import { type SendOptions, startHttp, tempHome } from './http-fixture.ts'

const route = defineRoute({ method: 'GET', path: '/api/v1/file', summary: 'x', data: Type.Null(), binary: { types: ['*/*'] } })
const text = '0123456789abcdefg'

async function serve(t: TestContext, reply: (file: string) => FileReply | StreamReply) {
  const file = join(await tempHome(), 'a b.txt')
  await writeFile(file, text)
  const http = await startHttp(t)
  http.mount([route, () => binary(reply(file))])
  return { ...http, file, get: (headers: SendOptions['headers'] = {}, method = 'GET') => http.send(method, '/api/v1/file', { headers }) }
}

test('a file is sent with type, length, ETag, date and its UTF-8 name', async t => {
  const { get, file } = await serve(t, path => ({ file: path, type: 'text/plain', filename: '報告 "1".txt' }))
  const answer = await get()
  assert.deepEqual([answer.status, answer.text], [200, text])
  assert.equal(answer.headers['content-type'], 'text/plain')
  assert.equal(answer.headers['content-length'], '17')
  assert.equal(answer.headers.etag, fileEtag(await stat(file)))
  assert.match(answer.headers.etag!, /^[0-9a-z]+-h-[0-9a-z]+$/)
  assert.match(answer.headers['last-modified']!, /GMT$/)
  assert.match(answer.headers['content-disposition']!, /^attachment; filename=.*filename\*=UTF-8''/)
  assert.equal(answer.headers['accept-ranges'], undefined)
})

test('a name that no header can hold as it is comes readable, and exact for clients that read it', async t => {
  for (const [filename, readable, exact] of [
    ['a\r\nset-cookie: b', 'a??set-cookie: b', 'a%0D%0Aset-cookie%3A%20b'],
    ['tab\t\x7f', 'tab??', 'tab%09%7F'],
    ['half \ud83d', 'half ?', 'half%20%EF%BF%BD']
  ] as const) {
    const { get } = await serve(t, file => ({ file, filename }))
    assert.equal((await get()).headers['content-disposition'], `attachment; filename="${readable}"; filename*=UTF-8''${exact}`)
  }
})

test('the reply decides on ETag, disposition and extra headers', async t => {
  const { get } = await serve(t, file => ({ file, etag: '"v1"', disposition: 'inline', headers: { 'accept-ranges': 'bytes' } }))
  const { headers } = await get()
  assert.deepEqual([headers.etag, headers['content-disposition'], headers['accept-ranges']], ['"v1"', 'inline', 'bytes'])
  assert.equal(headers['content-type'], 'application/octet-stream')
})

test('one satisfiable range answers 206', async t => {
  const { get } = await serve(t, file => ({ file }))
  const cases: [range: string, body: string, content: string][] = [
    ['bytes=2-4', '234', 'bytes 2-4/17'],
    ['BYTES=2-4', '234', 'bytes 2-4/17'],
    ['bytes=10-', 'abcdefg', 'bytes 10-16/17'],
    ['bytes=-3', 'efg', 'bytes 14-16/17'],
    ['bytes=15-99', 'fg', 'bytes 15-16/17'],
    ['bytes=-99', text, 'bytes 0-16/17']
  ]
  for (const [range, body, content] of cases) {
    const answer = await get({ range })
    assert.deepEqual([answer.status, answer.text, answer.headers['content-range']], [206, body, content], range)
    assert.equal(answer.headers['content-length'], String(body.length))
  }
})

test('any other range answers the whole file, never 416', async t => {
  const { get } = await serve(t, file => ({ file }))
  for (const range of [
    'bytes=4-2',
    'bytes=17-',
    'bytes=99-100',
    'bytes=0-1,3-4',
    'bytes=-0',
    'bytes=-',
    'bytes=a-b',
    'lines=1-2',
    'bytes 1-2'
  ]) {
    const answer = await get({ range })
    assert.deepEqual([answer.status, answer.text, answer.headers['content-range']], [200, text, undefined], range)
  }
})

test('a range applies only to the version that If-Range names', async t => {
  const { get } = await serve(t, file => ({ file, etag: 'v2' }))
  assert.equal((await get({ range: 'bytes=0-1', 'if-range': '"v2"' })).status, 206)
  assert.equal((await get({ range: 'bytes=0-1', 'if-range': '"v1"' })).status, 200)
  assert.equal((await get({ range: 'bytes=0-1', 'if-range': 'W/"v2"' })).status, 200) // a weak tag promises no equal bytes
})

test('an unchanged file answers 304 to the exact, quoted or listed ETag, also to a client that forbids caches', async t => {
  const { get } = await serve(t, file => ({ file, etag: 'm-s-i' }))
  for (const tag of ['m-s-i', '"m-s-i"', 'W/"m-s-i"', '"x", "m-s-i"', '*']) {
    const answer = await get({ 'if-none-match': tag, 'cache-control': 'no-cache' })
    assert.deepEqual([answer.status, answer.text, answer.headers.etag], [304, '', 'm-s-i'], tag)
  }
  assert.equal((await get({ 'if-none-match': '"other"' })).status, 200)
})

test('fetch gets its 304', async t => {
  const { port, token } = await serve(t, file => ({ file, etag: 'm-s-i' }))
  const headers = { authorization: `Bearer ${token}`, 'if-none-match': 'm-s-i' }
  assert.equal((await fetch(`http://127.0.0.1:${port}/api/v1/file`, { headers })).status, 304)
})

test('a cache asks before it gives a file again, and keeps no stream, unless the reply says otherwise', async t => {
  const file = await serve(t, path => ({ file: path, etag: 'm-s-i' }))
  assert.equal((await file.get()).headers['cache-control'], 'private, no-cache')
  assert.equal((await file.get({ 'if-none-match': 'm-s-i' })).headers['cache-control'], 'private, no-cache')
  const stream = await serve(t, () => ({ stream: Readable.from(['x']), type: 'a/b' }))
  assert.equal((await stream.get()).headers['cache-control'], 'no-store')
  const headers = { 'cache-control': 'max-age=1' }
  const own = await serve(t, path => ({ file: path, etag: 'm-s-i', headers }))
  assert.equal((await own.get()).headers['cache-control'], 'max-age=1')
  assert.equal((await own.get({ 'if-none-match': 'm-s-i' })).headers['cache-control'], 'max-age=1')
  const ownStream = await serve(t, () => ({ stream: Readable.from(['x']), type: 'a/b', headers }))
  assert.equal((await ownStream.get()).headers['cache-control'], 'max-age=1')
})

test('an unconditional reply ignores If-None-Match', async t => {
  const { get } = await serve(t, file => ({ file, etag: 'm-s-i', conditional: false }))
  const answer = await get({ 'if-none-match': 'm-s-i' })
  assert.deepEqual([answer.status, answer.headers.etag], [200, 'm-s-i'])
})

test('HEAD sends the headers only', async t => {
  const { get } = await serve(t, file => ({ file }))
  const answer = await get({ range: 'bytes=0-1' }, 'HEAD')
  assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [200, '', '17'])
})

test('an empty file is sent as it is', async t => {
  const { get, file } = await serve(t, path => ({ file: path }))
  await writeFile(file, '')
  const answer = await get({ range: 'bytes=0-' })
  assert.deepEqual([answer.status, answer.text, answer.headers['content-length']], [200, '', '0'])
})

test('a file that says another size than it has is sent whole', async t => {
  let said = 0
  const http = await serve(t, path => ({
    file: path,
    open: async () => {
      const handle = await open(path)
      const facts = Object.assign(await handle.stat(), { size: said })
      handle.stat = (async () => facts) as unknown as typeof handle.stat
      return handle
    }
  }))
  const { get, file } = http
  for (said of [0, 4096]) {
    const [all, head, part] = [await get(), await get({}, 'HEAD'), await get({ range: 'bytes=-3' })]
    assert.deepEqual([all.status, all.text, all.headers['content-length'], head.headers['content-length']], [200, text, '17', '17'])
    assert.deepEqual([part.status, part.text, part.headers['content-range']], [206, 'efg', 'bytes 14-16/17'])
  }
  const long = text.repeat(10_000)
  await writeFile(file, long)
  for (said of [0, 5]) {
    const [all, head] = [await get({ range: 'bytes=0-1' }), await get({}, 'HEAD')]
    assert.deepEqual([all.status, all.text === long, head.status, head.headers['content-length']], [200, true, 200, undefined])
  }
})

test('a file that cannot be sent answers an envelope without leftovers in the headers', async t => {
  const dir = join(await tempHome(), 'dir')
  await mkdir(dir)
  const http = await startHttp(t)
  for (const file of [dir, join(dir, 'missing')]) {
    http.mount([route, () => binary({ file, filename: 'x', headers: { 'accept-ranges': 'bytes' } })])
    const { status, json, headers } = await http.send('GET', '/api/v1/file')
    assert.deepEqual(
      [status, json.code, headers.etag, headers['content-disposition'], headers['accept-ranges'], headers['cache-control']],
      [200, 50001, undefined, undefined, undefined, 'no-store']
    )
  }
})

test('a large file arrives whole through a slow reader', async t => {
  const { port, token, file } = await serve(t, path => ({ file: path }))
  const size = 30_000_000
  await writeFile(file, Buffer.alloc(size, 7))
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/file`, { headers: { authorization: `Bearer ${token}` } })
  let received = 0
  for await (const chunk of response.body!) {
    received += chunk.length
    await new Promise(resolve => setImmediate(resolve))
  }
  assert.equal(received, size)
})

test('a file that shrinks below the announced length cuts the connection', async t => {
  const { port, token, file, raw } = await serve(t, path => ({ file: path }))
  const handle = await open(file, 'r+')
  await handle.truncate(50_000_000)
  const request = `GET /api/v1/file HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const socket = connect(port, '127.0.0.1', () => socket.write(request))
  await once(socket, 'readable')
  await handle.truncate(10)
  await handle.close()
  socket.resume()
  await once(socket, 'close')
  assert.ok(socket.bytesRead < 50_000_000)
  assert.match(await raw(request.replace('\r\n\r\n', '\r\nConnection: close\r\n\r\n')), /Content-Length: 10\r\n/i)
})

test('a stream is sent in chunks, or with its length when it is known', async t => {
  const { get } = await serve(t, () => ({ stream: Readable.from(['one ', 'two']), type: 'text/csv', filename: 'x.csv' }))
  const answer = await get()
  assert.deepEqual([answer.text, answer.headers['transfer-encoding'], answer.headers['content-type']], ['one two', 'chunked', 'text/csv'])
  const sized = await serve(t, () => ({ stream: Readable.from([Buffer.from('1234')]), type: 'a/b', size: 4 }))
  const second = await sized.get()
  assert.deepEqual([second.text, second.headers['content-length']], ['1234', '4'])
})

test('an empty stream is an empty reply', async t => {
  const { get } = await serve(t, () => ({ stream: Readable.from([]), type: 'a/b' }))
  const answer = await get()
  assert.deepEqual([answer.status, answer.text], [200, ''])
})

test('a stream that fails before its first byte answers an envelope, later it cuts the connection', async t => {
  const early = await serve(t, () => ({
    stream: new Readable({
      read() {
        this.destroy(new Error('no such thing'))
      }
    }),
    type: 'a/b'
  }))
  assert.equal((await early.get()).json.code, 50001)
  const late = await serve(t, () => ({
    stream: Readable.from(
      (async function* () {
        yield 'some'
        throw new Error('cable cut')
      })()
    ),
    type: 'a/b'
  }))
  await assert.rejects(late.get())
  assert.equal((await early.get()).json.code, 50001)
})

test('a stream that was destroyed before anybody read it answers an envelope', async t => {
  for (const destroyed of [new Readable({ read() {} }), Readable.from(['never read'])]) {
    destroyed.destroy()
    const { get } = await serve(t, () => ({ stream: destroyed, type: 'a/b' }))
    assert.equal((await get()).json.code, 50001)
  }
})

test('a client that goes away ends the stream', async t => {
  let destroyed: () => void = () => {}
  const closed = new Promise<void>(resolve => {
    destroyed = resolve
  })
  const endless = () =>
    new Readable({
      read() {
        this.push(Buffer.alloc(65_536))
      },
      destroy(error, done) {
        destroyed()
        done(error)
      }
    })
  const { port, token, activity } = await serve(t, () => ({ stream: endless(), type: 'a/b' }))
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /api/v1/file HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await once(socket, 'data')
  socket.destroy()
  await closed
  await new Promise(resolve => setImmediate(resolve))
  assert.equal(activity.running, 0)
})

test('unloading the pack ends a running download', async t => {
  const endless = () =>
    new Readable({
      read() {
        this.push(Buffer.alloc(65_536))
      }
    })
  const { port, token, activity } = await serve(t, () => ({ stream: endless(), type: 'a/b' }))
  const socket = connect(port, '127.0.0.1')
  socket.write(`GET /api/v1/file HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n\r\n`)
  await once(socket, 'data')
  assert.equal(await activity.drain(0), 1)
  socket.resume()
  socket.on('error', () => {})
  await once(socket, 'close')
})

test('ranges and ETags by themselves', () => {
  assert.deepEqual(parseRange('bytes=0-0', 1), { start: 0, end: 0 })
  assert.equal(parseRange('bytes=0-0', 0), undefined)
  assert.equal(parseRange(undefined, 5), undefined)
  assert.equal(etagMatches(undefined, 'a'), false)
  assert.equal(fileEtag({ mtimeMs: 36.7, size: 35, ino: 10 }), '10-z-a')
  for (const [mtimeMs, size, ino] of [
    [-1, 0, 1],
    [1_763_856_633_123.9, 2 ** 41, 36 ** 5],
    [36 ** 5 - 1, 36 ** 10, 36 ** 10 + 36 ** 5 - 1]
  ] as const)
    assert.equal(fileEtag({ mtimeMs, size, ino }), [Math.floor(mtimeMs), size, ino].map(n => n.toString(36)).join('-'))
})
