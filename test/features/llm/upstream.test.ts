/** Connections to providers: proxies, addresses, closing. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { createUpstream, isTransportError, type ResolvedModel, readText, transportError } from '../../../features/llm/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'

const model = (base_url: string, headers: Record<string, string> = {}): ResolvedModel => ({
  alias: 'p/m',
  provider_id: 'p',
  protocol: 'compat_chat',
  name: 'm',
  display_name: 'M',
  base_url,
  headers,
  max_context_size: 1000,
  capabilities: []
})
const never = new AbortController().signal

/** A proxy that leads every tunnel to one port and notes where it was asked to go. */
async function proxy(t: TestContextLike, port: number) {
  const asked: string[] = []
  const server = createServer()
  server.on('connect', (req, socket, head) => {
    asked.push(req.url ?? '')
    const target = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      target.write(head)
      target.pipe(socket).pipe(target)
    })
    socket.on('error', () => target.destroy())
    target.on('error', () => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => new Promise(resolve => server.close(resolve)))
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

function pool(t: TestContextLike, env: NodeJS.ProcessEnv) {
  const upstream = createUpstream(env)
  t.after(() => upstream.close())
  return upstream
}

test('a proxy of the environment is used for outside hosts, not for this machine and not for NO_PROXY', async t => {
  const upstream = await fakeUpstream(t, [[{ status: 200, body: { ok: true } }]])
  const { url, asked } = await proxy(t, upstream.port)
  const { post } = pool(t, { HTTP_PROXY: url, NO_PROXY: 'direct.invalid' })

  const outside = await post(model('http://models.invalid/v1'), '/x', {}, {}, never)
  const local = await post(model(upstream.url), '/x', {}, {}, never)

  assert.deepEqual([await readText(outside.body), await readText(local.body)], ['{"ok":true}', '{"ok":true}'])
  assert.deepEqual(asked, ['models.invalid:80'])
  await assert.rejects(post(model('http://direct.invalid/v1'), '/x', {}, {}, never), isTransportError)
  assert.equal(asked.length, 1)
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
