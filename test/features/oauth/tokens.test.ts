/** Stored tokens: when they are renewed, by whom, and what a refusal leaves behind. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../../features/config/index.ts'
import { logout, startLogin } from '../../../features/oauth/index.ts'
import { granted, refused } from '../../helpers/fake-oauth.ts'
import { scene } from './scene.ts'

const managed = 'managed:svc-code'
const body = {}
const second = 1_000

test('the credential file belongs to its owner alone', async t => {
  const { home, logIn } = await scene(t)
  await logIn()

  assert.equal((await stat(join(home, 'credentials', 'svc-code.json'))).mode & 0o777, 0o600)
  assert.equal((await stat(join(home, 'credentials'))).mode & 0o777, 0o700)
})

test('a token is renewed when less than half of its life or 300 s are left, not before', async t => {
  const { login, fake, clock, logIn, credential } = await scene(t)
  await logIn()

  clock.now += 1800 * second
  assert.equal(await login.accessToken(managed), 'access-token-1')
  clock.now += 1 * second
  assert.equal(await login.accessToken(managed), 'access-token-renewed-1')
  assert.deepEqual(fake.asked('refresh')[0]?.form, {
    grant_type: 'refresh_token',
    refresh_token: 'refresh-token-1',
    client_id: 'client-1'
  })
  assert.equal((await credential())?.refresh_token, 'refresh-token-renewed-1')

  fake.answer('refresh', [granted('brief', { expires_in: 400, refresh_token: undefined })])
  assert.equal(await login.accessToken(managed, { force: true }), 'access-token-brief')
  assert.equal((await credential())?.refresh_token, 'refresh-token-renewed-1')
  clock.now += 101 * second
  fake.answer('refresh', [granted('after')])
  assert.equal(await login.accessToken(managed), 'access-token-after')
})

test('everybody who asks at once shares one renewal', async t => {
  const { login, fake, clock, logIn } = await scene(t)
  await logIn()
  clock.now += 3600 * second

  const tokens = await Promise.all([1, 2, 3].map(() => login.accessToken(managed)))

  assert.deepEqual([new Set(tokens).size, fake.asked('refresh').length], [1, 1])
})

for (const { why, later, options } of [
  { why: 'is due', later: 3600, options: {} },
  { why: 'was refused', later: 0, options: { force: true, refused: 'access-token-1' } }
])
  test(`two servers on one home whose token ${why} renew once`, async t => {
    const one = await scene(t)
    await one.logIn()
    const { fake, home, clock } = one
    const two = await scene(t, { fake, home, clock })
    clock.now += later * second
    let answer: () => void = () => undefined
    const held = new Promise<void>(resolve => {
      answer = resolve
    })
    fake.answer('refresh', async () => {
      await held
      return granted('shared')
    })

    const tokens = Promise.all([one, two].map(({ login }) => login.accessToken(managed, options)))
    await fake.reached('refresh', 1)
    answer()

    assert.deepEqual(await tokens, ['access-token-shared', 'access-token-shared'])
    assert.equal(fake.asked('refresh').length, 1)
  })

test('a renewal is tried three times on faults of the server', async t => {
  const { login, fake, clock, logIn } = await scene(t)
  await logIn()
  clock.now += 3600 * second
  fake.answer('refresh', [{ status: 503 }, { cut: true }, granted('third')])

  assert.equal(await login.accessToken(managed), 'access-token-third')
  assert.equal(fake.asked('refresh').length, 3)
})

test('after three faults a token that still lives is used, one that is over is an error with a text', async t => {
  const { login, fake, clock, logIn } = await scene(t)
  await logIn()
  fake.answer('refresh', [{ status: 429 }])

  clock.now += 3000 * second
  assert.equal(await login.accessToken(managed), 'access-token-1')
  clock.now += 600 * second
  await assert.rejects(login.accessToken(managed), /HTTP 429/)
  assert.equal(fake.asked('refresh').length, 6)
  assert.equal(login.status(managed), 'authenticated')
})

test('a renewal whose grant is invalid leaves a tombstone: revoked, and nobody asks again', async t => {
  for (const status of [400, 401, 403]) {
    const { login, fake, clock, logIn, credential } = await scene(t)
    await logIn()
    fake.answer('refresh', [{ ...refused('invalid_grant'), status }])
    clock.now += 1801 * second

    assert.equal(await login.accessToken(managed), undefined)
    assert.equal(await login.accessToken(managed), undefined)

    assert.equal(login.status(managed), 'revoked')
    assert.equal(fake.asked('refresh').length, 1)
    assert.deepEqual([(await credential())?.access_token, (await credential())?.refresh_token], ['', ''])
  }
})

test('a login survives a refusal that does not speak of its grant: a proxy that says 403, a client that is not let in', async t => {
  for (const refusal of [{ status: 403 }, { status: 401 }, { ...refused('invalid_client'), status: 401 }, refused('unauthorized_client')]) {
    const { login, fake, clock, logIn } = await scene(t)
    await logIn()
    fake.answer('refresh', [refusal, granted('after')])
    clock.now += 3601 * second

    await assert.rejects(login.accessToken(managed), /HTTP 40/)

    assert.equal(login.status(managed), 'authenticated')
    assert.equal(await login.accessToken(managed), 'access-token-after')
  }
})

test('a login after a refusal begins anew', async t => {
  const { call, login, fake, logIn, settled } = await scene(t)
  await logIn()
  fake.answer('refresh', [refused('invalid_grant')])
  await login.accessToken(managed, { force: true })
  fake.answer('poll', [granted(2)])

  assert.equal((await call(startLogin, { body })).data.status, 'pending')
  await settled()
  assert.equal(await login.accessToken(managed), 'access-token-2')
})

test('a token without a way to renew it is expired once it is over', async t => {
  const { login, home, clock } = await scene(t)
  const expires_at = clock.now / 1000 + 60
  await mkdir(join(home, 'credentials'))
  await writeFile(
    join(home, 'credentials', 'svc-code.json'),
    JSON.stringify({ access_token: 'last', refresh_token: '', expires_at, scope: '', token_type: 'Bearer', expires_in: 3600 })
  )

  assert.deepEqual([login.status(managed), await login.accessToken(managed)], ['authenticated', 'last'])
  clock.now += 60 * second
  assert.deepEqual([login.status(managed), await login.accessToken(managed)], ['expired', undefined])
})

test('what is no credential counts as not logged in', async t => {
  const { login, home } = await scene(t)
  await mkdir(join(home, 'credentials'))
  await writeFile(join(home, 'credentials', 'svc-code.json'), '{"access_token":')

  assert.deepEqual([login.status(managed), login.status('nobody')], ['unauthenticated', 'unauthenticated'])
  assert.deepEqual([await login.accessToken(managed), await login.accessToken('nobody')], [undefined, undefined])
})

test('what would hold a reader up is no credential', async t => {
  const { login, home } = await scene(t)
  await mkdir(join(home, 'credentials'))
  const file = join(home, 'credentials', 'svc-code.json')
  const places: (() => Promise<unknown> | unknown)[] = [
    () => execFileSync('mkfifo', [file]),
    () => mkdir(file),
    () => symlink(file, file),
    () => writeFile(file, ' '.repeat(10 * 1024 * 1024))
  ]

  for (const place of places) {
    await place()
    assert.deepEqual([login.status(managed), await login.accessToken(managed)], ['unauthenticated', undefined])
    await rm(file, { recursive: true })
  }
})

test('rights that others were given on credentials are taken away at the start', async t => {
  const one = await scene(t)
  await one.logIn()
  const { fake, home, clock } = one
  await one.stop()
  await chmod(join(home, 'credentials'), 0o755)
  await chmod(join(home, 'credentials', 'svc-code.json'), 0o644)

  const { login } = await scene(t, { fake, home, clock })

  assert.equal((await stat(join(home, 'credentials'))).mode & 0o777, 0o700)
  assert.equal((await stat(join(home, 'credentials', 'svc-code.json'))).mode & 0o777, 0o600)
  assert.equal(login.status(managed), 'authenticated')
})

test('a clock that was set back makes a renewal due', async t => {
  const { login, clock, logIn } = await scene(t)
  await logIn()

  clock.now -= 200 * second
  assert.equal(await login.accessToken(managed), 'access-token-1')
  clock.now -= 200 * second
  assert.equal(await login.accessToken(managed), 'access-token-renewed-1')
})

test('a renewal that cannot be written is used, renewed from memory, and written as soon as it can be', async t => {
  const { login, fake, home, logIn, credential } = await scene(t)
  await logIn()
  const obstacle = join(home, 'credentials', 'svc-code.json~')
  await mkdir(obstacle)

  assert.equal(await login.accessToken(managed, { force: true }), 'access-token-renewed-1')
  assert.equal(await login.accessToken(managed), 'access-token-renewed-1')
  assert.equal(await login.accessToken(managed, { force: true }), 'access-token-renewed-2')
  assert.equal((await credential())?.refresh_token, 'refresh-token-1')
  assert.deepEqual(
    fake.asked('refresh').map(({ form }) => form.refresh_token),
    ['refresh-token-1', 'refresh-token-renewed-1']
  )
  await rm(obstacle, { recursive: true })
  assert.equal(await login.accessToken(managed), 'access-token-renewed-2')
  assert.equal((await credential())?.refresh_token, 'refresh-token-renewed-2')
  const saved = { ...(await credential()), access_token: 'of another server' }
  await writeFile(join(home, 'credentials', 'svc-code.json'), JSON.stringify(saved))
  assert.equal(await login.accessToken(managed), 'of another server')
})

test('a renewal that could not be written is written at the latest when the server stops', async t => {
  const { login, home, logIn, credential, stop } = await scene(t)
  await logIn()
  const obstacle = join(home, 'credentials', 'svc-code.json~')
  await mkdir(obstacle)
  await login.accessToken(managed, { force: true })
  await rm(obstacle, { recursive: true })

  await stop()

  assert.equal((await credential())?.refresh_token, 'refresh-token-renewed-1')
})

test('a logout forgets a renewal that could not be written', async t => {
  const { call, login, home, logIn, credential } = await scene(t)
  await logIn()
  const obstacle = join(home, 'credentials', 'svc-code.json~')
  await mkdir(obstacle)
  await login.accessToken(managed, { force: true })

  await call(logout, { body })
  await rm(obstacle, { recursive: true })

  assert.deepEqual([await login.accessToken(managed), await credential()], [undefined, undefined])
})

test('a caller that gives up does not end the renewal of the others', async t => {
  const { login, fake, clock, logIn } = await scene(t)
  await logIn()
  clock.now += 3600 * second
  let answer: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  fake.answer('refresh', async () => {
    await held
    return granted('late')
  })
  const abort = new AbortController()

  const left = login.accessToken(managed, { signal: abort.signal })
  const waits = login.accessToken(managed)
  await fake.reached('refresh', 1)
  abort.abort(new Error('gone'))
  await assert.rejects(left, /gone/)
  answer()

  assert.equal(await waits, 'access-token-late')
})

test('logout takes everything of the login away and leaves the rest', async t => {
  const { call, rest, home, logIn, login, credential } = await scene(t)
  await rest.json('POST', '/api/v1/config', {
    providers: { mine: { type: 'compat_chat', api_key: 'key-of-mine' } },
    models: { 'mine/a': { provider: 'mine', model: 'a', max_context_size: 1000 } }
  })
  await logIn()

  assert.deepEqual((await call(logout, { body })).data, { logged_out: true, provider: managed })

  const { data } = await call(readConfig)
  assert.deepEqual([Object.keys(data.providers), Object.keys(data.models), data.default_model], [['mine'], ['mine/a'], undefined])
  assert.deepEqual([data.raw.services, data.raw.thinking], [undefined, undefined])
  assert.deepEqual([await credential(), login.status(managed)], [undefined, 'unauthenticated'])
  assert.deepEqual(
    (await readdir(join(home, 'credentials'))).filter(name => name.endsWith('.json')),
    []
  )
  assert.equal((await call(logout, { body })).code, 0)
})

test('a renewal that ends after the logout brings nothing back', async t => {
  const { call, login, fake, clock, logIn, credential } = await scene(t)
  await logIn()
  clock.now += 3600 * second
  let answer: () => void = () => undefined
  const held = new Promise<void>(resolve => {
    answer = resolve
  })
  fake.answer('refresh', async () => {
    await held
    return granted('late')
  })

  const token = login.accessToken(managed)
  await fake.reached('refresh', 1)
  await call(logout, { body })
  answer()

  assert.equal(await token, undefined)
  assert.equal(await credential(), undefined)
})

test('a model list that cannot be had does not spoil the login; the next one asks again', async t => {
  const { call, fake, logIn } = await scene(t, { scripts: { models: [{ status: 500 }] } })
  await logIn()

  const before = (await call(readConfig)).data
  assert.deepEqual([before.providers[managed]?.type, before.models, before.default_model], ['svc', {}, undefined])
  fake.answer('models', [{ body: { data: [{ id: 'only', context_length: 1000 }] } }])
  assert.equal((await call(startLogin, { body })).data.status, 'authenticated')
  assert.equal((await call(readConfig)).data.default_model, 'svc-code/only')
})

test('a configuration that cannot be saved fails the login with a text and keeps the credential', async t => {
  const { call, fake, home, settled, credential, login } = await scene(t, { scripts: { poll: [granted()] } })
  await writeFile(join(home, 'config.toml'), 'not toml')
  await chmod(join(home, 'config.toml'), 0o600)

  await call(startLogin, { body })
  const flow = await settled()

  assert.equal(flow.status, 'denied')
  assert.match(flow.error_message ?? '', /config\.toml cannot be used/)
  assert.equal((await credential())?.access_token, 'access-token-1')
  assert.equal(login.status(managed), 'authenticated')
  assert.equal(fake.asked('poll').length, 1)
})

test('a pack that goes leaves no timer behind', async t => {
  const { kernel } = await scene(t)
  const armed = t.mock.method(globalThis, 'setTimeout')
  const cleared = t.mock.method(globalThis, 'clearTimeout')

  await kernel.unload('oauth')

  const graces = armed.mock.calls.filter(({ arguments: [, ms] }) => ms === 1500).map(({ result }) => result)
  assert.equal(graces.length, 1)
  const gone = cleared.mock.calls.map(({ arguments: [timer] }) => timer)
  assert.ok(graces.every(timer => gone.includes(timer)))
})
