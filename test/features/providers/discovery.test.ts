/** Who is asked for models and how, and how answers are read. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmGenai from '../../../features/llm-genai/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import { readModelList } from '../../../features/providers/discovery.ts'
import { Providers as ProvidersService, readRegistry, refreshProviders } from '../../../features/providers/index.ts'
import { definePack } from '../../../kernel/index.ts'
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
[providers.open]
model_source = "discover"
base_url = "${url}/open"
api_key = "sk-2"
auth = "none"
`
  const { call } = await start(t, { toml })

  await call(refreshProviders)

  const told = asked.map(({ path, headers }) => [path, headers.authorization, headers['user-agent']])
  assert.deepEqual(told.sort(), [
    ['/models', 'Basic abc', 'mine'],
    ['/open/models', undefined, asked.find(({ path }) => path.startsWith('/open'))?.headers['user-agent']],
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
      item('b', { think_efforts: { support: true, valid_efforts: ['low', '', 3], default_effort: 'high' } }),
      item('c', { supports_thinking_type: 'no', supports_reasoning: true })
    ]
  }))
  const { call, file } = await start(t, { toml: discovering(url) })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data.changed, [{ provider_id: 'one', provider_name: 'one', added: 4, removed: 0 }])
  const common = { provider: 'one', max_context_size: 10 }
  assert.deepEqual((await file()).models, {
    'one/__proto__': { ...common, model: '__proto__', capabilities: ['tool_use'] },
    'one/a': { ...common, model: 'a', capabilities: ['thinking', 'tool_use'] },
    'one/b': { ...common, model: 'b', capabilities: ['tool_use'], support_efforts: ['low'] },
    'one/c': { ...common, model: 'c', capabilities: ['tool_use'] }
  })
  assert.deepEqual((await call(refreshProviders)).data.unchanged, ['one'])
})

test('a model without a size is left out and named in the log, and its alias stays as it is; the others are read', async t => {
  const { url } = await listServer(t, () => ({ data: [{ id: 'f' }, { id: 'g' }, { id: 'm', context_length: 10 }] }))
  const own = '[models."one/g"]\nprovider = "one"\nmodel = "g"\nmax_context_size = 77\ndisplay_name = "Mine"\n'
  const logged: string[] = []
  const { call, file } = await start(t, { toml: discovering(url, own), logged })

  const { data } = await call(refreshProviders)

  assert.deepEqual(data, { changed: [{ provider_id: 'one', provider_name: 'one', added: 1, removed: 0 }], unchanged: [], failed: [] })
  assert.deepEqual((await file()).models, {
    'one/g': { provider: 'one', model: 'g', max_context_size: 77, display_name: 'Mine' },
    'one/m': { provider: 'one', model: 'm', max_context_size: 10, capabilities: ['tool_use'] }
  })
  assert.deepEqual((await call(refreshProviders)).data.unchanged, ['one'])
  const told = logged.find(line => line.includes('without a context_length')) ?? '{}'
  assert.deepEqual((JSON.parse(told) as { models?: unknown }).models, ['f', 'g'])
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

test('lists of real servers are read, whatever they call the window, and models that answer with no text, or have no name for a path, are left out', async t => {
  const lists: Readonly<Record<string, unknown>> = {
    '/vllm/models': { object: 'list', data: [{ id: 'm', object: 'model', owned_by: 'vllm', max_model_len: 32768 }] },
    '/fast/models': { data: [{ id: 'm', object: 'model', context_window: 131072, max_completion_tokens: 8192 }] },
    '/studio/models': {
      data: [
        { id: 'm', type: 'llm', max_context_length: 65536 },
        { id: 'e', type: 'embeddings' },
        { id: 'no\nname', context_length: 1 },
        { id: 'x'.repeat(1_001), context_length: 1 },
        { id: 'x'.repeat(1_000), context_length: 1 }
      ]
    },
    '/router/models': {
      data: [
        {
          id: 'v/m',
          name: 'V: M',
          architecture: { input_modalities: ['text', 'image'] },
          top_provider: { context_length: 200000, max_completion_tokens: 64000 },
          supported_parameters: ['tools', 'reasoning']
        },
        { id: 'v/p', context_length: 4096, architecture: { output_modalities: ['image'] } },
        { id: 'v/q', context_length: 4096, supported_parameters: ['temperature'] }
      ]
    },
    '/list/models': [
      { id: 'm', type: 'chat', context_length: 4096, output_modalities: ['text'] },
      { id: 'nomic-embed-text' },
      { id: 'p', type: 'image' }
    ],
    '/local/models': { models: [{ name: 'm' }], data: [{ id: 'm', meta: { n_ctx_train: 8192 } }] },
    '/mistral/models': {
      data: [
        { id: 'm', max_context_length: 32000, capabilities: { vision: true, function_calling: false, completion_chat: true } },
        { id: 'n', max_context_length: 32000, capabilities: { image_input: { supported: true } } }
      ]
    },
    '/others/models': [
      { id: 'a', max_context_size: 1000 },
      { id: 'b', limit: { context: 2000 } },
      { id: 'c', limits: { max_context_window_tokens: 3000 } },
      { id: 'd', capabilities: { limits: { max_context_window_tokens: 4000 } } },
      { id: 'e', model_spec: { availableContextTokens: 5000 } },
      { id: 'f', meta: { n_ctx: 6000, n_ctx_train: 7000 } },
      { id: 'g', context_length: 0, max_model_len: null, context_window: 7000 },
      { id: 'h', context_size: 8000 },
      { id: 'i', metadata: { context_length: 9000 } },
      { id: 'j', context_window: { context_length: 10000 } },
      { id: 'k', providers: [{ context_length: 12000 }, { context_length: 11000 }, { provider: 'x' }] }
    ]
  }
  const { url } = await listServer(t, ({ path }) => lists[path] ?? 404)
  const ids = Object.keys(lists).map(path => path.split('/')[1]!)
  const toml = ids.map(id => `[providers.${id}]\nmodel_source = "discover"\nbase_url = "${url}/${id}"\napi_key = "k"\n`)
  const { call, file } = await start(t, { toml: quiet + toml.join('') })

  assert.deepEqual((await call(refreshProviders)).data.failed, [])

  const models = Object.entries((await file()).models as Record<string, Record<string, unknown>>)
  assert.deepEqual(
    models.map(([alias, { max_context_size, capabilities }]) => [alias, max_context_size, (capabilities as string[]).join(' ')]),
    [
      ['vllm/m', 32768, 'tool_use'],
      ['fast/m', 131072, 'tool_use'],
      ['studio/m', 65536, 'tool_use'],
      [`studio/${'x'.repeat(1_000)}`, 1, 'tool_use'],
      ['router/v/m', 200000, 'thinking image_in tool_use'],
      ['router/v/q', 4096, ''],
      ['list/m', 4096, 'tool_use'],
      ['local/m', 8192, 'tool_use'],
      ['mistral/m', 32000, 'image_in'],
      ['mistral/n', 32000, 'image_in tool_use'],
      ...[...'abcdefghijk'].map((id, at) => [`others/${id}`, 1000 * (at + 1), 'tool_use'])
    ]
  )
})

test('servers of a protocol are asked as they want it: path, header of the key, version', async t => {
  const { url, asked } = await listServer(t, ({ path }) =>
    path.startsWith('/genai')
      ? {
          models: [
            {
              name: 'models/gemini-x',
              displayName: 'X',
              inputTokenLimit: 1048576,
              supportedGenerationMethods: ['generateContent'],
              thinking: true
            },
            { name: 'models/gemini-y', inputTokenLimit: 2048 },
            { name: 'models/embedding-1', inputTokenLimit: 2048, supportedGenerationMethods: ['embedContent'] },
            { name: 'models/aqa', inputTokenLimit: 2048, supportedGenerationMethods: ['generateAnswer'] }
          ]
        }
      : {
          data: [
            { type: 'model', id: 'claude-x', display_name: 'X', max_input_tokens: 200000, capabilities: { thinking: { supported: true } } }
          ]
        }
  )
  const one = (id: string, type: string, path = '') =>
    `[providers.${id}]\ntype = "${type}"\nmodel_source = "discover"\nbase_url = "${url}/${id}${path}"\napi_key = "k"\n`
  const toml = quiet + one('messages', 'compat_messages') + one('versioned', 'compat_messages', '/v1') + one('genai', 'compat_genai')
  const token = one('token', 'compat_messages').replace('api_key = "k"', 'env = { TOKEN_ACCESS_TOKEN = "t" }')
  const { call, file } = await start(t, { toml: toml + token, more: [llmMessages, llmGenai] })

  assert.deepEqual((await call(refreshProviders)).data.failed, [])

  const told = asked.map(({ path, headers }) => [path, headers['x-api-key'] ?? headers['x-goog-api-key'], headers.authorization])
  assert.deepEqual(told.sort(), [
    ['/genai/v1beta/models?pageSize=1000', 'k', undefined],
    ['/messages/v1/models?limit=1000', 'k', undefined],
    ['/token/v1/models?limit=1000', undefined, 'Bearer t'],
    ['/versioned/v1/models?limit=1000', 'k', undefined]
  ])
  assert.ok(asked.find(({ path }) => path.startsWith('/messages'))?.headers['anthropic-version'])
  const models = Object.entries((await file()).models as Record<string, Record<string, unknown>>)
  assert.deepEqual(
    models.map(([alias, { display_name, capabilities }]) => [alias, display_name, capabilities]),
    [
      ['messages/claude-x', 'X', ['thinking', 'tool_use']],
      ['versioned/claude-x', 'X', ['thinking', 'tool_use']],
      ['genai/gemini-x', 'X', ['thinking', 'tool_use']],
      ['genai/gemini-y', undefined, ['tool_use']],
      ['token/claude-x', 'X', ['thinking', 'tool_use']]
    ]
  )
})

test('halves of surrogate pairs in a list leave out what has them, and all else is saved', async t => {
  const half = '\ud800'
  const models = [
    { id: `a${half}`, context_length: 10 },
    { id: 'b', context_length: 10, display_name: half, think_efforts: { support: true, valid_efforts: [half, 'low'] } }
  ]
  const { url } = await listServer(t, () => ({ data: models }))
  const { call, file } = await start(t, { toml: discovering(url) })

  const { data } = await call(refreshProviders)

  assert.deepEqual([data.changed.map(({ added }) => added), data.failed], [[1], []])
  const [alias, ...others] = Object.values((await file()).models as object) as Record<string, unknown>[]
  assert.deepEqual([others, alias?.model, alias?.display_name, alias?.support_efforts], [[], 'b', undefined, ['low']])
})

test('a list of 5,000 models and a registry of 1,000 providers are read, longer ones are refused', async () => {
  const list = Array.from({ length: 5_000 }, (_, at) => ({ id: `m${at}`, context_length: 10 }))
  const entry = (id: string) => [id, { id, api: 'https://a.example', type: 'compat_chat', models: { m: { id: 'm' } } }]
  const registry = Array.from({ length: 1_000 }, (_, at) => entry(`p${at}`))

  assert.equal((await readModelList(list)).length, 5_000)
  await assert.rejects(readModelList([...list, { id: 'more', context_length: 10 }]), /more than 5000 models/)
  assert.equal((await readRegistry(Object.fromEntries(registry))).length, 1_000)
  await assert.rejects(readRegistry(Object.fromEntries([...registry, entry('more')])), /more than 1000 providers/)
})

test('a probe counts the models of every list that discovery reads', async t => {
  const models = [{ id: 'a' }, { id: 'b' }]
  let answer: unknown
  const { url } = await listServer(t, () => answer)
  let asked: ProvidersService | undefined
  const asks = definePack({
    name: 'asks',
    needs: { providers: ProvidersService },
    setup(_, { providers }) {
      asked = providers
    }
  })
  await start(t, { toml: discovering(url), last: [asks] })
  const counts: unknown[] = []

  for (answer of [{ data: models }, { models }, models, { data: null, models }, 'no JSON'])
    counts.push(await asked?.probe('one', AbortSignal.timeout(5000)))

  const two = { ok: true, models: 2 }
  assert.deepEqual(counts.slice(0, 4), [two, two, two, two])
  assert.deepEqual(counts[4], { ok: false, problem: 'the answer is not complete JSON', refused: false, offline: false })
})
