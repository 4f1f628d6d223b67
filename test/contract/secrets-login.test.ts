/** Authorization servers, account services and token services that repeat what they were sent: no token, code or key is shown or kept elsewhere. */
import assert from 'node:assert/strict'
import { generateKeyPairSync } from 'node:crypto'
import { mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { deviceCode, type FakeAnswer, type FakeRequest, fakeOauth, granted, refused } from '../helpers/fake-oauth.ts'
import { fakeTokenService, privateKey } from '../helpers/fake-token-service.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { tomlFile } from '../helpers/secret-config.ts'
import { echoes, sentBy } from '../helpers/secret-echo.ts'
import { WatchedServer, Witness } from '../helpers/secret-witness.ts'
import { leakList, Secrets } from '../helpers/secrets.ts'
import { freshDir } from '../helpers/temp.ts'
import { genaiWire } from '../helpers/upstream-genai.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

/** What a service says that repeats a token: error texts of every habit. */
const texts: readonly ((token: string) => string)[] = [
  token => `token ${token} is not good`,
  token => `token ${token.slice(0, 14)}**** is not good`,
  token => `${'x'.repeat(290)} ${token}`,
  token => `Basic ${Buffer.from(`me:${token}`).toString('base64')}`,
  token => `see https://h.example/?t=${encodeURIComponent(token)} ${JSON.stringify(JSON.stringify({ token }))}`
]

/** Error answers that repeat the credential of the request. */
function refusals(of: (request: FakeRequest) => string): ((request: FakeRequest) => FakeAnswer)[] {
  return [
    ...texts.map(text => (request: FakeRequest) => refused('invalid_request', 400, text(of(request)))),
    request => ({ status: 400, body: { error: of(request), message: of(request) } }),
    request => ({ status: 418, body: `<p>${of(request)}</p>` }),
    request => ({ status: 302, headers: { location: `http://127.0.0.1:9/?t=${encodeURIComponent(of(request))}` }, body: of(request) }),
    request => ({ body: of(request) })
  ]
}

test('nothing of a login shows, whatever the services repeat', async t => {
  const dir = await freshDir()
  const [home, cwd] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(home)
  await mkdir(cwd)
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  const bearer = (request: FakeRequest) => String(request.headers.authorization).replace(/^Bearer /, '')
  const device = (n: number) => deviceCode(n + 1, { device_code: secrets.seed(`device code ${n}`, 'awkward'), interval: 1 })
  let tokens = 0
  const grant = (life = 3600) => {
    const n = ++tokens
    const access_token = secrets.seed(`access token ${n}`)
    return granted(n, { access_token, refresh_token: secrets.seed(`refresh token ${n}`, 'awkward'), expires_in: life })
  }
  const models = await fakeUpstream(t, (_body, n, request) => {
    const all = Object.values(echoes)
    return all[n % all.length]!(sentBy(request))
  })
  const fake = await fakeOauth(t, { device: (_, n) => device(n) }, { models_at: new URL(models.url).origin })
  const config = {
    loop_control: { max_attempts_per_step: 1 },
    model_catalog: { refresh_on_start: false },
    packs: { config: { oauth: { poll_unit_ms: 1 }, agent: { retry_base_ms: 0 } } }
  }
  await writeFile(join(home, 'config.toml'), tomlFile(config))
  const place = (path: string, who: string) => fake.url.replace('://', `://me:${secrets.seed(`password of ${who}`)}@`) + path
  const env = {
    SVC_CODE_OAUTH_HOST: place('', 'host'),
    SVC_CODE_API_BASE_URL: place('/v1', 'service'),
    SVC_CODE_OAUTH_CLIENT_ID: 'client-1'
  }
  const server = await WatchedServer.start(t, witness, { HOME: dir, ...env })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const settled = async (): Promise<Json> => {
    for (;;) {
      const { data } = await api('GET', '/oauth/login')
      if (data.status !== 'pending') return data
    }
  }
  const login = async () => {
    const polls = fake.asked('poll').length
    assert.equal((await api('POST', '/oauth/login', {})).code, 0)
    await fake.reached('poll', polls + 1)
    return settled()
  }

  // The code is refused, the poll is refused, each with its code in the text.
  for (const refusal of refusals(request => JSON.stringify(request.form))) {
    fake.answer('device', [await refusal({ form: { client_id: 'client-1' } } as never)])
    await api('POST', '/oauth/login', {})
  }
  fake.answer('device', (_, n) => device(n + 100))
  for (const refusal of refusals(request => request.form.device_code ?? '')) {
    fake.answer('poll', refusal)
    assert.equal((await login()).status, 'denied')
  }

  // Granted, while the model list is refused; then models that are called like the token.
  fake.answer('poll', () => grant())
  for (const refusal of refusals(bearer)) {
    fake.answer('models', refusal)
    assert.equal((await login()).status, 'authenticated')
    await api('POST', '/providers:refresh_oauth')
    await api('POST', '/oauth/logout', {})
  }
  fake.answer('models', request => ({
    body: {
      data: [
        { id: 'large', context_length: 64_000 },
        { id: bearer(request), context_length: 1000, display_name: bearer(request) }
      ]
    }
  }))
  assert.equal((await login()).status, 'authenticated')
  for (const path of ['/config', '/providers', '/models', '/auth', '/providers/managed%3Asvc-code']) await api('GET', path)

  // Usage and profile: refused, renewed, refused again, and answers that carry the token.
  for (const refusal of refusals(bearer)) {
    fake.answer('usages', refusal)
    fake.answer('me', refusal)
    await api('GET', '/oauth/usage')
    await api('GET', '/oauth/userinfo')
  }
  const named = (request: FakeRequest): FakeAnswer => ({
    body: { user_id: bearer(request), nickname: bearer(request), limits: [{ name: bearer(request), detail: { used: 1, limit: 2 } }] }
  })
  fake.answer('usages', named)
  fake.answer('me', named)
  await api('GET', '/oauth/usage')
  await api('GET', '/oauth/userinfo')

  // Turns with the managed model; every 401 asks for another token, and the renewal is refused.
  const session_id = (await api('POST', '/sessions', { metadata: { cwd } })).data.id as string
  await socket.request('subscribe', { session_ids: [session_id] })
  const turn = async () => {
    const content = [{ type: 'text', text: 'hello' }]
    const { code, msg, data } = await api('POST', `/sessions/${session_id}/prompts`, { content, model: 'svc-code/large' })
    assert.equal(code, 0, msg)
    await socket.next(frame => /^prompt\.(completed|aborted)$/.test(frame.type) && frame.payload.promptId === data.prompt_id)
  }
  fake.answer('refresh', () => grant())
  for (let n = 0; n < Object.keys(echoes).length; n++) await turn()
  fake.answer('me', [{ status: 401, body: {} }])
  for (const refusal of refusals(request => request.form.refresh_token ?? '')) {
    fake.answer('refresh', refusal)
    await api('GET', '/oauth/userinfo')
    await turn()
  }
  fake.answer('refresh', [refused('invalid_grant', 400, 'revoked')])
  await api('GET', '/oauth/userinfo')
  assert.equal((await api('GET', '/auth')).data.managed_provider.status, 'revoked')
  assert.equal((await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'x' }] })).code, 40112)
  await api('GET', `/sessions/${session_id}/snapshot`)
  await api('POST', '/oauth/logout', {})
  assert.ok(models.requests.length >= Object.keys(echoes).length)
  assert.ok(fake.asked('refresh').length > 5)

  await server.stop()
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
})

test('nothing of a key file shows, whatever its token service repeats', async t => {
  const dir = await freshDir()
  const [home, cwd] = [join(dir, 'home'), join(dir, 'place')]
  await mkdir(home)
  await mkdir(cwd)
  const secrets = new Secrets()
  const witness = new Witness(home, secrets)
  const upstream = await fakeUpstream(
    t,
    (_body, n, request) => {
      const all = Object.values(echoes)
      return all[n % all.length]!(sentBy(request))
    },
    { wire: genaiWire }
  )
  const token = secrets.seed('cloud token')
  const service = await fakeTokenService(t, { token })
  const foreign = generateKeyPairSync('rsa', {
    modulusLength: 2048,
    publicKeyEncoding: { type: 'spki', format: 'pem' },
    privateKeyEncoding: { type: 'pkcs8', format: 'pem' }
  }).privateKey
  const lineOf = (pem: string) => pem.split('\n')[3] ?? ''
  secrets.add('private key', lineOf(privateKey))
  secrets.add('foreign private key', lineOf(foreign))
  const client_secret = secrets.seed('client secret', 'awkward')
  const files: Record<string, string> = {
    text: service.serviceAccount(),
    path: join(dir, 'key.json'),
    foreign: service.serviceAccount({ private_key: foreign }),
    user: service.authorizedUser(),
    other_user: service.authorizedUser({ client_secret, refresh_token: secrets.seed('refresh token', 'awkward') }),
    broken: `{"private_key": "${secrets.seed('broken key file')}`,
    no_key: JSON.stringify({ type: 'service_account', client_email: 'a@b', private_key: secrets.seed('private key that is none') }),
    wrong_type: JSON.stringify({ type: secrets.seed('type of a key file') }),
    bad_uri: service.serviceAccount({ token_uri: `https://u:${secrets.seed('password of a token service')}@h.invalid/` }),
    no_path: secrets.seed('key instead of a path')
  }
  await writeFile(files.path!, service.serviceAccount())
  const names = Object.keys(files)
  const env = (name: string) => ({ X_CREDENTIALS: files[name], X_PROJECT: 'p', X_LOCATION: 'l' })
  const config = {
    loop_control: { max_attempts_per_step: 1 },
    packs: { config: { agent: { retry_base_ms: 0 } } },
    providers: Object.fromEntries(names.map(name => [name, { type: 'compat_cloud', base_url: upstream.url, env: env(name) }])),
    models: Object.fromEntries(names.map(name => [name, { provider: name, model: 'm', max_context_size: 64_000 }]))
  }
  await writeFile(join(home, 'config.toml'), tomlFile(config))
  const server = await WatchedServer.start(t, witness, { HOME: dir })
  const socket = await server.socket()
  const api = (method: string, path: string, body?: unknown): Promise<Json> => server.call(method, `/api/v1${path}`, body)
  const session_id = (await api('POST', '/sessions', { metadata: { cwd } })).data.id as string
  await socket.request('subscribe', { session_ids: [session_id] })
  const turn = async (model: string) => {
    const { code, data } = await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'hello' }], model })
    if (code !== 0) return
    await socket.next(frame => /^prompt\.(completed|aborted)$/.test(frame.type) && frame.payload.promptId === data.prompt_id)
  }
  for (const name of names) await turn(name)
  for (const text of texts) {
    service.answer({ status: 400, body: { error: 'invalid_client', error_description: text(client_secret) } })
    await turn('other_user')
  }
  service.answer()
  for (let n = 0; n < Object.keys(echoes).length; n++) await turn('text')
  for (const path of ['/config', '/providers', '/models', ...names.map(name => `/providers/${name}`)]) await api('GET', path)
  assert.ok(upstream.requests.length > Object.keys(echoes).length)
  for (const [n, { form }] of service.asked.entries()) if (form.assertion) secrets.add(`assertion ${n}`, form.assertion.split('.')[2] ?? '')
  assert.ok(service.asked.length > 7)
  await server.stop()
  const leaks = await witness.leaks()
  assert.ok(leaks.length === 0, leakList(leaks))
})
