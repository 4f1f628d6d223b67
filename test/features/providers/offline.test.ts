/** Offline, and everything else that a failed question may say: reasons that name no secret. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importRegistry, RegistryUnusable } from '../../../features/catalog/index.ts'
import catalog from '../../../features/catalog/pack.ts'
import { refreshProvider, refreshProviders } from '../../../features/providers/index.ts'
import { discovering, listServer, quiet, start } from './scene.ts'

const secrets = /name|word|sk-|hidden|key=/
const url = 'https://name:word@models.invalid:8443/v1?key=hidden'
const toml = `offline = true
${quiet}
[providers.list]
base_url = "${url}"
api_key = "sk-list"
model_source = "discover"
[providers.registered]
source = { kind = "apiJson", url = "${url}", api_key = "sk-registry" }
`

test('offline, a refresh says so of each provider that is not called, by its host only', async t => {
  const { call, toml: text } = await start(t, { toml })

  const { data } = await call(refreshProviders)

  const reason = 'offline: models.invalid:8443 is not called (--offline, SVC_CODE_OFFLINE, or offline = true in config.toml)'
  assert.deepEqual(data, { changed: [], unchanged: [], failed: ['list', 'registered'].map(provider => ({ provider, reason })) })
  assert.equal(await text(), toml)
})

test('offline, the import of a registry says so, by its address without secrets', async t => {
  const { call } = await start(t, { toml: `offline = true\n${quiet}`, more: [catalog] })

  const { code, msg } = await call(importRegistry, { body: { url: `${url}&more=sk-1`, api_key: 'sk-2' } })

  assert.equal(code, RegistryUnusable.code)
  assert.match(msg, /^registry https:\/\/models\.invalid:8443\/v1: offline: models\.invalid:8443 is not called/)
  assert.doesNotMatch(msg, secrets)
})

test('offline, a provider on this machine is asked all the same', async t => {
  const { url: local } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10 }] }))
  const { call } = await start(t, { toml: `offline = true\n${discovering(local)}` })

  const { data } = await call(refreshProvider, { params: { provider_id: 'one' } })

  assert.deepEqual([data.changed.length, data.failed], [1, []])
})

test('no reason quotes a secret of the URL, the headers or the answer', async t => {
  const { url: local } = await listServer(t, ({ path }) => {
    if (path.startsWith('/page')) return '<html>sk-one word hidden</html>'
    return path.startsWith('/error') ? 500 : 403
  })
  const secret = local.replace('//', '//name:word@')
  const one = (id: string, base: string) =>
    `[providers.${id}]\nbase_url = "${base}?key=hidden"\napi_key = "sk-one"\nmodel_source = "discover"\ncustom_headers = { X-Secret = "hidden" }\n`
  const urls = {
    page: `${secret}/page`,
    error: `${secret}/error`,
    refused: `${secret}/refused`,
    closed: 'http://name:word@127.0.0.1:9',
    unknown: 'http://name:word@no-such-host.invalid',
    odd: 'ftp://name:word@host',
    none: 'name:word'
  }
  const header = '[providers.header]\nbase_url = "http://127.0.0.1:9"\napi_key = "sk-one\\nhidden"\nmodel_source = "discover"\n'
  const { call } = await start(t, { toml: [quiet, ...Object.entries(urls).map(([id, base]) => one(id, base)), header].join('') })

  const { failed } = (await call(refreshProviders)).data

  assert.equal(failed.length, 8)
  for (const { reason } of failed) assert.doesNotMatch(reason, secrets)
  const reasons = Object.fromEntries(failed.map(({ provider, reason }) => [provider, reason]))
  assert.equal(reasons.odd, 'the URL is not an http(s) address')
  assert.match(reasons.header ?? '', /^could not be reached/)
})

test('an answer that is too large says so', async t => {
  const { url: local } = await listServer(t, () => ({ data: [], filler: 'x'.repeat(2 * 1024 * 1024) }))
  const { call } = await start(t, { toml: discovering(local) })

  const { failed } = (await call(refreshProviders)).data

  assert.deepEqual(failed, [{ provider: 'one', reason: 'the answer is not smaller than 2097152 bytes' }])
})
