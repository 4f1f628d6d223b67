/** What is particular to the chat completions stream: error chunks, limits, odd endings, remembered reasoning fields. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createUpstream, type LlmRequest, type StreamLimits } from '../../../features/llm/index.ts'
import { chatAdapter } from '../../../features/llm-chat/adapter.ts'
import { compatChat } from '../../../features/llm-chat/dialect.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { collect, failure, joined, llmRequest, user } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

async function bench(t: TestContextLike, replies: readonly (readonly Step[])[], limits?: StreamLimits) {
  const upstream = await fakeUpstream(t, replies)
  const pool = createUpstream({})
  t.after(() => pool.close())
  const adapter = chatAdapter(compatChat, pool, limits)
  const model = resolvedModel({ base_url: `${upstream.url}?api-version=1` })
  return {
    upstream,
    model,
    run: (request?: Partial<LlmRequest>) => collect(adapter.stream(llmRequest(model, request), new AbortController().signal))
  }
}

test('an error chunk ends the stream with the class its words name', async t => {
  const chunk = (error: unknown) => [{ text: 'half' }, { raw: `data: ${JSON.stringify({ error })}\n\n` }]
  const { run } = await bench(t, [
    chunk({ message: 'Rate limit reached', type: 'rate_limit_error' }),
    chunk({ message: 'too long', code: 'context_length_exceeded' }),
    chunk({ message: 'busy', type: 'overloaded_error' }),
    chunk({ message: 'blocked', code: 'content_filter' }),
    chunk({ message: 'who are you', code: 401 }),
    chunk('something happened')
  ])

  const found = []
  for (let i = 0; i < 6; i++) {
    const { code, retryable } = failure(await run())
    found.push([code, retryable])
  }

  assert.deepEqual(found, [
    ['provider.rate_limit', true],
    ['context.overflow', false],
    ['provider.overloaded', true],
    ['provider.filtered', false],
    ['provider.auth_error', false],
    ['provider.api_error', true]
  ])
})

test('a JSON answer instead of a stream is read for its error', async t => {
  const { run } = await bench(t, [
    [{ status: 200, body: { error: { message: 'insufficient balance' } } }],
    [{ status: 200, body: { choices: [] } }]
  ])

  assert.equal(failure(await run()).name, 'QuotaExhaustedError')
  assert.equal(failure(await run()).name, 'StreamFormatError')
})

test('a JSON answer of nothing but blanks ends when it is longer than an answer may be', { timeout: 20_000 }, async t => {
  let gone = false
  const server = createServer((_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json' }).on('close', () => {
      gone = true
    })
    const more = () => {
      while (!gone && res.write(' '.repeat(64 * 1024)));
    }
    res.on('drain', more)
    more()
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => server.close().closeAllConnections())
  const pool = createUpstream({})
  t.after(() => pool.close())
  const model = resolvedModel({ base_url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` })
  const signal = new AbortController().signal

  assert.equal(failure(await collect(chatAdapter(compatChat, pool).stream(llmRequest(model), signal))).name, 'StreamFormatError')
})

test('an oversized event and an oversized response end the stream for good', async t => {
  const { run } = await bench(t, [[{ raw: `data: ${'x'.repeat(5000)}` }, { hang: true }], [{ text: 'word '.repeat(2000), chunks: 100 }]], {
    event: 4000,
    response: 10_000
  })

  const event = failure(await run())
  const response = failure(await run())

  assert.match(event.message, /oversized stream event/)
  assert.match(response.message, /oversized response/)
  assert.equal(event.retryable || response.retryable, false)
})

test('an answer that is cut after its finish reason is whole', async t => {
  const { run } = await bench(t, [
    [{ text: 'all' }, { finish: 'stop' }, { cut: true }],
    [{ text: 'all' }, { finish: 'stop' }, { end: true }]
  ])

  for (const parts of [await run(), await run()]) {
    assert.equal(joined(parts, 'text'), 'all')
    assert.equal(parts.at(-1)?.type, 'finish')
  }
})

test('an upstream that never closes after the end mark does not hold the stream', async t => {
  const { run, upstream } = await bench(t, [[{ text: 'all' }, { finish: 'stop' }, { raw: 'data: [DONE]\n\n' }, { hang: true }]])

  const parts = await run()

  assert.equal(parts.at(-1)?.type, 'finish')
  assert.equal(await (await upstream.arrived(0)).closed, 'client')
})

test('an end mark without a finish reason ends a good answer', async t => {
  const { run } = await bench(t, [[{ text: 'all' }, { raw: 'data: [DONE]\n\n' }, { end: true }]])

  assert.deepEqual((await run()).at(-1), { type: 'finish', reason: 'completed', raw_reason: 'stop', response_id: 'chatcmpl-0' })
})

test('events may be cut anywhere, end with CRLF, and be mixed with comments', async t => {
  const event = Buffer.from(`: ping\r\n\r\ndata: ${JSON.stringify({ choices: [{ delta: { content: '日本' } }] })}\r\n\r\n`)
  const bytes = [...event].map(byte => ({ raw: Uint8Array.of(byte) }))
  const { run } = await bench(t, [[...bytes, { finish: 'stop' }]])

  assert.equal(joined(await run(), 'text'), '日本')
})

test('reasoning goes back in the field in which the upstream sent it', async t => {
  const { run, upstream } = await bench(t, [[{ raw: 'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\n' }, { text: 'ok' }]])
  const messages = [
    user('a'),
    {
      role: 'assistant',
      content: [
        { type: 'thinking', text: 'hm' },
        { type: 'text', text: 'ok' }
      ],
      tool_calls: []
    }
  ] as const

  await run({ messages })
  await run({ messages })

  const sent = upstream.requests.map(request => (request.body.messages as Record<string, unknown>[])[1]?.reasoning)
  assert.deepEqual(sent, [undefined, 'hm'])
})

test('the query of a base URL is kept', async t => {
  const { run, upstream } = await bench(t, [[{ text: 'ok' }]])

  await run()

  assert.equal(upstream.requests[0]?.path, '/v1/chat/completions?api-version=1')
})

test('reasoning goes back also after a restart, when only the history knows its field', async t => {
  const first = await bench(t, [[{ raw: 'data: {"choices":[{"delta":{"reasoning":"hm"}}]}\n\n' }, { text: 'ok' }]])
  const seal = (await first.run()).find(part => part.type === 'thinking' && part.signature !== undefined)
  assert.ok(seal?.type === 'thinking' && seal.signature)
  const { run, upstream } = await bench(t, [[{ text: 'ok' }]])
  const assistant = {
    role: 'assistant',
    content: [
      { type: 'thinking', text: 'hm', signature: seal.signature },
      { type: 'text', text: 'ok' }
    ],
    tool_calls: []
  } as const

  await run({ messages: [user('a'), assistant, user('b')] })

  const [, sent] = (await upstream.arrived(0)).body.messages as Record<string, unknown>[]
  assert.equal(sent?.reasoning, 'hm')
})
