/** import_registry through the front door. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { importCatalog, importRegistry, RegistryUnusable } from '../../../features/catalog/index.ts'
import { ProviderManaged, readProvider, refreshProviders } from '../../../features/providers/index.ts'
import { paths } from '../providers/scene.ts'
import { silent, startCatalog, upstream } from './scene.ts'

const managed = (id: string) => `[providers.${id}]\ntype = "svc"\noauth = { storage = "file", key = "svc-code" }\n`
const registry = (...ids: string[]) =>
  Object.fromEntries(ids.map(id => [id, { id, name: id, api: `https://${id}.example`, type: 'compat_chat', models: { m: { id: 'm' } } }]))

test('a registry is imported whole, again with the key of before, and providers that vanished go', async t => {
  const live = await upstream(t, registry('a', 'b'))
  const { call, file } = await startCatalog(t, { toml: 'default_model = " "\n[providers.hand]\ntype = "svc"\n' })
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

test('only what came from the same URL goes: hand-made providers, other registries and imports of the directory stay', async t => {
  const live = await upstream(t, registry('a', 'b'))
  const other = await upstream(t, registry('o'))
  const { call, file } = await startCatalog(t, { toml: '[providers.hand]\ntype = "svc"\n' })
  const url = `${live.url}/api.json`
  await call(importRegistry, { body: { url } })
  await call(importRegistry, { body: { url: `${other.url}/api.json` } })
  await call(importCatalog, { body: { catalog_id: 'local-chat' } })

  live.reply = registry('b')
  await call(importRegistry, { body: { url } })

  assert.deepEqual(Object.keys((await file()).providers!), ['hand', 'b', 'o', 'local-chat'])
})

test('every listed provider gets a source record, an endpoint, a protocol, its models and their prices; a hand-made one of that id is rewritten', async t => {
  const cost = { input: 1, output: 2, cache_read: 0.5, cache_write: 3 }
  const models = { k: { id: 'org/k', name: 'K', limit: { context: 10 }, cost }, plain: { id: 'p' }, mute: { id: 'q', tool_call: false } }
  const live = await upstream(t, { x: { id: 'x', api: 'https://x.example', type: 'compat_messages', models }, bad: { id: 'bad' } })
  const toml = '[providers.x]\ntype = "svc"\napi_key = "sk-mine"\nnote = "kept"\nmodel_source = "static"\ndefault_model = "x/old"\n'
  const { call, file } = await startCatalog(t, { toml })
  const url = `${live.url}/api.json`

  const { data } = await call(importRegistry, { body: { url, api_key: 'sk-r' } })

  assert.deepEqual([data.providers.map(({ id, default_model }) => [id, default_model]), data.models_imported], [[['x', 'x/k']], 3])
  const after = await file()
  assert.deepEqual(after.providers, {
    x: {
      type: 'compat_messages',
      base_url: 'https://x.example',
      api_key: 'sk-r',
      note: 'kept',
      source: { kind: 'apiJson', url, api_key: 'sk-r' }
    }
  })
  assert.deepEqual(after.models, {
    'x/k': { provider: 'x', model: 'org/k', max_context_size: 10, display_name: 'K', capabilities: ['tool_use'], cost },
    'x/plain': { provider: 'x', model: 'p', max_context_size: 131_072, capabilities: ['tool_use'] },
    'x/mute': { provider: 'x', model: 'q', max_context_size: 131_072, capabilities: [] }
  })
})

test('the key of an earlier import is the one that the file holds at that moment', async t => {
  const live = await upstream(t, registry('a'))
  const { call, home } = await startCatalog(t)
  const url = `${live.url}/api.json`
  const record = (id: string, key: string) => `[providers.${id}]\nsource = { kind = "apiJson", url = "${url}"${key} }\n`
  await writeFile(join(home, 'config.toml'), record('keyless', '') + record('a', ', api_key = "sk-r"'))

  await call(importRegistry, { body: { url } })

  assert.deepEqual(
    live.asked.map(({ headers }) => headers.authorization),
    ['Bearer sk-r']
  )
})

test('an empty key means none, although an earlier import had one', async t => {
  const live = await upstream(t, registry('a'))
  const { call } = await startCatalog(t)
  const url = `${live.url}/api.json`

  await call(importRegistry, { body: { url, api_key: 'sk-r' } })
  await call(importRegistry, { body: { url, api_key: '' } })

  assert.deepEqual(
    live.asked.map(({ headers }) => headers.authorization),
    ['Bearer sk-r', undefined]
  )
})

test('a registry that cannot be used is a 40005 that names it without its secrets; nothing is written', async t => {
  const live = await upstream(t, 500)
  const { call, toml } = await startCatalog(t, { toml: managed('a') })
  const url = `${live.url.replace('//', '//user:word@')}/api.json?key=hidden`
  const unusable = async (address: string) => {
    const { status, code, msg, data } = await call(importRegistry, { body: { url: address, api_key: 'sk-r' } })
    assert.deepEqual([status, code, data], [200, RegistryUnusable.code, null])
    assert.ok(msg.length <= 300 && !/word|hidden|sk-r/.test(msg), msg)
    return msg
  }

  const tooLong = Buffer.alloc(2 * 1024 * 1024 + 1, ' ')
  const tooMany = registry(...Array.from({ length: 1001 }, (_, n) => `p${n}`))
  for (const reply of [500, 401, 404, 302, 'x', '{"a":', [], null, {}, { a: { id: 'a' } }, tooLong, tooMany]) {
    live.reply = reply
    assert.ok((await unusable(url)).includes(`${live.url}/api.json`))
  }
  assert.ok(
    live.asked.every(({ path }) => path.startsWith('/api.json')),
    'no redirect is followed'
  )
  await unusable('http://user:word@127.0.0.1:1/api.json')
  await unusable('file:///etc/x')
  await unusable('word')
  assert.equal(await toml(), managed('a'))
})

test('a registry that does not answer in time is a 40005', async t => {
  const live = await upstream(t, silent)
  const { call } = await startCatalog(t, { options: { timeout_ms: 20 } })

  const { code, msg } = await call(importRegistry, { body: { url: live.url } })

  assert.equal(code, RegistryUnusable.code)
  assert.match(msg, /no answer within 0\.02 s/)
})

test('a listed provider that belongs to a login stops the whole import', async t => {
  const live = await upstream(t, registry('z', 'a'))
  const { call, toml } = await startCatalog(t, { toml: managed('a') })

  assert.equal((await call(importRegistry, { body: { url: `${live.url}/api.json` } })).code, ProviderManaged.code)
  assert.equal(await toml(), managed('a'))
})

test('what is no valid request is a 40001 that names the field', async t => {
  const { rest } = await startCatalog(t)
  const path = '/api/v1/providers:import_registry'

  assert.deepEqual(paths(await rest.json('POST', path, { api_key: 'x' })), ['body.url'])
  assert.deepEqual(paths(await rest.json('POST', path, { url: '' })), ['body.url'])
  assert.deepEqual(paths(await rest.json('POST', path, { url: 'http://127.0.0.1:1', api_key: 1 })), ['body.api_key'])
})

test('entries whose names or addresses no file can hold, and those without a model, are left out', async t => {
  const half = '\ud800'
  const entry = (id: string, api: string, models: object) => ({ id, api, type: 'compat_chat', models })
  const good = entry('a', 'https://a.example', { [`m${half}`]: { id: 'm' }, n: { id: half }, o: { id: 'o', name: half } })
  const live = await upstream(t, {
    a: good,
    b: entry('b', `https://b.example/${half}`, { m: { id: 'm' } }),
    c: entry('c', ['https://$', '{C}.example'].join(''), { m: { id: 'm' } }),
    d: entry('d', 'https://d.example', {})
  })
  const { call } = await startCatalog(t)

  const { data } = await call(importRegistry, { body: { url: `${live.url}/api.json` } })

  assert.deepEqual(
    data.providers.map(({ models }) => models),
    [['a/o']]
  )
})
