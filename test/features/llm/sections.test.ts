/** The configuration sections of models, and the model that the environment defines. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultModelSection, modelsSection, providersSection, providerToWire, thinkingSection } from '../../../features/llm/index.ts'
import { reviewProviders } from '../../../features/llm/review.ts'
import { problems } from '../../../kernel/index.ts'

test('a provider is shown without secrets', () => {
  assert.deepEqual(providerToWire({ api_key: 'k', custom_headers: { a: 'b' } }), { type: '', has_api_key: true })
  assert.deepEqual(providerToWire({ type: 'svc', base_url: 'https://x', default_model: 'p/m', api_key: '', env: { X_API_KEY: 'k' } }), {
    type: 'svc',
    base_url: 'https://x',
    default_model: 'p/m',
    has_api_key: true
  })
  assert.equal(providerToWire({ env: { REGION: 'x' } }).has_api_key, false)
})

test('unknown keys are accepted, wrong types are not', () => {
  const record = { provider: 'p', model: 'm', max_context_size: 1 }

  assert.deepEqual(problems(providersSection.schema, { p: { type: 'anything', future: 1 } }), [])
  assert.deepEqual(problems(modelsSection.schema, { m: { ...record, future: {} } }), [])
  assert.deepEqual(
    problems(modelsSection.schema, { m: { ...record, max_context_size: '1' } }).map(detail => detail.path),
    ['m.max_context_size']
  )
})

test('a record without authentication is told of each credential that it does not use', () => {
  const oauth = { storage: 'file', key: 'k' } as const
  const told = (record: object) => reviewProviders({ p: { type: 'svc', ...record } }).map(({ path, refused }) => [path, refused])
  assert.deepEqual(told({ auth: 'none' }), [])
  for (const record of [{ oauth }, { api_key: 'k' }, { oauth, api_key: 'k' }])
    assert.deepEqual(told({ ...record, auth: 'none' }), [['p.auth', false]], JSON.stringify(record))
  assert.deepEqual(told({ oauth, api_key: 'k' }), [['p.oauth', true]])
})

test('the environment can define a model, in memory and as default', () => {
  const env = {
    SVC_CODE_MODEL_NAME: 'big',
    SVC_CODE_MODEL_API_KEY: 'k',
    SVC_CODE_MODEL_BASE_URL: 'https://x',
    SVC_CODE_MODEL_MAX_CONTEXT_SIZE: '1000'
  }

  assert.deepEqual(providersSection.overlay?.(env), { environment: { type: 'svc', api_key: 'k', base_url: 'https://x' } })
  assert.deepEqual(modelsSection.overlay?.(env), {
    'environment/big': { provider: 'environment', model: 'big', max_context_size: 1000, capabilities: ['image_in', 'thinking'] }
  })
  assert.equal(defaultModelSection.overlay?.(env), 'environment/big')
})

test('a model name without a key defines nothing, unless its server is said to take none', () => {
  for (const base_url of ['https://x', 'http://127.0.0.1:1/v1']) {
    const env = { SVC_CODE_MODEL_NAME: 'big', SVC_CODE_MODEL_BASE_URL: base_url }
    assert.equal(modelsSection.overlay?.(env), undefined)
    assert.equal(modelsSection.overlay?.({ ...env, SVC_CODE_MODEL_AUTH: 'token' }), undefined)
    assert.equal(defaultModelSection.overlay?.({ ...env, SVC_CODE_MODEL_AUTH: 'none' }), 'environment/big')
    assert.deepEqual(providersSection.overlay?.({ ...env, SVC_CODE_MODEL_AUTH: 'none' })?.environment, {
      type: 'svc',
      auth: 'none',
      base_url
    })
  }
})

test('thinking follows the environment', () => {
  assert.equal(thinkingSection.overlay?.({}), undefined)
  assert.deepEqual(thinkingSection.overlay?.({ SVC_CODE_MODEL_THINKING_EFFORT: 'high' }), { effort: 'high' })
})
