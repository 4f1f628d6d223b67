/** import_catalog through the front door. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EntryMissing, importCatalog, NotImportable } from '../../../features/catalog/index.ts'
import { ProviderManaged } from '../../../features/providers/index.ts'
import { paths } from '../providers/scene.ts'
import { startCatalog, upstream } from './scene.ts'

const cost = { input: 1, output: 5, cache_read: 0.1, cache_write: 1.25 }
const models = { m: { id: 'm', name: 'M', limit: { context: 1000 }, cost }, n: { id: 'n', limit: { context: 2000 } } }
const directory = {
  good: { id: 'good', name: 'Good', api: 'https://good.example/v1', models },
  homeless: { id: 'homeless', models },
  rejected: { id: 'rejected', type: 'other', models },
  proprietary: { id: 'proprietary', npm: '@ai-sdk/cohere', models },
  implied: { id: 'implied', npm: '@ai-sdk/anthropic', models },
  empty: { id: 'empty', api: 'https://e.example', models: {} },
  'odd.id': { id: 'odd.id', api: 'https://o.example', models }
}
const managed = (id: string) => `[providers.${id}]\ntype = "svc"\noauth = { storage = "file", key = "svc-code" }\n`

test('an entry becomes a provider with all its models, and the default when there is none', async t => {
  const { call, file, events } = await startCatalog(t, { directory: (await upstream(t, directory)).url })

  const answer = await call(importCatalog, { body: { catalog_id: 'good', api_key: 'sk-1' } })

  assert.equal(answer.status, 201)
  const provider = {
    id: 'good',
    type: 'compat_chat',
    base_url: 'https://good.example/v1',
    default_model: 'good/m',
    has_api_key: true,
    status: 'connected',
    models: ['good/m', 'good/n']
  }
  assert.deepEqual(answer.data, { provider, models_imported: 2 })
  assert.equal(events.length, 1, 'one save')
  assert.deepEqual(await file(), {
    default_model: 'good/m',
    providers: { good: { type: 'compat_chat', base_url: 'https://good.example/v1', api_key: 'sk-1' } },
    models: {
      'good/m': { provider: 'good', model: 'm', max_context_size: 1000, display_name: 'M', capabilities: ['tool_use'], cost },
      'good/n': { provider: 'good', model: 'n', max_context_size: 2000, capabilities: ['tool_use'] }
    }
  })
})

test('an alias of another provider stays: it is not counted, and is no default of the imported one', async t => {
  const toml = '[providers.mine]\ntype = "svc"\n[models."good/m"]\nprovider = "mine"\nmodel = "x"\nmax_context_size = 1\n'
  const { call, file } = await startCatalog(t, { directory: (await upstream(t, directory)).url, toml })

  const { data } = await call(importCatalog, { body: { catalog_id: 'good' } })

  assert.deepEqual([data.provider.models, data.models_imported], [['good/n'], 1])
  assert.equal((await file()).default_model, 'good/n')
})

test('an import of an existing id rewrites it, keeps its key, its headers and overrides, and no default moves', async t => {
  const toml = `default_model = "mine/gone" # stays

[providers.mine]
type = "svc"
api_key = "sk-old"
default_model = "mine/gone"
custom_headers = { X-A = "1" }

[models."mine/gone"]
provider = "mine"
model = "gone"
max_context_size = 1

[models."mine/m"]
provider = "mine"
model = "m"
max_context_size = 1
max_output_size = 1
overrides = { max_context_size = 7 }
`
  const { call, file, toml: text } = await startCatalog(t, { directory: (await upstream(t, directory)).url, toml })

  const { data } = await call(importCatalog, { body: { catalog_id: 'good', id: 'mine', base_url: ' https://other.example ' } })

  assert.deepEqual(data.provider.models, ['mine/m', 'mine/n'])
  const after = (await file()) as Record<string, Record<string, unknown>>
  assert.deepEqual(after.providers!.mine, {
    type: 'compat_chat',
    base_url: 'https://other.example',
    api_key: 'sk-old',
    custom_headers: { 'X-A': '1' }
  })
  assert.deepEqual(after.models!['mine/m'], {
    provider: 'mine',
    model: 'm',
    max_context_size: 1000,
    display_name: 'M',
    capabilities: ['tool_use'],
    cost,
    overrides: { max_context_size: 7 }
  })
  assert.ok((await text()).startsWith('default_model = "mine/gone" # stays'))
})

test('an omitted key keeps the stored one, an empty one clears it; default pointers stay where they are', async t => {
  const toml = 'default_provider = "other"\ndefault_model = "other/x"\n'
  const { call, file } = await startCatalog(t, { directory: (await upstream(t, directory)).url, toml })
  const stored = async () => ((await file()).providers as { good: { api_key?: string } }).good.api_key

  await call(importCatalog, { body: { catalog_id: 'good', api_key: 'sk-1' } })
  assert.equal(await stored(), 'sk-1')
  await call(importCatalog, { body: { catalog_id: 'good' } })
  assert.equal(await stored(), 'sk-1')
  await call(importCatalog, { body: { catalog_id: 'good', api_key: 'sk-2' } })
  assert.equal(await stored(), 'sk-2')
  const { provider } = (await call(importCatalog, { body: { catalog_id: 'good', api_key: '' } })).data
  assert.equal(await stored(), undefined)
  assert.deepEqual([provider.has_api_key, provider.status], [false, 'unconfigured'])

  const { default_provider, default_model } = await file()
  assert.deepEqual([default_provider, default_model], ['other', 'other/x'])
})

test('an entry without an endpoint gets the one that its SDK knows; a version in a messages endpoint goes', async t => {
  const { call } = await startCatalog(t, { directory: (await upstream(t, directory)).url })

  const implied = (await call(importCatalog, { body: { catalog_id: 'implied' } })).data.provider
  assert.deepEqual([implied.type, implied.base_url], ['compat_messages', 'https://api.anthropic.com'])
  const given = await call(importCatalog, { body: { catalog_id: 'implied', id: 'my own', base_url: 'https://m.example/v1/' } })
  assert.deepEqual([given.data.provider.id, given.data.provider.base_url], ['my own', 'https://m.example'])
})

test('a key goes to the configuration file and nowhere else', async t => {
  const live = await upstream(t, directory)
  const { call, rest, events, toml } = await startCatalog(t, { directory: live.url })

  const answer = await rest.json('POST', '/api/v1/providers:import_catalog', { catalog_id: 'good', api_key: 'sk-secret' })
  const refused = await rest.json('POST', '/api/v1/providers:import_catalog', { catalog_id: 'empty', api_key: 'sk-secret' })

  assert.equal(answer.code, 0)
  assert.equal(refused.code, NotImportable.code)
  assert.ok((await toml()).includes('sk-secret'))
  assert.doesNotMatch(JSON.stringify([answer, refused, events, live.asked]), /sk-secret/)
  assert.equal((await call(importCatalog, { body: { catalog_id: 'good' } })).data.provider.has_api_key, true)
})

test('what is no valid request is a 40001 that names the field', async t => {
  const { rest } = await startCatalog(t)
  const path = '/api/v1/providers:import_catalog'

  assert.deepEqual(paths(await rest.json('POST', path, {})), ['body.catalog_id'])
  assert.deepEqual(paths(await rest.json('POST', path, { catalog_id: '' })), ['body.catalog_id'])
  for (const field of ['id', 'api_key', 'base_url'])
    assert.deepEqual(paths(await rest.json('POST', path, { catalog_id: 'local-chat', [field]: 1 })), [`body.${field}`])
  assert.deepEqual(paths(await rest.json('POST', path, { catalog_id: 'local-chat', base_url: 'nowhere' })), ['body.base_url'])
})

test('what cannot be imported says why and writes nothing', async t => {
  const toml = managed('good') + managed('empty').replaceAll('svc-code', 'other')
  const { call, toml: text } = await startCatalog(t, { directory: (await upstream(t, directory)).url, toml })
  const refused = async (body: { catalog_id: string; base_url?: string; id?: string }) => {
    const { status, code, data, details } = await call(importCatalog, { body })
    assert.deepEqual([status, code, data], [200, NotImportable.code, null])
    return (details as unknown as { reason: string }).reason // a failure other than 40001 has an object here
  }

  for (const catalog_id of ['nope', 'constructor', '__proto__'])
    assert.equal((await call(importCatalog, { body: { catalog_id } })).code, EntryMissing.code)
  assert.equal(await refused({ catalog_id: 'rejected' }), 'unknown-explicit-type')
  assert.equal(await refused({ catalog_id: 'proprietary', base_url: 'https://p.example' }), 'proprietary-sdk')
  assert.equal(await refused({ catalog_id: 'homeless' }), 'needs-base-url')
  assert.equal(await refused({ catalog_id: 'homeless', base_url: ' ' }), 'empty-base-url')
  assert.equal(await refused({ catalog_id: 'homeless', base_url: ['$', '{X}'].join('') }), 'placeholder-base-url')
  assert.equal(await refused({ catalog_id: 'empty' }), 'no-importable-models', 'before the login of the provider is looked at')
  assert.equal(await refused({ catalog_id: 'odd.id' }), 'unusable-id')
  assert.equal(await refused({ catalog_id: 'good', id: '' }), 'unusable-id')
  assert.equal((await call(importCatalog, { body: { catalog_id: 'good' } })).code, ProviderManaged.code)
  assert.equal(
    (await call(importCatalog, { body: { catalog_id: 'homeless', id: 'good', base_url: 'https://h' } })).code,
    ProviderManaged.code
  )
  assert.equal(await text(), toml)
  assert.equal((await call(importCatalog, { body: { catalog_id: 'odd.id', id: 'even' } })).code, 0)
  assert.equal((await call(importCatalog, { body: { catalog_id: 'homeless', base_url: 'https://h.example' } })).code, 0)
})
