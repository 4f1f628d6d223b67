/** Who sees a key: the read of one provider shows its own, nothing else shows any. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  createProvider,
  listModels,
  listProviders,
  readAuth,
  readProvider,
  refreshProviders,
  replaceProvider
} from '../../../features/providers/index.ts'
import { body, logins, quiet, start } from './scene.ts'

const toml = `${quiet}
[providers.own]
api_key = " sk-own "
custom_headers = { X-Key = "sk-header" }
source = { kind = "other", url = "https://r.example?key=sk-source", api_key = "sk-source" }
[providers.table]
env = { TABLE_API_KEY = "sk-table" }
[providers.blank]
api_key = " "
[providers."managed:svc-code"]
type = "svc"
api_key = ""
env = { X_API_KEY = "sk-managed" }
oauth = { storage = "file", key = "svc-code" }
[models."own/m"]
provider = "own"
model = "m"
max_context_size = 1
api_key = "sk-model"
`
const loggedIn = () => logins({ status: () => 'authenticated', accessToken: async () => 'sk-token' })

test('the read of one provider shows the key of its record, trimmed; keys of the env table and tokens of logins stay inside', async t => {
  const { call } = await start(t, { toml, more: [loggedIn()] })
  const read = async (provider_id: string) => {
    const { data } = await call(readProvider, { params: { provider_id } })
    assert.doesNotMatch(JSON.stringify({ ...data, api_key: undefined }), /sk-/)
    return [data.has_api_key, data.status, 'api_key' in data ? data.api_key : 'none']
  }

  assert.deepEqual(await read('own'), [true, 'connected', 'sk-own'])
  assert.deepEqual(await read('table'), [true, 'connected', 'none'])
  assert.deepEqual(await read('blank'), [false, 'unconfigured', 'none'])
  assert.deepEqual(await read('managed:svc-code'), [true, 'connected', 'none'])
})

test('no other answer, event or header shows a key', async t => {
  const { call, rest, events } = await start(t, { toml, more: [loggedIn()] })
  const { id: _, ...form } = body('x')

  const answers = [
    await call(listProviders),
    await call(listModels),
    await call(readAuth),
    await call(refreshProviders),
    await call(createProvider, { body: body('new', { api_key: 'sk-new' }) }),
    await call(createProvider, { body: body('new', { api_key: 'sk-again' }) }),
    await call(replaceProvider, { params: { provider_id: 'new' }, body: { ...form, api_key: 'sk-next' } }),
    await call(replaceProvider, { params: { provider_id: 'new' }, body: { ...form, api_key: 'sk-x', new_id: 'own' } }),
    await rest.json('POST', '/api/v1/providers', { ...body('bad'), api_key: ['sk-wrong'], models: 'sk-models' }),
    await rest.json('GET', '/api/v1/config')
  ]

  assert.doesNotMatch(JSON.stringify([answers, events]), /sk-/)
})

test('a key is three-valued on replace, also for one that an env table backs', async t => {
  const { call, file } = await start(t, { toml })
  const { id: _, ...form } = body('table')
  const put = async (api_key?: string) => {
    const { data } = await call(replaceProvider, {
      params: { provider_id: 'table' },
      body: { ...form, ...(api_key !== undefined && { api_key }) }
    })
    const stored = ((await file()).providers as Record<string, { api_key?: string }>).table!.api_key
    return [data.provider.has_api_key, stored]
  }

  assert.deepEqual(await put(), [true, undefined])
  assert.deepEqual(await put('sk-1'), [true, 'sk-1'])
  assert.deepEqual(await put(), [true, 'sk-1'])
  assert.deepEqual(await put(''), [true, undefined], 'the env table still has one')
})

test('a provider that needs no key is connected; with a key it needs that one', async t => {
  const toml = `${quiet}[providers.local]\ntype = "compat_chat"\nauth = "none"\nbase_url = "http://127.0.0.1:9/v1"\n`
  const { call, file } = await start(t, { toml })
  const params = { provider_id: 'local' }
  const { id: _, ...form } = body('local', { base_url: 'http://127.0.0.1:9/v1' })
  const record = async () => ((await file()).providers as Record<string, Record<string, unknown>>).local

  const { data } = await call(readProvider, { params })
  assert.deepEqual([data.status, data.has_api_key], ['connected', false])
  assert.equal((await call(replaceProvider, { params, body: form })).code, 0)
  assert.equal((await record())?.auth, 'none')
  assert.equal((await call(replaceProvider, { params, body: { ...form, api_key: 'k' } })).code, 0)
  const { auth, api_key } = (await record())!
  assert.deepEqual([auth, api_key], [undefined, 'k'])
})

test('a key that no request could carry is refused, and nothing is written; blanks around one are not sent', async t => {
  const { call, file } = await start(t, { toml: quiet })
  const { id: _, ...form } = body('p')
  const create = (api_key: string) => call(createProvider, { body: body('p', { api_key }) })

  for (const api_key of ['sk-1\nsk-2', 'sk-\u043a', 'sk-\u0000']) {
    const { code, details } = await create(api_key)
    const refused = [{ path: 'body.api_key', message: 'must be one line of characters that can be sent in a header' }]
    assert.deepEqual([code, details], [40001, refused])
  }
  assert.equal((await file()).providers, undefined)

  assert.equal((await create(' sk-1\n')).code, 0)
  assert.equal((await call(readProvider, { params: { provider_id: 'p' } })).data.api_key, 'sk-1')
  assert.equal((await call(replaceProvider, { params: { provider_id: 'p' }, body: { ...form, api_key: 'a\nb' } })).code, 40001)
})
