/** Usage, user information and region (contract 1, Managed login and usage). */
import assert from 'node:assert/strict'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readRegion, readUsage, readUserInfo, startLogin } from '../../../features/oauth/index.ts'
import { granted, refused } from '../../helpers/fake-oauth.ts'
import { scene, setEnvironment, withEnvironment } from './scene.ts'

const query = {}

test('without a login usage and user information say so in-band, without a status', async t => {
  const { call } = await scene(t)

  for (const route of [readUsage, readUserInfo]) {
    for (const query of [{}, { provider: 'other' }]) {
      const { code, data } = await call(route, { query })
      assert.deepEqual([code, data], [0, { kind: 'error', message: 'not logged in' }])
    }
  }
})

test('usage is mapped to rows, windows and cents', async t => {
  const usages = [
    {
      body: {
        usage: { used: '120', limit: 1000.9, resetTime: '2026-11-23T00:00:00Z', name: 'Weekly' },
        limits: [
          {
            name: 'Burst',
            window: { duration: 300, timeUnit: 'TIME_UNIT_MINUTE' },
            detail: { used: 3, limit: '50', name: 'inner', resetTime: 5 }
          },
          { name: '', window: { duration: 90, timeUnit: 'TIME_UNIT_MINUTE' }, detail: { limit: 5, name: 'inner', resetTime: '' } },
          { window: { duration: 1, timeUnit: 'TIME_UNIT_DAY' }, detail: { used: 7 } },
          { window: { duration: 1, timeUnit: 'TIME_UNIT_YEAR' }, detail: { used: 1, limit: 2 } },
          { window: { duration: 1, timeUnit: 'constructor' }, detail: { used: 2, limit: 3 } },
          { name: 'empty', detail: { resetTime: '2026-11-23T00:00:00Z' } }
        ],
        boosterWallet: {
          balance: { type: 'BOOSTER', amount: 5_000_000_000, amountLeft: '400000' },
          monthlyChargeLimitEnabled: true,
          monthlyChargeLimit: { priceInCents: 2500, currency: 'EUR' },
          monthlyUsed: { priceInCents: '125', currency: 'USD' }
        }
      }
    }
  ]
  const { call, fake, logIn } = await scene(t, { scripts: { usages } })
  await logIn()

  assert.deepEqual((await call(readUsage, { query })).data, {
    kind: 'ok',
    summary: { name: 'Weekly', window: { duration: 1, unit: 'week' }, used: 120, limit: 1000, reset_at: '2026-11-23T00:00:00Z' },
    limits: [
      { name: 'Burst', window: { duration: 5, unit: 'hour' }, used: 3, limit: 50 },
      { name: 'inner', window: { duration: 90, unit: 'minute' }, used: 0, limit: 5 },
      { window: { duration: 1, unit: 'day' }, used: 7, limit: 0 },
      { used: 1, limit: 2 },
      { used: 2, limit: 3 }
    ],
    extra_usage: {
      balance_cents: 1,
      total_cents: 5000,
      monthly_charge_limit_enabled: true,
      monthly_charge_limit_cents: 2500,
      monthly_used_cents: 125,
      currency: 'EUR'
    }
  })
  assert.equal(fake.asked('usages')[0]?.headers.authorization, 'Bearer access-token-1')
})

test('usage without rows has nulls, and a wallet counts only as a booster with an amount', async t => {
  const wallet = (balance: object) => ({ body: { boosterWallet: { balance } } })
  const { call, fake, logIn } = await scene(t)
  await logIn()

  for (const answer of [{ body: {} }, wallet({ type: 'OTHER', amount: 5 }), wallet({ type: 'BOOSTER', amount: 0 })]) {
    fake.answer('usages', [answer])
    assert.deepEqual((await call(readUsage, { query })).data, { kind: 'ok', summary: null, limits: [], extra_usage: null })
  }
})

test('user information is mapped; what is missing is empty, what is optional is left out', async t => {
  const me = [
    {
      body: {
        user_id: 42,
        nickname: 'Nick',
        status: 1,
        region: 'global',
        user_level: 3,
        user_level_name: 'Pro',
        domain: 'd',
        domain_name: 'Domain',
        email: 'nick@example.org',
        phone: { country_code: '86', number: '1' },
        created_time: '2026-01-01T00:00:00Z'
      }
    },
    { body: { user_id: 'user-1' } }
  ]
  const { call, logIn } = await scene(t, { scripts: { me } })
  await logIn()

  assert.deepEqual((await call(readUserInfo, { query })).data, {
    kind: 'ok',
    userInfo: {
      userId: '42',
      nickname: 'Nick',
      status: 1,
      region: 'global',
      userLevel: 3,
      userLevelName: 'Pro',
      domain: 'd',
      domainName: 'Domain',
      email: 'nick@example.org',
      phone: { countryCode: '86', number: '1' },
      createdTime: '2026-01-01T00:00:00Z'
    }
  })
  const bare = { userId: 'user-1', nickname: '', status: '', region: '', userLevel: 0, userLevelName: '', domain: 0, domainName: '' }
  assert.deepEqual((await call(readUserInfo, { query })).data, { kind: 'ok', userInfo: bare })
})

test('failures are in-band with the text of the service or a hint, never with a token', async t => {
  const cases = [
    [
      { status: 500, body: { error_description: 'a', message: 'b' } },
      { message: 'a', status: 500 }
    ],
    [
      { status: 400, body: { message: 'b', detail: 'c' } },
      { message: 'b', status: 400 }
    ],
    [
      { status: 400, body: { detail: 'c', error: 'd' } },
      { message: 'c', status: 400 }
    ],
    [
      { status: 400, body: { error: { message: 'e' } } },
      { message: 'e', status: 400 }
    ],
    [
      { status: 400, body: { errors: ['f'] } },
      { message: 'f', status: 400 }
    ],
    [
      { status: 404, body: '<html>' },
      { message: 'the account service does not know this request', status: 404 }
    ],
    [
      { status: 418, body: '' },
      { message: 'the account service answered HTTP 418', status: 418 }
    ],
    [
      { status: 400, body: { message: 'bad access-token-1' } },
      { message: 'bad [redacted]', status: 400 }
    ],
    [{ body: {} }, { message: 'the account service answered with no user', status: 200 }]
  ] as const
  const { call, fake, logIn } = await scene(t)
  await logIn()

  for (const [answer, expected] of cases) {
    fake.answer('me', [answer])
    assert.deepEqual((await call(readUserInfo, { query })).data, { kind: 'error', ...expected })
  }
  fake.answer('me', [{ cut: true }])
  const { data } = await call(readUserInfo, { query })
  assert.deepEqual([data.kind, 'status' in data], ['error', false])
})

test('a refused token is renewed once and the question asked again', async t => {
  const { call, fake, logIn } = await scene(t, {
    scripts: {
      me: ({ headers }) => (headers.authorization === 'Bearer access-token-1' ? { status: 401 } : { body: { user_id: 'user-1' } })
    }
  })
  await logIn()

  assert.equal((await call(readUserInfo, { query })).data.kind, 'ok')
  fake.answer('usages', [{ status: 401 }])
  assert.deepEqual((await call(readUsage, { query })).data, { kind: 'error', message: 'the login was refused; log in again', status: 401 })
  assert.deepEqual([fake.asked('me').length, fake.asked('usages').length, fake.asked('refresh').length], [2, 2, 2])
})

test('a login that was revoked meanwhile is an in-band 401', async t => {
  const { call, fake, logIn, login } = await scene(t, { scripts: { usages: [{ status: 401 }], refresh: [refused('invalid_grant')] } })
  await logIn()

  const { data } = await call(readUsage, { query })

  assert.deepEqual([data.kind, 'status' in data && data.status, login.status('managed:svc-code')], ['error', 401, 'revoked'])
  assert.equal(fake.asked('usages').length, 1)
})

const regions = { 'mainland-cn': { oauth_host: 'https://cn.example' }, global: { oauth_host: 'https://global.example/' } }

test('the region is the default, then what the marker file says, then the key of the login, then a known host', async t => {
  withEnvironment(t, { SVC_CODE_REGION_MARKER: undefined, SVC_CODE_OAUTH_HOST: undefined })
  const { call, home, rest } = await scene(t, { options: { regions } })
  const region = async () => (await call(readRegion)).data.region
  const configure = (oauth: object) => rest.json('POST', '/api/v1/config', { providers: { 'managed:svc-code': { type: 'svc', oauth } } })

  assert.equal(await region(), 'mainland-cn')
  await writeFile(join(home, 'region'), 'global\n')
  assert.equal(await region(), 'global')
  setEnvironment({ SVC_CODE_REGION_MARKER: 'off' })
  assert.equal(await region(), 'mainland-cn')
  setEnvironment({ SVC_CODE_REGION_MARKER: undefined })
  await configure({ storage: 'file', key: 'svc-code' })
  assert.equal(await region(), 'mainland-cn')
  await configure({ key: 'svc-code-global' })
  assert.equal(await region(), 'global')
  await configure({ oauth_host: 'https://cn.example' })
  assert.equal(await region(), 'mainland-cn')
  setEnvironment({ SVC_CODE_OAUTH_HOST: 'https://global.example' })
  assert.equal(await region(), 'global')
  setEnvironment({ SVC_CODE_OAUTH_HOST: 'https://elsewhere.example' })
  assert.equal(await region(), 'mainland-cn')
})

test('a region asked for at login decides host and credential file', async t => {
  const { call, fake, settled, credential } = await scene(t, {
    scripts: { poll: [granted()] },
    options: { oauth_host: 'http://127.0.0.1:9' }
  })
  assert.equal((await call(startLogin, { body: { region: 'global' } })).code, 50001)

  const other = await scene(t, {
    fake,
    options: { oauth_host: 'http://127.0.0.1:9', regions: { global: { oauth_host: fake.oauth_host } } }
  })
  await other.call(startLogin, { body: { region: 'global' } })
  assert.equal((await other.settled()).status, 'authenticated')

  assert.equal((await other.credential('svc-code-global'))?.access_token, 'access-token-1')
  assert.equal((await other.call(readRegion)).data.region, 'global')
  assert.deepEqual([await credential(), typeof settled], [undefined, 'function'])
})

test('hosts of the environment win, ignore the region and keep their own credential file', async t => {
  const { call, fake, settled, home, login, rest } = await scene(t, {
    scripts: { poll: [granted()] },
    options: { oauth_host: 'http://127.0.0.1:9', api_base_url: 'http://127.0.0.1:9', client_id: 'other' }
  })
  withEnvironment(t, {
    SVC_CODE_OAUTH_HOST: fake.oauth_host,
    SVC_CODE_API_BASE_URL: fake.api_base_url,
    SVC_CODE_OAUTH_CLIENT_ID: 'client-env'
  })

  await call(startLogin, { body: { region: 'global' } })
  assert.equal((await settled()).status, 'authenticated')

  assert.equal(fake.asked('device')[0]?.form.client_id, 'client-env')
  assert.equal(login.status('managed:svc-code'), 'authenticated')
  const files = (await readdir(join(home, 'credentials'))).filter(name => name.endsWith('.json'))
  assert.match(files.join(), /^svc-code-env-[0-9a-f]{16}\.json$/)
  const config = await rest.json('GET', '/api/v1/config')
  assert.equal(config.code, 0)
})
