/** A server without authentication trusts its own pages and programs, and no web page of another origin. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { WebSocket } from 'ws'
import { definePack, defineRoute, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const data = Type.Unknown()
const spec = { path: '/api/v1/thing', summary: 'x', data } as const
const read = defineRoute({ ...spec, method: 'GET' })
const change = defineRoute({ ...spec, method: 'POST' })
const remove = defineRoute({ ...spec, method: 'DELETE' })

async function start(t: TestContext, options: { dangerousBypassAuth?: boolean; corsOrigins?: string[] } = { dangerousBypassAuth: true }) {
  let changes = 0
  const pack = definePack({
    name: 'thing',
    setup(ctx) {
      ctx.route(read, () => 'seen')
      for (const route of [change, remove]) ctx.route(route, () => ++changes)
    }
  })
  const server = await startTestKernel(t, { packs: [pack], corsOrigins: ['https://app.example/'], ...options })
  const send = (method: string, headers: Record<string, string>, body?: string) =>
    server.rest.raw(method, spec.path, { token: null, headers, ...(body === undefined ? {} : { body }) })
  const opens = (headers: Record<string, string>) =>
    new Promise<boolean>(resolve => {
      const ws = new WebSocket(`${server.url.replace('http', 'ws')}/api/v1/ws`, { headers })
      t.after(() => ws.terminate())
      ws.on('open', () => resolve(true))
      ws.on('error', () => resolve(false))
    })
  return { ...server, send, opens, own: new URL(server.url).host, changes: () => changes }
}

const foreign = (own: string) => [
  'null',
  'file://',
  'http://evil.example',
  'http://localhost:5173',
  'http://127.0.0.1',
  `http://localhost:${own.split(':')[1]}`,
  `http://x.${own}`,
  `http://${own}.evil.example`,
  'https://app.example.evil.example',
  `ftp://${own}`,
  `http://user@${own}`
]

test('a page of another origin changes nothing, not even by a request that needs no preflight', async t => {
  const { send, own, changes } = await start(t)
  for (const origin of foreign(own)) {
    const answer = await send('POST', { origin, 'content-type': 'text/plain' }, '{}')
    assert.deepEqual([answer.status, JSON.parse(String(answer.body)).code], [403, 40301], origin)
    assert.equal((await send('POST', { origin })).status, 403, origin)
    assert.equal((await send('DELETE', { origin })).status, 403, origin)
  }
  assert.equal((await send('POST', { 'sec-fetch-site': 'cross-site' })).status, 403)
  assert.equal((await send('POST', { 'sec-fetch-site': 'same-site' })).status, 403)
  assert.equal(changes(), 0)
})

test('the refusal names the way out', async t => {
  const { send } = await start(t)
  const answer = await send('POST', { origin: 'http://localhost:5173' })
  assert.match(JSON.parse(String(answer.body)).msg, /http:\/\/localhost:5173.*--cors-origin/)
})

test('a page of another origin reads nothing: it gets no CORS headers', async t => {
  const { send, own } = await start(t)
  for (const origin of foreign(own)) {
    const { status, headers } = await send('GET', { origin })
    assert.deepEqual([status, headers['access-control-allow-origin']], [200, undefined], origin)
  }
})

test('a page of another origin shows and runs nothing of what it embeds: such requests carry no Origin', async t => {
  const { send } = await start(t)
  const asked: Record<string, string>[] = [{}, { 'sec-fetch-site': 'cross-site' }, { origin: 'https://app.example' }]
  for (const headers of asked) assert.equal((await send('GET', headers)).headers['cross-origin-resource-policy'], 'same-origin')
  const closed = await start(t, {})
  assert.equal((await closed.send('GET', {})).headers['cross-origin-resource-policy'], undefined)
})

test('a page of another origin opens no socket', async t => {
  const { opens, own } = await start(t)
  for (const origin of foreign(own)) assert.equal(await opens({ origin }), false, origin)
})

test('programs, own pages and named origins do everything', async t => {
  const { send, opens, own } = await start(t)
  const friends: Record<string, string>[] = [
    {},
    { origin: `http://${own}` },
    { origin: `HTTP://${own}` },
    { origin: `https://${own}` },
    { origin: 'https://app.example' },
    { 'sec-fetch-site': 'same-origin', origin: `http://${own}` },
    { 'sec-fetch-site': 'none' },
    { origin: 'http://box.localhost', host: 'box.localhost:80' },
    { origin: 'https://box.localhost', host: 'box.localhost:443' }
  ]
  for (const headers of friends) {
    assert.equal((await send('POST', headers)).status, 200, JSON.stringify(headers))
    assert.equal(await opens(headers), true, JSON.stringify(headers))
  }
  const { headers } = await send('POST', { origin: 'https://app.example' })
  assert.equal(headers['access-control-allow-origin'], 'https://app.example')
})

test('of an origin that any page can take nothing is accepted without authentication, though it was named; with it it may be', async t => {
  const named = { corsOrigins: ['null'] }
  const open = await start(t, { dangerousBypassAuth: true, ...named })
  assert.equal((await open.send('POST', { origin: 'null' })).status, 403)
  const closed = await start(t, named)
  const { headers } = await closed.rest.raw('GET', spec.path, { headers: { origin: 'null' } })
  assert.equal(headers['access-control-allow-origin'], 'null')
})

test('with authentication a page on another port of this machine works as before', async t => {
  const { rest, token } = await start(t, {})
  const headers = { origin: 'http://localhost:5173', authorization: `Bearer ${token}` }
  const answer = await rest.raw('POST', spec.path, { token: null, headers })
  assert.deepEqual([answer.status, answer.headers['access-control-allow-origin']], [200, 'http://localhost:5173'])
  assert.equal((await rest.raw('POST', spec.path, { token: null, headers: { ...headers, origin: 'null' } })).status, 200)
})

test('what reads or only asks is answered to any page, and with a credential whatever it sends is served, without leave to see it', async t => {
  const { send, own } = await start(t)
  for (const origin of foreign(own)) {
    assert.notEqual((await send('HEAD', { origin })).status, 403, origin)
    assert.notEqual((await send('OPTIONS', { origin })).status, 403, origin)
  }
  const closed = await start(t, {})
  const answer = await closed.rest.raw('POST', spec.path, { headers: { origin: 'http://evil.example' } })
  assert.deepEqual([answer.status, closed.changes(), answer.headers['access-control-allow-origin']], [200, 1, undefined])
})
