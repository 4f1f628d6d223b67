/** import_catalog and import_registry through the front door. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EntryMissing, importCatalog, importRegistry, NotImportable, RegistryUnusable } from '../../../features/catalog/index.ts'
import { ProviderManaged, readProvider, refreshProviders } from '../../../features/providers/index.ts'
import { paths } from '../providers/scene.ts'
import { startCatalog, upstream } from './scene.ts'

const models = { m: { id: 'm', name: 'M', limit: { context: 1000 } }, n: { id: 'n', limit: { context: 2000 } } }
const directory = {
  good: { id: 'good', name: 'Good', api: 'https://good.example/v1', models },
  homeless: { id: 'homeless', models },
  rejected: { id: 'rejected', type: 'other', models },
  empty: { id: 'empty', api: 'https://e.example', models: {} },
  'odd.id': { id: 'odd.id', api: 'https://o.example', models }
}
const managed = (id: string) => `[providers.${id}]\ntype = "svc"\noauth = { storage = "file", key = "svc-code" }\n`

test('an entry becomes a provider with all its models, and the default when there is none', async t => {
  const { call, file, events } = await startCatalog(t, (await upstream(t, directory)).url)

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
      'good/m': { provider: 'good', model: 'm', max_context_size: 1000, display_name: 'M', capabilities: ['tool_use'] },
      'good/n': { provider: 'good', model: 'n', max_context_size: 2000, capabilities: ['tool_use'] }
    }
  })
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
  const { call, file, toml: text } = await startCatalog(t, (await upstream(t, directory)).url, toml)

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
    overrides: { max_context_size: 7 }
  })
  assert.ok((await text()).startsWith('default_model = "mine/gone" # stays'))
})

test('what cannot be imported says why and writes nothing', async t => {
  const { call, rest, toml } = await startCatalog(t, (await upstream(t, directory)).url, managed('good'))
  const refused = async (body: { catalog_id: string; base_url?: string; id?: string }) => {
    const { code, details } = await call(importCatalog, { body })
    assert.equal(code, NotImportable.code)
    return (details as unknown as { reason: string }).reason // a failure other than 40001 has an object here
  }

  assert.deepEqual(paths(await rest.json('POST', '/api/v1/providers:import_catalog', {})), ['body.catalog_id'])
  assert.equal((await call(importCatalog, { body: { catalog_id: 'constructor' } })).code, EntryMissing.code)
  assert.equal(await refused({ catalog_id: 'rejected' }), 'unknown-explicit-type')
  assert.equal(await refused({ catalog_id: 'homeless' }), 'needs-base-url')
  assert.equal(await refused({ catalog_id: 'homeless', base_url: ' ' }), 'empty-base-url')
  assert.equal(await refused({ catalog_id: 'homeless', base_url: ['$', '{X}'].join('') }), 'placeholder-base-url')
  assert.equal(await refused({ catalog_id: 'empty' }), 'no-importable-models')
  assert.equal(await refused({ catalog_id: 'odd.id' }), 'unusable-id')
  assert.equal(await refused({ catalog_id: 'good', id: '' }), 'unusable-id')
  assert.equal((await call(importCatalog, { body: { catalog_id: 'good' } })).code, ProviderManaged.code)
  assert.equal(await toml(), managed('good'))
  assert.equal((await call(importCatalog, { body: { catalog_id: 'homeless', base_url: 'https://h.example' } })).code, 0)
})

const registry = (...ids: string[]) =>
  Object.fromEntries(ids.map(id => [id, { id, name: id, api: `https://${id}.example`, type: 'compat_chat', models: { m: { id: 'm' } } }]))

test('a registry is imported whole, again with the key of before, and providers that vanished go', async t => {
  const live = await upstream(t, registry('a', 'b'))
  const { call, file } = await startCatalog(t, undefined, '[providers.hand]\ntype = "svc"\n')
  const url = `${live.url}/api.json`

  const first = await call(importRegistry, { body: { url, api_key: 'sk-r' } })
  assert.equal(first.status, 201)
  assert.deepEqual([first.data.providers.map(({ id }) => id), first.data.models_imported], [['a', 'b'], 2])
  assert.equal((await file()).default_model, 'a/m')
  assert.equal((await call(readProvider, { params: { provider_id: 'a' } })).data.api_key, 'sk-r')

  live.reply = registry('b', 'c')
  const again = await call(importRegistry, { body: { url } })
  assert.deepEqual(
    again.data.providers.map(({ id, has_api_key }) => [id, has_api_key]),
    [
      ['b', true],
      ['c', true]
    ]
  )
  assert.deepEqual(
    live.asked.map(({ headers }) => headers.authorization),
    ['Bearer sk-r', 'Bearer sk-r']
  )
  const after = (await file()) as Record<string, object>
  assert.deepEqual(Object.keys(after.providers!), ['hand', 'b', 'c'])
  assert.deepEqual(Object.keys(after.models!), ['b/m', 'c/m'])
  assert.equal(after.default_model, 'a/m', 'defaults stay')
  assert.deepEqual((await call(refreshProviders)).data, { changed: [], unchanged: ['hand', 'b', 'c'], failed: [] })
})

test('a registry that cannot be used is a 40005 that names it without its secrets; nothing is written', async t => {
  const live = await upstream(t, 500)
  const { call, rest, toml } = await startCatalog(t, undefined, managed('a'))
  const url = `${live.url.replace('//', '//user:word@')}/api.json?key=hidden`

  assert.deepEqual(paths(await rest.json('POST', '/api/v1/providers:import_registry', { api_key: 'x' })), ['body.url'])
  for (const reply of [500, 401, 'x', [], {}, { a: { id: 'a' } }]) {
    live.reply = reply
    const { code, msg } = await call(importRegistry, { body: { url, api_key: 'sk-r' } })
    assert.equal(code, RegistryUnusable.code)
    assert.ok(msg.includes('/api.json') && !/word|hidden|sk-r/.test(msg), msg)
  }
  assert.equal((await call(importRegistry, { body: { url: 'file:///etc/x' } })).code, RegistryUnusable.code)
  live.reply = registry('z', 'a')
  assert.equal((await call(importRegistry, { body: { url: `${live.url}/api.json` } })).code, ProviderManaged.code)
  assert.equal(await toml(), managed('a'))
})
