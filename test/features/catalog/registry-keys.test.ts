/** Who gets which key when a registry is involved: the registry its own, its providers that one, and nobody a key meant for another host. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importCatalog, importRegistry } from '../../../features/catalog/index.ts'
import { readProvider, refreshProviders, replaceProvider } from '../../../features/providers/index.ts'
import { quiet } from '../providers/scene.ts'
import { startCatalog, upstream } from './scene.ts'

const listing = (...ids: string[]) =>
  Object.fromEntries(ids.map(id => [id, { id, api: `https://${id}.registry.example/v1`, type: 'compat_chat', models: { m: { id: 'm' } } }]))

const elsewhere = `${quiet}
[providers.x]
type = "svc"
base_url = "https://private.example/v1"
api_key = "sk-private"
env = { X_API_KEY = "sk-env" }
custom_headers = { Authorization = "Bearer sk-header" }
note = "kept"
[models."x/m"]
provider = "x"
model = "m"
max_context_size = 1
overrides = { api_key = "sk-model", oauth = { storage = "file", key = "k" }, display_name = "Mine" }
`

for (const [what, given, expected] of [
  ['without a key', {}, {}],
  ['with a key', { api_key: 'sk-r' }, { api_key: 'sk-r' }]
] as const) {
  test(`a registry ${what} that lists a provider of another place does not get its credentials for the new endpoint`, async t => {
    const live = await upstream(t, listing('x'))
    const { call, file } = await startCatalog(t, { toml: elsewhere })
    const url = `${live.url}/api.json`

    assert.equal((await call(importRegistry, { body: { url, ...given } })).code, 0)

    const { providers, models } = (await file()) as Record<string, Record<string, Record<string, unknown>>>
    const source = { kind: 'apiJson', url, ...expected }
    assert.deepEqual(providers!.x, {
      type: 'compat_chat',
      base_url: 'https://x.registry.example/v1',
      ...expected,
      note: 'kept',
      source
    })
    assert.deepEqual(models!['x/m']?.overrides, { display_name: 'Mine' })
    assert.equal((await call(readProvider, { params: { provider_id: 'x' } })).data.has_api_key, given !== undefined && 'api_key' in given)
  })
}

test('an import of the same registry keeps the key and headers that the user gave one of its providers', async t => {
  const live = await upstream(t, listing('x'))
  const { call, file } = await startCatalog(t, { toml: quiet })
  const body = { url: `${live.url}/api.json` }
  await call(importRegistry, { body })
  const mine = { type: 'compat_chat' as const, api_key: 'sk-mine', models: [{ model: 'm', max_context_size: 1 }] }
  await call(replaceProvider, { params: { provider_id: 'x' }, body: mine })

  await call(importRegistry, { body })

  assert.equal(((await file()) as Record<string, Record<string, { api_key: string }>>).providers!.x!.api_key, 'sk-mine')
})

test('the key that a user gave a provider is not shown to the registry it came from', async t => {
  const live = await upstream(t, listing('x'))
  const { call } = await startCatalog(t, { toml: quiet })
  const body = { url: `${live.url}/api.json` }
  await call(importRegistry, { body })
  const mine = { type: 'compat_chat' as const, api_key: 'sk-mine', models: [{ model: 'm', max_context_size: 1 }] }
  await call(replaceProvider, { params: { provider_id: 'x' }, body: mine })

  await call(refreshProviders)
  await call(importRegistry, { body })

  assert.deepEqual(
    live.asked.map(({ headers }) => headers.authorization),
    [undefined, undefined, undefined]
  )
})

test('a key that several providers of a registry have is tried once', async t => {
  const live = await upstream(t, listing('x', 'y'))
  const { call } = await startCatalog(t, { toml: quiet })
  await call(importRegistry, { body: { url: `${live.url}/api.json`, api_key: 'sk-r' } })
  live.reply = 401

  assert.equal((await call(refreshProviders)).data.failed.length, 2)
  assert.equal(live.asked.length, 2)
})

test('blanks around the address of a registry do not make it another one', async t => {
  const live = await upstream(t, listing('x', 'y'))
  const { call, file } = await startCatalog(t, { toml: quiet })
  const url = `${live.url}/api.json`
  await call(importRegistry, { body: { url, api_key: 'sk-r' } })
  live.reply = listing('x')

  const { data } = await call(importRegistry, { body: { url: ` ${url}\t` } })

  assert.deepEqual(
    data.providers.map(({ id, has_api_key }) => [id, has_api_key]),
    [['x', true]]
  )
  const { providers } = (await file()) as Record<string, Record<string, { source: object }>>
  assert.deepEqual(Object.keys(providers!), ['x'], 'the one that is no longer listed goes')
  assert.deepEqual(providers!.x!.source, { kind: 'apiJson', url, api_key: 'sk-r' })
})

test('a key that no request could carry is refused before anybody is asked', async t => {
  const live = await upstream(t, listing('x'))
  const { call } = await startCatalog(t, { directory: live.url })

  for (const answer of [
    await call(importRegistry, { body: { url: `${live.url}/api.json`, api_key: 'two\nlines' } }),
    await call(importCatalog, { body: { catalog_id: 'x', api_key: 'two\nlines' } })
  ]) {
    assert.deepEqual([answer.code, (answer.details as { path: string }[]).map(({ path }) => path)], [40001, ['body.api_key']])
  }
})
