/** Who is asked for models and how, and how answers are read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refreshProviders } from '../../../features/providers/index.ts'
import { withEnvironment } from '../../helpers/environment.ts'
import { discovering, listServer, quiet, start } from './scene.ts'

test('a svc provider with a key on exactly the managed endpoint is asked without saying discover', async t => {
  const { url, asked } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10 }] }))
  withEnvironment(t, { SVC_CODE_API_BASE_URL: `${url}/managed` })
  const one = (id: string, type: string, path: string, key: string) =>
    `[providers.${id}]\ntype = "${type}"\nbase_url = "${url}${path}"\napi_key = "${key}"\n`
  const toml = [
    one('yes', 'svc', '/managed', 'k'),
    one('keyless', 'svc', '/managed', ''),
    one('elsewhere', 'svc', '/managed/', 'k'),
    one('other', 'compat_chat', '/managed', 'k'),
    `${one('fixed', 'svc', '/managed', 'k')}model_source = "static"\n`
  ]
  const { call } = await start(t, { toml: quiet + toml.join('') })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data, {
    changed: [{ provider_id: 'yes', provider_name: 'yes', added: 1, removed: 0 }],
    unchanged: ['keyless', 'elsewhere', 'other', 'fixed'],
    failed: []
  })
  assert.deepEqual(
    asked.map(({ path, headers }) => [path, headers.authorization]),
    [['/managed/models', 'Bearer k']]
  )
})

test('a question carries the product, the key of the env table, and own headers above all', async t => {
  const { url, asked } = await listServer(t, () => ({ data: [] }))
  const toml = `${quiet}
[providers.table]
model_source = "discover"
env = { ONE_BASE_URL = "${url}/v1/?x=1", ONE_API_KEY = "sk-table" }
[providers.own]
model_source = "discover"
base_url = "${url}"
api_key = "sk-1"
custom_headers = { Authorization = "Basic abc", User-Agent = "mine" }
`
  const { call } = await start(t, { toml })

  await call(refreshProviders)

  const told = asked.map(({ path, headers }) => [path, headers.authorization, headers['user-agent']])
  assert.deepEqual(told.sort(), [
    ['/models', 'Basic abc', 'mine'],
    ['/v1/models?x=1', 'Bearer sk-table', asked.find(({ path }) => path.startsWith('/v1'))?.headers['user-agent']]
  ])
  assert.match(String(told.find(([path]) => path !== '/models')?.[2]), /^svc-code\/\d/)
})

test('a list that is damaged in parts is read as far as it makes sense', async t => {
  const item = (id: unknown, more: object = {}) => ({ id, context_length: 10, ...more })
  const { url } = await listServer(t, () => ({
    data: [
      5,
      null,
      item(''),
      item(7),
      item('__proto__', { display_name: ['x'] }),
      item('a', { display_name: ' ', supports_thinking_type: 'both', think_efforts: { support: false, valid_efforts: ['low'] } }),
      item('b', { supports_thinking_type: 'no', supports_reasoning: true, supports_video_in: true, protocol: 'other' }),
      item('b', { think_efforts: { support: true, valid_efforts: ['low', '', 3], default_effort: 'high' } })
    ]
  }))
  const { call, file } = await start(t, { toml: discovering(url) })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data.changed, [{ provider_id: 'one', provider_name: 'one', added: 3, removed: 0 }])
  const common = { provider: 'one', max_context_size: 10 }
  assert.deepEqual((await file()).models, {
    'one/__proto__': { ...common, model: '__proto__', capabilities: ['tool_use'] },
    'one/a': { ...common, model: 'a', capabilities: ['thinking', 'tool_use'] },
    'one/b': { ...common, model: 'b', capabilities: ['tool_use'], support_efforts: ['low'] }
  })
  assert.deepEqual((await call(refreshProviders)).data.unchanged, ['one'])
})

test('a registry that moves a provider moves it here, and its withdrawal takes every pointer along', async t => {
  const entry = (id: string, api: string) => ({ id, name: id, api, type: 'compat_chat', models: { m: { id: 'm' } } })
  let listed: object = { a: entry('a', 'https://a.example'), b: entry('b', 'https://b.example') }
  const { url } = await listServer(t, () => listed)
  const source = `source = { kind = "apiJson", url = "${url}/api.json" }`
  const toml = `default_provider = "a"\ndefault_model = "a/m"\n${quiet}\n[providers.a]\n${source}\n[providers.b]\n${source}\n`
  const { call, file } = await start(t, { toml })
  await call(refreshProviders)

  listed = { a: entry('a', 'https://a.example'), b: { ...entry('b', 'https://moved.example'), type: 'svc' } }
  assert.deepEqual((await call(refreshProviders)).data, { changed: [], unchanged: ['a', 'b'], failed: [] })
  const { b } = (await file()).providers as Record<string, Record<string, unknown>>
  assert.deepEqual([b?.base_url, b?.type], ['https://moved.example', 'svc'])

  listed = { b: entry('b', 'https://b.example') }
  await call(refreshProviders)
  const { default_model, default_provider, providers } = await file()
  assert.deepEqual([default_model, default_provider, Object.keys(providers as object)], [undefined, undefined, ['b']])
})
