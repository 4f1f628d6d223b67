/** Resolution of directory entries: protocol, endpoint, models, prices. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { DirectoryEntry } from '../../../features/catalog/index.ts'
import { resolveDirectory } from '../../../features/catalog/resolve.ts'

const model = { id: 'm', limit: { context: 1000 } }
const entry = (more: object = {}) => ({ name: 'X', models: { m: model }, ...more })
const resolved = async (id: string, more: object = {}) => (await resolveDirectory({ [id]: entry({ id, ...more }) })).get(id)!

test('the protocol: an explicit type, the SDK, the id, else a guess', async () => {
  const cases: [id: string, more: object, wire: DirectoryEntry['wire_type'], guessed: boolean, reason: string | null][] = [
    ['x', { type: 'compat_responses', npm: '@ai-sdk/google' }, 'compat_responses', false, null],
    ['x', { type: 'svc' }, 'svc', false, null],
    ['x', { type: 'other' }, null, false, 'unknown-explicit-type'],
    ['x', { type: '', npm: '@AI-SDK/Anthropic' }, 'compat_messages', false, null],
    ['my-Claude', { npm: '@ai-sdk/openai' }, 'compat_messages', false, null],
    ['google-vertex-anthropic', { npm: '@ai-sdk/google-vertex/anthropic' }, 'compat_messages', false, null],
    ['my-vertex', { npm: '@ai-sdk/google-vertex' }, 'compat_cloud', false, null],
    ['x', { npm: '@ai-sdk/google' }, 'compat_genai', false, null],
    ['some-gemini', {}, 'compat_genai', false, null],
    ['x', { npm: '@ai-sdk/openai-compatible' }, 'compat_chat', false, null],
    ['azure-openai', { npm: '@ai-sdk/azure' }, 'compat_chat', false, null],
    ['x', { npm: '@ai-sdk/amazon-bedrock' }, null, false, 'proprietary-sdk'],
    ['x', { npm: '@ai-sdk/cohere' }, null, false, 'proprietary-sdk'],
    ['x', { npm: '@ai-sdk/other' }, 'compat_chat', true, null],
    ['x', {}, 'compat_chat', true, null]
  ]
  for (const [id, more, ...expected] of cases) {
    const { wire_type, guessed, reject_reason, rejected } = (await resolved(id, more)).shown
    assert.deepEqual([wire_type, guessed, reject_reason], expected, JSON.stringify(more))
    assert.equal(rejected, wire_type === null)
  }
})

test('the endpoint: that of the entry, without the version for messages, else that of its SDK, else needed from the user', async () => {
  const template = `https://${['$', '{H}'].join('')}/v1`
  const cases: [more: object, base_url: string | undefined, needs: boolean][] = [
    [{ api: 'https://a.example/v1' }, 'https://a.example/v1', false],
    [{ api: 'https://a.example/v1/', type: 'compat_messages' }, 'https://a.example', false],
    [{ api: template, npm: '@ai-sdk/openai' }, undefined, true],
    [{ api: template, type: 'compat_genai' }, undefined, true],
    [{ npm: '@ai-sdk/openai' }, 'https://api.openai.com/v1', false],
    [{ npm: '@ai-sdk/openai', type: 'compat_responses', api: ' ' }, 'https://api.openai.com/v1', false],
    [{ npm: '@ai-sdk/anthropic' }, 'https://api.anthropic.com', false],
    [{ npm: '@ai-sdk/other' }, undefined, true],
    [{ npm: '@ai-sdk/other', type: 'compat_messages' }, undefined, true],
    [{ type: 'compat_genai' }, 'https://generativelanguage.googleapis.com', false],
    [{ type: 'compat_cloud' }, 'https://aiplatform.googleapis.com', false],
    [{ type: 'svc' }, undefined, false],
    [{ type: 'other', api: 'https://a.example' }, undefined, false]
  ]
  for (const [more, ...expected] of cases) {
    const { base_url, shown } = await resolved('x', more)
    assert.deepEqual([base_url, shown.needs_base_url], expected, JSON.stringify(more))
  }
})

test('name and id of an entry fall back to its key', async () => {
  const entries = await resolveDirectory({ key: { models: {} }, odd: 'no entry', other: { id: 'own', models: {} } })
  const [one] = entries.values()

  assert.deepEqual([...entries.keys()], ['key', 'own'])
  assert.deepEqual([one?.shown.id, one?.shown.name, one?.shown.env_key], ['key', 'key', null])
})

test('models: what cannot be used is left out, the rest is described', async () => {
  const models = {
    a: { id: 'embed-1', limit: { context: 1 } },
    b: { id: 'b', limit: {} },
    c: { id: 'c', limit: { context: 1 }, modalities: { input: ['text'], output: ['image'] } },
    d: { id: 'd', limit: { context: 1 }, status: 'alpha' },
    e: { id: 'e', limit: { context: 1 }, provider: { npm: '@ai-sdk/google', api: 'https://e.example' } },
    e2: { id: 'e2', limit: { context: 1 }, provider: { npm: '@ai-sdk/amazon-bedrock' } },
    e3: { id: 'e3', limit: { context: 1 }, provider: { npm: '@ai-sdk/anthropic' } },
    e4: { id: ' ', limit: { context: 1 } },
    e5: { id: 'e5', limit: { context: 1.5 } },
    e6: { id: 'e6', limit: { context: 1 }, status: 'deprecated' },
    e7: { id: 'e7', limit: { context: 1 }, family: 'Embedding' },
    e8: 'no model',
    f: {
      id: 'f',
      name: 'F',
      limit: { context: 9, input: 8, output: 7 },
      reasoning: true,
      tool_call: false,
      reasoning_options: [{ type: 'effort', values: ['low', 'high'] }],
      modalities: { input: ['text', 'image', 'audio'], output: ['text'] }
    },
    g: {
      id: 'g',
      limit: { context: 5 },
      reasoning: true,
      reasoning_options: [{ type: 'effort', values: ['low', null] }],
      status: 'beta',
      interleaved: { field: 'reasoning_content' }
    },
    h: { id: 'h', limit: { context: 5 }, provider: { npm: '@ai-sdk/anthropic', api: 'https://h.example/v1' } },
    i: {
      id: 'i',
      limit: { context: 5 },
      provider: { npm: '@ai-sdk/openai-compatible' },
      reasoning: true,
      reasoning_options: [{ type: 'effort', values: ['low'] }, { type: 'toggle' }]
    }
  }
  const found = await resolved('x', { models, env: ['X_KEY', 'Y'] })

  assert.equal(found.shown.env_key, 'X_KEY')
  const expected: DirectoryEntry['models'] = [
    { id: 'f', name: 'F', max_context_size: 9, capabilities: ['image_in', 'audio_in', 'thinking'], reasoning: true },
    { id: 'g', max_context_size: 5, capabilities: ['thinking', 'tool_use'], reasoning: true },
    { id: 'h', max_context_size: 5, capabilities: ['tool_use'], reasoning: false },
    { id: 'i', max_context_size: 5, capabilities: ['thinking', 'tool_use'], reasoning: true }
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
      {
        max_context_size: 5,
        capabilities: ['thinking', 'tool_use'],
        support_efforts: ['low'],
        off_effort: 'none',
        reasoning_key: 'reasoning_content'
      },
      { max_context_size: 5, capabilities: ['tool_use'], protocol: 'compat_messages', base_url: 'https://h.example' },
      { max_context_size: 5, capabilities: ['thinking', 'tool_use'], support_efforts: ['low'] }
    ]
  )
})

test('prices of the directory are kept, per million tokens; what is no price is left out', async () => {
  const costs = [
    { input: 1, output: 2, cache_read: 0.1, cache_write: 1.25, odd: 3 },
    { input: 1, output: 2, cache_write: -1 },
    { input: 0, output: 0 },
    { input: 1 },
    { input: '1', output: 2 },
    5
  ]
  const models = Object.fromEntries(costs.map((cost, at) => [at, { ...model, id: `m${at}`, cost }]))

  assert.deepEqual(
    (await resolved('x', { models })).models.map(({ fields }) => fields.cost),
    [
      { input: 1, output: 2, cache_read: 0.1, cache_write: 1.25 },
      { input: 1, output: 2 },
      { input: 0, output: 0 },
      undefined,
      undefined,
      undefined
    ]
  )
})
