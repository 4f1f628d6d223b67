/** What ends a managed login: DELETE, logout, other changes, a stop of the server, a client that goes (contract 1, Managed login flow). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, MANAGED, start_time } from '../helpers/account.ts'
import { deviceCode, type FakeAnswer, granted, refused } from '../helpers/fake-oauth.ts'
import { latch } from '../helpers/latch.ts'

const pending = refused('authorization_pending')
const hanging: FakeAnswer = { hang: true }

test('DELETE and logout are heard while a granted login is being finished: it is finished first', async t => {
  const listed = latch<FakeAnswer>()
  const { api, begin, fake, credential } = await account(t, { scripts: { poll: [granted()], models: () => listed.opened } })
  await begin()
  await fake.reached('models', 1)

  const cancelled = api('DELETE', '/oauth/login')
  const loggedOut = api('POST', '/oauth/logout', {})
  listed.open({ body: { data: [{ id: 'large', context_length: 1000 }] } })

  assert.deepEqual((await cancelled).data, { cancelled: false, status: 'authenticated' })
  assert.deepEqual((await loggedOut).data, { logged_out: true, provider: MANAGED })
  assert.equal(await credential(), undefined)
  const { data } = await api('GET', '/config')
  assert.deepEqual([data.providers, data.models, data.default_model], [{}, {}, undefined])
})

test('logout at once after a login begins leaves nothing pending and nothing behind', async t => {
  const { api, fake, credential } = await account(t, { scripts: { poll: [granted()] } })
  const code = latch<FakeAnswer>()
  fake.answer('device', () => code.opened)
  const login = api('POST', '/oauth/login', {})
  await fake.reached('device', 1)

  const logout = api('POST', '/oauth/logout', {})
  assert.equal((await logout).code, 0)
  code.open(deviceCode())

  assert.equal((await login).code, 50001)
  assert.deepEqual([(await api('GET', '/oauth/login')).data, await credential(), fake.asked('poll').length], [null, undefined, 0])
})

test('logout waits for no upstream: not for a refresh of a login that begins', async t => {
  const { api, fake, writeCredential, credential } = await account(t, { scripts: { refresh: [hanging], device: [hanging] } })
  await writeCredential({ expires_at: start_time / 1000 - 60 })
  const login = api('POST', '/oauth/login', {})
  await fake.reached('refresh', 1)

  assert.equal((await api('POST', '/oauth/logout', {})).code, 0)

  assert.equal((await login).code, 50001)
  assert.equal(await credential(), undefined)
})

test('logout takes the managed provider, its models, services and defaults, tells by event, and leaves other providers', async t => {
  const { api, events, logIn, credential, home } = await account(t)
  const mine = {
    providers: { mine: { type: 'compat_chat', api_key: 'key-of-mine', base_url: 'http://127.0.0.1:9/v1' } },
    models: { 'mine/a': { provider: 'mine', model: 'a', max_context_size: 1000 } }
  }
  assert.equal((await api('POST', '/config', mine)).code, 0)
  await logIn()
  const before = (await api('GET', '/config')).data
  assert.deepEqual([before.default_model, Object.keys(before.providers)], ['svc-code/large', ['mine', MANAGED]])
  const seen = events.length

  assert.deepEqual((await api('POST', '/oauth/logout', {})).data, { logged_out: true, provider: MANAGED })

  const { data } = await api('GET', '/config')
  assert.deepEqual(
    [Object.keys(data.providers), Object.keys(data.models), data.default_model, data.raw.services],
    [['mine'], ['mine/a'], undefined, undefined]
  )
  const changed = events.slice(seen).filter(({ type }) => type === 'event.config.changed')
  assert.equal(changed.length, 1)
  const { changed_fields } = changed[0]!.payload as { changed_fields: string[] }
  for (const field of ['providers', 'models', 'services', 'default_model']) assert.ok(changed_fields.includes(field), field)
  assert.equal(await credential(), undefined)
  assert.deepEqual((await api('GET', '/auth')).data, { ready: false, providers_count: 1, default_model: null, managed_provider: null })
  assert.ok(home.length > 0)
})

test('logout that was never logged in, twice, and with another default model', async t => {
  const { api, logIn, events } = await account(t)
  for (const _ of [1, 2]) assert.deepEqual((await api('POST', '/oauth/logout', {})).data, { logged_out: true, provider: MANAGED })
  assert.equal(events.length, 0)
  await logIn()
  const other = {
    providers: { mine: { type: 'compat_chat', api_key: 'k' } },
    models: { 'mine/a': { provider: 'mine', model: 'a', max_context_size: 1000 } },
    default_model: 'mine/a'
  }
  assert.equal((await api('POST', '/config', other)).code, 0)

  await api('POST', '/oauth/logout', {})

  assert.deepEqual((await api('GET', '/auth')).data, { ready: true, providers_count: 1, default_model: 'mine/a', managed_provider: null })
})

test('logout of a provider with a login of its own makes it go; without one, or with one that others use, nothing of others goes', async t => {
  const provider = (id: string, key: string) =>
    `[providers.${id}]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\noauth = { storage = "file", key = "${key}" }\n`
  const model = (id: string) => `[models."${id}/a"]\nprovider = "${id}"\nmodel = "a"\nmax_context_size = 1000\n`
  const keyed = '[providers.keyed]\ntype = "compat_chat"\napi_key = "k"\n'
  const all = [provider('own', 'own'), provider('shares', 'shared'), provider('two', 'shared'), provider('close', 'svc-code'), keyed]
  const toml = `default_model = "own/a"\n${all.join('')}${model('own')}${model('two')}`
  const { api, fake, begin, logIn, writeCredential, credential } = await account(t, { toml })
  await logIn()
  fake.answer('poll', [hanging])
  for (const slot of ['own', 'shared']) await writeCredential({}, slot)
  await begin({ region: 'global' })
  assert.equal((await api('DELETE', '/providers/own')).code, 40003)

  for (const id of ['own', 'shares', 'close', 'keyed', 'none']) {
    assert.deepEqual((await api('POST', '/oauth/logout', { provider: id })).data, { logged_out: true, provider: id })
  }

  const { data } = await api('GET', '/config')
  assert.deepEqual(Object.keys(data.providers), ['two', 'keyed', MANAGED])
  assert.deepEqual(Object.keys(data.models), ['two/a', 'svc-code/large', 'svc-code/small'])
  assert.equal(data.default_model, undefined)
  assert.equal(await credential('own'), undefined)
  assert.ok((await credential('shared')) && (await credential('svc-code')))
  assert.equal((await api('GET', '/oauth/login')).data.status, 'pending')
  assert.equal((await api('GET', '/auth')).data.managed_provider.status, 'authenticated')
})

test('logins, cancels and logouts in any mixture end in one state: what was asked for last', async t => {
  const { api, credential, settled } = await account(t, { scripts: { poll: (_, n) => (n % 3 === 0 ? pending : granted(n)) } })
  const ways = [
    () => api('POST', '/oauth/login', {}),
    () => api('POST', '/oauth/login', { region: 'global' }),
    () => api('DELETE', '/oauth/login'),
    () => api('POST', '/oauth/logout', {}),
    () => api('GET', '/oauth/login')
  ]
  let seed = 7
  const next = () => {
    seed = (seed * 48_271) % 2_147_483_647
    return ways[seed % ways.length]!
  }
  for (let round = 0; round < 4; round++) {
    const answers: ReturnType<typeof api>[] = []
    for (let n = 0; n < 12; n++) {
      answers.push(next()())
      if (n % 3 === 0) await api('GET', '/oauth/region')
    }
    for (const { code, msg } of await Promise.all(answers))
      assert.ok(code === 0 || (code === 50001 && /cancelled/.test(msg)), `${code} ${msg}`)

    if (round % 2 === 0) {
      assert.equal((await api('POST', '/oauth/logout', {})).code, 0)
      const { data } = await api('GET', '/config')
      assert.deepEqual([data.providers, data.models, data.default_model], [{}, {}, undefined])
      assert.deepEqual([await credential('svc-code'), await credential('svc-code-global')], [undefined, undefined])
      assert.notEqual((await api('GET', '/oauth/login')).data?.status, 'pending')
    } else {
      assert.equal((await api('POST', '/oauth/login', {})).code, 0)
      assert.equal((await settled()).status, 'authenticated')
      const { data } = await api('GET', '/auth')
      assert.deepEqual([data.ready, data.managed_provider.status], [true, 'authenticated'])
    }
  }
})

test('a change of the managed provider during a flow cancels it; a change of another one does not', async t => {
  const { api, begin, settled, fake } = await account(t, { scripts: { poll: [hanging] } })
  await begin()
  await fake.reached('poll', 1)
  await api('POST', '/config', { providers: { mine: { type: 'compat_chat', api_key: 'k' } }, telemetry: false })
  assert.equal((await api('GET', '/oauth/login')).data.status, 'pending')

  await api('POST', '/config', { providers: { [MANAGED]: { type: 'svc', base_url: 'http://127.0.0.1:9/v1' } } })

  assert.equal((await settled()).status, 'cancelled')
})

test('a stop of the server ends a pending flow; after a restart there is none', async t => {
  const first = await account(t, { scripts: { poll: [hanging] } })
  await first.begin()
  await first.fake.reached('poll', 1)

  await first.stop()

  assert.equal(await first.fake.asked('poll')[0]?.closed, 'client')
  const again = await account(t, { fake: first.fake, home: first.home })
  assert.equal((await again.api('GET', '/oauth/login')).data, null)
  assert.deepEqual((await again.api('DELETE', '/oauth/login')).data, { cancelled: false, status: 'cancelled' })
})

test('a client that goes away before its code came leaves no flow', async t => {
  const { fake, api, url, token } = await account(t, { scripts: { device: [hanging] } })
  const gone = new AbortController()
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const login = fetch(`${url}/api/v1/oauth/login`, { method: 'POST', headers, body: '{}', signal: gone.signal })
  await fake.reached('device', 1)

  gone.abort()

  await assert.rejects(login)
  assert.equal(await fake.asked('device')[0]?.closed, 'client')
  assert.equal((await api('GET', '/oauth/login')).data, null)
})

test('validation: bodies, regions and provider names', async t => {
  const { api, rest, fake } = await account(t)
  const wrong: readonly (readonly [string, string, unknown, string])[] = [
    ['POST', '/oauth/login', undefined, 'body'],
    ['POST', '/oauth/login', null, 'body'],
    ['POST', '/oauth/login', [], 'body'],
    ['POST', '/oauth/login', { region: 'mars' }, 'body.region'],
    ['POST', '/oauth/login', { region: '' }, 'body.region'],
    ['POST', '/oauth/login', { region: null }, 'body.region'],
    ['POST', '/oauth/login', { region: ['global'] }, 'body.region'],
    ['POST', '/oauth/login', { provider: '' }, 'body.provider'],
    ['POST', '/oauth/login', { provider: 7 }, 'body.provider'],
    ['POST', '/oauth/login', { provider: 'other' }, 'body.provider'],
    ['POST', '/oauth/logout', undefined, 'body'],
    ['POST', '/oauth/logout', { provider: null }, 'body.provider'],
    ['GET', '/oauth/login?provider=', undefined, 'query.provider'],
    ['DELETE', '/oauth/login?provider=', undefined, 'query.provider'],
    ['GET', '/oauth/usage?provider=', undefined, 'query.provider'],
    ['GET', '/oauth/userinfo?provider=', undefined, 'query.provider']
  ]
  for (const [method, path, body, where] of wrong) {
    const { status, code, data, details } = await api(method, path, body)
    assert.deepEqual([status, code, data, details?.[0]?.path], [200, 40001, null, where], `${method} ${path} ${JSON.stringify(body)}`)
  }
  assert.equal(fake.asked('device').length, 0)
  assert.equal((await api('GET', '/oauth/login?provider=other')).data, null)
  assert.deepEqual((await api('DELETE', '/oauth/login?provider=other')).data, { cancelled: false, status: 'cancelled' })
  assert.deepEqual((await api('POST', '/oauth/logout', { provider: 'other' })).data, { logged_out: true, provider: 'other' })
  assert.equal((await api('POST', '/oauth/login', { provider: MANAGED, region: 'global', unknown: 1 })).code, 0)
  for (const [method, path] of [
    ['POST', 'login'],
    ['GET', 'login'],
    ['DELETE', 'login'],
    ['POST', 'logout'],
    ['GET', 'usage'],
    ['GET', 'userinfo'],
    ['GET', 'region']
  ] as const) {
    const answer = await rest.raw(method, `/api/v1/oauth/${path}`, { token: null })
    assert.deepEqual([answer.status, JSON.parse(answer.body.toString()).code], [401, 40101], path)
  }
})
