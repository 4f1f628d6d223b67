/** Requests that offer an upgrade which is not a WebSocket (HTTP/2 over clear text) are served as they stand (RFC 9110 §7.8). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { Readable } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { binary, definePack, defineRoute, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const path = '/api/v1/echo'
const data = Type.Object({ text: Type.String() })
const say = defineRoute({ method: 'POST', path, summary: 'Echo', body: data, data })
const read = defineRoute({ method: 'GET', path, summary: 'Read', data })
const slow = defineRoute({ method: 'GET', path: `${path}/slow`, summary: 'Read much', data })
const load = defineRoute({ method: 'GET', path: `${path}/load`, summary: 'Load', data: Type.Null(), binary: { types: ['*/*'] } })
const echo = definePack({
  name: 'echo',
  setup(ctx) {
    ctx.route(say, ({ body }) => body)
    ctx.route(load, () => binary({ stream: Readable.from(Array.from({ length: 100 }, () => Buffer.alloc(100_000, 'z'))), type: 'a/b' }))
    ctx.route(read, () => ({ text: 'read' }))
    ctx.route(slow, async () => {
      await new Promise(resolve => setImmediate(resolve))
      return { text: 'x'.repeat(5_000_000) }
    })
  }
})

async function start(t: TestContext) {
  const { url, token } = await startTestKernel(t, { packs: [echo] })
  const { port } = new URL(url)
  return async (head: readonly string[], body = '') => {
    const socket = connect(Number(port), '127.0.0.1')
    t.after(() => socket.destroy())
    let text = ''
    socket.on('data', chunk => {
      text += String(chunk)
    })
    const [first, ...rest] = head
    socket.write([first, `Host: 127.0.0.1:${port}`, `Authorization: Bearer ${token}`, ...rest, '', body].join('\r\n'))
    await once(socket, 'close')
    return text
  }
}

/** Node reads the body of an offer itself, and loses what is pipelined behind it. */
const readsBodies = Number.parseInt(process.versions.node, 10) >= 25

const offer = ['Connection: Upgrade, HTTP2-Settings, close', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQ']

test('a client that offers h2c gets its answer over HTTP/1.1, with and without a body', async t => {
  const send = await start(t)
  const body = '{"text":"hällo"}'

  assert.match(await send([`GET ${path} HTTP/1.1`, ...offer]), /^HTTP\/1\.1 200 OK[\s\S]*"text":"read"/)
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  const posted = await send([`POST ${path} HTTP/1.1`, ...offer, 'Content-Type: application/json', length], body)
  assert.match(posted, /^HTTP\/1\.1 200 OK[\s\S]*"text":"hällo"/)
})

test('offers that are pipelined behind other requests get their answers in order', async t => {
  const { url, token } = await startTestKernel(t, { packs: [echo] })
  const socket = connect(Number(new URL(url).port), '127.0.0.1')
  t.after(() => socket.destroy())
  let text = ''
  socket.on('data', chunk => {
    text += String(chunk)
  })
  const common = ['Host: localhost', `Authorization: Bearer ${token}`]
  const open = ['Connection: Upgrade, HTTP2-Settings', ...offer.slice(1)]
  const body = '{"text":"said"}'
  const say = ['Content-Type: application/json', `Content-Length: ${body.length}`]
  const requests = [
    [`GET ${path}/load HTTP/1.1`, ...common, '', ''],
    [`GET ${path} HTTP/1.1`, ...common, '', ''],
    [`GET ${path}/slow HTTP/1.1`, ...common, ...open, '', ''],
    [`POST ${path} HTTP/1.1`, ...common, ...open, ...say, '', body],
    [`GET ${path} HTTP/1.1`, ...common, ...open, '', ''],
    [`GET ${path}/last HTTP/1.1`, ...common, 'Connection: close', '', '']
  ]
  socket.write(requests.map(lines => lines.join('\r\n')).join(''))
  await once(socket, 'close')
  const answers = [...text.matchAll(/HTTP\/1\.1 (\d+)|"text":"(\w)|(z)\r?\n?0/g)].map(match => match[1] ?? match[2] ?? match[3])
  const behind = readsBodies ? [] : ['200', 'r', '404'] // otherwise the connection ends, and clients send these again (RFC 9112 §9.3.2)
  assert.deepEqual(answers, ['200', 'z', '200', 'r', '200', 'x', '200', 's', ...behind])
})

test('an upgrade offer opens no way around the credential', async t => {
  const send = await start(t)

  assert.match(await send([`GET ${path} HTTP/1.1`, ...offer, 'Authorization: Bearer second']), /^HTTP\/1\.1 401 /)
})
