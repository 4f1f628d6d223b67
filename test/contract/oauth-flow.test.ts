/** The managed login flow on the full server, transition by transition (contract 1, States and transitions). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { account, MANAGED, start_time } from '../helpers/account.ts'
import { deviceCode, type FakeAnswer, granted, refused } from '../helpers/fake-oauth.ts'
import { latch } from '../helpers/latch.ts'

const minute = 60_000
const pending = refused('authorization_pending')
const hanging: FakeAnswer = { hang: true }
const iso = (time: number) => new Date(time).toISOString()

test('none to pending: the poll snapshot is what the login answered', async t => {
  const { api, begin } = await account(t)

  assert.equal((await api('GET', '/oauth/login')).data, null)
  const flow = await begin({ region: 'mainland-cn' })

  assert.deepEqual((await api('GET', '/oauth/login')).data, flow)
  assert.deepEqual(flow, {
    flow_id: flow.flow_id,
    provider: MANAGED,
    status: 'pending',
    verification_uri: 'https://login.example/device',
    verification_uri_complete: 'https://login.example/device?user_code=CODE-1',
    user_code: 'CODE-1',
    expires_in: 900,
    interval: 5,
    expires_at: iso(start_time + 15 * minute)
  })
})

test('expires_in is the time that is left, expires_at stays', async t => {
  const { api, begin, clock } = await account(t, { scripts: { poll: [hanging] } })

  await begin()
  clock.now += 61_500
  const { data } = await api('GET', '/oauth/login')

  assert.deepEqual([data.expires_in, data.expires_at], [839, iso(start_time + 15 * minute)])
})

test('pending to authenticated, denied, expired and cancelled: each has its time, failures have a text', async t => {
  const ways: readonly (readonly [string, FakeAnswer | 'wait' | 'delete', RegExp | undefined])[] = [
    ['authenticated', granted(), undefined],
    ['denied', refused('access_denied'), /^the login was denied$/],
    ['expired', 'wait', /not completed in time/],
    ['cancelled', 'delete', undefined]
  ]
  for (const [status, way, text] of ways) {
    const { api, begin, settled, clock, fake } = await account(t, { scripts: { poll: [pending] } })
    const { flow_id } = await begin()
    await fake.reached('poll', 1)
    if (way === 'wait') clock.now += 15 * minute
    else if (way === 'delete') assert.deepEqual((await api('DELETE', '/oauth/login')).data, { cancelled: true, status: 'cancelled' })
    else fake.answer('poll', [way])

    const flow = await settled()

    assert.deepEqual([flow.flow_id, flow.status, flow.resolved_at], [flow_id, status, iso(clock.now)])
    if (text) assert.match(flow.error_message, text)
    else assert.equal('error_message' in flow, false)
    assert.deepEqual((await api('DELETE', '/oauth/login')).data, { cancelled: false, status })
    clock.now += 24 * 60 * minute
    assert.equal((await api('GET', '/oauth/login')).data.status, status)
    assert.deepEqual((await api('DELETE', '/oauth/login')).data, { cancelled: false, status })
  }
})

test('none to authenticated: a stored token that lives, or that a refresh makes live, needs no interaction', async t => {
  for (const expires_at of [start_time / 1000 + 3600, start_time / 1000 - 60]) {
    const { api, fake, writeCredential } = await account(t)
    await writeCredential({ access_token: 'old', refresh_token: 'r', expires_at })

    const { data } = await api('POST', '/oauth/login', {})

    assert.deepEqual(data, { flow_id: data.flow_id, provider: MANAGED, status: 'authenticated' })
    assert.match(data.flow_id, /^oauth_/)
    const flow = (await api('GET', '/oauth/login')).data
    assert.deepEqual([flow.flow_id, flow.status, flow.resolved_at], [data.flow_id, 'authenticated', iso(start_time)])
    assert.equal(fake.asked('device').length, 0)
    assert.equal(fake.asked('refresh').length, expires_at < start_time / 1000 ? 1 : 0)
    const auth = (await api('GET', '/auth')).data
    assert.deepEqual(auth, {
      ready: true,
      providers_count: 1,
      default_model: 'svc-code/large',
      managed_provider: { name: MANAGED, status: 'authenticated' }
    })
  }
})

test('a stored token that cannot be refreshed begins a new flow', async t => {
  for (const answer of [refused('invalid_grant'), { status: 401 }, { status: 503 }, { cut: true }, { body: {} }] as FakeAnswer[]) {
    const { begin, fake, writeCredential } = await account(t, { scripts: { refresh: [answer] } })
    await writeCredential({ expires_at: start_time / 1000 - 60 })

    await begin()

    assert.ok(fake.asked('refresh').length > 0)
  }
})

test('pending to authenticated by a second login: the account was logged in meanwhile', async t => {
  const { api, begin, writeCredential } = await account(t, { scripts: { poll: [hanging] } })
  await begin()
  await writeCredential({ expires_at: start_time / 1000 + 3600 })

  assert.equal((await api('POST', '/oauth/login', {})).data.status, 'authenticated')
  assert.equal((await api('GET', '/oauth/login')).data.status, 'authenticated')
})

test('pending to pending: the earlier flow is dropped upstream, polls show the new one', async t => {
  const { api, begin, fake } = await account(t, { scripts: { poll: [hanging] } })
  const first = await begin()
  await fake.reached('poll', 1)

  const second = await begin()

  assert.equal(await fake.asked('poll')[0]?.closed, 'client')
  await fake.reached('poll', 2)
  const shown = (await api('GET', '/oauth/login')).data
  assert.deepEqual([shown.flow_id, shown.user_code, shown.status], [second.flow_id, 'CODE-2', 'pending'])
  assert.notEqual(first.flow_id, second.flow_id)
  assert.equal(fake.asked('poll')[1]?.form.device_code, 'device-code-2')
})

test('a new login that gets no code leaves the earlier flow cancelled', async t => {
  const { api, begin, fake } = await account(t, { scripts: { poll: [hanging] } })
  const { flow_id } = await begin()
  fake.answer('device', [{ status: 503 }])

  const { code, data } = await api('POST', '/oauth/login', {})

  assert.deepEqual([code, data], [50001, null])
  const flow = (await api('GET', '/oauth/login')).data
  assert.deepEqual([flow.flow_id, flow.status], [flow_id, 'cancelled'])
})

test('a login whose code does not come holds up neither a second login, nor a cancel, nor a logout', async t => {
  const { api, fake, begin } = await account(t, { scripts: { device: [hanging, deviceCode('second')], poll: [hanging] } })
  const first = api('POST', '/oauth/login', { region: 'mainland-cn' })
  await fake.reached('device', 1)

  const flow = await begin({ region: 'global' })
  assert.equal(flow.user_code, 'CODE-second')

  fake.answer('device', [hanging])
  const third = api('POST', '/oauth/login', {})
  await fake.reached('device', 3)
  assert.deepEqual((await api('DELETE', '/oauth/login')).data, { cancelled: true, status: 'cancelled' })
  for (const { code, msg } of [await first, await third]) {
    assert.equal(code, 50001)
    assert.match(msg, /cancelled/)
  }
  const fourth = api('POST', '/oauth/login', {})
  await fake.reached('device', 4)
  assert.equal((await api('POST', '/oauth/logout', {})).code, 0)
  assert.equal((await fourth).code, 50001)
})

test('two logins at once are both answered and the later one counts, whichever code comes first', async t => {
  for (const order of [
    [0, 1],
    [1, 0]
  ] as const) {
    const codes = [latch<FakeAnswer>(), latch<FakeAnswer>()]
    const { api, fake } = await account(t, { scripts: { device: (_, n) => codes[n]?.opened ?? deviceCode(), poll: [hanging] } })
    const answers: ReturnType<typeof api>[] = []
    for (const n of [0, 1]) {
      answers.push(api('POST', '/oauth/login', {}))
      await fake.reached('device', n + 1)
    }

    for (const n of order) {
      codes[n]?.open(deviceCode(n))
      assert.deepEqual([(await answers[n])?.code, (await answers[n])?.data.user_code], [0, `CODE-${n}`])
    }

    assert.equal((await api('GET', '/oauth/login')).data.user_code, 'CODE-1')
    await fake.reached('poll', 1)
    assert.deepEqual(
      fake.asked('poll').map(({ form }) => form.device_code),
      ['device-code-1']
    )
  }
})

test('slow_down adds five seconds to every interval of the flow, also after a new code', async t => {
  const polls = [refused('slow_down'), pending, refused('slow_down'), refused('expired_token'), pending, hanging]
  const { api, begin, fake } = await account(t, {
    scripts: { device: [deviceCode(1, { interval: 2 }), deviceCode(2, { interval: 1 })], poll: polls }
  })

  assert.equal((await begin()).interval, 2)
  await fake.reached('poll', 6)

  const flow = (await api('GET', '/oauth/login')).data
  assert.deepEqual([flow.interval, flow.user_code], [12, 'CODE-2'])
})

test('a new code that asks for a longer interval gets it', async t => {
  const { api, begin, fake } = await account(t, {
    scripts: { device: [deviceCode(1, { interval: 2 }), deviceCode(2, { interval: 30 })], poll: [refused('expired_token'), hanging] }
  })

  await begin()
  await fake.reached('poll', 2)

  assert.equal((await api('GET', '/oauth/login')).data.interval, 30)
})

test('expired codes are replaced within fifteen minutes in all; the flow keeps its id, shows the new code and then expires', async t => {
  const { api, begin, fake, clock, settled } = await account(t, {
    scripts: { poll: ({ form }) => (form.device_code === 'device-code-1' ? refused('expired_token') : pending) }
  })
  const { flow_id } = await begin()
  clock.now += 10 * minute
  await fake.reached('device', 2)
  await fake.reached('poll', 3)

  const flow = (await api('GET', '/oauth/login')).data
  assert.deepEqual([flow.flow_id, flow.status, flow.user_code], [flow_id, 'pending', 'CODE-2'])
  assert.equal(flow.verification_uri_complete, 'https://login.example/device?user_code=CODE-2')
  assert.ok(Date.parse(flow.expires_at) <= start_time + 15 * minute, flow.expires_at)
  clock.now += 5 * minute
  assert.equal((await settled()).status, 'expired')
  const asked = fake.asked('poll').length
  await api('GET', '/oauth/login')
  assert.equal(fake.asked('poll').length, asked)
})

test('a new code that cannot be had after the first expired ends the flow as denied', async t => {
  const { begin, settled } = await account(t, { scripts: { device: [deviceCode(), { status: 503 }], poll: [refused('expired_token')] } })
  await begin()

  const { status, error_message } = await settled()

  assert.equal(status, 'denied')
  assert.match(error_message, /HTTP 503/)
})

test('life and interval that make no sense count as absent', async t => {
  const cases = [
    [{ expires_in: null, interval: null }, 900, 5],
    [{ expires_in: 0, interval: 0 }, 900, 5],
    [{ expires_in: -1, interval: -5 }, 900, 5],
    [{ expires_in: 'soon', interval: 'often' }, 900, 5],
    [{ expires_in: [], interval: {} }, 900, 5],
    [{ expires_in: true, interval: true }, 900, 5],
    [{ expires_in: '60', interval: '7' }, 60, 7],
    [{ expires_in: 59.2, interval: 0.5 }, 60, 1],
    [{ expires_in: 1e12, interval: 1e12 }, 900, 900],
    [{ expires_in: 1e300, interval: 1e300 }, 900, 900]
  ] as const
  const { begin, fake } = await account(t, { scripts: { poll: [hanging] } })
  for (const [fields, expires_in, interval] of cases) {
    fake.answer('device', [deviceCode(1, fields)])
    const flow = await begin()
    assert.deepEqual([flow.expires_in, flow.interval], [expires_in, interval], JSON.stringify(fields))
  }
})

test('a device answer is used only with a code and an http address to show it to', async t => {
  const { api, begin, fake } = await account(t, { scripts: { poll: [hanging] } })
  const uri = 'https://login.example/device?user_code=CODE-1'
  for (const fields of [
    { device_code: '' },
    { user_code: undefined },
    { user_code: 7 },
    { verification_uri_complete: undefined },
    { verification_uri_complete: 'javascript:alert(1)' },
    { verification_uri_complete: 'login.example/device' }
  ]) {
    fake.answer('device', [deviceCode(1, fields)])
    const { code, msg } = await api('POST', '/oauth/login', {})
    assert.equal(code, 50001, JSON.stringify(fields))
    assert.match(msg, /without a device code/)
  }
  for (const verification_uri of [undefined, null, '', 'javascript:alert(1)']) {
    fake.answer('device', [deviceCode(1, { verification_uri, verification_uri_complete: uri })])
    assert.equal((await begin()).verification_uri, 'https://login.example/device', String(verification_uri))
  }
})

test('answers that are none end the flow as denied, with a text', async t => {
  const cases: readonly (readonly [FakeAnswer, RegExp])[] = [
    [{ status: 500 }, /HTTP 500/],
    [{ status: 502, body: '<html><b>bad gateway</b>' }, /HTTP 502/],
    [{ status: 302, headers: { location: 'https://elsewhere.example' } }, /HTTP 302/],
    [{ body: '[]' }, /without a usable token/],
    [{ body: 'not json' }, /without a usable token/],
    [{ body: '' }, /without a usable token/],
    [granted(1, { access_token: '' }), /without a usable token/],
    [granted(1, { access_token: 7 }), /without a usable token/],
    [granted(1, { refresh_token: undefined }), /without a usable token/],
    [granted(1, { expires_in: 0 }), /without a usable token/],
    [granted(1, { expires_in: null }), /without a usable token/],
    [{ cut: true }, /could not be reached/],
    [refused('temporarily_unavailable'), /HTTP 400: temporarily_unavailable/],
    [{ body: { error: 'access_denied' } }, /^the login was denied$/]
  ]
  const { api, begin, settled, fake, credential } = await account(t)
  for (const [answer, text] of cases) {
    fake.answer('poll', [answer])
    await begin()
    const flow = await settled()
    assert.equal(flow.status, 'denied', JSON.stringify(answer))
    assert.match(flow.error_message, text)
    assert.doesNotMatch(flow.error_message, /\[object|undefined|<b>/)
  }
  assert.equal(await credential(), undefined)
  assert.equal((await api('GET', '/auth')).data.managed_provider, null)
})

test('states of a login count with any HTTP status', async t => {
  const { begin, settled, fake } = await account(t, {
    scripts: { poll: [refused('authorization_pending', 200), refused('slow_down', 429), refused('authorization_pending', 428), granted()] }
  })

  await begin()

  assert.equal((await settled()).status, 'authenticated')
  assert.equal(fake.asked('poll').length, 4)
})
