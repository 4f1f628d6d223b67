import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, readdir, rm, stat, utimes, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import { BanTable, createGate } from '../../kernel/access/gate.ts'
import { OriginPolicy } from '../../kernel/access/origin.ts'
import { readToken, rotateToken, tokenPath } from '../../kernel/access/token.ts'
import { defineRoute } from '../../kernel/contract.ts'
import { Banned } from '../../kernel/errors.ts'
import { Type } from '../../kernel/shapes.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { type Bound, startHttp, tempHome } from './http-fixture.ts'

const meta: Bound = [defineRoute({ method: 'GET', path: '/api/v1/meta', summary: 'x', data: Type.Unknown() }), () => 'meta']
const healthz: Bound = [
  defineRoute({ method: 'GET', path: '/api/v1/healthz', summary: 'x', data: Type.Unknown(), auth: 'none' }),
  () => ({ ok: true })
]
const openapi: Bound = [defineRoute({ method: 'GET', path: '/openapi.json', summary: 'x', data: Type.Unknown() }), () => ({})]

test('only the exact header with the right token is accepted', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
  for (const authorization of [
    `bearer ${http.token}`,
    `Bearer  ${http.token}`,
    `Bearer ${http.token}x`,
    `Bearer ${http.token.slice(1)}`,
    http.token,
    'Bearer',
    'Bearer '
  ]) {
    const { status, json, headers } = await http.send('GET', '/api/v1/meta', { token: null, headers: { authorization } })
    assert.deepEqual([status, json.code, json.msg, json.data], [401, 40101, 'Unauthorized', null], authorization)
    assert.equal(headers['www-authenticate'], 'Bearer')
  }
  assert.equal((await http.send('GET', `/api/v1/meta?token=${http.token}`, { token: null })).status, 401)
})

test('every spelling of an API path is refused without a token, known or not', async t => {
  const http = await startHttp(t)
  http.mount(meta, healthz, openapi)
  for (const path of [
    '/api/v1/meta',
    '/API/v1/meta',
    '/Api/V1/healthz',
    '/api/v1/meta/',
    '/api/v1/healthz/',
    '//api/v1/meta',
    '///api//v1/healthz',
    '/./api/v1/meta',
    '/x/../api/v1/meta',
    '/%61pi/v1/meta',
    '/%2561pi/v1/meta',
    '/%2Fapi/v1/meta',
    '/x%2F..%2Fapi',
    '/\\api/v1/meta',
    '/api',
    '/api/v1/unknown',
    '/openapi.json',
    '/OPENAPI.json',
    '/openapi.json/',
    '/asyncapi.json',
    '/%zz'
  ]) {
    const { status, json } = await http.send('GET', path, { token: null })
    assert.deepEqual([status, json.code], [401, 40101], path)
  }
})

test('no mutation of a protected path is served without a token', async t => {
  const http = await startHttp(t)
  http.mount(meta, openapi)
  const piece = fc.constantFrom(
    ...['/', '/', '.', '..', '%2e', '%2F', '%5c', 'api', 'API', '%61pi', 'a%70i', 'v1', 'meta', '\\', ':', ';', '%25', '?', '#', 'x']
  )
  const around = fc.tuple(fc.array(piece, { maxLength: 4 }), fc.array(piece, { maxLength: 4 }), fc.array(piece, { maxLength: 3 }))
  await fc.assert(
    fc.asyncProperty(around, fc.constantFrom('GET', 'HEAD'), async ([before, between, after], method) => {
      const path = `/${before.join('')}api${between.join('')}/v1/meta${after.join('')}`
      assert.notEqual((await http.send(method, path, { token: null })).status, 200, path)
    }),
    { numRuns: 200 }
  )
})

test('healthz needs no token for GET, but does for HEAD and other methods', async t => {
  const http = await startHttp(t)
  http.mount(healthz)
  assert.deepEqual((await http.send('GET', '/api/v1/healthz', { token: null })).json.data, { ok: true })
  assert.deepEqual((await http.send('GET', '/api/v1/%68ealthz', { token: null })).json.data, { ok: true })
  assert.equal((await http.send('HEAD', '/api/v1/healthz', { token: null })).status, 401)
  assert.equal((await http.send('POST', '/api/v1/healthz', { token: null })).status, 401)
  assert.equal((await http.send('HEAD', '/api/v1/healthz')).status, 200)
})

test('paths outside the API need no token, and a catch-all there does not answer for the API', async t => {
  const http = await startHttp(t)
  const assets = defineRoute({
    method: 'GET',
    path: '/{+path}',
    summary: 'x',
    params: Type.Object({ path: Type.String() }),
    data: Type.Unknown(),
    auth: 'none'
  })
  assert.equal((await http.send('GET', '/index.html', { token: null })).status, 404)
  http.mount(meta, [assets, ({ params }) => params.path])
  assert.equal((await http.send('GET', '/index.html', { token: null })).json.data, 'index.html')
  assert.equal((await http.send('GET', '/', { token: null })).json.data, '')
  assert.equal((await http.send('HEAD', '/index.html', { token: null })).status, 200)
  for (const path of ['/api/v1/nope', '//api/v1/meta', '/API/v1/meta']) {
    assert.equal((await http.send('GET', path, { token: null })).status, 401, path)
    assert.equal((await http.send('GET', path)).status, 404, path)
  }
})

test('absolute-form targets are routed by their path, and their authority counts as a Host', async t => {
  const http = await startHttp(t)
  http.mount(meta, healthz)
  const ask = (target: string, auth = '') => http.raw(`GET ${target} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n${auth}\r\n`)
  const bearer = `Authorization: Bearer ${http.token}\r\n`
  assert.match(await ask('http://localhost/api/v1/meta'), /^HTTP\/1\.1 401 /)
  assert.match(await ask('http://localhost:80/api/v1/meta', bearer), /^HTTP\/1\.1 200 /)
  assert.match(await ask('HTTP://localhost/API/v1/meta'), /^HTTP\/1\.1 401 /)
  assert.match(await ask('http://evil.example/api/v1/meta', bearer), /^HTTP\/1\.1 403 /)
  assert.match(await ask('http://user@evil.example/api/v1/healthz'), /^HTTP\/1\.1 403 /)
  assert.match(await ask('http://localhost/api/v1/healthz'), /^HTTP\/1\.1 200 /)
  assert.match(await ask('http://localhost?x=/api/v1/meta'), /^HTTP\/1\.1 404 /)
})

test('repeated Host or Authorization headers and a missing Host are refused', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  const bearer = `Authorization: Bearer ${http.token}\r\n`
  const ask = (version: string, headers: string) => http.raw(`GET /api/v1/meta HTTP/${version}\r\n${headers}Connection: close\r\n\r\n`)
  assert.match(await ask('1.1', `Host: localhost\r\nHost: evil.example\r\n${bearer}`), /^HTTP\/1\.1 403 [\s\S]*40301/)
  assert.match(await ask('1.1', `Host: localhost\r\n${bearer}Authorization: Bearer x\r\n`), /^HTTP\/1\.1 401 /)
  assert.match(await ask('1.1', `Host: localhost\r\n${bearer}${bearer}`), /^HTTP\/1\.1 401 /)
  assert.match(await ask('1.1', bearer), /^HTTP\/1\.1 403 [\s\S]*40301/)
  assert.match(await ask('1.0', bearer), /^HTTP\/1\.1 403 [\s\S]*40301/)
  assert.match(await ask('1.0', `Host: localhost\r\n${bearer}`), /^HTTP\/1\.1 200 /)
})

test('a foreign Host is refused on every path, and the message names the way out', async t => {
  const http = await startHttp(t, { allowedHosts: ['.dev.example', 'box.example'] })
  http.mount(meta, healthz)
  const ask = async (host: string) => (await http.send('GET', '/api/v1/healthz', { headers: { host } })).status
  for (const host of [
    'localhost',
    'LOCALHOST:99',
    'app.localhost',
    '127.0.0.1:1',
    '10.1.2.3',
    '[::1]:80',
    'dev.example',
    'a.dev.example:8',
    'BOX.example'
  ]) {
    assert.equal(await ask(host), 200, host)
  }
  for (const host of ['evil.example', 'evildev.example', 'a.box.example', 'localhost.evil.example', 'a b', 'x@localhost']) {
    assert.equal(await ask(host), 403, host)
  }
  const { json } = await http.send('GET', '/anything', { headers: { host: 'evil.example' } })
  assert.equal(json.code, 40301)
  assert.match(json.msg, /evil\.example.*--allowed-host evil\.example/)
})

test('CORS headers are sent to accepted origins only, and refused ones are still served', async t => {
  const http = await startHttp(t, { corsOrigins: ['https://app.example'] })
  http.mount(meta)
  const ask = (origin: string, method = 'GET', more = {}) => http.send(method, '/api/v1/meta', { headers: { origin, ...more } })
  for (const origin of ['http://127.0.0.1:5173', 'http://localhost', 'http://[::1]:9', 'https://app.example']) {
    const { status, headers } = await ask(origin)
    assert.deepEqual([status, headers['access-control-allow-origin'], headers.vary], [200, origin, 'Origin'])
    assert.equal(headers['access-control-allow-methods'], 'GET, POST, PUT, PATCH, DELETE, OPTIONS')
    assert.equal(headers['access-control-allow-credentials'], undefined)
  }
  for (const origin of ['https://evil.example', 'null', 'https://app.example.evil']) {
    const { status, headers } = await ask(origin)
    assert.deepEqual([status, headers['access-control-allow-origin']], [200, undefined], origin)
  }
  const preflight = await ask('http://localhost', 'OPTIONS', { 'access-control-request-headers': 'x-one, x-two' })
  assert.deepEqual([preflight.status, preflight.text, preflight.headers['access-control-allow-headers']], [204, '', 'x-one, x-two'])
  const plain = await ask('http://localhost', 'OPTIONS')
  assert.match(String(plain.headers['access-control-allow-headers']), /^Content-Type, Authorization, X-Svc-Client-Id/)
  const refused = await ask('https://evil.example', 'OPTIONS')
  assert.deepEqual([refused.status, refused.headers['access-control-allow-origin']], [204, undefined])
  assert.equal((await http.send('OPTIONS', '/api/v1/meta', { token: null })).status, 404)
})

test('a 401 is readable across origins, and so is the word that the address is banned', async t => {
  const http = await startHttp(t, { host: '0.0.0.0' })
  http.mount(meta)
  const statuses: number[] = []
  for (let i = 0; i < 11; i++) {
    const { status, headers } = await http.send('GET', '/api/v1/meta', { token: null, headers: { origin: 'http://localhost:1' } })
    assert.equal(headers['access-control-allow-origin'], 'http://localhost:1')
    statuses.push(status)
  }
  assert.deepEqual([statuses[0], statuses[10]], [401, 429])
})

test('a page that may ask may read every header, and need not ask again before each request', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  for (const method of ['GET', 'OPTIONS']) {
    const { headers } = await http.send(method, '/api/v1/meta', { headers: { origin: 'http://localhost:1' } })
    assert.deepEqual([headers['access-control-expose-headers'], headers['access-control-max-age']], ['*', '600'], method)
  }
})

test('no cache gives to one page what it keeps for another, whoever asked first', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  for (const origin of [undefined, 'http://localhost:1', 'null', 'https://evil.example'])
    for (const path of ['/api/v1/meta', '/nope']) {
      const { headers } = await http.send('GET', path, { headers: origin === undefined ? {} : { origin } })
      assert.equal(headers.vary, 'Origin', `${origin} ${path}`)
    }
})

test('no cache keeps an envelope', async t => {
  const http = await startHttp(t)
  http.mount(meta, healthz)
  for (const [path, token] of [['/api/v1/meta'], ['/api/v1/meta', null], ['/api/v1/nope'], ['/api/v1/healthz', null]] as const) {
    const { headers } = await http.send('GET', path, token === null ? { token } : {})
    assert.equal(headers['cache-control'], 'no-store', path)
  }
})

test('security headers are sent on exposed binds only', async t => {
  const open = await startHttp(t, { host: '0.0.0.0' })
  const local = await startHttp(t)
  const { headers } = await open.send('GET', '/nope', { token: null })
  assert.equal(headers['x-content-type-options'], 'nosniff')
  assert.equal(headers['referrer-policy'], 'no-referrer')
  assert.match(String(headers['content-security-policy']), /default-src 'self'.*frame-ancestors 'self'/)
  assert.equal(headers['strict-transport-security'], undefined)
  assert.equal((await local.send('GET', '/nope', { token: null })).headers['x-content-type-options'], undefined)
})

test('ten failures ban the source for a minute, before anything else is looked at', async t => {
  let now = 1_000_000
  const http = await startHttp(t, { host: '0.0.0.0', now: () => new Date(now) })
  http.mount(meta, healthz)
  const wrong = () => http.send('GET', '/api/v1/meta', { token: 'wrong' })
  for (let i = 0; i < 9; i++) assert.equal((await wrong()).status, 401)
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
  assert.equal((await http.send('GET', '/api/v1/unknown', { token: null })).status, 401)
  for (const path of ['/api/v1/meta', '/api/v1/healthz', '/anything']) {
    const { status, json } = await http.send('GET', path)
    assert.deepEqual([status, json.code, json.msg], [429, 42901, 'Too many failed auth attempts'])
  }
  assert.equal((await http.send('OPTIONS', '/api/v1/meta', { headers: { origin: 'http://localhost' } })).status, 429)
  now += 60_000
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
})

test('of many requests at once ten fail, and the others hear of the ban', async t => {
  const http = await startHttp(t, { host: '0.0.0.0', now: () => new Date(0) })
  http.mount(meta)
  const ask = (token: string) => `GET /api/v1/meta HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\n`

  const answers = await http.raw(`${`${ask('wrong')}\r\n`.repeat(39)}${ask('wrong')}Connection: close\r\n\r\n`)

  const statuses = [...answers.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status).sort()
  assert.deepEqual(statuses, [...Array(10).fill('401'), ...Array(30).fill('429')])
})

test('of many upgrades at once ten fail, and the others hear of the ban', async () => {
  const home = await tempHome()
  const gate = await createGate(testEnvironment({ home, host: '0.0.0.0', now: () => new Date(0) }))
  const upgrade = () => fakeRequest({ host: 'localhost', 'sec-websocket-protocol': 'svc-code.bearer.wrong' })
  const answers = await Promise.allSettled(Array.from({ length: 40 }, () => gate.authenticateSocket(upgrade())))
  assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 10)
  for (const answer of answers.slice(10)) assert.equal(answer.status === 'rejected' && answer.reason.spec, Banned)
})

test('loopback binds know no ban', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  for (let i = 0; i < 12; i++) assert.equal((await http.send('GET', '/api/v1/meta', { token: 'wrong' })).status, 401)
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
})

test('the counting window restarts, and the table of sources is bounded', () => {
  const table = new BanTable(3)
  for (let i = 0; i < 9; i++) table.fail('a', i)
  table.fail('a', 60_100)
  assert.equal(table.banned('a', 60_100), false)
  for (let i = 0; i < 10; i++) table.fail('b', 60_200)
  for (const address of ['c', 'd', 'e', 'f']) table.fail(address, 60_300)
  assert.equal(table.size, 3)
  assert.equal(table.banned('b', 60_300), true)
  table.fail('g', 300_000)
  assert.equal(table.size, 1)
})

test('failed upgrades count for the ban', async () => {
  const home = await tempHome()
  const gate = await createGate(testEnvironment({ home, host: '0.0.0.0', now: () => new Date(0) }))
  const upgrade = () => fakeRequest({ host: 'localhost', 'sec-websocket-protocol': 'svc-code.bearer.wrong' })
  for (let i = 0; i < 10; i++) assert.equal(await gate.authenticateSocket(upgrade()), undefined)
  assert.equal(gate.check(upgrade()).refusal?.spec.status, 429)
})

test('an upgrade takes the header first and the subprotocol only without one', async () => {
  const home = await tempHome()
  const gate = await createGate(testEnvironment({ home }))
  const token = readToken(home)
  const ask = async (headers: Record<string, string>) => (await gate.authenticateSocket(fakeRequest(headers))) !== undefined
  const offered = { 'sec-websocket-protocol': `other, svc-code.bearer.${token}` }
  assert.equal(await ask({ authorization: `Bearer ${token}` }), true)
  assert.equal(await ask(offered), true)
  assert.equal(await ask({ authorization: 'Bearer wrong', ...offered }), false)
  assert.equal(await ask({ authorization: 'Bearer ', ...offered }), true)
  assert.equal(await ask({ 'sec-websocket-protocol': `svc-code.bearer., svc-code.bearer.${token}` }), false)
  assert.equal(await ask({}), false)
  assert.equal(await gate.checkToken(token!), true)
  assert.equal(await gate.checkToken(''), false)
})

test('the token file is made once, private, and shared by later boots', async () => {
  const home = join(await tempHome(), 'new')
  const env = testEnvironment({ home })
  await Promise.all([createGate(env), createGate(env), createGate(env)])
  const token = readToken(home)
  assert.match(token!, /^[A-Za-z0-9_-]{43}$/)
  assert.equal((await stat(tokenPath(home))).mode & 0o777, 0o600)
  assert.equal((await stat(home)).mode & 0o777, 0o700)
  const gate = await createGate(env)
  assert.equal(await gate.checkToken(token!), true)
  assert.deepEqual(await readdir(home), ['server.token'])
})

test('a rotated token works at once, and the old one ends at once', async t => {
  const http = await startHttp(t, { now: () => new Date(0) })
  http.mount(meta)
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
  const token = await rotateToken(http.home)
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 401)
  assert.equal((await http.send('GET', '/api/v1/meta', { token })).status, 200)
})

test('a rewrite that is empty, readable by others or gone is ignored', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  const path = tokenPath(http.home)
  const works = async () => (await http.send('GET', '/api/v1/meta')).status === 200
  await writeFile(path, '')
  assert.ok(await works())
  await writeFile(path, 'other-token-that-everybody-can-read')
  await chmod(path, 0o644)
  await utimes(path, 1, 1)
  assert.ok(await works())
  assert.equal((await http.send('GET', '/api/v1/meta', { token: 'other-token-that-everybody-can-read' })).status, 401)
  await rm(path)
  assert.ok(await works())
  assert.ok(http.logs.some(line => line.includes('token rotation ignored')))
})

test('a pipe that takes the place of the token file while the server runs changes nothing', async t => {
  const http = await startHttp(t)
  http.mount(meta)
  const path = tokenPath(http.home)
  await rm(path)
  await promisify(execFile)('mkfifo', ['-m', '600', path])
  assert.equal((await http.send('GET', '/api/v1/meta')).status, 200)
  assert.ok(http.logs.some(line => line.includes('is not a regular file); the old token stays')))
  await rm(path)
  const token = await rotateToken(http.home)
  assert.equal((await http.send('GET', '/api/v1/meta', { token })).status, 200)
})

test('a token file that others can read stops the start with the remedy', async () => {
  const home = await tempHome()
  await rotateToken(home)
  await chmod(tokenPath(home), 0o640)
  await assert.rejects(createGate(testEnvironment({ home })), /can be read by other users \(mode 0640\).*chmod 600/)
})

test('the password is accepted beside the token', async t => {
  const http = await startHttp(t, { password: 'grüße 1' })
  http.mount(meta)
  const ask = async (token: string) => (await http.send('GET', '/api/v1/meta', { token: Buffer.from(token).toString('latin1') })).status
  assert.equal(await ask('grüße 2'), 401)
  assert.deepEqual(await Promise.all([ask('grüße 1'), ask('grüße 1'), ask('no'), ask('no'), ask('grüße 1')]), [200, 200, 401, 401, 200])
  assert.equal(await ask('grüße 1'), 200)
  assert.equal(await ask(http.token), 200)
})

test('a browser that sends a password as far as Latin-1 goes is understood', async t => {
  const http = await startHttp(t, { password: 'grüße 1' })
  http.mount(meta)
  assert.equal((await http.send('GET', '/api/v1/meta', { token: 'grüße 1' })).status, 200)
  assert.equal((await http.send('GET', '/api/v1/meta', { token: 'grüße 2' })).status, 401)
})

test('a password of any characters opens a socket percent-encoded; a failure counts once', async () => {
  const gate = await createGate(
    testEnvironment({ home: await tempHome(), host: '0.0.0.0', password: 'grüße (1), 50%25', now: () => new Date(0) })
  )
  const upgrade = (text: string) => fakeRequest({ host: 'localhost', 'sec-websocket-protocol': `svc-code.bearer.${text}` })
  assert.equal(await gate.authenticateSocket(upgrade('50%25')), undefined)
  const encoded = encodeURIComponent('grüße (1), 50%25').replace(/[()]/g, sign => `%${sign.charCodeAt(0).toString(16)}`)
  assert.equal((await gate.authenticateSocket(upgrade(encoded)))?.kind, 'password')
  for (const wrong of ['%', '%zz', '50%25', encodeURIComponent(encoded), '%61', '%', '%', '%'])
    await gate.authenticateSocket(upgrade(wrong))
  assert.equal(gate.check(upgrade('x')).refusal, undefined)
  await gate.authenticateSocket(upgrade('%62'))
  assert.equal(gate.check(upgrade('x')).refusal?.spec.status, 429)
  const plain = await createGate(testEnvironment({ home: await tempHome(), password: '50%25' }))
  assert.equal((await plain.authenticateSocket(upgrade('50%25')))?.kind, 'password')
})

test('bypassed authentication still checks the Host', async t => {
  const http = await startHttp(t, { dangerousBypassAuth: true })
  http.mount(meta)
  assert.equal((await http.send('GET', '/api/v1/meta', { token: null })).status, 200)
  assert.equal((await http.send('GET', '/api/v1/meta', { token: null, headers: { host: 'evil.example' } })).status, 403)
})

test('the Host check can be switched off', () => {
  const policy = new OriginPolicy({ host: '127.0.0.1', disableHostCheck: true })
  assert.equal(policy.refuseHost(fakeRequest({ host: 'evil.example' })), undefined)
})

/** Enough of a request for the gate. */
function fakeRequest(headers: Record<string, string>): IncomingMessage {
  const fake = {
    url: '/api/v1/ws',
    headers: { ...headers },
    rawHeaders: Object.entries(headers).flat(),
    socket: { remoteAddress: '::ffff:10.0.0.9' }
  }
  return fake as unknown as IncomingMessage // the gate reads these four fields only
}
