/** The refresh routes against a real HTTP server in place of a provider or a registry. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { LlmAdapters, type LlmLogin } from '../../../features/llm/index.ts'
import {
  modelCatalogChanged,
  ProviderMissing,
  readAuth,
  refreshLogins,
  refreshProvider,
  refreshProviders
} from '../../../features/providers/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { discovering, listServer, logins, quiet, start } from './scene.ts'

const empty = { changed: [], unchanged: [], failed: [] }

test('nothing configured: every refresh is empty and an unknown provider is a 40412', async t => {
  const { call, rest, events } = await start(t)

  assert.deepEqual((await call(refreshProviders)).data, empty)
  assert.deepEqual((await call(refreshLogins)).data, empty)
  assert.equal((await call(refreshProvider, { params: { provider_id: 'nope' } })).code, ProviderMissing.code)
  assert.deepEqual((await call(refreshProviders)).data, empty)
  for (const path of ['providers:zap', 'providers/one:zap', 'providers/one']) {
    const answer = await rest.json('POST', `/api/v1/${path}`)
    assert.equal(answer.code, 40001, path)
    assert.equal(answer.details?.length, 1)
  }
  assert.deepEqual(events, [])
})

test('static providers are unchanged and nobody is asked', async t => {
  const { url, asked } = await listServer(t, () => 500)
  const toml = `${quiet}
[providers.hand]
base_url = "${url}"
api_key = "k"
[providers.fixed]
base_url = "${url}"
model_source = "static"
source = { kind = "apiJson", url = "${url}" }
[providers.login]
base_url = "${url}"
model_source = "static"
oauth = { storage = "file", key = "svc-code" }
`
  const { call, toml: text } = await start(t, { toml })

  assert.deepEqual((await call(refreshProviders)).data, { ...empty, unchanged: ['hand', 'fixed', 'login'] })
  assert.deepEqual((await call(refreshProvider, { params: { provider_id: 'hand' } })).data, { ...empty, unchanged: ['hand'] })
  assert.deepEqual(asked, [])
  assert.equal(await text(), toml)
})

test('discovery rewrites the aliases of a provider, keeps what a user added, and tells once', async t => {
  const { url, asked } = await listServer(t, () => ({
    data: [
      {
        id: 'kept',
        context_length: 2000,
        supports_thinking_type: 'only',
        supports_image_in: true,
        think_efforts: { support: true, valid_efforts: ['low', 'high'], default_effort: 'high' }
      },
      {
        id: 'new',
        context_length: 3000,
        display_name: 'New',
        supports_reasoning: true,
        supports_tool_use: false,
        protocol: 'compat_messages'
      }
    ]
  }))
  const toml = `# top
default_model = "one/gone"
${discovering(url, 'custom_headers = { X-Team = "t" }\n')}
[models."one/kept"]
provider = "one"
model = "kept"
max_context_size = 1
display_name = "Old"
off_effort = "none" # mine
overrides = { max_context_size = 500 }

[models."one/gone"]
provider = "one"
model = "gone"
max_context_size = 1

[models.fast]
provider = "one"
model = "gone"
max_context_size = 1

[secondary_model]
default_model = "one/kept"
[secondary_model.models]
"one/kept" = "a"
"one/gone" = "b"
`
  const { call, file, toml: text, events, waitFor } = await start(t, { toml })

  const { data } = await call(refreshProvider, { params: { provider_id: 'one' } })

  assert.deepEqual(data, { changed: [{ provider_id: 'one', provider_name: 'one', added: 1, removed: 1 }], unchanged: [], failed: [] })
  assert.equal(asked[0]?.path, '/v1/models')
  assert.equal(asked[0]?.headers.authorization, 'Bearer sk-one')
  assert.equal(asked[0]?.headers['x-team'], 't')
  const after = await file()
  assert.deepEqual(after.models, {
    'one/kept': {
      provider: 'one',
      model: 'kept',
      max_context_size: 2000,
      capabilities: ['thinking', 'always_thinking', 'image_in', 'tool_use'],
      support_efforts: ['low', 'high'],
      default_effort: 'high',
      off_effort: 'none',
      overrides: { max_context_size: 500 }
    },
    fast: { provider: 'one', model: 'gone', max_context_size: 1 },
    'one/new': {
      provider: 'one',
      model: 'new',
      max_context_size: 3000,
      display_name: 'New',
      capabilities: ['thinking'],
      protocol: 'compat_messages'
    }
  })
  assert.equal(after.default_model, undefined)
  assert.deepEqual(after.secondary_model, { default_model: 'one/kept', models: { 'one/kept': 'a' } })
  assert.ok((await text()).startsWith('# top') && (await text()).includes('# mine'))
  assert.deepEqual((await waitFor(({ type }) => type === modelCatalogChanged.type)).payload, data)

  const told = events.length
  assert.deepEqual((await call(refreshProviders)).data, { ...empty, unchanged: ['one'] })
  assert.equal(events.length, told, 'no event without a change')
})

test('a refresh touches no alias of others; a default of a provider goes with its alias, in either spelling', async t => {
  const model = (id: string, more: object = {}) => ({ id, context_length: 10, ...more })
  const lists: Readonly<Record<string, unknown>> = {
    '/one/models': [model('m'), model('taken'), model('renamed')],
    '/two/models': [model('m', { think_efforts: { support: true, valid_efforts: ['low', 'high'] } })],
    '/three/models': [model('m', { supports_image_in: true })]
  }
  const { url } = await listServer(t, ({ path }) => lists[path])
  const provider = (id: string, more = '') =>
    `[providers.${id}]\nmodel_source = "discover"\nbase_url = "${url}/${id}"\napi_key = "k"\n${more}\n`
  const alias = (name: string, owner: string, named: string, more = '') =>
    `[models."${name}"]\nprovider = "${owner}"\nmodel = "${named}"\nmax_context_size = 10\n${more}\n`
  const toml = `default_provider = "elsewhere"
${quiet}
${provider('one', 'default_model = "gone"')}
${provider('two', 'default_model = "two/gone"')}
${provider('three', 'default_model = "m"')}
${alias('one/gone', 'one', 'gone')}
${alias('two/gone', 'two', 'gone')}
${alias('one/taken', 'two', 'mine')}
${alias('__proto__', 'two', 'mine')}
${alias('one/renamed', 'one', 'before', 'capabilities = ["tool_use"]')}
${alias('two/m', 'two', 'm', 'capabilities = ["tool_use"]\nsupport_efforts = ["high", "low"]')}
${alias('three/m', 'three', 'm', 'capabilities = ["tool_use", "image_in"]')}`
  const { call, file } = await start(t, { toml })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data, {
    changed: [
      { provider_id: 'one', provider_name: 'one', added: 1, removed: 1 },
      { provider_id: 'two', provider_name: 'two', added: 0, removed: 1 }
    ],
    unchanged: ['three'],
    failed: []
  })
  const { default_provider, providers, models } = (await file()) as Record<string, Record<string, Record<string, unknown>>>
  assert.equal(default_provider, 'elsewhere')
  assert.deepEqual(
    Object.values(providers!).map(({ default_model }) => default_model),
    [undefined, undefined, 'm']
  )
  assert.deepEqual(Object.keys(models!).sort(), ['__proto__', 'one/m', 'one/renamed', 'one/taken', 'three/m', 'two/m'])
  assert.deepEqual(models!['one/taken'], { provider: 'two', model: 'mine', max_context_size: 10 })
  assert.equal(models!['one/renamed']?.model, 'renamed')
  assert.deepEqual(models!['two/m']?.support_efforts, ['low', 'high'])
  assert.deepEqual(models!['three/m']?.capabilities, ['tool_use', 'image_in'])
})

test('failures are collected, the others go on, and no text holds the key', async t => {
  const { url } = await listServer(t, ({ path }) => {
    if (path.startsWith('/refused')) return 401
    if (path.startsWith('/broken')) return '{"data": [{"id": "sk-'
    if (path.startsWith('/sizeless')) return { data: [{ id: 'x' }] }
    if (path.startsWith('/list')) return { items: [] }
    if (path.startsWith('/down')) return 503
    if (path.startsWith('/moved')) return 302
    if (path.startsWith('/none')) return { data: [] }
    return { data: [{ id: 'm', context_length: 10 }] }
  })
  const adapter = definePack({
    name: 'adapter',
    setup: ctx =>
      ctx.contribute(LlmAdapters, {
        protocol: 'odd',
        needs_credential: true,
        stream: () => assert.fail('not asked'),
        modelList: ({ api_key }) => assert.fail(`no list for ${api_key}`)
      })
  })
  const names = ['refused', 'broken', 'sizeless', 'list', 'down', 'moved', 'none', 'good']
  const sections = names.map(name => `[providers.${name}]\nbase_url = "${url}/${name}"\napi_key = "sk-secret"\nmodel_source = "discover"\n`)
  const more = `[providers.closed]\nbase_url = "http://127.0.0.1:9"\nmodel_source = "discover"\n[providers.odd]\ntype = "odd"\nbase_url = "${url}"\napi_key = "sk-secret"\nmodel_source = "discover"\n[providers.homeless]\nmodel_source = "discover"\n`
  const { call, file } = await start(t, { toml: [quiet, ...sections, more].join('\n'), more: [adapter] })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data.changed, [{ provider_id: 'good', provider_name: 'good', added: 1, removed: 0 }])
  assert.deepEqual(data.unchanged, ['none'])
  const reasons = Object.fromEntries(data.failed.map(({ provider, reason }) => [provider, reason]))
  assert.deepEqual(reasons, {
    refused: 'the credential was refused (HTTP 401)',
    broken: 'the answer is not complete JSON',
    sizeless: 'model x has no context_length',
    list: 'the answer is not a model list',
    down: 'answered HTTP 503',
    moved: 'answered HTTP 302',
    closed: 'could not be reached: nothing listens there (ECONNREFUSED)',
    odd: 'the refresh failed',
    homeless: 'it has no base_url'
  })
  assert.deepEqual(Object.keys((await file()).models as object), ['good/m'])
})

const registryOf = (...ids: string[]) =>
  Object.fromEntries(
    ids.map(id => [
      id,
      {
        id,
        name: `Name of ${id}`,
        api: `https://${id}.example/v1`,
        type: 'compat_chat',
        models: {
          m: { id: 'up/m', name: 'M', limit: { output: 70 }, reasoning: true, modalities: { input: ['text', 'image'] } },
          n: { id: 'n' }
        }
      }
    ])
  )

test('a registry is read once for its providers, with the first key that works; a whole refresh takes new ones in and vanished ones out', async t => {
  let refusal = 403
  let listed: unknown = { ...registryOf('a', 'taken', 'still', 'c'), odd: { id: 'odd/id' }, worse: 5 }
  const { url, asked } = await listServer(t, ({ headers }) => (headers.authorization === 'Bearer right' ? listed : refusal))
  const source = (key: string) => `source = { kind = "apiJson", url = "${url}/api.json", api_key = "${key}" }`
  const toml = `default_model = "b/m"
${quiet}
[providers.a]
type = "svc"
api_key = "mine"
${source('wrong')}
[providers.b]
${source('right')}
[providers.taken]
api_key = "x"
[providers.still]
model_source = "static"
${source('right')}
[models."b/m"]
provider = "b"
model = "m"
max_context_size = 1
`
  const { call, file } = await start(t, { toml })

  const scoped = await call(refreshProvider, { params: { provider_id: 'b' } })
  assert.deepEqual(scoped.data, { ...empty, failed: [{ provider: 'b', reason: 'the registry no longer lists it' }] })
  asked.length = 0
  const { data } = await call(refreshProviders)

  assert.deepEqual(
    asked.map(({ headers }) => headers.authorization),
    ['Bearer wrong', 'Bearer right']
  )
  assert.deepEqual(data, {
    changed: [
      { provider_id: 'a', provider_name: 'Name of a', added: 2, removed: 0 },
      { provider_id: 'b', provider_name: 'b', added: 0, removed: 1 },
      { provider_id: 'c', provider_name: 'Name of c', added: 2, removed: 0 }
    ],
    unchanged: ['taken', 'still'],
    failed: [{ provider: 'taken', reason: 'the registry lists it, but a provider of this id exists' }]
  })
  const after = (await file()) as Record<string, Record<string, unknown>>
  assert.deepEqual(Object.keys(after.providers!), ['a', 'taken', 'still', 'c'])
  assert.deepEqual(after.providers!.a, {
    type: 'compat_chat',
    base_url: 'https://a.example/v1',
    api_key: 'mine',
    source: { kind: 'apiJson', url: `${url}/api.json`, api_key: 'wrong' }
  })
  assert.deepEqual(after.providers!.c, {
    type: 'compat_chat',
    base_url: 'https://c.example/v1',
    api_key: 'right',
    source: { kind: 'apiJson', url: `${url}/api.json`, api_key: 'right' }
  })
  assert.deepEqual(after.models!['c/m'], {
    provider: 'c',
    model: 'up/m',
    max_context_size: 70,
    display_name: 'M',
    capabilities: ['image_in', 'thinking']
  })
  assert.deepEqual(after.models!['c/n'], { provider: 'c', model: 'n', max_context_size: 131072, capabilities: ['tool_use'] })
  assert.equal(after.default_model, undefined)

  listed = {}
  const failed = (await call(refreshProviders)).data.failed.map(({ provider }) => provider)
  assert.deepEqual(failed, ['a', 'c'], 'an empty registry empties nothing')

  refusal = 500
  asked.length = 0
  await call(refreshProviders)
  assert.equal(asked.length, 1, 'no other key helps')
})

test('refresh_oauth asks for providers with a login only, with the token of the login', async t => {
  let status: 'authenticated' | 'expired' = 'authenticated'
  const { url, asked } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10 }] }))
  const toml = `${discovering(url)}
[providers."managed:svc-code"]
type = "svc"
base_url = "${url}/managed"
source = { kind = "apiJson", url = "${url}/api.json" }
oauth = { storage = "file", key = "svc-code" }
`
  const login = logins({ status: () => status, accessToken: async () => 'access' })
  const { call, kernel, file } = await start(t, { toml, more: [login] })

  const { data } = await call(refreshLogins)

  assert.deepEqual(
    data.changed.map(({ provider_id }) => provider_id),
    ['managed:svc-code']
  )
  assert.deepEqual(
    asked.map(({ path, headers }) => [path, headers.authorization]),
    [['/managed/models', 'Bearer access']]
  )
  assert.deepEqual(Object.keys((await file()).models as object), ['svc-code/m'])
  status = 'expired'
  assert.deepEqual((await call(refreshLogins)).data.failed, [{ provider: 'managed:svc-code', reason: 'it is not logged in' }])
  await kernel.unload('logins')
  assert.deepEqual((await call(refreshLogins)).data.failed, [{ provider: 'managed:svc-code', reason: 'it is not logged in' }])
  assert.equal((await call(readAuth)).data.managed_provider?.status, 'unauthenticated')
})

test('a token of a login that is refused is renewed once, and the question asked again', async t => {
  let good = 'new'
  const { url, asked } = await listServer(t, ({ headers }) =>
    headers.authorization === `Bearer ${good}` ? { data: [{ id: 'm', context_length: 10 }] } : 401
  )
  const given: unknown[] = []
  const accessToken: LlmLogin['accessToken'] = async (_id, { force = false, refused }) => {
    given.push([force, refused])
    return force ? 'new' : 'old'
  }
  const toml = `${quiet}[providers.one]\nbase_url = "${url}"\noauth = { storage = "file", key = "svc-code" }\n`
  const { call } = await start(t, { toml, more: [logins({ status: () => 'authenticated', accessToken })] })

  assert.deepEqual((await call(refreshLogins)).data.failed, [])
  assert.deepEqual(given, [
    [false, undefined],
    [true, 'old']
  ])
  good = 'another'
  assert.deepEqual((await call(refreshLogins)).data.failed, [{ provider: 'one', reason: 'the credential was refused (HTTP 401)' }])
  assert.equal(asked.length, 4)
})

test('what a login says of its failure is cut', async t => {
  const login = logins({ status: () => 'authenticated', accessToken: () => Promise.reject(new Error('x'.repeat(1_000))) })
  const toml = `${quiet}[providers.one]\nbase_url = "http://127.0.0.1:9"\noauth = { storage = "file", key = "svc-code" }\n`
  const { call } = await start(t, { toml, more: [login] })

  assert.deepEqual((await call(refreshLogins)).data.failed, [{ provider: 'one', reason: 'x'.repeat(300) }])
})

test('the start refreshes by itself, and the change is told', async t => {
  const { url } = await listServer(t, () => ({ data: [{ id: 'm', context_length: 10 }] }))
  const { waitFor, file } = await start(t, { toml: discovering(url).replace('refresh_on_start = false', 'refresh_on_start = true') })

  const { payload } = await waitFor(({ type }) => type === modelCatalogChanged.type)

  assert.deepEqual(payload, { changed: [{ provider_id: 'one', provider_name: 'one', added: 1, removed: 0 }], unchanged: [], failed: [] })
  assert.deepEqual(Object.keys((await file()).models as object), ['one/m'])
})
