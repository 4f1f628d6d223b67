/** What is particular to the generate-content stream: signatures, whole calls, blocked prompts, places, errors in words of the wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstream, type LlmRequest, ModelUnresolved, type ResolvedModel } from '../../../features/llm/index.ts'
import { genaiAdapter } from '../../../features/llm-genai/adapter.ts'
import { cloud, type Endpoint, genai } from '../../../features/llm-genai/endpoint.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { AppError } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { calls, collect, failure, llmRequest, startLlm } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'

const model = resolvedModel({ protocol: 'compat_genai', api_key: 'k' })

async function bench(t: TestContextLike, replies: readonly (readonly Step[])[], place: Endpoint = genai) {
  const upstream = await fakeUpstream(t, replies, { wire: genaiWire })
  const pool = createUpstream({})
  t.after(() => pool.close())
  const adapter = genaiAdapter(place, pool)
  const run = (change: Partial<ResolvedModel> = {}, request: Partial<LlmRequest> = {}) =>
    collect(adapter.stream(llmRequest({ ...model, base_url: upstream.url, ...change }, request), new AbortController().signal))
  return { upstream, run }
}

const raw = (...chunks: readonly object[]): Step => ({ raw: chunks.map(chunk => `data: ${JSON.stringify(chunk)}\n\n`).join('') })
const parts = (...given: readonly object[]) => ({ candidates: [{ content: { parts: given } }] })

test('of several candidates the first is the answer', async t => {
  const other = (text: string, more: object = {}) => ({ index: 1, content: { parts: [{ text }] }, ...more })
  const { run } = await bench(t, [
    [
      raw({ candidates: [other('other', { finishReason: 'MALFORMED_FUNCTION_CALL' })] }),
      raw({ candidates: [other(' one'), { index: 0, content: { parts: [{ text: 'this one' }] }, finishReason: 'STOP' }] }),
      { end: true }
    ]
  ])

  const found = await run()

  assert.deepEqual(found[0], { type: 'text', text: 'this one' })
  assert.deepEqual(found.at(-1), { type: 'finish', reason: 'completed', raw_reason: 'STOP' })
})

test('signatures stay with what they came with: thoughts, answers, calls', async t => {
  const { run } = await bench(t, [
    [
      raw(parts({ text: 'hm', thought: true }, { text: ' so', thought: true, thoughtSignature: 's1' })),
      raw(parts({ text: 'answer', thoughtSignature: 's2' }, { functionCall: { name: 'Now' }, thoughtSignature: 's3' })),
      raw({ candidates: [{ finishReason: 'STOP' }] }),
      { end: true }
    ]
  ])

  const found = await run()

  assert.deepEqual(found.slice(0, 4), [
    { type: 'thinking', text: 'hm' },
    { type: 'thinking', text: ' so', signature: 'genai:s1' },
    { type: 'text', text: 'answer' },
    { type: 'thinking', text: '', signature: 'genai:answer:s2' }
  ])
  const call = found.find(part => part.type === 'tool_call')
  assert.deepEqual(call?.type === 'tool_call' && call.extras, { genai_signature: 's3' })
  assert.equal(calls(found)[0]?.arguments, '{}')
})

test('calls that repeat an id become two calls, a call without a name none', async t => {
  const call = { functionCall: { id: 'same', name: 'Read', args: {} } }
  const { run } = await bench(t, [[raw(parts(call, call, { functionCall: { args: {} } }))]])

  const found = calls(await run())

  assert.equal(found.length, 2)
  assert.notEqual(found[0]?.id, found[1]?.id)
})

test('thoughts count as output; figures may come after the finish reason', async t => {
  const usageMetadata = { promptTokenCount: 50, cachedContentTokenCount: 20, candidatesTokenCount: 7, thoughtsTokenCount: 5 }
  const { run } = await bench(t, [[{ text: 'x' }, raw({ candidates: [{ finishReason: 'STOP' }] }, { usageMetadata }), { end: true }]])

  assert.deepEqual((await run()).at(-2), {
    type: 'usage',
    usage: { inputOther: 30, output: 12, inputCacheRead: 20, inputCacheCreation: 0 }
  })
})

test('a refused prompt and safety reasons are filtered, a reason that nobody knows is other', async t => {
  const { run } = await bench(t, [
    [raw({ promptFeedback: { blockReason: 'OTHER' } }), { end: true }],
    [{ text: 'x' }, { finish: 'PROHIBITED_CONTENT' }],
    [{ text: 'x' }, { finish: 'SOMETHING_NEW' }]
  ])

  const found = []
  for (let at = 0; at < 3; at++) found.push((await run()).at(-1))

  assert.deepEqual(
    found.map(part => part?.type === 'finish' && part.reason),
    ['filtered', 'filtered', 'other']
  )
})

test('an answer that broke off in a call is asked for again, whatever text came before', async t => {
  const reasons = [
    'MALFORMED_FUNCTION_CALL',
    'UNEXPECTED_TOOL_CALL',
    'TOO_MANY_TOOL_CALLS',
    'MISSING_THOUGHT_SIGNATURE',
    'MALFORMED_RESPONSE'
  ]
  const end = (finishReason: string) => raw({ candidates: [{ finishReason, finishMessage: 'Malformed function call: print(' }] })
  const { run } = await bench(
    t,
    reasons.map(reason => [{ text: 'I call.' }, end(reason), { end: true }])
  )

  for (const reason of reasons) {
    const { code, retryable, message } = failure(await run())
    assert.deepEqual([code, retryable], ['provider.api_error', true])
    assert.ok(message.includes(reason), message)
  }
})

test('errors in words of the wire: a rejected key, a limit that passes, a quota that does not', async t => {
  const words = 'You exceeded your current quota, please check your plan and billing details.'
  const limit = (quotaId: string) => ({
    error: {
      code: 429,
      message: `${words} Please retry in 2.5s.`,
      status: 'RESOURCE_EXHAUSTED',
      details: [{ violations: [{ quotaId }] }, { retryDelay: '2.5s' }]
    }
  })
  const invalid = {
    error: { code: 400, message: 'API key not valid', status: 'INVALID_ARGUMENT', details: [{ reason: 'API_KEY_INVALID' }] }
  }
  const { run } = await bench(t, [
    [{ status: 400, body: invalid }],
    [{ status: 429, body: limit('RequestsPerMinute') }],
    [{ status: 429, body: limit('RequestsPerDay') }],
    [{ status: 429, body: { error: { code: 429, message: words } } }],
    [{ text: 'half' }, raw({ error: { code: 503, message: 'The model is overloaded', status: 'UNAVAILABLE' } })],
    [{ status: 200, body: [{ error: { code: 401, message: 'who' } }] }]
  ])

  const found = []
  for (let at = 0; at < 6; at++) {
    const { code, retryable, retry_after_ms } = failure(await run())
    found.push([code, retryable, retry_after_ms])
  }

  assert.deepEqual(found, [
    ['provider.auth_error', false, undefined],
    ['provider.rate_limit', true, 2500],
    ['provider.rate_limit', false, undefined],
    ['provider.rate_limit', false, undefined],
    ['provider.overloaded', true, undefined],
    ['provider.auth_error', false, undefined]
  ])
})

test('the path follows the base URL and the name of the model; a token goes as bearer', async t => {
  const { run, upstream } = await bench(t, [[{ text: 'ok' }]])

  await run()
  await run({ base_url: `${upstream.url}/v1?team=a`, name: 'a b' })
  await run({ name: 'tunedModels/x', bearer: true })

  assert.deepEqual(
    upstream.requests.map(request => request.path),
    [
      '/v1beta/models/m:streamGenerateContent?alt=sse',
      '/v1/models/a%20b:streamGenerateContent?team=a&alt=sse',
      '/v1beta/tunedModels/x:streamGenerateContent?alt=sse'
    ]
  )
  const [first, , last] = upstream.requests.map(request => request.headers)
  assert.deepEqual([first?.['x-goog-api-key'], first?.authorization], ['k', undefined])
  assert.deepEqual([last?.['x-goog-api-key'], last?.authorization], [undefined, 'Bearer k'])
})

test('the cloud finds a model below project and location, from the env table, the host or the base URL', () => {
  const at = (change: Partial<ResolvedModel>) => cloud.path({ ...model, ...change })
  const placed = { project: 'p1', location: 'l1' }

  assert.equal(at({ ...placed, base_url: 'https://x.test' }), '/v1/projects/p1/locations/l1/publishers/google/models/m')
  assert.equal(at({ ...placed, base_url: 'https://x.test/v1beta1' }), '/projects/p1/locations/l1/publishers/google/models/m')
  assert.equal(at({ ...placed, base_url: 'https://x.test', name: 'endpoints/7' }), '/v1/projects/p1/locations/l1/endpoints/7')
  assert.equal(
    at({ project: 'p1', base_url: 'https://us-central1-x.test' }),
    '/v1/projects/p1/locations/us-central1/publishers/google/models/m'
  )
  assert.equal(at({ base_url: 'https://x.test/v1/projects/p/locations/l' }), '/publishers/google/models/m')
  assert.equal(at({ base_url: 'https://x.test/v1/publishers/google' }), '/models/m')
})

test('a cloud model without project or location answers 40113 and says what is missing; without base URL too', async t => {
  const models = Object.fromEntries(
    ['bare', 'half', 'whole', 'nowhere'].map(id => [id, { provider: id, model: 'm', max_context_size: 1000 }])
  )
  const record = { type: 'compat_cloud', base_url: 'https://x.test', api_key: 'k' }
  const providers = {
    bare: record,
    half: { ...record, env: { CLOUD_PROJECT: 'p1' } },
    whole: { ...record, api_key: '', env: { CLOUD_PROJECT: 'p1', CLOUD_LOCATION: 'l1', ACCESS_TOKEN: 't' } },
    nowhere: { type: 'compat_genai', api_key: 'k' }
  }
  const llm = await startLlm(t, { packs: [llmGenai], config: { providers, models } })
  const refusal = (alias: string) => {
    try {
      llm.resolve(alias)
      return 'resolved'
    } catch (error) {
      return AppError.is(error) && error.spec === ModelUnresolved ? error.message : String(error)
    }
  }

  assert.match(refusal('bare'), /no PROJECT and no LOCATION/)
  assert.match(refusal('half'), /names no LOCATION/)
  assert.match(refusal('nowhere'), /no base_url/)
  assert.equal(refusal('whole'), 'resolved')
  assert.equal(llm.resolve('whole').bearer, true)
})

test('words for no reason are no reason: a stream that breaks off after them is not whole', async t => {
  const { run } = await bench(t, [
    [raw({ candidates: [{ content: { parts: [{ text: 'half' }] }, finishReason: 'FINISH_REASON_UNSPECIFIED' }] }), { cut: true }]
  ])

  assert.equal(failure(await run()).code, 'provider.connection_error')
})
