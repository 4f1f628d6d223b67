/** Connections to providers: redirects, headers, closing. */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import net, { type AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createUpstream, isTransportError, readText, transportError, type UpstreamReply } from '../../../features/llm/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = (base_url: string, headers: Record<string, string> = {}) => resolvedModel({ base_url, headers })
const never = new AbortController().signal

async function listening(t: TestContextLike, answer: (req: IncomingMessage, res: ServerResponse, n: number) => void) {
  let count = 0
  const server = createServer((req, res) => answer(req, res, count++))
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, count: () => count }
}

function pool(t: TestContextLike, env: NodeJS.ProcessEnv) {
  const upstream = createUpstream(env)
  t.after(() => upstream.close())
  return upstream
}

test('no redirect is followed: the credential stays with the server that it belongs to', async t => {
  const elsewhere = await listening(t, (_, res) => res.end('{}'))
  const statuses = [301, 302, 303, 307, 308]
  const upstream = await listening(t, (req, res, n) => {
    req.resume()
    res.writeHead(statuses[n % statuses.length]!, { location: `${elsewhere.url}/steal` }).end()
  })
  const { post, get, postForm } = pool(t, {})
  const answered = async (reply: Promise<UpstreamReply>, expected: number) => {
    const { status, body } = await reply
    body.resume() // whoever has it reads it to its end
    assert.equal(status, expected)
  }

  for (const status of statuses) await answered(post(model(upstream.url), '/x', {}, { authorization: 'Bearer k' }, never), status)
  for (const status of statuses) await answered(get(upstream.url, { authorization: 'Bearer k' }, never), status)
  for (const status of statuses) await answered(postForm(upstream.url, { refresh_token: 'r' }, {}, never), status)

  assert.deepEqual([upstream.count(), elsewhere.count()], [3 * statuses.length, 0])
})

test('a header that cannot be sent is named as such, without its value', async t => {
  const { post } = pool(t, {})

  const error = await post(model('http://127.0.0.1:9/v1', { 'x-token': 'line\nbreak-secret' }), '/x', {}, {}, never).catch(reason => reason)

  const told = transportError(error, 'p')
  assert.equal(told.retryable, false)
  assert.ok(!told.message.includes('secret'))
})

test('closing the pool ends requests in flight and takes no new ones', async t => {
  const upstream = await fakeUpstream(t, [[{ hang: true }]])
  const { post, close } = pool(t, {})
  const running = assert.rejects(post(model(upstream.url), '/x', {}, {}, never))
  const request = await upstream.arrived(0)

  await close()

  await running
  assert.equal(await request.closed, 'client')
  await assert.rejects(post(model(upstream.url), '/x', {}, {}, never), /closed/)
})

test('certificate problems are final, other transport failures are not', () => {
  const failed = (code: string) => transportError(Object.assign(new Error('x'), { code }), 'host')

  assert.equal(failed('DEPTH_ZERO_SELF_SIGNED_CERT').retryable, false)
  assert.equal(failed('ECONNRESET').retryable, true)
  assert.equal(failed('UND_ERR_CONNECT_TIMEOUT').name, 'TimeoutError')
  assert.equal(isTransportError(new TypeError('bug')), false)
})

/** A server that answers what it gets with these bytes, and hangs up. */
async function raw(t: TestContextLike, bytes: Uint8Array | string): Promise<number> {
  const server = net.createServer(socket => {
    socket.on('error', () => undefined)
    socket.once('data', () => socket.end(bytes))
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

test('an address where nobody answers is told in words, with the code behind them', async t => {
  const { get } = pool(t, {})
  const told = async (url: string) => {
    const { message, retryable } = transportError(await get(url, {}, new AbortController().signal).catch(error => error), 'models.example')
    return [message.replace('the connection to models.example failed: ', ''), retryable]
  }
  const plain = await listening(t, (_, res) => res.end('{}'))
  const tls = await raw(t, Uint8Array.of(21, 3, 1, 0, 2, 2, 70))
  const closing = await raw(t, '')
  const other = await raw(t, 'SSH-2.0\r\n')

  assert.deepEqual(await told(plain.url.replace('http:', 'https:')), [
    'this port speaks http, not https (ERR_SSL_WRONG_VERSION_NUMBER)',
    false
  ])
  assert.deepEqual(await told(`http://127.0.0.1:${tls}`), ['this port speaks https, not http (HPE_INVALID)', false])
  assert.deepEqual(await told(`http://127.0.0.1:${closing}`), [
    'the server closed the connection without a word; it may speak https, not http (UND_ERR_SOCKET)',
    true
  ])
  assert.deepEqual(await told(`https://127.0.0.1:${closing}`), [
    'the server closed the connection at once; it may speak http, not https (ECONNRESET)',
    true
  ])
  assert.deepEqual(await told(`http://127.0.0.1:${other}`), ['what came is no HTTP answer (HPE_INVALID)', true])
  assert.deepEqual(await told('http://127.0.0.1:1'), ['nothing listens there (ECONNREFUSED)', true])
  const notFound = transportError(Object.assign(new Error('x'), { code: 'ENOTFOUND' }), 'models.example')
  assert.equal(notFound.message, 'the connection to models.example failed: host not found (ENOTFOUND)')
})

test('an error body that breaks off, is too long or never ends counts as far as it came', async () => {
  async function* broken() {
    yield Buffer.from('half')
    throw new Error('cut')
  }
  const endless = new Readable({ read() {} })
  endless.push('some')

  assert.equal(await readText(Readable.from(broken())), 'half')
  assert.equal(await readText(Readable.from([Buffer.from('abc'), Buffer.from('def')]), 4), 'abcd')
  assert.equal(await readText(endless, 100, 1), 'some')
})
