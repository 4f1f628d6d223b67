/** The provider that the environment defines: shown, never written. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importRegistry } from '../../../features/catalog/index.ts'
import catalog from '../../../features/catalog/pack.ts'
import {
  createProvider,
  deleteProvider,
  listModels,
  listProviders,
  readAuth,
  readProvider,
  refreshProvider,
  refreshProviders,
  replaceProvider,
  setDefaultModel
} from '../../../features/providers/index.ts'
import { withEnvironment } from '../../helpers/environment.ts'
import { body, listServer, paths, quiet, start } from './scene.ts'

const params = { provider_id: 'environment' }
const { id: _, ...form } = body('x')
const environment = { SVC_CODE_MODEL_NAME: 'tiny', SVC_CODE_MODEL_API_KEY: 'sk-env', SVC_CODE_MODEL_BASE_URL: 'http://127.0.0.1:9/v1' }

test('it is listed with its model and the default, its key is not revealed', async t => {
  withEnvironment(t, environment)
  const { call } = await start(t, { toml: `default_model = "one/m"\n${quiet}[providers.one]\n` })

  const item = {
    id: 'environment',
    type: 'svc',
    base_url: 'http://127.0.0.1:9/v1',
    default_model: 'environment/tiny',
    has_api_key: true,
    status: 'connected',
    models: ['environment/tiny']
  }
  assert.deepEqual((await call(listProviders)).data.items[1], item)
  assert.deepEqual((await call(readProvider, { params })).data, item)
  assert.deepEqual(
    (await call(listModels)).data.items.map(({ model, provider }) => [model, provider]),
    [['environment/tiny', 'environment']]
  )
  assert.deepEqual((await call(readAuth)).data, {
    ready: true,
    providers_count: 2,
    default_model: 'environment/tiny',
    managed_provider: null
  })
})

test('it cannot be created, replaced, renamed to or deleted, even when the file has one of its name', async t => {
  withEnvironment(t, environment)
  for (const toml of [`${quiet}[providers.one]\n`, `${quiet}[providers.one]\n[providers.environment]\napi_key = "k"\n`]) {
    const { call, toml: text } = await start(t, { toml })

    assert.equal((await call(createProvider, { body: body('environment') })).code, 40921)
    assert.equal((await call(replaceProvider, { params: { provider_id: 'one' }, body: { ...form, new_id: 'environment' } })).code, 40921)
    for (const answer of [await call(replaceProvider, { params, body: form }), await call(deleteProvider, { params })]) {
      assert.deepEqual([answer.code, paths(answer)], [40001, ['params.provider_id']])
      assert.match(answer.msg, /SVC_CODE_MODEL_NAME/)
    }
    assert.equal(await text(), toml)
  }
})

test('it is never asked for models, and a created provider does not become the default', async t => {
  withEnvironment(t, { ...environment, SVC_CODE_API_BASE_URL: environment.SVC_CODE_MODEL_BASE_URL })
  const { call, file } = await start(t, { toml: quiet })

  await call(createProvider, { body: body('one') })

  assert.equal((await file()).default_model, undefined)
  assert.deepEqual((await call(refreshProvider, { params })).data, { changed: [], unchanged: ['environment'], failed: [] })
  assert.deepEqual((await call(refreshProviders)).data, { changed: [], unchanged: ['one', 'environment'], failed: [] })
  assert.deepEqual((await call(setDefaultModel, { params: { model_id: 'environment/tiny' } })).data.model.provider, 'environment')
  assert.deepEqual(Object.keys((await file()).providers as object), ['one'])
})

test('its model is the default one: no other can be made that, and a model that nobody knows is still none', async t => {
  withEnvironment(t, environment)
  const toml = `${quiet}[providers.one]\n[models."one/m"]\nprovider = "one"\nmodel = "m"\nmax_context_size = 1\n`
  const { call, toml: text } = await start(t, { toml })

  const refused = await call(setDefaultModel, { params: { model_id: 'one/m' } })

  assert.deepEqual([refused.code, paths(refused)], [40001, ['params.model_id']])
  assert.match(refused.msg, /SVC_CODE_MODEL_NAME/)
  assert.equal((await call(setDefaultModel, { params: { model_id: 'one/x' } })).code, 40413)
  assert.equal(await text(), toml)
})

test('an import does not write it, and sets no default beside that of the environment', async t => {
  withEnvironment(t, environment)
  const { url } = await listServer(t, ({ path }) => {
    const id = path.slice(1)
    return { [id]: { id, api: 'https://listed.example', type: 'compat_chat', models: { m: { id: 'm' } } } }
  })
  const { call, file } = await start(t, { toml: quiet, more: [catalog] })

  assert.equal((await call(importRegistry, { body: { url: `${url}/environment` } })).code, 40001)
  assert.equal((await call(importRegistry, { body: { url: `${url}/one` } })).code, 0)

  const { providers, default_model } = await file()
  assert.deepEqual([Object.keys(providers as object), default_model], [['one'], undefined])
})
