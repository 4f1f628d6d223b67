/** Requests that offer an upgrade which is not a WebSocket (HTTP/2 over clear text) are served as they stand (RFC 9110 §7.8). */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { definePack, defineRoute, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const path = '/api/v1/echo'
const data = Type.Object({ text: Type.String() })
const say = defineRoute({ method: 'POST', path, summary: 'Echo', body: data, data })
const read = defineRoute({ method: 'GET', path, summary: 'Read', data })
const echo = definePack({
  name: 'echo',
  setup(ctx) {
    ctx.route(say, ({ body }) => body)
    ctx.route(read, () => ({ text: 'read' }))
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

const offer = ['Connection: Upgrade, HTTP2-Settings, close', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQ']

test('a client that offers h2c gets its answer over HTTP/1.1, with and without a body', async t => {
  const send = await start(t)
  const body = '{"text":"hällo"}'

  assert.match(await send([`GET ${path} HTTP/1.1`, ...offer]), /^HTTP\/1\.1 200 OK[\s\S]*"text":"read"/)
  const length = `Content-Length: ${Buffer.byteLength(body)}`
  const posted = await send([`POST ${path} HTTP/1.1`, ...offer, 'Content-Type: application/json', length], body)
  assert.match(posted, /^HTTP\/1\.1 200 OK[\s\S]*"text":"hällo"/)
})

test('an upgrade offer opens no way around the credential', async t => {
  const send = await start(t)

  assert.match(await send([`GET ${path} HTTP/1.1`, ...offer, 'Authorization: Bearer second']), /^HTTP\/1\.1 401 /)
})
