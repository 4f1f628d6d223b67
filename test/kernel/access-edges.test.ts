/** Edges of the gate: counting, names that only look right, credentials that change or come in numbers, upgrades that end meanwhile. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import fs from 'node:fs'
import { chmod, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises'
import type { IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { type TestContext, test } from 'node:test'
import { BanTable, createGate, takeAuthorization } from '../../kernel/access/gate.ts'
import { OriginPolicy } from '../../kernel/access/origin.ts'
import { isReserved } from '../../kernel/access/principal.ts'
import { Password, readToken, rotateToken, TokenFile, tokenPath } from '../../kernel/access/token.ts'
import type { Principal } from '../../kernel/index.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { mockedBuiltins } from '../helpers/builtins.ts'
import { openGate } from '../helpers/gate.ts'
import { startHub } from '../helpers/hub.ts'
import { latch } from '../helpers/latch.ts'
import { freshDir } from '../helpers/temp.ts'

/** Enough of a request for the gate. */
function request(headers: Record<string, string>, more: { method?: string; address?: string; raw?: string[] } = {}): IncomingMessage {
  const { method = 'GET', address = '127.0.0.1', raw = Object.entries(headers).flat() } = more
  return { headers: { ...headers }, rawHeaders: raw, method, url: '/', socket: { remoteAddress: address } } as unknown as IncomingMessage
}
const turn = () => new Promise(resolve => setImmediate(resolve))

test('failures count for a minute to its last moment, a ban ends at its first, and what was counted before it is forgotten', () => {
  const table = new BanTable()
  const fail = (count: number, now: number) => {
    for (let n = 0; n < count; n++) table.fail('a', now)
  }
  fail(9, 0)
  fail(1, 60_000)
  assert.deepEqual([table.banned('a', 119_999), table.banned('a', 120_000)], [true, false])
  const again = new BanTable()
  for (let n = 0; n < 10; n++) again.fail('a', 0)
  for (let n = 0; n < 9; n++) again.fail('a', 60_000)
  assert.equal(again.banned('a', 60_000), false)
})

test('who is banned stays so while others are counted and forgotten; of banned ones only, the oldest leaves', () => {
  const table = new BanTable(2)
  table.fail('a', 0)
  for (let n = 0; n < 9; n++) table.fail('a', 50_000)
  table.fail('b', 61_000)
  assert.equal(table.banned('a', 61_000), true)
  for (let n = 0; n < 9; n++) table.fail('b', 61_000)
  table.fail('c', 61_000)
  assert.deepEqual([table.size, table.banned('a', 61_000), table.banned('b', 61_000)], [2, false, true])
})

test('failures of a password count for the ban, by the address however it is written', async () => {
  const gate = await createGate(testEnvironment({ home: await freshDir(), host: '0.0.0.0', password: 'right', now: () => new Date(0) }))
  const ask = (address: string) => request({ host: '127.0.0.1', authorization: 'Bearer wrong' }, { address })
  for (let n = 0; n < 10; n++) assert.equal(await gate.authenticate(ask(n % 2 ? '::ffff:10.0.0.1' : '10.0.0.1')), undefined)
  assert.equal(gate.check(ask('10.0.0.1')).refusal?.spec.status, 429)
  assert.equal(await gate.checkToken('wrong'), false)
  assert.equal(await gate.checkToken('right'), true)
})

test('repeated credentials open no socket, and none of them is shown', async () => {
  const home = await freshDir()
  const gate = await createGate(testEnvironment({ home }))
  const token = readToken(home)
  const headers = { authorization: 'Bearer one', 'sec-websocket-protocol': `svc-code.bearer.${token}` }
  const twice = request(headers, { raw: ['Authorization', 'Bearer one', 'AUTHORIZATION', `Bearer ${token}`] })
  assert.equal(await gate.authenticateSocket(twice), undefined)
  assert.deepEqual(twice.rawHeaders, ['Authorization', 'Bearer ***', 'AUTHORIZATION', 'Bearer ***'])
  assert.equal(twice.headers.authorization, 'Bearer ***')
  assert.equal(takeAuthorization(request({})), undefined)
})

test('paths that nobody can read lead into the API', () => {
  for (const path of ['/%252525252561pi', '/%zz', '*', 'api', '/x/./../api', '/%5capi']) assert.equal(isReserved(path), true, path)
  for (const path of ['/', '/x', '/apis', '/x/api', '/api/..']) assert.equal(isReserved(path), false, path)
})

test('names that only look like accepted ones are refused', () => {
  const policy = new OriginPolicy({ host: '0.0.0.0', allowedHosts: ['.example.com', 'one.host'] })
  const refused = (host: string, more = {}) => policy.refuseHost(request({ host }, more)) !== undefined
  for (const host of [
    'evil-localhost',
    'example.com.evil',
    'a.example.com.evil',
    'x.one.host',
    'user@localhost',
    'evil@a.example.com',
    'localhost:x',
    'evilexample.com'
  ])
    assert.equal(refused(host), true, host)
  for (const host of ['LOCALHOST:80', 'a.localhost', 'example.com', 'A.Example.com:1', 'one.host', '10.1.1.1', '[::1]:5'])
    assert.equal(refused(host), false, host)
  assert.equal(refused('localhost', { raw: ['Host', 'localhost', 'HOST', 'evil'] }), true)
  const long = policy.refuseHost(request({ host: 'x'.repeat(300) })) ?? ''
  assert.ok(long.length < 350)
})

test('an origin on this machine is accepted where the server is reached as this machine, and nowhere else', () => {
  const anyHost = new OriginPolicy({ host: '0.0.0.0', disableHostCheck: true })
  const judge = (origin: string, host: string) => anyHost.judge(request({ origin, host }))
  assert.equal(judge('http://localhost:5', 'evil.example'), 'refused')
  assert.equal(judge('http://localhost:5', 'no host'), 'refused')
  assert.equal(judge('http://app.localhost:5', '127.0.0.1:9'), 'allowed')
  assert.equal(judge('http://10.0.0.1:5', '10.0.0.1:9'), 'allowed')
  const strict = new OriginPolicy({ host: '127.0.0.1', dangerousBypassAuth: true })
  for (const site of ['cross-site', 'same-site']) assert.equal(strict.judge(request({ 'sec-fetch-site': site })), 'refused', site)
  for (const site of ['same-origin', 'none']) assert.equal(strict.judge(request({ 'sec-fetch-site': site })), 'none', site)
  assert.equal(strict.judge(request({ origin: 'http://localhost', host: 'LOCALHOST:80' })), 'allowed')
  assert.equal(strict.judge(request({ origin: 'https://localhost:443', host: 'localhost' })), 'allowed')
  assert.equal(strict.judge(request({ origin: 'http://localhost:443', host: 'localhost' })), 'refused')
})

/** The token file of a home as a running server knows it, and what it heard. */
async function aToken(t: TestContext) {
  const home = await freshDir()
  const ignored: string[] = []
  const file = await TokenFile.open(home, reason => ignored.push(reason))
  const rotated: Principal[] = []
  const unwatch = file.watch(before => rotated.push(before))
  t.after(unwatch)
  const token = readToken(home) ?? ''
  const accepts = async (text: string) => {
    await turn()
    return (await file.identify(text)) !== undefined
  }
  return { home, path: tokenPath(home), file, ignored, rotated, unwatch, token, accepts }
}

test('a token that changes is noticed by whatever tells one file from the next', async t => {
  const { home, path, token, accepts } = await aToken(t)
  const { atime, mtime } = await stat(path)
  const other = token.replace(/^./, first => (first === 'A' ? 'B' : 'A'))
  const again = async () => utimes(path, atime, mtime)
  await again()
  assert.ok(await accepts(token))
  const replaced = await rotateToken(home)
  await again()
  assert.ok(await accepts(replaced), 'another file of the same size and time')
  await writeFile(path, 'short')
  await again()
  assert.ok(await accepts('short'), 'another size')
  await writeFile(path, 'shirt')
  assert.ok(await accepts('shirt'), 'another time')
  await chmod(path, 0o644)
  await writeFile(path, other)
  assert.ok(await accepts('shirt'))
  await chmod(path, 0o600)
  assert.ok(await accepts(other), 'other rights')
})

test('a file that is ignored is told once, and the same token written again is no rotation', async t => {
  const { path, token, accepts, ignored, rotated } = await aToken(t)
  await writeFile(path, '')
  for (let n = 0; n < 3; n++) assert.ok(await accepts(token))
  assert.equal(ignored.length, 1)
  await writeFile(path, `${token}\n\n`)
  assert.ok(await accepts(token))
  assert.deepEqual(rotated, [])
  await rm(path)
  await symlink(path, path)
  assert.ok(await accepts(token), 'a home that cannot be reached changes no token')
})

test('rotations are heard while somebody watches', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { home, file, rotated, unwatch, token } = await aToken(t)
  const before = await file.identify(token)
  await turn()
  await rotateToken(home)
  t.mock.timers.tick(1_000)
  while (rotated.length === 0) await turn() // another thread may have been asked
  assert.deepEqual(rotated, [before])
  const cleared = t.mock.method(globalThis, 'clearInterval')
  unwatch()
  assert.equal(cleared.mock.callCount(), 1)
  await rotateToken(home)
  t.mock.timers.tick(5_000)
  await turn()
  await file.identify('x')
  assert.equal(rotated.length, 1)
})

/** Slower than a disk that answers from memory. */
const slowly = (() => {
  for (const began = performance.now(); performance.now() - began < 6; );
}) as never

test('a disk that is slow to tell holds up a right token for a moment, and a wrong one until it tells', { timeout: 10_000 }, async t => {
  const { home, file, token, accepts } = await aToken(t)
  assert.ok(await accepts(token))
  const telling = latch()
  const { stat: tells } = fs
  t.mock.method(fs, 'stat', ((...args: Parameters<typeof tells>) => void telling.opened.then(() => tells(...args))) as never)
  t.mock.method(fs, 'statSync').mock.mockImplementationOnce(slowly)
  mockedBuiltins(t)
  await accepts(token) // finds that it is slow
  const replaced = await rotateToken(home)
  assert.ok(await accepts(token))
  const asked = file.identify(replaced)
  telling.open()
  assert.ok(await asked)
  assert.equal(await accepts(token), false)
})

test('a token that is newer than what a look under way sees is not wrong: the next look decides', { timeout: 10_000 }, async t => {
  const { home, path, file, token, accepts } = await aToken(t)
  assert.ok(await accepts(token))
  const telling = latch()
  const { statSync } = fs
  const late = (answered: (error: null, found: fs.Stats) => void) => {
    const seen = statSync(path) // now, whenever it is told
    void telling.opened.then(() => answered(null, seen))
  }
  t.mock.method(fs, 'stat', ((_path: string, answered: Parameters<typeof late>[0]) => late(answered)) as never)
  t.mock.method(fs, 'statSync').mock.mockImplementationOnce(slowly)
  mockedBuiltins(t)
  await accepts(token) // finds that it is slow
  assert.ok(await accepts(token))
  const replaced = await rotateToken(home)
  const asked = [file.identify(replaced), file.identify('x')]
  telling.open()
  const [newer, wrong] = await Promise.all(asked)
  assert.deepEqual([newer?.kind, wrong], ['token', undefined])
})

test('rotations at the same time are made one way or the other, and an empty file is no token', async () => {
  const home = await freshDir()
  await writeFile(tokenPath(home), '', { mode: 0o600 })
  await createGate(testEnvironment({ home }))
  assert.match(readToken(home) ?? '', /^[\w-]{43}$/)
  const made = await Promise.all([1, 2, 3, 4].map(() => rotateToken(home)))
  assert.ok(made.includes(readToken(home) ?? ''))
})

test('of many passwords at once two are hashed, sixteen wait, and the others are wrong', { timeout: 60_000 }, async () => {
  const password = await Password.from('right')
  const wrong = Array.from({ length: 18 }, (_, n) => `wrong ${n}`)
  const verdicts = await Promise.all([...wrong, 'right'].map(each => password.verify(each)))
  assert.ok(!verdicts.includes(true))
  assert.equal(await password.verify('right'), true)
  assert.equal(await password.verify('x'.repeat(1025)), false)
})

test('a client that begins with many requests at once is let in with each, and its address is not banned', {
  timeout: 60_000
}, async () => {
  const gate = await createGate(testEnvironment({ home: await freshDir(), host: '0.0.0.0', password: 'right' }))
  const asked = () => request({ host: '127.0.0.1', authorization: 'Bearer right' }, { address: '10.0.0.1' })
  const found = await Promise.all(Array.from({ length: 60 }, () => gate.authenticate(asked())))
  assert.ok(found.every(principal => principal?.kind === 'password'))
  assert.equal(gate.check(asked()).refusal, undefined)
})

/** A raw upgrade to a hub whose gate decides when it is told to. */
async function undecided(t: TestContext) {
  const asked = latch()
  const decided = latch<Principal>()
  const gate = openGate({
    authenticateSocket: () => {
      asked.open()
      return decided.opened
    }
  })
  const it = await startHub(t, { gate })
  const socket = connect(Number(new URL(it.url).port), '127.0.0.1')
  socket.on('error', () => undefined)
  socket.write(
    'GET /api/v1/ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n'
  )
  await asked.opened
  return { ...it, socket, admit: () => decided.open({ id: 'late', kind: 'token', scopes: 'all' }) }
}

test('an upgrade whose credential is still being checked when the server stops, or whose client has gone, opens no connection', async t => {
  const stopping = await undecided(t)
  await stopping.hub.clients.close()
  stopping.admit()
  await once(stopping.socket, 'close')
  assert.deepEqual(stopping.hub.clients.list(), [])

  const gone = await undecided(t)
  gone.socket.resetAndDestroy()
  const other = connect(Number(new URL(gone.url).port), '127.0.0.1')
  await once(other, 'connect') // by then the server has heard of the reset
  other.destroy()
  for (let n = 0; n < 5; n++) await turn()
  gone.admit()
  for (let n = 0; n < 5; n++) await turn()
  assert.deepEqual(gone.hub.clients.list(), [])
})

test('an upgrade that cannot be checked is answered 500, one that is refused has the headers of every answer', async t => {
  const answer = async (gate: Parameters<typeof openGate>[0]) => {
    const { url } = await startHub(t, { gate: openGate(gate) })
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    let text = ''
    socket.on('data', data => {
      text += String(data)
    })
    socket.write('GET /api/v1/ws HTTP/1.1\r\nhost: localhost\r\nconnection: Upgrade\r\nupgrade: websocket\r\n\r\n')
    await once(socket, 'close')
    return text
  }
  const failing = () => {
    throw new Error('disk')
  }
  assert.match(await answer({ check: failing }), /^HTTP\/1\.1 500 [\s\S]*"code":50001/)
  const refused = await answer({ authenticateSocket: async () => undefined, securityHeaders: { 'x-content-type-options': 'nosniff' } })
  assert.match(refused, /^HTTP\/1\.1 401 [\s\S]*x-content-type-options: nosniff/)
})
