/** Proxies of the environment: who is asked through them, how, and what their refusal says. */
import assert from 'node:assert/strict'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { createUpstream, isTransportError, readText, transportError } from '../../../features/llm/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeProxy } from '../../helpers/fake-proxy.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'

const never = new AbortController().signal

function pool(t: TestContextLike, env: NodeJS.ProcessEnv) {
  const upstream = createUpstream(env)
  t.after(() => upstream.close())
  return {
    get: async (url: string, signal = never) => readText((await upstream.get(url, { authorization: 'Bearer k' }, signal)).body),
    close: () => upstream.close()
  }
}

const hello = (t: TestContextLike) => fakeUpstream(t, [[{ status: 200, body: { ok: true } }]])

/** The first byte that somebody sends who gets through; a TLS client begins with 22. */
async function firstByte(t: TestContextLike) {
  let seen: (byte: number) => void = () => undefined
  const byte = new Promise<number>(resolve => {
    seen = resolve
  })
  const sockets = new Set<Socket>()
  const server = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => undefined) // the client went away: its test knows
    socket.once('data', data => {
      seen(data[0] ?? -1)
      socket.destroy()
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return { port: (server.address() as AddressInfo).port, byte }
}

test('another machine is asked through the proxy by its whole URL, this machine and NO_PROXY directly', async t => {
  const upstream = await hello(t)
  const proxy = await fakeProxy(t, upstream.port)
  const { get } = pool(t, { HTTP_PROXY: proxy.url, NO_PROXY: 'direct.invalid' })

  assert.deepEqual([await get('http://models.invalid/v1/x?y=1'), await get(`${upstream.url}/z`)], ['{"ok":true}', '{"ok":true}'])

  assert.deepEqual(proxy.asked, ['GET http://models.invalid/v1/x?y=1'])
  assert.equal(upstream.requests[0]?.headers.authorization, 'Bearer k')
  await assert.rejects(get('http://direct.invalid/x'), isTransportError)
  assert.equal(proxy.asked.length, 1)
})

test('an https address is asked through a tunnel, with nothing but TLS inside', async t => {
  const { port, byte } = await firstByte(t)
  const proxy = await fakeProxy(t, port)
  const { get } = pool(t, { HTTPS_PROXY: proxy.url })

  await assert.rejects(get('https://models.invalid/v1'), isTransportError)

  assert.deepEqual(proxy.asked, ['CONNECT models.invalid:443'])
  assert.equal(await byte, 22)
})

test('the lower-case spelling wins, and a value without a scheme is an http proxy', async t => {
  const upstream = await hello(t)
  const [lower, upper] = [await fakeProxy(t, upstream.port), await fakeProxy(t, upstream.port)]
  const { get } = pool(t, { http_proxy: `127.0.0.1:${lower.port}`, HTTP_PROXY: upper.url, no_proxy: 'near.invalid', NO_PROXY: '*' })

  await get('http://models.invalid/a')

  assert.deepEqual([lower.asked, upper.asked], [['GET http://models.invalid/a'], []])
  await assert.rejects(get('http://near.invalid/a'), isTransportError)
  assert.equal(lower.asked.length, 1)
})

test('NO_PROXY names domains, hosts with a port, or everything', async t => {
  const upstream = await hello(t)
  const proxy = await fakeProxy(t, upstream.port)
  const { get } = pool(t, { HTTP_PROXY: proxy.url, NO_PROXY: '.corp.invalid, box.invalid:8080' })
  const all = pool(t, { HTTP_PROXY: proxy.url, NO_PROXY: '*' })

  for (const url of ['http://a.corp.invalid', 'http://box.invalid:8080']) await assert.rejects(get(url), isTransportError, url)
  await assert.rejects(all.get('http://models.invalid'), isTransportError)
  assert.deepEqual(proxy.asked, [])
  await get('http://box.invalid:9090/x')
  assert.deepEqual(proxy.asked, ['GET http://box.invalid:9090/x'])
})

test('user and password of the proxy go to the proxy alone, and stand in no error', async t => {
  const upstream = await hello(t)
  const proxy = await fakeProxy(t, upstream.port)
  const closed = await fakeProxy(t, 0, { refuse: 407 })
  const named = (url: string) => url.replace('http://', 'http://user:proxy-word@')
  const { get } = pool(t, { HTTP_PROXY: named(proxy.url), HTTPS_PROXY: named(closed.url) })

  await get('http://models.invalid/a')
  const refusal = transportError(await get('https://models.invalid/a').catch(error => error), 'models.invalid')

  assert.deepEqual(proxy.credentials, [`Basic ${btoa('user:proxy-word')}`])
  assert.equal(upstream.requests[0]?.headers['proxy-authorization'], undefined)
  assert.deepEqual([refusal.name, refusal.retryable], ['ProxyError', false])
  assert.equal(refusal.message, 'the connection to models.invalid failed: the proxy refused the connection (HTTP 407)')
})

test('a proxy that cannot reach the server is worth another try', async t => {
  const proxy = await fakeProxy(t, 0, { refuse: 503 })
  const { get } = pool(t, { HTTPS_PROXY: proxy.url })

  const error = transportError(await get('https://models.invalid/a').catch(reason => reason), 'models.invalid')

  assert.deepEqual([error.name, error.retryable], ['ProxyError', true])
})

test('a proxy that hangs up instead of opening a tunnel fails the request, and is asked once', async t => {
  const proxy = await fakeProxy(t, 0, { breaks: ['', 'HTTP/1.1 2', ''], refuse: 407 })
  const { get } = pool(t, { HTTPS_PROXY: proxy.url })

  for (const asked of [1, 2]) {
    const error = transportError(await get('https://models.invalid/a').catch(reason => reason), 'models.invalid')
    assert.deepEqual([error.name, error.retryable], ['ProxyError', true])
    assert.equal(error.message, 'the connection to models.invalid failed: the proxy closed the connection')
    assert.equal(proxy.asked.length, asked)
  }
})

test('an abort ends the wait for a proxy that does not answer, and so does closing', async t => {
  const proxy = await fakeProxy(t, 0, { hang: true })
  const { get, close } = pool(t, { HTTPS_PROXY: proxy.url, HTTP_PROXY: proxy.url })
  const abort = new AbortController()
  const aborted = ['https://models.invalid', 'http://models.invalid'].map(url => assert.rejects(get(url, abort.signal), /gone/))
  const closes = assert.rejects(get('https://other.invalid'))
  abort.abort(new Error('gone'))

  await Promise.all(aborted)
  await close()
  await closes
})

test('a variable that is no address is named when the proxy is needed, and only then', async t => {
  const upstream = await hello(t)
  const { get } = pool(t, { HTTPS_PROXY: 'ftp://user:proxy-word@x' })

  assert.equal(await get(upstream.url), '{"ok":true}')
  const error = transportError(await get('https://models.invalid').catch(reason => reason), 'models.invalid')

  assert.equal(error.message, 'the connection to models.invalid failed: the proxy of HTTPS_PROXY is not an address')
  assert.equal(error.retryable, false)
})
