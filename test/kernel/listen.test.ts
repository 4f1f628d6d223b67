import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { closeServer, createServer, listen } from '../../kernel/http/server.ts'

const host = '127.0.0.1'

function server(t: TestContext, handler: Parameters<typeof createServer>[0] = (_req, res) => res.end('ok')) {
  const made = createServer(handler)
  t.after(() => closeServer(made, 0))
  return made
}

/** The last port of a run of free ones, all below 65536. */
async function freePort(t: TestContext): Promise<number> {
  const probe = server(t)
  const { port } = await listen(probe, host, 0)
  await closeServer(probe, 0)
  return port
}

test('port 0 takes any free port', async t => {
  const bound = await listen(server(t), host, 0)
  assert.equal(bound.host, host)
  assert.ok(bound.port > 0)
})

test('a taken port is retried with the next one', async t => {
  const { port } = await listen(server(t), host, await freePort(t))
  const second = await listen(server(t), host, port)
  assert.ok(second.port > port && second.port <= port + 100)
})

test('retrying stops at the last port, and the error names it', async t => {
  const last = server(t)
  try {
    await listen(last, host, 65_535)
  } catch {
    t.skip('port 65535 is in use here')
    return
  }
  await assert.rejects(listen(server(t), host, 65_535), /port 65535 is taken.*--port/)
})

test('another failure is not retried', async t => {
  await assert.rejects(listen(server(t), '192.0.2.1', 0), { code: 'EADDRNOTAVAIL' })
})

/** Connects as many clients as it is told, and says so when the system has let all of them in. */
const crowd = `
const { connect } = require('node:net')
const { workerData: { port, count, shared } } = require('node:worker_threads')
let left = count
const sockets = Array.from({ length: count }, () => connect(port, '127.0.0.1', () => {
  if (--left > 0) return
  Atomics.store(shared, 0, 1)
  Atomics.notify(shared, 0)
  for (const socket of sockets) socket.destroy()
}))
`

test('more clients than the library lets wait come while the server is busy, and none is sent away', async t => {
  const count = 800
  const most = await readFile('/proc/sys/net/core/somaxconn', 'utf8').then(Number, () => 0)
  if (most < count) {
    t.skip('the system lets fewer connections wait')
    return
  }
  const { port } = await listen(server(t), host, 0)
  const shared = new Int32Array(new SharedArrayBuffer(4))
  const clients = new Worker(crowd, { eval: true, workerData: { port, count, shared } })

  assert.equal(Atomics.wait(shared, 0, 0, 30_000), 'ok') // this thread accepts nothing meanwhile
  await once(clients, 'exit')
})

test('closing ends idle and silent connections at once and lets a reply finish', async t => {
  let answer = () => {}
  let entered = () => {}
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  const made = server(t, (_req, res) => {
    answer = () => res.end('done')
    entered()
  })
  const { port } = await listen(made, host, 0)
  const silent = connect(port, host)
  const busy = connect(port, host)
  await Promise.all([once(silent, 'connect'), once(busy, 'connect')])
  let received = ''
  busy.setEncoding('utf8').on('data', chunk => {
    received += chunk
  })
  busy.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await running
  silent.resume()
  const silentClosed = once(silent, 'close')
  const busyClosed = once(busy, 'close')
  const closing = closeServer(made, 60_000)
  await silentClosed
  answer()
  await Promise.all([closing, busyClosed])
  assert.match(received, /done$/)
})

test('closing cuts what does not end in time', async t => {
  let entered = () => {}
  const running = new Promise<void>(resolve => {
    entered = resolve
  })
  const made = server(t, () => entered())
  const { port } = await listen(made, host, 0)
  const socket = connect(port, host)
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await running
  socket.resume()
  const closed = once(socket, 'close')
  await closeServer(made, 10)
  await closed
})

test('closing cuts upgraded connections that nobody else ends', async t => {
  const made = server(t)
  const upgraded = once(made, 'upgrade')
  const { port } = await listen(made, host, 0)
  const socket = connect(port, host)
  socket.on('error', () => {})
  socket.write('GET / HTTP/1.1\r\nHost: x\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n')
  await upgraded
  socket.resume()
  const closed = once(socket, 'close')
  await closeServer(made, 10)
  await closed
})

test('a connection whose request did not arrive in time ends, whatever the client does', async t => {
  const made = server(t)
  const { port } = await listen(made, host, 0)
  const accepted = once(made, 'connection')
  const client = connect({ port, host, allowHalfOpen: true })
  t.after(() => client.destroy())
  const [socket] = await accepted
  let received = ''
  client.setEncoding('utf8').on('data', chunk => {
    received += chunk
  })
  const ended = once(client, 'end')
  made.emit('clientError', Object.assign(new Error('late'), { code: 'ERR_HTTP_REQUEST_TIMEOUT' }), socket)
  await ended
  assert.match(received, /^HTTP\/1\.1 408 Request Timeout\r\nConnection: close/)
  await once(socket, 'close')
})

test('what is no HTTP is answered with a bare 400 and a closed connection', async t => {
  const { port } = await listen(server(t), host, 0)
  const socket = connect(port, host, () => socket.write('hello there\r\n\r\n'))
  let received = ''
  socket.setEncoding('utf8').on('data', chunk => {
    received += chunk
  })
  await once(socket, 'close')
  assert.match(received, /^HTTP\/1\.1 400 /)
})
