/** Readiness, usage, user information and region on the full server (contract 1, Managed login and usage). */
import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TestContextLike } from '../../kernel/testing.ts'
import { type Account, account, MANAGED, start_time } from '../helpers/account.ts'
import { setEnvironment, withEnvironment } from '../helpers/environment.ts'
import { type FakeAnswer, fakeOauth, granted, refused } from '../helpers/fake-oauth.ts'

const now_s = start_time / 1000
const record = (more = '') => `[providers."${MANAGED}"]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\n${more}`
const withOauth = record('oauth = { storage = "file", key = "svc-code" }\n')
const aModel = `[models.m]\nprovider = "${MANAGED}"\nmodel = "m"\nmax_context_size = 1000\n`
const plain = (t: TestContextLike) =>
  withEnvironment(t, {
    SVC_CODE_REGION_MARKER: undefined,
    SVC_CODE_OAUTH_HOST: undefined,
    SVC_CODE_API_BASE_URL: undefined,
    SVC_CODE_OAUTH_CLIENT_ID: undefined
  })

test('readiness on a fresh home: nothing is there, and every key is', async t => {
  const { api } = await account(t)

  assert.deepEqual((await api('GET', '/auth')).data, { ready: false, providers_count: 0, default_model: null, managed_provider: null })
})

test('readiness shows each state of the managed login; only a revoked one is in the way', async t => {
  const { api, writeCredential } = await account(t, { toml: `default_model = "m"\n${withOauth}${aModel}` })
  const auth = async () => (await api('GET', '/auth')).data
  const expected = (status: string) => ({
    ready: status !== 'revoked',
    providers_count: 1,
    default_model: 'm',
    managed_provider: { name: MANAGED, status }
  })

  assert.deepEqual(await auth(), expected('unauthenticated'))
  await writeCredential({ expires_at: now_s + 3600 })
  assert.deepEqual(await auth(), expected('authenticated'))
  await writeCredential({ expires_at: now_s - 3600 })
  assert.deepEqual(await auth(), expected('authenticated'))
  await writeCredential({ expires_at: now_s - 3600, refresh_token: '' })
  assert.deepEqual(await auth(), expected('expired'))
  await writeCredential({ access_token: '', refresh_token: '' })
  assert.deepEqual(await auth(), expected('revoked'))
  await writeCredential({ access_token: 7 })
  assert.deepEqual(await auth(), expected('unauthenticated'))
})

test('readiness without a default model, or with a provider that the login did not set up', async t => {
  const { api, home } = await account(t, { toml: withOauth })
  assert.deepEqual((await api('GET', '/auth')).data, {
    ready: false,
    providers_count: 1,
    default_model: null,
    managed_provider: { name: MANAGED, status: 'unauthenticated' }
  })

  await writeFile(join(home, 'config.toml'), `default_model = "  "\n${record()}`)

  assert.deepEqual((await api('GET', '/auth')).data, {
    ready: false,
    providers_count: 1,
    default_model: null,
    managed_provider: { name: MANAGED, status: 'unauthenticated' }
  })
})

test('usage: every field, numbers as text, windows folded, the wallet in cents', async t => {
  const { api, fake, logIn } = await account(t)
  await logIn()
  const minutes = (duration: unknown) => ({ window: { duration, timeUnit: 'TIME_UNIT_MINUTE' }, detail: { used: '1', limit: '2' } })
  fake.answer('usages', [
    {
      body: {
        usage: { used: '120.9', limit: 1000, resetTime: '2026-11-23T00:00:00Z', name: 'Weekly' },
        limits: [
          minutes(300),
          minutes('60'),
          minutes(90),
          minutes(59),
          { window: { duration: 2, timeUnit: 'TIME_UNIT_HOUR' }, detail: { used: 0, limit: 5 } },
          { window: { duration: 1, timeUnit: 'TIME_UNIT_WEEK' }, detail: { used: 'many', limit: 5 } },
          { name: 'none', detail: { used: null, limit: 'x' } },
          { name: 'no detail' },
          null,
          'text'
        ],
        boosterWallet: {
          balance: { type: 'BOOSTER', amount: '2000000000', amountLeft: 1_499_999_999 },
          monthlyChargeLimitEnabled: false,
          monthlyChargeLimit: { priceInCents: '2500' },
          monthlyUsed: { priceInCents: 125, currency: 'EUR' }
        }
      }
    }
  ])

  const { code, data } = await api('GET', '/oauth/usage')

  const row = { used: 1, limit: 2 }
  assert.deepEqual(
    [code, data],
    [
      0,
      {
        kind: 'ok',
        summary: { name: 'Weekly', window: { duration: 1, unit: 'week' }, used: 120, limit: 1000, reset_at: '2026-11-23T00:00:00Z' },
        limits: [
          { window: { duration: 5, unit: 'hour' }, ...row },
          { window: { duration: 1, unit: 'hour' }, ...row },
          { window: { duration: 90, unit: 'minute' }, ...row },
          { window: { duration: 59, unit: 'minute' }, ...row },
          { window: { duration: 2, unit: 'hour' }, used: 0, limit: 5 },
          { window: { duration: 1, unit: 'week' }, used: 0, limit: 5 }
        ],
        extra_usage: {
          balance_cents: 1500,
          total_cents: 2000,
          monthly_charge_limit_enabled: false,
          monthly_charge_limit_cents: 2500,
          monthly_used_cents: 125,
          currency: 'EUR'
        }
      }
    ]
  )
})

test('usage: what is not there is null or empty, never left out; answers that are none are in-band', async t => {
  const { api, fake, logIn } = await account(t)
  await logIn()
  const empty = { kind: 'ok', summary: null, limits: [], extra_usage: null }
  for (const body of [{}, { usage: null, limits: null, boosterWallet: null }, { usage: { name: 'x' }, limits: {}, boosterWallet: [] }]) {
    fake.answer('usages', [{ body }])
    assert.deepEqual((await api('GET', '/oauth/usage')).data, empty)
  }
  for (const body of ['[]', '7', 'null']) {
    fake.answer('usages', [{ body }])
    assert.deepEqual((await api('GET', '/oauth/usage')).data, {
      kind: 'error',
      message: 'the account service answered with no usage',
      status: 200
    })
  }
})

test('user information: every field in its place, nothing else', async t => {
  const { api, fake, logIn } = await account(t)
  await logIn()
  fake.answer('me', [
    {
      body: {
        user_id: 'user-1',
        nickname: 'Nick',
        status: 'active',
        region: 'global',
        user_level: 3,
        user_level_name: 'Pro',
        domain: 1,
        domain_name: 'Example',
        global_id: 'g-1',
        bio: 'hello',
        avatar: 'https://img.example/1.png',
        username: 'nick',
        email: 'nick@example.org',
        phone: { country_code: '86', number: '123' },
        created_time: '2026-01-01T00:00:00Z',
        last_login_time: 1_790_000_000,
        access_token: 'access-token-1',
        secret: 'x'
      }
    }
  ])

  assert.deepEqual((await api('GET', '/oauth/userinfo')).data, {
    kind: 'ok',
    userInfo: {
      userId: 'user-1',
      nickname: 'Nick',
      status: 'active',
      region: 'global',
      userLevel: 3,
      userLevelName: 'Pro',
      domain: 1,
      domainName: 'Example',
      globalId: 'g-1',
      bio: 'hello',
      avatar: 'https://img.example/1.png',
      username: 'nick',
      email: 'nick@example.org',
      phone: { countryCode: '86', number: '123' },
      createdTime: '2026-01-01T00:00:00Z',
      lastLoginTime: 1_790_000_000
    }
  })
})

const questions = [
  ['/oauth/usage', 'usages'],
  ['/oauth/userinfo', 'me']
] as const

test('failures of usage and user information stay in-band, with the HTTP status when there is one', async t => {
  const { api, fake, logIn } = await account(t)
  await logIn()
  const cases: readonly (readonly [FakeAnswer, string, number])[] = [
    [{ status: 403, body: { error: { message: 'no access' } } }, 'no access', 403],
    [{ status: 404 }, 'the account service does not know this request', 404],
    [{ status: 429, body: { detail: 'slower' } }, 'slower', 429],
    [{ status: 500, body: { errors: [{ message: 'broken' }] } }, 'broken', 500],
    [{ status: 503, body: '<html><h1>Bad gateway</h1>' }, 'the account service answered HTTP 503', 503],
    [{ status: 302, headers: { location: 'https://elsewhere.example' } }, 'the account service answered HTTP 302', 302],
    [{ status: 400, body: { message: 'x'.repeat(500) } }, `${'x'.repeat(300)}…`, 400],
    [{ status: 400, body: { message: ' ', detail: 7, error: 'two\nlines' } }, 'two lines', 400]
  ]
  for (const [path, question] of questions) {
    for (const [answer, message, status] of cases) {
      fake.answer(question, [answer])
      const { code, data } = await api('GET', path)
      assert.deepEqual([code, data], [0, { kind: 'error', message, status }])
    }
    fake.answer(question, [{ body: '<html>' }])
    const page = (await api('GET', path)).data
    assert.deepEqual([page.kind, page.status], ['error', 200])
    assert.match(page.message, /not JSON/)
    fake.answer(question, [{ body: { user_id: 'u', bio: 'x'.repeat(2 * 1024 * 1024) } }])
    assert.deepEqual((await api('GET', path)).data, page)
    fake.answer(question, [{ cut: true }])
    const cut = (await api('GET', path)).data
    assert.deepEqual([cut.kind, 'status' in cut], ['error', false])
    assert.match(cut.message, /could not be reached/)
  }
})

test('an account service that does not answer, or not to its end, is a failure without a status within its eight seconds', async t => {
  const { api, fake, logIn } = await account(t)
  await logIn()
  fake.answer('usages', [{ hang: true }])
  fake.answer('me', [{ stall: true }])

  const answers = await Promise.all(questions.map(([path]) => api('GET', path)))

  for (const { code, data } of answers) {
    assert.deepEqual([code, data.kind, 'status' in data], [0, 'error', false])
    assert.match(data.message, /did not answer within 8 s/)
  }
})

test('a 401 renews the token once; a second one, or a refused renewal, is in-band', async t => {
  for (const [path, question] of questions) {
    const { api, fake, logIn } = await account(t, {
      scripts: {
        [question]: ({ headers }: { headers: Readonly<Record<string, unknown>> }) =>
          headers.authorization === 'Bearer access-token-1' ? { status: 401 } : { body: { user_id: 'user-1' } }
      }
    })
    await logIn()

    assert.equal((await api('GET', path)).data.kind, 'ok')
    assert.deepEqual([fake.asked(question).length, fake.asked('refresh').length], [2, 1])

    fake.answer(question, [{ status: 401, body: { message: 'token access-token-renewed-2 is over' } }])
    assert.deepEqual((await api('GET', path)).data, { kind: 'error', message: 'token [redacted] is over', status: 401 })
    assert.deepEqual([fake.asked(question).length, fake.asked('refresh').length], [4, 2])

    fake.answer('refresh', [{ status: 503, body: { message: 'later, refresh-token-renewed-2' } }])
    const unreachable = (await api('GET', path)).data
    assert.deepEqual([unreachable.kind, unreachable.status], ['error', 503])
    assert.doesNotMatch(unreachable.message, /refresh-token/)

    fake.answer('refresh', [refused('invalid_grant')])
    const { data } = await api('GET', path)
    assert.deepEqual([data.kind, data.status], ['error', 401])
    assert.equal((await api('GET', '/auth')).data.managed_provider.status, 'revoked')
    assert.deepEqual((await api('GET', path)).data, { kind: 'error', message: 'not logged in' })
  }
})

test('without a login, with another provider and offline, usage and user information are in-band without a status', async t => {
  const { api, fake, logIn, writeCredential } = await account(t)
  for (const [path] of questions) {
    for (const query of ['', `?provider=${encodeURIComponent(MANAGED)}`, '?provider=other', '?provider=constructor']) {
      const { code, data } = await api('GET', path + query)
      assert.deepEqual([code, data], [0, { kind: 'error', message: 'not logged in' }])
    }
  }
  await writeCredential({ expires_at: now_s - 10, refresh_token: '' })
  assert.deepEqual((await api('GET', '/oauth/usage')).data, { kind: 'error', message: 'not logged in' })
  await logIn()
  const asked = fake.asked('usages').length
  assert.equal((await api('GET', '/oauth/usage?provider=managed%3Asvc-code')).data.kind, 'ok')
  assert.equal(fake.asked('usages').length, asked + 1)
})

test('offline: nobody is asked, and every answer says why', async t => {
  withEnvironment(t, { SVC_CODE_OFFLINE: '1' })
  const { api, writeCredential, clock } = await account(t, {
    toml: record('oauth = { storage = "file", key = "svc-code" }\n'),
    options: { oauth_host: 'http://login.example', api_base_url: 'http://api.example/v1' }
  })
  await writeCredential({ access_token: 'secret-token', expires_at: now_s + 3600 })

  const login = await api('POST', '/oauth/login', { region: 'global' })
  assert.equal(login.code, 50001)
  assert.match(login.msg, /runs offline/)
  clock.now += 7_200_000
  const { data } = await api('GET', '/oauth/usage')
  assert.deepEqual([data.kind, 'status' in data], ['error', false])
  assert.match(data.message, /runs offline/)
  assert.equal((await api('GET', '/oauth/region')).data.region, 'mainland-cn')
})

test('what is not set up is a 40001 that says everything that is to be set', async t => {
  plain(t)
  for (const options of [
    { client_id: '', oauth_host: '', api_base_url: '' },
    { client_id: ' ', oauth_host: 'login.example', api_base_url: 'ftp://api.example' }
  ]) {
    const { api, fake } = await account(t, { options })

    for (const body of [{ region: 'global' }, {}]) {
      const { status, code, msg, data, details } = await api('POST', '/oauth/login', body)
      assert.deepEqual([status, code, data], [200, 40001, null])
      for (const text of [msg, JSON.stringify(details)]) {
        for (const name of ['SVC_CODE_OAUTH_HOST', 'SVC_CODE_API_BASE_URL', 'SVC_CODE_OAUTH_CLIENT_ID', 'packs.config.oauth.client_id']) {
          assert.ok(text.includes(name), `${name} is not in ${text}`)
        }
      }
    }
    assert.equal((await api('GET', '/oauth/login')).data, null)
    assert.equal(fake.asked('device').length, 0)
  }
})

test('one setting that is missing is named alone', async t => {
  plain(t)
  const { api } = await account(t, { options: { client_id: '' } })

  const { code, msg } = await api('POST', '/oauth/login', {})

  assert.equal(code, 40001)
  assert.match(msg, /SVC_CODE_OAUTH_CLIENT_ID/)
  assert.doesNotMatch(msg, /SVC_CODE_OAUTH_HOST|SVC_CODE_API_BASE_URL/)
})

test('a value of the environment that is no address is named, and nothing else is used in its place', async t => {
  plain(t)
  const { api, fake } = await account(t)
  for (const name of ['SVC_CODE_OAUTH_HOST', 'SVC_CODE_API_BASE_URL']) {
    setEnvironment({ SVC_CODE_OAUTH_HOST: undefined, SVC_CODE_API_BASE_URL: undefined, [name]: 'login.example' })
    const { code, msg } = await api('POST', '/oauth/login', {})
    assert.equal(code, 40001, name)
    assert.ok(msg.includes(name), msg)
  }
  assert.equal(fake.asked('device').length, 0)
})

test('hosts and client id of the environment win over the options', async t => {
  plain(t)
  const { api, fake, begin, settled } = await account(t, {
    scripts: { poll: [granted()] },
    options: { oauth_host: 'http://127.0.0.1:9', api_base_url: 'http://127.0.0.1:9', client_id: 'other' }
  })
  setEnvironment({
    SVC_CODE_OAUTH_HOST: ` ${fake.oauth_host}/ `,
    SVC_CODE_API_BASE_URL: `${fake.api_base_url}/`,
    SVC_CODE_OAUTH_CLIENT_ID: 'client-env'
  })

  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.deepEqual(
    [...fake.asked('device'), ...fake.asked('poll')].map(({ form }) => form.client_id),
    ['client-env', 'client-env']
  )
  assert.equal((await api('GET', '/config')).data.providers[MANAGED].base_url, fake.api_base_url)
  assert.equal((await api('GET', '/auth')).data.managed_provider.status, 'authenticated')
  assert.equal((await api('GET', '/oauth/usage')).data.kind, 'ok')
  assert.equal((await api('GET', '/oauth/region')).data.region, 'mainland-cn')
})

test('hosts that only one region has: the others are not set up', async t => {
  plain(t)
  const fake = await fakeOauth(t, { poll: [granted()] })
  const { oauth_host, api_base_url } = fake
  const options = { oauth_host: '', api_base_url: '', regions: { global: { oauth_host, api_base_url } } }
  const { api, begin, settled, credential } = await account(t, { fake, options })

  assert.equal((await api('POST', '/oauth/login', {})).code, 40001)
  assert.equal((await api('POST', '/oauth/login', { region: 'mainland-cn' })).code, 40001)
  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.equal((await api('GET', '/oauth/region')).data.region, 'global')
  assert.equal((await credential('svc-code-global')).access_token, 'access-token-1')
  assert.equal((await api('POST', '/oauth/login', {})).data.status, 'authenticated')
})

test('a login at one region does not count for the other', async t => {
  plain(t)
  const { begin, logIn, settled, fake, api, credential } = await account(t)
  await logIn()

  await begin({ region: 'global' })
  assert.equal((await settled()).status, 'authenticated')

  assert.equal((await api('GET', '/oauth/region')).data.region, 'global')
  assert.ok((await credential('svc-code')) && (await credential('svc-code-global')))
  assert.equal((await api('POST', '/oauth/logout', {})).code, 0)
  assert.deepEqual([await credential('svc-code'), await credential('svc-code-global')], [undefined, undefined])
  assert.equal(fake.asked('device').length, 2)
})

const hosts = { 'mainland-cn': { oauth_host: 'https://cn.example/' }, global: { oauth_host: 'https://global.example' } }
const region = async ({ api }: Account) => (await api('GET', '/oauth/region')).data

test('region: environment, then host of the configuration, then key of the login, then marker, then mainland-cn; nobody is asked', async t => {
  plain(t)
  const server = await account(t, { options: { regions: hosts } })
  const { home, fake } = server
  const toml = (text: string) => writeFile(join(home, 'config.toml'), text)
  assert.deepEqual(await region(server), { region: 'mainland-cn' })

  await writeFile(join(home, 'region'), 'global')
  assert.deepEqual(await region(server), { region: 'global' })
  await toml(record('oauth = { storage = "file", key = "svc-code" }\n'))
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global" }\n'))
  await rm(join(home, 'region'))
  assert.deepEqual(await region(server), { region: 'global' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global", oauth_host = "https://cn.example" }\n'))
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
  await toml(record('oauth = { storage = "file", key = "svc-code-global", oauth_host = "https://else.example" }\n'))
  assert.deepEqual(await region(server), { region: 'global' })
  for (const [host, expected] of [
    ['https://global.example', 'global'],
    ['HTTPS://Global.Example:443/', 'global'],
    ['https://cn.example', 'mainland-cn'],
    ['https://else.example', 'mainland-cn'],
    ['not an address', 'mainland-cn']
  ]) {
    setEnvironment({ SVC_CODE_OAUTH_HOST: host })
    assert.deepEqual(await region(server), { region: expected }, host)
  }
  setEnvironment({ SVC_CODE_OAUTH_HOST: '  ' })
  assert.deepEqual(await region(server), { region: 'global' })
  for (const question of ['device', 'poll', 'refresh', 'models', 'usages', 'me'] as const) assert.equal(fake.asked(question).length, 0)
})

test('region: a marker with odd content, or switched off, counts as none', async t => {
  plain(t)
  const server = await account(t)
  const marker = join(server.home, 'region')
  for (const [text, expected] of [
    ['global\r\n', 'global'],
    ['\uFEFF  global \n\n', 'global'],
    ['mainland-cn', 'mainland-cn'],
    ['', 'mainland-cn'],
    ['GLOBAL', 'mainland-cn'],
    ['global, please', 'mainland-cn'],
    ['global\nmainland-cn', 'mainland-cn'],
    ['global\0', 'mainland-cn'],
    [`global${' '.repeat(1_000_000)}x`, 'mainland-cn']
  ] as const) {
    await writeFile(marker, text)
    assert.deepEqual(await region(server), { region: expected }, JSON.stringify(text.slice(0, 20)))
  }
  await writeFile(marker, 'global')
  for (const [value, expected] of [
    ['off', 'mainland-cn'],
    [' OFF ', 'mainland-cn'],
    ['on', 'global'],
    ['', 'global']
  ] as const) {
    setEnvironment({ SVC_CODE_REGION_MARKER: value })
    assert.deepEqual(await region(server), { region: expected }, value)
  }
  await rm(marker)
  await mkdir(marker)
  assert.deepEqual(await region(server), { region: 'mainland-cn' })
})

test('the marker decides where a login without a region goes, and a region of the request wins over it', async t => {
  plain(t)
  const { home, begin, settled, credential } = await account(t, { scripts: { poll: [granted()] } })
  await writeFile(join(home, 'region'), 'global')
  await begin()
  assert.equal((await settled()).status, 'authenticated')
  assert.ok(await credential('svc-code-global'))

  await begin({ region: 'mainland-cn' })
  assert.equal((await settled()).status, 'authenticated')
  assert.ok(await credential('svc-code'))
})

test('a provider with a login is not replaced, deleted or imported over; refresh_oauth asks those alone', async t => {
  const lists = await new Promise<Server>(resolve => {
    const models = { one: { id: 'one', name: 'One', limit: { context: 1000 } } }
    const entry = { id: 'mine', name: 'Mine', type: 'compat_chat', api: 'http://127.0.0.1:9/v1', models }
    const server = createServer((_, res) => res.end(JSON.stringify({ mine: entry }))).listen(0, '127.0.0.1', () => resolve(server))
  })
  t.after(() => void lists.close())
  const directory = `http://127.0.0.1:${(lists.address() as AddressInfo).port}/api.json`
  withEnvironment(t, { SVC_CODE_CATALOG_URL: directory })
  const mine = '[providers.mine]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\noauth = { storage = "file", key = "mine" }\n'
  const keyed = '[providers.keyed]\ntype = "svc"\napi_key = "k"\nbase_url = "http://127.0.0.1:9/v1"\nmodel_source = "discover"\n'
  const { api, logIn, fake, events, home } = await account(t, { toml: mine + keyed })
  await logIn()
  const before = await readFile(join(home, 'config.toml'), 'utf8')
  const form = { type: 'svc', models: [{ model: 'x', max_context_size: 1 }] }

  for (const id of [MANAGED, 'mine']) {
    assert.equal((await api('PUT', `/providers/${encodeURIComponent(id)}`, form)).code, 40003)
    assert.equal((await api('DELETE', `/providers/${encodeURIComponent(id)}`)).code, 40003)
  }
  assert.equal((await api('POST', '/providers:import_catalog', { catalog_id: 'mine' })).code, 40003)
  assert.equal((await api('POST', '/providers:import_catalog', { catalog_id: 'mine', id: MANAGED })).code, 40004)
  assert.equal((await api('POST', '/providers:import_registry', { url: directory })).code, 40003)
  assert.equal((await api('POST', '/providers', { id: MANAGED, ...form })).code, 40001)
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), before)

  const report = (await api('POST', '/providers:refresh_oauth')).data
  assert.deepEqual([report.changed, report.unchanged], [[], [MANAGED]])
  assert.deepEqual(
    report.failed.map(({ provider }: { provider: string }) => provider),
    ['mine']
  )
  assert.equal(events.filter(({ type }) => type === 'event.model_catalog.changed').length, 0)

  fake.answer('models', [
    {
      body: {
        data: [
          { id: 'large', context_length: 262_144 },
          { id: 'new', context_length: 1000 }
        ]
      }
    }
  ])
  const { changed } = (await api('POST', '/providers:refresh_oauth', { ignored: true })).data
  assert.deepEqual(
    changed.map(({ provider_id, added, removed }: Record<string, unknown>) => [provider_id, added, removed]),
    [[MANAGED, 1, 1]]
  )
  assert.equal(fake.asked('models').at(-1)?.headers.authorization, 'Bearer access-token-1')
  assert.equal(events.filter(({ type }) => type === 'event.model_catalog.changed').length, 1)
})

test('what goes upstream: forms, user agent, device headers with one id per home, bearer tokens', async t => {
  const { fake, logIn, api, home, clock } = await account(t)
  await logIn()
  clock.now += 3_600_000
  await api('GET', '/oauth/usage')
  await api('GET', '/oauth/userinfo')

  const forms = [...fake.asked('device'), ...fake.asked('poll'), ...fake.asked('refresh')]
  const reads = [...fake.asked('models'), ...fake.asked('usages'), ...fake.asked('me')]
  assert.deepEqual(
    forms.map(({ method, headers }) => [method, headers['content-type']]),
    forms.map(() => ['POST', 'application/x-www-form-urlencoded'])
  )
  for (const { headers } of forms) assert.equal(headers.authorization, undefined)
  for (const { headers } of reads) assert.match(String(headers.authorization), /^Bearer access-token-/)
  for (const { headers } of [...forms, ...reads]) {
    assert.match(String(headers['user-agent']), /^svc-code\/\d/)
    for (const name of ['platform', 'version', 'device-name', 'device-model', 'os-version', 'device-id']) {
      assert.ok(headers[`x-svc-${name}`], name)
    }
  }
  const ids = new Set([...forms, ...reads].map(({ headers }) => headers['x-svc-device-id']))
  assert.equal(ids.size, 1)
  const again = await account(t, { fake, home, clock })
  await again.api('GET', '/oauth/usage')
  assert.ok(ids.has(fake.asked('usages').at(-1)?.headers['x-svc-device-id']))
})

test('a device id that cannot be kept is no reason to fail', async t => {
  const { home, logIn, fake } = await account(t)
  await mkdir(join(home, 'device_id'))

  await logIn()

  const ids = [...fake.asked('device'), ...fake.asked('poll')].map(({ headers }) => headers['x-svc-device-id'])
  assert.equal(new Set(ids).size, 1)
  assert.match(String(ids[0]), /^[0-9a-f-]{36}$/)
})

test('tokens, codes of the device and the device id are in no log, no answer and no event', async t => {
  const lines: string[] = []
  const server = await account(t, { kernel: { log: { level: 'trace', to: { write: line => void lines.push(line) } } } })
  const { api, fake, logIn, clock, events } = server
  const said: unknown[] = []
  const look = async (method: string, path: string, body?: unknown) => said.push(await api(method, path, body))
  await logIn()
  for (const path of ['/oauth/login', '/auth', '/config', '/providers', '/models', '/oauth/usage', '/oauth/userinfo'])
    await look('GET', path)
  clock.now += 3_600_000
  fake.answer('usages', [{ status: 401, body: { message: 'access-token-renewed-1 access-token-renewed-2' } }])
  await look('GET', '/oauth/usage')
  fake.answer('refresh', [{ status: 500, body: { error_description: 'refresh-token-renewed-2 failed' } }])
  clock.now += 3_600_000
  await look('GET', '/oauth/userinfo')
  fake.answer('refresh', [refused('invalid_grant', 400, 'refresh-token-renewed-2 is over')])
  await look('GET', '/oauth/userinfo')
  fake.answer('poll', [refused('server_error', 500, 'device-code-2 is bad')])
  await look('POST', '/oauth/login', {})
  await server.settled()
  await look('GET', '/oauth/login')
  fake.answer('device', [refused('invalid_client', 401, 'no')])
  await look('POST', '/oauth/login', {})
  await look('POST', '/oauth/logout', {})

  const device_id = String(fake.asked('device')[0]?.headers['x-svc-device-id'])
  const text = JSON.stringify([said, events, lines])
  for (const secret of ['access-token', 'refresh-token', 'device-code-', device_id]) {
    assert.equal(text.includes(secret), false, secret)
  }
  assert.ok(lines.length > 0 && said.length > 10)
})
