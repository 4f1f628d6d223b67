/** From an alias to a model: the order of sources, and the readiness codes. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { credentialOf } from '../../../features/llm/credential.ts'
import {
  type ContributedModel,
  type Llm,
  type LlmAdapter,
  LlmAdapters,
  LlmLogins,
  LlmModels,
  type LoginStatus,
  ModelUnresolved,
  NoCredential,
  NoProvider
} from '../../../features/llm/index.ts'
import { AppError, definePack, type ErrorSpec } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { withEnvironment } from '../../helpers/environment.ts'
import { startLlm } from '../../helpers/llm-port.ts'

const adapter = (protocol: string, more: Partial<LlmAdapter> = {}): LlmAdapter => ({
  protocol,
  needs_credential: true,
  needs_base_url: true,
  // biome-ignore lint/correctness/useYield: these tests never send anything
  async *stream() {
    throw new Error('not used')
  },
  ...more
})

function start(
  t: TestContextLike,
  config: Record<string, unknown>,
  { models = [], adapters, reload }: { models?: ContributedModel[]; adapters?: LlmAdapter[]; reload?: () => void } = {}
) {
  const contributor = definePack({
    name: 'contributor',
    setup(ctx) {
      for (const item of adapters ?? [adapter('compat_chat'), adapter('svc')]) ctx.contribute(LlmAdapters, item)
      for (const item of models) ctx.contribute(LlmModels, item)
    }
  })
  return startLlm(t, { packs: [contributor], config, ...(reload && { reload }) })
}

const demo: ContributedModel = {
  alias: 'demo',
  provider_id: 'demo',
  protocol: 'demo',
  name: 'demo',
  display_name: 'Demo',
  max_context_size: 1000,
  capabilities: [],
  fallback_default: true
}
const provider = { type: 'compat_chat', base_url: 'https://api.example.com/v1/', api_key: 'k1' }
const record = { provider: 'p', model: 'm', max_context_size: 1000 }

function refused(llm: Llm, alias: string | undefined, spec: ErrorSpec, details: unknown) {
  assert.throws(
    () => llm.resolve(alias),
    error => {
      assert.ok(AppError.is(error))
      assert.equal(error.spec, spec)
      assert.deepEqual(error.details, details)
      return true
    }
  )
}

test('an alias resolves to its provider, protocol, URL, key and headers', async t => {
  const llm = await start(t, { providers: { p: { ...provider, custom_headers: { 'X-Team': 'a' } } }, models: { 'p/m': record } })

  const { headers, ...model } = llm.resolve('p/m')

  assert.deepEqual(model, {
    alias: 'p/m',
    provider_id: 'p',
    protocol: 'compat_chat',
    name: 'm',
    display_name: 'm',
    base_url: 'https://api.example.com/v1',
    api_key: 'k1',
    max_context_size: 1000,
    capabilities: []
  })
  assert.equal(headers['x-team'], 'a')
  assert.match(headers['user-agent'] ?? '', /^svc-code\/\d/)
})

test('the model record wins over its provider, overrides win over the record, the input never exceeds the window', async t => {
  const models = {
    m: {
      ...record,
      protocol: 'svc',
      base_url: 'https://other.example.com',
      api_key: 'k2',
      display_name: 'Old',
      max_input_size: 5000,
      overrides: { display_name: 'New', max_context_size: 2000 }
    }
  }
  const llm = await start(t, { providers: { p: provider }, models })

  const { protocol, base_url, api_key, display_name, max_context_size, max_input_size } = llm.resolve('m')

  assert.deepEqual(
    [protocol, base_url, api_key, display_name, max_context_size, max_input_size],
    ['svc', 'https://other.example.com', 'k2', 'New', 2000, 2000]
  )
})

test('the env table of a provider is the fallback for key and URL; a provider without type speaks compat_chat', async t => {
  const env = { ACME_API_KEY: 'k3', ACME_BASE_URL: 'https://acme.example.com' }
  const llm = await start(t, { providers: { p: { api_key: ' ', env } }, models: { m: record } })

  const { api_key, base_url, protocol } = llm.resolve('m')

  assert.deepEqual([api_key, base_url, protocol], ['k3', 'https://acme.example.com', 'compat_chat'])
})

test('the env table also names an access token, a project and a region', async t => {
  const env = { ACME_ACCESS_TOKEN: 't1', ACME_CLOUD_PROJECT: 'p1', ACME_CLOUD_LOCATION: 'r1' }
  const llm = await start(t, {
    providers: { p: { base_url: provider.base_url, env } },
    models: { m: { ...record, adaptive_thinking: true } }
  })

  const { api_key, bearer, project, location, adaptive_thinking } = llm.resolve('m')

  assert.deepEqual([api_key, bearer, project, location, adaptive_thinking], ['t1', true, 'p1', 'r1', true])
})

test('a key is no access token', async t => {
  const llm = await start(t, { providers: { p: { ...provider, env: { ACCESS_TOKEN: 't1' } } }, models: { m: record } })

  assert.deepEqual([llm.resolve('m').api_key, llm.resolve('m').bearer], ['k1', undefined])
})

test('what the adapter misses in a model answers 40113', async t => {
  const adapters = [adapter('compat_chat', { missing: model => (model.project ? undefined : 'no project') })]
  const llm = await start(t, { providers: { p: provider }, models: { m: record } }, { adapters })

  refused(llm, 'm', ModelUnresolved, { model_id: 'm', provider_id: 'p' })
})

test('without any provider the answer is 40110', async t => {
  const llm = await start(t, {})

  refused(llm, undefined, NoProvider, undefined)
  refused(llm, 'x', NoProvider, undefined)
})

test('what cannot be resolved answers 40113 and says which model and provider', async t => {
  const providers = {
    p: provider,
    bare: { type: 'svc', api_key: 'k' },
    odd: { ...provider, base_url: 'ftp://x' },
    far: { ...provider, type: 'carrier_pigeon' }
  }
  const models = Object.fromEntries(['gone', 'bare', 'odd', 'far'].map(id => [id, { ...record, provider: id }]))
  const llm = await start(t, { providers, models })

  refused(llm, undefined, ModelUnresolved, undefined)
  refused(llm, 'constructor', ModelUnresolved, { model_id: 'constructor' })
  for (const id of ['gone', 'bare', 'odd', 'far']) refused(llm, id, ModelUnresolved, { model_id: id, provider_id: id })
})

test('a missing credential answers 40111, also on this machine, unless the record says that none is needed', async t => {
  const local = { base_url: 'http://localhost:8080/v1' }
  const providers = {
    p: { base_url: 'https://api.example.com' },
    local,
    open: { ...local, auth: 'none' },
    odd: { ...local, auth: 'none', api_key: 'k', env: { X_API_KEY: 'k' } }
  }
  const models = Object.fromEntries(Object.keys(providers).map(provider => [provider, { ...record, provider }]))
  const own = { ...record, provider: 'open', api_key: 'own' }
  const llm = await start(t, { providers, models: { ...models, own } })

  refused(llm, 'p', NoCredential, { provider_id: 'p' })
  refused(llm, 'local', NoCredential, { provider_id: 'local' })
  assert.deepEqual([llm.resolve('open').api_key, llm.resolve('odd').api_key], [undefined, undefined])
  assert.equal(llm.resolve('own').api_key, 'own')
})

test('no alias means the configured default, and a contributed model only when nothing is configured', async t => {
  const adapters = [adapter('compat_chat'), adapter('demo', { needs_credential: false, needs_base_url: false })]
  const config: Record<string, unknown> = { providers: { p: provider }, models: { m: record }, default_model: 'm' }
  const llm = await start(t, config, { models: [demo], adapters })

  assert.equal(llm.resolve().alias, 'm')
  config.default_model = ' '
  assert.equal(llm.defaultAlias(), 'demo')
  assert.equal(llm.resolve().display_name, 'Demo')
  config.default_model = 'vanished'
  refused(llm, undefined, ModelUnresolved, { model_id: 'vanished' })
})

test('an alias is known whatever keeps it from being used', async t => {
  const keyless = { ...record, provider: 'keyless' }
  const llm = await start(t, { providers: { keyless: { base_url: 'http://h' } }, models: { keyless, lost: record } }, { models: [demo] })

  refused(llm, 'keyless', NoCredential, { provider_id: 'keyless' })
  assert.deepEqual(
    ['keyless', 'lost', 'demo', 'other'].filter(alias => llm.knows(alias)),
    ['keyless', 'lost', 'demo']
  )
})

test('what is unknown is looked for once more in the file that another server may have written', async t => {
  const config: Record<string, unknown> = {}
  let looked = 0
  const reload = () => {
    looked++
    Object.assign(config, { providers: { p: provider }, models: { m: record } })
  }
  const llm = await start(t, config, { reload })

  assert.equal((await llm.lookUp('m')).name, 'm')
  await llm.lookUp('m')
  assert.equal(looked, 1)
  await assert.rejects(llm.lookUp('gone'), { code: ModelUnresolved.code })
})

test('a contributed model works without any provider, and a configured alias of the same name wins', async t => {
  const adapters = [adapter('compat_chat'), adapter('demo', { needs_credential: false, needs_base_url: false })]
  const config: Record<string, unknown> = {}
  const llm = await start(t, config, { models: [demo], adapters })

  assert.equal(llm.resolve('demo').protocol, 'demo')
  Object.assign(config, { providers: { p: provider }, models: { demo: record } })
  assert.equal(llm.resolve('demo').provider_id, 'p')
})

test('the environment says how every model samples; what is no number does not count', async t => {
  withEnvironment(t, { SVC_CODE_MODEL_TEMPERATURE: ' 0.5 ', SVC_CODE_MODEL_TOP_P: '0.9x' })
  const llm = await start(t, { providers: { p: provider }, models: { m: record } })

  const { temperature, top_p } = llm.resolve('m')

  assert.deepEqual({ temperature, top_p }, { temperature: 0.5, top_p: undefined })
})

test('a model with a login is resolved by the state of the login at that moment, also where the adapter needs none', async t => {
  let state: LoginStatus = 'unauthenticated'
  const oauth = { storage: 'file', key: 'k' }
  const { api_key: _, ...keyless } = provider
  const logins = definePack({
    name: 'logins',
    setup(ctx) {
      ctx.contribute(LlmAdapters, adapter('compat_chat', { needs_credential: false }))
      ctx.contribute(LlmLogins, { status: () => state, accessToken: async () => undefined })
    }
  })
  const llm = await startLlm(t, { packs: [logins], config: { providers: { p: { ...keyless, oauth } }, models: { a: record } } })

  const seen = (['unauthenticated', 'authenticated', 'expired', 'authenticated'] as const).map(next => {
    state = next
    return llm.resolve('a').login
  })

  assert.deepEqual(seen, [undefined, true, undefined, true])
})

test('a login that was refused for good answers 40112, one that is over 40111; both name the provider', () => {
  const user = { alias: 'p/m', model: {}, provider_id: 'p', provider: { oauth: {} }, adapter: { needs_credential: true } }
  const coded = (status: LoginStatus) => {
    try {
      return credentialOf(user as unknown as Parameters<typeof credentialOf>[0], { loginStatus: () => status })
    } catch (error) {
      return AppError.is(error) && [error.code, error.details]
    }
  }
  assert.deepEqual((['authenticated', 'revoked', 'expired', 'unauthenticated'] as const).map(coded), [
    { login: true },
    [40112, { provider_id: 'p' }],
    [40111, { provider_id: 'p' }],
    [40111, { provider_id: 'p' }]
  ])
})
