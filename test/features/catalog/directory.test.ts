/** The model directory: resolution of its entries, cache, ways back. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Directory } from '../../../features/catalog/directory.ts'
import { type DirectoryEntry, DirectoryUnavailable, EntryMissing, listCatalog, readCatalogEntry } from '../../../features/catalog/index.ts'
import { resolveDirectory } from '../../../features/catalog/resolve.ts'
import { startCatalog, upstream } from './scene.ts'

const model = { id: 'm', limit: { context: 1000 } }
const entry = (more: object = {}) => ({ name: 'X', models: { m: model }, ...more })
const resolved = (id: string, more: object = {}) => resolveDirectory({ [id]: entry({ id, ...more }) }).get(id)!
const shown = (id: string, more: object = {}) => resolved(id, more).shown

test('without a directory the built-in snapshot answers, and every entry of it can be imported', async t => {
  const { call } = await startCatalog(t)

  const { items } = (await call(listCatalog)).data

  assert.deepEqual(
    items.map(({ id }) => id),
    ['local-chat', 'local-responses', 'local-messages']
  )
  for (const one of items) assert.ok(!one.rejected && !one.needs_base_url && one.models.length === 1)
  assert.deepEqual((await call(readCatalogEntry, { params: { catalog_id: 'local-chat' } })).data, items[0])
  for (const catalog_id of ['nope', 'constructor', '__proto__'])
    assert.equal((await call(readCatalogEntry, { params: { catalog_id } })).code, EntryMissing.code)
})

test('the live directory keeps upstream order, is fetched once for all who wait and then every ten minutes', async t => {
  const live = await upstream(t, { zeta: entry({ id: 'zeta', api: 'https://z.example' }), alpha: entry({ id: 'alpha' }) })
  let at = Date.now()
  const { call } = await startCatalog(t, live.url, undefined, () => new Date(at))
  const ids = async () => (await call(listCatalog)).data.items.map(({ id }) => id)

  assert.deepEqual(await Promise.all([ids(), ids(), ids()]), Array(3).fill(['zeta', 'alpha']))
  assert.deepEqual(
    live.asked.map(({ path }) => path),
    ['/api.json']
  )
  assert.match(String(live.asked[0]?.headers['user-agent']), /^svc-code\//)
  at += 599_000
  await ids()
  assert.equal(live.asked.length, 1)

  at += 2_000
  live.reply = 503
  assert.deepEqual(await ids(), ['zeta', 'alpha'], 'the older one serves')
  live.reply = { beta: entry({ id: 'beta' }) }
  at += 61_000
  assert.deepEqual(await ids(), ['beta'])
})

test('a directory that cannot be read gives way to the snapshot, which counts as fresh', async t => {
  for (const reply of [500, 'not json', '[]', {}]) {
    const live = await upstream(t, reply)
    const { call } = await startCatalog(t, `${live.url}/api.json`)
    assert.equal((await call(listCatalog)).data.items[0]?.id, 'local-chat')
    await call(listCatalog)
    assert.deepEqual(
      live.asked.map(({ path }) => path),
      ['/api.json']
    )
  }
})

test('when the snapshot fails as well nothing is remembered', async () => {
  let fails = true
  const snapshot = async () => {
    if (fails) throw new Error('gone')
    return new Map()
  }
  const directory = new Directory({ fetch: undefined, snapshot, now: () => new Date(), onFailure: () => undefined })

  await assert.rejects(directory.get())
  fails = false
  assert.equal((await directory.get()).size, 0)
  assert.equal(DirectoryUnavailable.code, 50004)
})

test('the protocol: an explicit type, the SDK, the id, else a guess', () => {
  const wire = (id: string, more: object = {}): [unknown, boolean, unknown] => {
    const { wire_type, guessed, reject_reason } = shown(id, more)
    return [wire_type, guessed, reject_reason]
  }

  assert.deepEqual(wire('x', { type: 'compat_responses', npm: '@ai-sdk/google' }), ['compat_responses', false, null])
  assert.deepEqual(wire('x', { type: 'other' }), [null, false, 'unknown-explicit-type'])
  assert.deepEqual(wire('x', { type: '', npm: '@AI-SDK/Anthropic' }), ['compat_messages', false, null])
  assert.deepEqual(wire('my-vertex', { npm: '@ai-sdk/google-vertex' }), ['compat_cloud', false, null])
  assert.deepEqual(wire('x', { npm: '@ai-sdk/google' }), ['compat_genai', false, null])
  assert.deepEqual(wire('x', { npm: '@ai-sdk/openai-compatible' }), ['compat_chat', false, null])
  assert.deepEqual(wire('x', { npm: '@ai-sdk/amazon-bedrock' }), [null, false, 'proprietary-sdk'])
  assert.deepEqual(wire('x', { npm: '@ai-sdk/other' }), ['compat_chat', true, null])
})

test('the endpoint: the one of the entry, without the version for messages, or needed from the user', () => {
  const at = (more: object) => [resolved('x', more).base_url, shown('x', more).needs_base_url]

  assert.deepEqual(at({ api: 'https://a.example/v1' }), ['https://a.example/v1', false])
  assert.deepEqual(at({ api: 'https://a.example/v1/', type: 'compat_messages' }), ['https://a.example', false])
  assert.deepEqual(at({ api: `https://${['$', '{H}'].join('')}/v1`, npm: '@ai-sdk/openai' }), [undefined, true])
  assert.deepEqual(at({ npm: '@ai-sdk/openai' }), [undefined, false])
  assert.deepEqual(at({ npm: '@ai-sdk/anthropic' }), [undefined, false])
  assert.deepEqual(at({ npm: '@ai-sdk/other' }), [undefined, true])
  assert.deepEqual(at({ type: 'compat_genai' }), [undefined, false])
})

test('models: what cannot be used is left out, the rest is described', () => {
  const models = {
    a: { id: 'embed-1', limit: { context: 1 } },
    b: { id: 'b', limit: {} },
    c: { id: 'c', limit: { context: 1 }, modalities: { input: ['text'], output: ['image'] } },
    d: { id: 'd', limit: { context: 1 }, status: 'alpha' },
    e: { id: 'e', limit: { context: 1 }, provider: { npm: '@ai-sdk/google' } },
    f: {
      id: 'f',
      name: 'F',
      limit: { context: 9, input: 8, output: 7 },
      reasoning: true,
      tool_call: false,
      reasoning_options: [{ type: 'effort', values: ['low', 'high'] }],
      modalities: { input: ['text', 'image', 'audio'], output: ['text'] }
    },
    g: { id: 'g', limit: { context: 5 }, reasoning: true, reasoning_options: [{ type: 'effort', values: ['low', null] }], status: 'beta' },
    h: { id: 'h', limit: { context: 5 }, provider: { npm: '@ai-sdk/anthropic', api: 'https://h.example/v1' } }
  }
  const found = resolved('x', { models, env: ['X_KEY', 'Y'] })

  assert.equal(found.shown.env_key, 'X_KEY')
  const expected: DirectoryEntry['models'] = [
    { id: 'f', name: 'F', max_context_size: 9, capabilities: ['image_in', 'audio_in', 'thinking'], reasoning: true },
    { id: 'g', max_context_size: 5, capabilities: ['thinking', 'tool_use'], reasoning: true },
    { id: 'h', max_context_size: 5, capabilities: ['tool_use'], reasoning: false }
  ]
  assert.deepEqual(found.shown.models, expected)
  assert.deepEqual(
    found.models.map(({ fields }) => fields),
    [
      {
        max_context_size: 9,
        max_input_size: 8,
        max_output_size: 7,
        display_name: 'F',
        capabilities: ['image_in', 'audio_in', 'always_thinking'],
        support_efforts: ['low', 'high']
      },
      { max_context_size: 5, capabilities: ['thinking', 'tool_use'], support_efforts: ['low'], off_effort: 'none' },
      { max_context_size: 5, capabilities: ['tool_use'], protocol: 'compat_messages', base_url: 'https://h.example' }
    ]
  )
})

test('prices of the directory are kept, per million tokens; what is no price is left out', () => {
  const costs = [
    { input: 1, output: 2, cache_read: 0.1, odd: 3 },
    { input: 1, output: 2, cache_write: -1 },
    { input: 1 },
    { input: '1', output: 2 },
    5
  ]
  const models = Object.fromEntries(costs.map((cost, at) => [at, { ...model, id: `m${at}`, cost }]))

  assert.deepEqual(
    resolved('x', { models }).models.map(({ fields }) => fields.cost),
    [{ input: 1, output: 2, cache_read: 0.1 }, { input: 1, output: 2 }, undefined, undefined, undefined]
  )
})
