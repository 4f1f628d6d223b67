import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Principal } from '../../kernel/access/principal.ts'
import { rotateToken } from '../../kernel/access/token.ts'
import { defineRoute } from '../../kernel/contract.ts'
import { Type } from '../../kernel/shapes.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { type Bound, startHttp } from './http-fixture.ts'

const spec = { method: 'GET', summary: 'x', data: Type.Unknown() } as const
const who: Bound = [defineRoute({ ...spec, path: '/api/v1/who' }), ({ request }) => request.principal]
const admin: Bound = [defineRoute({ ...spec, path: '/api/v1/admin', scope: 'admin' }), ({ request }) => request.principal]
const open: Bound = [defineRoute({ ...spec, path: '/api/v1/open', auth: 'none', scope: 'admin' }), ({ request }) => request.principal]

test('a handler learns who asks, and never the credential', async t => {
  const http = await startHttp(t, { password: 'open sesame' })
  http.mount(who, open)
  const ask = async (token: string | null, path = '/api/v1/who') => (await http.send('GET', path, { token })).json.data as Principal

  const byToken = await ask(http.token)
  assert.deepEqual([byToken.kind, byToken.scopes], ['token', 'all'])
  assert.ok(!byToken.id.includes(http.token))
  assert.deepEqual((await ask('open sesame')).kind, 'password')
  assert.deepEqual((await ask(null, '/api/v1/open')).kind, 'anonymous')
})

test('a rotated token is another principal', async t => {
  const http = await startHttp(t)
  http.mount(who)
  const ask = async (token: string) => ((await http.send('GET', '/api/v1/who', { token })).json.data as Principal).id
  const before = await ask(http.token)
  assert.equal(await ask(http.token), before)
  assert.notEqual(await ask(await rotateToken(http.home)), before)
})

test('without authentication everyone is let in as such', async t => {
  const http = await startHttp(t, { dangerousBypassAuth: true })
  http.mount(who)
  const { data } = (await http.send('GET', '/api/v1/who', { token: null })).json
  assert.deepEqual(data, { id: 'bypass', kind: 'bypass', scopes: 'all' })
})

test('a route is served to principals with its scope only, open routes to everyone', async t => {
  const http = await startHttp(t)
  http.mount(who, admin, open)
  const limited = (...scopes: string[]) => {
    http.gate.authenticate = async () => ({ id: 'limited', kind: 'token', scopes })
  }
  const ask = async (path: string) => {
    const { status, json } = await http.send('GET', path)
    return [status, json.code]
  }
  limited('api')
  assert.deepEqual(await ask('/api/v1/who'), [200, 0])
  assert.deepEqual(await ask('/api/v1/admin'), [403, 40302])
  assert.deepEqual(await ask('/api/v1/open'), [200, 0])
  limited('admin')
  assert.deepEqual(await ask('/api/v1/who'), [403, 40302])
  assert.deepEqual(await ask('/api/v1/admin'), [200, 0])
})

test('a rotation ends the sockets of the old token, whoever else is connected', async t => {
  const { home, connect, kernel } = await startTestKernel(t, { packs: [], password: 'open sesame' })
  const old = await connect()
  const other = await connect({ headers: { authorization: 'Bearer open sesame' } })
  const local = await new Promise<string>(resolve => {
    kernel.connect({ message: data => resolve(JSON.parse(String(data)).type) })
  })
  assert.equal(local, 'server_hello')

  const token = await rotateToken(home)

  assert.deepEqual(await old.closed, { code: 1008, reason: 'the token was replaced' })
  const fresh = await connect({ headers: { authorization: `Bearer ${token}` } })
  assert.equal((await other.request('unsubscribe', { session_ids: [] })).code, 0)
  assert.equal((await fresh.request('unsubscribe', { session_ids: [] })).code, 0)
  assert.equal(kernel.hub.clients.list().length, 3)
})
