/** The device-code flow through its routes: every transition of the login flow (contract 1, States). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../../features/config/index.ts'
import { cancelLogin, logout, readLogin, startLogin } from '../../../features/oauth/index.ts'
import { deviceCode, granted, refused } from '../../helpers/fake-oauth.ts'
import { scene, withEnvironment } from './scene.ts'

const body = {}
const query = {}
const minute = 60_000

test('without a flow GET answers null and DELETE is a no-op', async t => {
  const { call } = await scene(t)

  assert.equal((await call(readLogin, { query })).data, null)
  assert.deepEqual((await call(cancelLogin, { query })).data, { cancelled: false, status: 'cancelled' })
})

test('a login starts pending and shows the codes of the authorization server', async t => {
  const { call, fake } = await scene(t)

  const { code, data } = await call(startLogin, { body })

  assert.equal(code, 0)
  assert.match(data.flow_id, /^oauth_[0-9a-f-]{36}$/)
  const expected = {
    flow_id: data.flow_id,
    provider: 'managed:svc-code',
    status: 'pending',
    verification_uri: 'https://login.example/device',
    verification_uri_complete: 'https://login.example/device?user_code=CODE-1',
    user_code: 'CODE-1',
    expires_in: 900,
    interval: 5,
    expires_at: '2026-11-20T12:15:00.000Z'
  }
  assert.deepEqual(data, expected)
  assert.deepEqual((await call(readLogin, { query })).data, expected)
  const [asked] = fake.asked('device')
  assert.deepEqual(asked?.form, { client_id: 'client-1' })
  assert.match(String(asked?.headers['x-svc-device-id']), /^[0-9a-f-]{36}$/)
  assert.match(String(asked?.headers['user-agent']), /^svc-code\//)
})

test('life and interval that the authorization server leaves out are 900 s and 5 s; a longer life ends with the budget', async t => {
  const { call, fake } = await scene(t, { scripts: { device: [deviceCode(1, { expires_in: null, interval: undefined })] } })

  const first = (await call(startLogin, { body })).data
  fake.answer('device', [deviceCode(2, { expires_in: 7200, interval: 2, verification_uri: undefined })])
  const second = (await call(startLogin, { body })).data

  assert.deepEqual('expires_in' in first && [first.expires_in, first.interval], [900, 5])
  assert.deepEqual('expires_in' in second && [second.expires_in, second.interval, second.verification_uri], [
    900,
    2,
    'https://login.example/device'
  ])
})

test('a granted login becomes authenticated: credential, provider, models, services and defaults are written in one save', async t => {
  const { call, fake, settled, credential, login, events } = await scene(t, {
    scripts: { poll: [refused('authorization_pending'), refused('authorization_pending'), granted()] }
  })

  await call(startLogin, { body })
  const flow = await settled()

  assert.deepEqual([flow.status, flow.resolved_at, flow.error_message], ['authenticated', '2026-11-20T12:00:00.000Z', undefined])
  assert.equal(fake.asked('poll').length, 3)
  assert.deepEqual(fake.asked('poll')[0]?.form, {
    grant_type: 'urn:ietf:params:oauth:grant-type:device_code',
    device_code: 'device-code-1',
    client_id: 'client-1'
  })
  assert.deepEqual(await credential(), {
    access_token: 'access-token-1',
    refresh_token: 'refresh-token-1',
    expires_at: Date.parse('2026-11-20T13:00:00Z') / 1000,
    scope: 'all',
    token_type: 'Bearer',
    expires_in: 3600
  })
  const { data } = await call(readConfig)
  assert.deepEqual(data.providers['managed:svc-code'], { type: 'svc', base_url: fake.api_base_url, has_api_key: false })
  assert.deepEqual(data.models['svc-code/large'], {
    provider: 'managed:svc-code',
    model: 'large',
    maxContextSize: 262_144,
    displayName: 'Large',
    capabilities: ['thinking', 'image_in', 'tool_use']
  })
  assert.deepEqual(Object.keys(data.models), ['svc-code/large', 'svc-code/small'])
  assert.equal(data.default_model, 'svc-code/large')
  assert.equal(data.thinking.enabled, true)
  assert.equal(fake.asked('models')[0]?.headers.authorization, 'Bearer access-token-1')
  assert.equal(login.status('managed:svc-code'), 'authenticated')
  assert.equal(events.filter(({ type }) => type === 'event.config.changed').length, 1)
  assert.doesNotMatch(JSON.stringify([flow, data, events]), /access-token|refresh-token|device-code-/)
})

test('slow_down lengthens the interval for the rest of the flow', async t => {
  const { call, fake } = await scene(t, {
    scripts: { poll: [refused('slow_down'), refused('slow_down'), refused('authorization_pending')] }
  })

  await call(startLogin, { body })
  await fake.reached('poll', 4)

  assert.equal((await call(readLogin, { query })).data?.interval, 15)
})

test('an expired code is replaced silently', async t => {
  const { call, fake, settled } = await scene(t, {
    scripts: { poll: ({ form }) => (form.device_code === 'device-code-1' ? refused('expired_token') : refused('authorization_pending')) }
  })

  const { flow_id } = (await call(startLogin, { body })).data
  await fake.reached('poll', 2)

  const { data } = await call(readLogin, { query })
  assert.deepEqual([data?.flow_id, data?.status, data?.user_code], [flow_id, 'pending', 'CODE-2'])
  fake.answer('poll', [granted()])
  assert.equal((await settled()).status, 'authenticated')
})

test('after fifteen minutes the login is expired, whatever the authorization server says', async t => {
  for (const answer of [refused('authorization_pending'), refused('expired_token')]) {
    const { call, fake, clock, settled } = await scene(t, { scripts: { poll: [answer] } })

    await call(startLogin, { body })
    await fake.reached('poll', 1)
    clock.now += 15 * minute
    const flow = await settled()

    assert.deepEqual([flow.status, flow.expires_in, flow.error_message], ['expired', 0, 'the login was not completed in time'])
  }
})

test('access_denied and every other failure end as denied with a text', async t => {
  const cases = [
    [refused('access_denied'), /denied/],
    [refused('invalid_client', 401, 'unknown client'), /HTTP 401: unknown client/],
    [refused('server_error', 500, 'try device-code-1 later'), /HTTP 500: try \[redacted\] later/],
    [{ cut: true }, /could not be reached/],
    [{ body: { access_token: 'half' } }, /without a usable token/]
  ] as const
  for (const [answer, text] of cases) {
    const { call, settled, credential } = await scene(t, { scripts: { poll: [answer] } })

    await call(startLogin, { body })
    const flow = await settled()

    assert.equal(flow.status, 'denied')
    assert.match(flow.error_message ?? '', text)
    assert.equal(await credential(), undefined)
  }
})

test('DELETE cancels a pending flow once; its request upstream is dropped', async t => {
  const { call, fake } = await scene(t, { scripts: { poll: [{ hang: true }] } })

  await call(startLogin, { body })
  await fake.reached('poll', 1)

  assert.deepEqual((await call(cancelLogin, { query })).data, { cancelled: true, status: 'cancelled' })
  assert.deepEqual((await call(cancelLogin, { query })).data, { cancelled: false, status: 'cancelled' })
  const { data } = await call(readLogin, { query })
  assert.deepEqual([data?.status, data?.error_message, typeof data?.resolved_at], ['cancelled', undefined, 'string'])
})

test('DELETE after the end reports the last state', async t => {
  const { call, logIn } = await scene(t)
  await logIn()

  assert.deepEqual((await call(cancelLogin, { query })).data, { cancelled: false, status: 'authenticated' })
})

test('a new login cancels the pending one', async t => {
  const { call, fake, settled } = await scene(t, {
    scripts: { poll: ({ form }) => (form.device_code === 'device-code-2' ? granted(2) : { hang: true }) }
  })

  const first = (await call(startLogin, { body })).data
  await fake.reached('poll', 1)
  const second = (await call(startLogin, { body })).data
  const flow = await settled()

  assert.notEqual(first.flow_id, second.flow_id)
  assert.deepEqual([flow.flow_id, flow.status], [second.flow_id, 'authenticated'])
})

test('two logins at once leave one flow', async t => {
  const { call, fake } = await scene(t)

  const [first, second] = await Promise.all([call(startLogin, { body }), call(startLogin, { body })])

  assert.deepEqual([first.code, second.code, fake.asked('device').length], [0, 0, 2])
  const left = (await call(readLogin, { query })).data
  assert.equal([first, second].filter(({ data }) => data.flow_id === left?.flow_id).length, 1)
})

test('with a valid login the answer comes at once', async t => {
  const { call, fake, logIn } = await scene(t)
  await logIn()

  const { data } = await call(startLogin, { body })

  assert.deepEqual(data, { flow_id: data.flow_id, provider: 'managed:svc-code', status: 'authenticated' })
  const flow = (await call(readLogin, { query })).data
  assert.deepEqual([flow?.flow_id, flow?.status, flow?.expires_in], [data.flow_id, 'authenticated', 0])
  assert.deepEqual([fake.asked('device').length, fake.asked('models').length], [1, 1])
})

test('a valid login whose provider was taken out of the file is written again', async t => {
  const { call, logIn, home } = await scene(t)
  await logIn()
  await writeFile(join(home, 'config.toml'), 'default_model = "svc-code/small"\n')

  assert.equal((await call(startLogin, { body })).data.status, 'authenticated')

  const { data } = await call(readConfig)
  assert.deepEqual([data.default_model, Object.keys(data.models).length], ['svc-code/small', 2])
})

test('a finished flow stays readable: null means that none was ever started', async t => {
  const { call, clock, logIn } = await scene(t)
  assert.equal((await call(readLogin, { query })).data, null)
  await logIn()

  clock.now += 24 * 60 * minute
  assert.equal((await call(readLogin, { query })).data?.status, 'authenticated')
})

test('logout cancels a pending flow', async t => {
  const { call, fake } = await scene(t, { scripts: { poll: [{ hang: true }] } })
  await call(startLogin, { body })
  await fake.reached('poll', 1)

  assert.deepEqual((await call(logout, { body })).data, { logged_out: true, provider: 'managed:svc-code' })
  assert.equal((await call(readLogin, { query })).data?.status, 'cancelled')
})

test('logout ends a login that waits for its code', async t => {
  const { call, fake } = await scene(t, { scripts: { device: [{ hang: true }] } })
  const starting = call(startLogin, { body })
  await fake.reached('device', 1)

  assert.equal((await call(logout, { body })).code, 0)
  assert.equal((await starting).code, 50001)
})

test('a change of the managed provider by somebody else cancels the pending flow', async t => {
  const { call, fake, rest, settled } = await scene(t, { scripts: { poll: [{ hang: true }] } })
  await call(startLogin, { body })
  await fake.reached('poll', 1)

  await rest.json('POST', '/api/v1/config', { providers: { 'managed:svc-code': { type: 'svc', base_url: 'http://127.0.0.1:9/v1' } } })

  assert.equal((await settled()).status, 'cancelled')
})

test('a device code that cannot be had is 50001 with the reason', async t => {
  const cases = [
    [refused('invalid_client', 400, 'unknown client'), /HTTP 400: unknown client/],
    [{ cut: true }, /could not be reached/],
    [{ body: { user_code: 'X' } }, /without a device code/],
    [{ status: 502, body: '<html>' }, /HTTP 502/]
  ] as const
  for (const [answer, text] of cases) {
    const { call } = await scene(t, { scripts: { device: [answer] } })

    const { code, msg } = await call(startLogin, { body })

    assert.equal(code, 50001)
    assert.match(msg, text)
    assert.equal((await call(readLogin, { query })).data, null)
  }
})

test('without hosts and client id the answer names what to set', async t => {
  withEnvironment(t, { SVC_CODE_OAUTH_HOST: undefined, SVC_CODE_API_BASE_URL: undefined, SVC_CODE_OAUTH_CLIENT_ID: undefined })
  const { call } = await scene(t, { options: { client_id: '', oauth_host: '', api_base_url: 'file:///etc' } })

  const { code, details } = await call(startLogin, { body })

  assert.equal(code, 40001)
  const text = JSON.stringify(details)
  for (const name of ['SVC_CODE_OAUTH_HOST', 'SVC_CODE_API_BASE_URL', 'SVC_CODE_OAUTH_CLIENT_ID']) assert.match(text, new RegExp(name))
})

test('the body must be an object with a known region; other providers have no login but harmless answers', async t => {
  const { call, rest } = await scene(t)

  assert.equal((await rest.json('POST', '/api/v1/oauth/login')).code, 40001)
  assert.equal((await rest.json('POST', '/api/v1/oauth/logout')).code, 40001)
  const region = await rest.json('POST', '/api/v1/oauth/login', { region: 'mars' })
  assert.deepEqual([region.code, region.details?.[0]?.path], [40001, 'body.region'])
  const other = await call(startLogin, { body: { provider: 'other' } })
  assert.deepEqual([other.code, other.details?.[0]?.path], [40001, 'body.provider'])
  const query = { provider: 'other' }
  assert.equal((await call(readLogin, { query })).data, null)
  assert.deepEqual((await call(cancelLogin, { query })).data, { cancelled: false, status: 'cancelled' })
  assert.deepEqual((await call(logout, { body: query })).data, { logged_out: true, provider: 'other' })
})

test('stopping the server ends a pending flow', async t => {
  const { call, fake, stop } = await scene(t, { scripts: { poll: [{ hang: true }] } })
  await call(startLogin, { body })
  await fake.reached('poll', 1)

  await stop()
})
