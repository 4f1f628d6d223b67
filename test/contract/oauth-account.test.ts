/** Readiness, usage and user information on the full server (contract 1, Managed login and usage). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { account, MANAGED, start_time } from '../helpers/account.ts'
import { withEnvironment } from '../helpers/environment.ts'
import { type FakeAnswer, refused } from '../helpers/fake-oauth.ts'

const now_s = start_time / 1000
const record = (more = '') => `[providers."${MANAGED}"]\ntype = "svc"\nbase_url = "http://127.0.0.1:9/v1"\n${more}`
const withOauth = record('oauth = { storage = "file", key = "svc-code" }\n')
const aModel = `[models.m]\nprovider = "${MANAGED}"\nmodel = "m"\nmax_context_size = 1000\n`

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

test('an account service that does not answer, or not to its end, is a failure without a status when its time is over', async t => {
  const { api, fake, logIn } = await account(t, { options: { account_timeout_ms: 300 } })
  await logIn()
  fake.answer('usages', [{ hang: true }])
  fake.answer('me', [{ stall: true }])

  const answers = await Promise.all(questions.map(([path]) => api('GET', path)))

  for (const { code, data } of answers) {
    assert.deepEqual([code, data.kind, 'status' in data], [0, 'error', false])
    assert.match(data.message, /did not answer within 0.3 s/)
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
