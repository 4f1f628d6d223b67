/** `oauth` references of providers and of single models: which credential counts, who renews it, what stands in the file. */
import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Config, readConfig } from '../../../features/config/index.ts'
import { CredentialRejected, NoCredential, Outbound } from '../../../features/llm/index.ts'
import { AppError, definePack } from '../../../kernel/index.ts'
import { fakeOauth, granted, refused } from '../../helpers/fake-oauth.ts'
import { freshDir } from '../../helpers/temp.ts'
import { modelScene } from './model-scene.ts'
import { type SceneOptions, scene } from './scene.ts'

const life_s = 3600
const oauth = { storage: 'file', key: 'own' }
const record = { provider: 'p', model: 'm', max_context_size: 1000 }

interface Given extends SceneOptions {
  readonly provider?: Readonly<Record<string, unknown>>
  readonly model?: Readonly<Record<string, unknown>>
  /** Tokens that the model answers with HTTP 401. */
  readonly stale?: readonly string[]
}

async function start(t: TestContext, { provider = {}, model = {}, stale = [], ...given }: Given = {}) {
  const models = modelScene(stale)
  const services: { config?: Config; outbound?: Outbound } = {}
  const reader = definePack({
    name: 'config-reader',
    needs: { config: Config, outbound: Outbound },
    setup(_, found) {
      Object.assign(services, found)
    }
  })
  const fake = given.fake ?? (await fakeOauth(t, given.scripts))
  const server = await scene(t, { ...given, fake, packs: [...models.packs, reader] })
  /** Stores a login that has `left` seconds to live. */
  const store = async (slot: string, more: Readonly<Record<string, unknown>> = {}, left = life_s) => {
    await mkdir(join(server.home, 'credentials'), { recursive: true })
    const expires_at = server.clock.now / 1000 + left
    const credential = { access_token: `${slot}-token`, refresh_token: `${slot}-refresh`, expires_at, scope: '', token_type: 'Bearer' }
    await writeFile(join(server.home, 'credentials', `${slot}.json`), JSON.stringify({ ...credential, expires_in: life_s, ...more }))
  }
  const patch = (change: object) => server.rest.json('POST', '/api/v1/config', change)
  const reply = await patch({ providers: { p: { type: 'svc', ...provider } }, models: { 'p/m': { ...record, ...model } } })
  assert.equal(reply.code, 0, reply.msg)
  const refusal = (alias = 'p/m') => {
    try {
      models.resolve(alias)
    } catch (error) {
      if (AppError.is(error)) return { code: error.code, details: error.details }
      throw error
    }
    return undefined
  }
  const { config, outbound } = services
  assert.ok(config && outbound)
  return { ...server, ...models, store, patch, refusal, config, outbound, turn: async () => models.ask(models.resolve('p/m')) }
}

const own = (fake: { oauth_host: string }) => ({ ...oauth, oauth_host: fake.oauth_host })

test('the first credential counts: key and login of the model, key, env table and login of the provider', async t => {
  const { store, config, turn, keys } = await start(t, {
    provider: { api_key: 'key-p', env: { P_API_KEY: 'key-env' } },
    model: { oauth }
  })
  await store('own')
  await store('other')
  const steps: readonly object[] = [
    {},
    { models: { 'p/m': { oauth: null, api_key: 'key-m' } } },
    { models: { 'p/m': { api_key: null } } },
    { providers: { p: { api_key: null, oauth: { storage: 'file', key: 'other' } } } },
    { providers: { p: { env: null } } }
  ]

  for (const step of steps) {
    await config.patch(step as Record<string, unknown>)
    await turn()
  }

  assert.deepEqual(keys, ['own-token', 'key-m', 'key-p', 'key-env', 'other-token'])
})

test('what overrides say of the credential wins over the record as a whole', async t => {
  const { store, config, turn, keys } = await start(t, { model: { api_key: 'key-m', overrides: { oauth } } })
  await store('own')

  await turn()
  await config.patch({
    models: { 'p/m': { oauth: { storage: 'file', key: 'other' }, api_key: null, overrides: { oauth: null, api_key: 'key-o' } } }
  })
  await turn()

  assert.deepEqual(keys, ['own-token', 'key-o'])
})

test('the login of a model is renewed at its own host when it is due, and once after a 401', async t => {
  const fake = await fakeOauth(t)
  const managed = await fakeOauth(t)
  const { store, turn, keys, clock, credential } = await start(t, {
    model: { oauth: own(fake) },
    stale: ['access-token-renewed-1'],
    options: { oauth_host: managed.oauth_host }
  })
  await store('own')

  await turn()
  clock.now += (life_s / 2 + 1) * 1000
  assert.deepEqual(
    (await turn()).map(({ type }) => type),
    ['text', 'finish']
  )

  assert.deepEqual(keys, ['own-token', 'access-token-renewed-1', 'access-token-renewed-2'])
  assert.deepEqual(
    fake.asked('refresh').map(({ form }) => form.refresh_token),
    ['own-refresh', 'refresh-token-renewed-1']
  )
  assert.equal(managed.asked('refresh').length, 0)
  assert.equal((await credential('own'))?.refresh_token, 'refresh-token-renewed-2')
})

test('a login of the model that is missing, over or refused is told before the turn; nothing else is used in its place', async t => {
  const fake = await fakeOauth(t, { refresh: [refused('invalid_grant')] })
  const { store, refusal, turn, keys, clock } = await start(t, {
    provider: { api_key: 'key-p', base_url: 'http://127.0.0.1:1' },
    model: { oauth: own(fake) }
  })
  const details = { provider_id: 'p' }

  assert.deepEqual(refusal(), { code: NoCredential.code, details })
  await store('own', { refresh_token: '' })
  assert.equal(refusal(), undefined)
  clock.now += life_s * 1000
  assert.deepEqual(refusal(), { code: NoCredential.code, details })
  await store('own', {}, 1)
  const parts = await turn()
  assert.deepEqual(refusal(), { code: CredentialRejected.code, details })

  const [part] = parts
  assert.equal(part?.type === 'error' && part.error.message, 'model p/m is not logged in any more; log in again')
  assert.deepEqual(keys, [])
})

test('an authorization server that says what no other try would change ends the turn at once', async t => {
  const fake = await fakeOauth(t, { refresh: [refused('invalid_client')] })
  const { store, turn } = await start(t, { model: { oauth: own(fake) } })
  await store('own', {}, 0)
  const [part] = await turn()
  assert.deepEqual(part?.type === 'error' && [part.error.code, part.error.retryable], ['provider.auth_error', false])

  fake.answer('refresh', [{ status: 503 }])
  const [busy] = await turn()
  assert.deepEqual(busy?.type === 'error' && [busy.error.code, busy.error.retryable], ['provider.connection_error', true])
})

test('offline, a login that is due is not renewed, and the turn says why without another try', async t => {
  const fake = await fakeOauth(t)
  const { store, turn, config, clock } = await start(t, { model: { oauth: own(fake) } })
  await store('own')
  await config.patch({ offline: true })

  clock.now += (life_s / 2 + 1) * 1000
  assert.equal((await turn()).at(-1)?.type, 'finish')
  clock.now += life_s * 1000
  const [part] = await turn()

  assert.deepEqual(part?.type === 'error' && [part.error.name, part.error.retryable], ['OfflineError', false])
  assert.equal(fake.asked('refresh').length, 0)
})

test('requests whose token is refused together renew it once', async t => {
  const { store, login, fake } = await start(t, { model: {} })
  await store('svc-code')
  const managed = 'managed:svc-code'

  const first = await login.accessToken(managed, { force: true, refused: 'svc-code-token' })
  const late = await login.accessToken(managed, { force: true, refused: 'svc-code-token' })

  assert.deepEqual([first, late, fake.asked('refresh').length], ['access-token-renewed-1', 'access-token-renewed-1', 1])
  assert.equal(await login.accessToken(managed, { force: true, refused: 'access-token-renewed-1' }), 'access-token-renewed-2')
})

test('the hosts that renew logins of models and providers are listed', async t => {
  const { outbound, fake } = await start(t, {
    provider: { oauth: { ...oauth, oauth_host: 'https://login.provider.invalid' } },
    model: { oauth: { storage: 'file', key: 'm', oauth_host: 'https://login.model.invalid' } }
  })

  const found = (await outbound.report()).hosts.filter(({ pack }) => pack === 'oauth').map(({ url }) => url)

  assert.deepEqual(found, [fake.oauth_host, fake.api_base_url, 'https://login.provider.invalid', 'https://login.model.invalid'])
})

test('key and login together on one record are refused, and nothing changes on disk', async t => {
  const { patch, home } = await start(t, { provider: { api_key: 'key-p' }, model: { oauth } })
  const before = await readFile(join(home, 'config.toml'), 'utf8')
  const refusals: readonly [change: object, path: string][] = [
    [{ providers: { p: { oauth } } }, 'body.providers.p.oauth'],
    [{ providers: { q: { oauth, api_key: 'k' } } }, 'body.providers.q.oauth'],
    [{ models: { 'p/m': { api_key: 'k' } } }, 'body.models.p/m.oauth'],
    [{ models: { 'p/m': { overrides: { api_key: 'k', oauth } } } }, 'body.models.p/m.overrides.oauth']
  ]

  for (const [change, path] of refusals) {
    const { code, details, msg } = await patch(change)
    assert.deepEqual([code, (details as { path: string }[])[0]?.path], [40001, path])
    assert.match(msg, /exclude each other/)
  }
  assert.equal(await readFile(join(home, 'config.toml'), 'utf8'), before)
  assert.equal((await patch({ providers: { p: { api_key: '', oauth } } })).code, 0)
})

const bothInFile = `default_model = "p/m"
[providers.p]
type = "svc"
api_key = "key-p"
[providers.p.oauth]
storage = "keyring"
key = "own"
[models."p/m"]
provider = "p"
model = "m"
max_context_size = 1000
`

test('a file that has both is used with its key, says so, and does not stand in the way of other changes', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), bothInFile)
  const { config, turn, keys, patch } = await start(t, { home })

  await turn()

  assert.deepEqual(keys, ['key-p'])
  const said = config.diagnostics().map(({ domain, message }) => `${domain}: ${message}`)
  assert.ok(
    said.includes('providers: config.toml: providers.p.oauth: api_key and oauth exclude each other; api_key is used'),
    said.join('\n')
  )
  assert.equal((await patch({ providers: { q: { type: 'svc' } } })).code, 0)
})

test('keyring means file: the login is used, renewed into the file, and a diagnostic says where it is', async t => {
  const fake = await fakeOauth(t)
  const keyring = { storage: 'keyring', key: 'own', oauth_host: fake.oauth_host }
  const { store, config, turn, keys, clock, credential, call, home } = await start(t, { provider: { oauth: keyring } })
  await store('own')

  await turn()
  clock.now += life_s * 1000
  await turn()

  assert.deepEqual(keys, ['own-token', 'access-token-renewed-1'])
  assert.equal((await credential('own'))?.access_token, 'access-token-renewed-1')
  assert.match(
    config
      .diagnostics()
      .map(({ message }) => message)
      .join('\n'),
    /providers\.p\.oauth\.storage: no keyring of the system is used/
  )
  assert.match(await readFile(join(home, 'config.toml'), 'utf8'), /keyring/)
  assert.ok(!JSON.stringify((await call(readConfig)).data).includes('keyring'))
})

test('a managed login that the file keeps in a keyring is not lost by a new login', async t => {
  const home = await freshDir()
  const text = '[providers."managed:svc-code"]\ntype = "svc"\n[providers."managed:svc-code".oauth]\nstorage = "keyring"\nkey = "svc-code"\n'
  await writeFile(join(home, 'config.toml'), text)
  const { login, logIn, fake } = await start(t, { home })
  fake.answer('poll', [granted(7)])

  assert.equal(login.status('managed:svc-code'), 'unauthenticated')
  await logIn()
  assert.equal(login.status('managed:svc-code'), 'authenticated')
  assert.match(await readFile(join(home, 'config.toml'), 'utf8'), /storage = "file"/)
})
