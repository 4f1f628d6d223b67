/**
 * What every model adapter promises, checked over HTTP against an upstream that speaks its wire format. Run it once per protocol:
 * `llmAdapterSuite({ protocol, pack, wire, effort })`.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Llm, LlmMessage, LlmRequest, ResolvedModel } from '../../features/llm/index.ts'
import type { Pack } from '../../kernel/index.ts'
import type { TestContextLike } from '../../kernel/testing.ts'
import { type FakeUpstream, fakeUpstream, type Script } from '../helpers/fake-upstream.ts'
import { calls, collect, failure, joined, llmRequest, startLlm, toolCall, user } from '../helpers/llm-port.ts'
import type { UpstreamWire } from '../helpers/upstream-wire.ts'

export interface AdapterUnderTest {
  readonly protocol: string
  /** The pack that contributes the adapter. */
  readonly pack: Pack
  readonly wire: UpstreamWire
  /** What the request body says for some effort levels. */
  readonly effort: Readonly<Record<string, (body: Record<string, unknown>) => void>>
  /** Header that carries the credential, and its value for the key `sk-test-secret`. */
  readonly credential: readonly [header: string, value: string]
  /** More fields of the provider record. */
  readonly provider?: Readonly<Record<string, unknown>>
  /** Finish reasons that this wire has words for; default all. */
  readonly finishes?: readonly ('stop' | 'length' | 'content_filter')[]
}

const KEY = 'sk-test-secret'
const tool = { name: 'Read', description: 'Reads a file', parameters: { type: 'object', properties: { path: { type: 'string' } } } }

interface Bench {
  readonly upstream: FakeUpstream
  readonly llm: Llm
  readonly model: ResolvedModel
  run(request?: Partial<LlmRequest>): ReturnType<typeof collect>
}

/** Declares the tests of one adapter. */
export function llmAdapterSuite({
  protocol,
  pack,
  wire,
  effort,
  credential,
  provider,
  finishes = ['stop', 'length', 'content_filter']
}: AdapterUnderTest): void {
  async function bench(t: TestContextLike, script: Script, custom_headers: object = { 'X-Team': 'blue-team' }): Promise<Bench> {
    const upstream = await fakeUpstream(t, script, { wire })
    const config = {
      providers: { p: { type: protocol, base_url: upstream.url, api_key: KEY, custom_headers, ...provider } },
      models: { 'p/m': { provider: 'p', model: 'm', max_context_size: 100_000, capabilities: ['thinking', 'tool_use'] } }
    }
    const llm = await startLlm(t, { packs: [pack], config })
    const model = llm.resolve('p/m')
    return { upstream, llm, model, run: request => collect(llm.stream(llmRequest(model, request), new AbortController().signal)) }
  }

  describe(`the ${protocol} adapter`, () => {
    test('streams text piece by piece and ends with usage and finish', async t => {
      const { run } = await bench(t, [[{ text: 'Grüße, 世界 🙂!', chunks: 5 }, { usage: { input: 120, output: 7, cached: 100 } }]])

      const parts = await run()

      assert.equal(joined(parts, 'text'), 'Grüße, 世界 🙂!')
      assert.ok(parts.filter(part => part.type === 'text').length > 1)
      assert.deepEqual(
        parts.findLast(part => part.type === 'usage'),
        {
          type: 'usage',
          usage: { inputOther: 20, output: 7, inputCacheRead: 100, inputCacheCreation: 0 }
        }
      )
      const last = parts.at(-1)
      assert.equal(last?.type === 'finish' && last.reason, 'completed')
    })

    test('hands on the first piece while the upstream still works', async t => {
      const { upstream, llm, model } = await bench(t, [[{ text: 'first' }, { hang: true }, { text: ' second' }]])
      const stream = llm.stream(llmRequest(model), new AbortController().signal)[Symbol.asyncIterator]()

      const first = await stream.next()
      assert.deepEqual(first.value, { type: 'text', text: 'first' })
      upstream.release()
      const rest = await collect({ [Symbol.asyncIterator]: () => stream })

      assert.equal(joined(rest, 'text'), ' second')
    })

    test('keeps thinking apart from the answer', async t => {
      const { run } = await bench(t, [[{ thinking: 'let me see', chunks: 3 }, { text: 'done' }]])

      const parts = await run({ effort: 'on' })

      assert.equal(joined(parts, 'thinking'), 'let me see')
      assert.equal(joined(parts, 'text'), 'done')
      assert.ok(parts.findIndex(part => part.type === 'thinking') < parts.findIndex(part => part.type === 'text'))
    })

    test('delivers parallel tool calls, each with its own arguments, header first', async t => {
      const script = [
        { text: 'I look. ' },
        {
          tools: [
            { name: 'Read', args: { path: 'a' }, id: 'call_a' },
            { name: 'Read', args: { path: 'b', deep: [1, 2] }, id: 'call_b' }
          ]
        }
      ]
      const { run } = await bench(t, [script])

      const parts = await run({ tools: [tool] })

      const found = calls(parts)
      assert.deepEqual(
        found.map(({ id, name, arguments: text }) => ({ id, name, args: JSON.parse(text) })),
        [
          { id: 'call_a', name: 'Read', args: { path: 'a' } },
          { id: 'call_b', name: 'Read', args: { path: 'b', deep: [1, 2] } }
        ]
      )
      for (const { id } of found) {
        assert.ok(
          parts.findIndex(part => part.type === 'tool_call' && part.id === id) <
            parts.findIndex(part => part.type === 'tool_arguments' && part.id === id)
        )
      }
      const last = parts.at(-1)
      assert.equal(last?.type === 'finish' && last.reason, 'tool_calls')
    })

    test('gives an id to a tool call that has none', async t => {
      const { run } = await bench(t, [[{ tool: { name: 'Read', args: { path: 'a' }, id: null } }]])

      const [call] = calls(await run({ tools: [tool] }))

      assert.match(call?.id ?? '', /^\w{4,}/)
      assert.deepEqual(JSON.parse(call?.arguments ?? ''), { path: 'a' })
    })

    test('plays a tool round trip: the second request carries the call and its result', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'It says hi.' }]])

      const parts = await run({
        tools: [tool],
        messages: [
          user('read a'),
          { role: 'assistant', content: [toolCall('call_a')] },
          { role: 'tool', tool_call_id: 'call_a', name: 'Read', content: [{ type: 'text', text: 'file says hi' }], is_error: false }
        ]
      })

      assert.equal(joined(parts, 'text'), 'It says hi.')
      const sent = JSON.stringify(upstream.requests[0]?.body)
      for (const piece of ['read a', 'Read', 'file says hi', 'Reads a file'])
        assert.ok(sent.includes(piece), `${piece} is missing in ${sent}`)
    })

    test('a call under a name that no upstream takes goes back in the alphabet of all, with its result', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]])
      const odd = ['functions.Odd', 'Odd file', 'Odd工具', `Odd${'x'.repeat(90)}`, '工具']
      const answers = odd.flatMap((name, at): LlmMessage[] => [
        { role: 'assistant', content: [toolCall(`call_${at}`, { name, arguments: '{}' })] },
        { role: 'tool', tool_call_id: `call_${at}`, name, content: [{ type: 'text', text: 'not found' }], is_error: true }
      ])

      await run({ tools: [tool], messages: [user('go'), ...answers] })

      const sent = JSON.stringify(upstream.requests[0]?.body)
      for (const name of odd) assert.ok(!sent.includes(name), `${name} went out`)
      const names = [...sent.matchAll(/"name":"((?:[^"\\]|\\.)*)"/g)].map(([, name = '']) => name).filter(name => name !== 'Read')
      assert.ok(names.length >= odd.length, sent)
      for (const name of names) assert.match(name, /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/)
    })

    test('parameters that are a choice go out as one object: upstreams refuse a choice at the top', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]])
      const parameters = {
        type: 'object',
        $defs: { ByName: { type: 'object', properties: { by_name: { type: 'string' } }, required: ['by_name'] } },
        properties: { common_field: { type: 'string' } },
        required: ['common_field'],
        oneOf: [{ $ref: '#/$defs/ByName' }, { type: 'object', properties: { by_number: { type: 'integer' } }, required: ['by_number'] }],
        not: { required: ['x'] }
      }

      await run({ tools: [{ ...tool, parameters }] })

      const body = JSON.stringify(upstream.requests[0]?.body)
      for (const name of ['common_field', 'by_name', 'by_number']) assert.ok(body.includes(`"${name}":`), `${name} is missing in ${body}`)
      assert.doesNotMatch(body, /"(oneOf|anyOf|allOf|not)"/)
      assert.match(body, /"required":\["common_field"\]/)
    })

    test('carries the images of prompts and of tool results', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]])
      const image = (data: string) => ({ type: 'image', media_type: 'image/png', data }) as const
      const text = { type: 'text', text: 'see' } as const

      await run({
        tools: [tool],
        messages: [
          { role: 'user', content: [text, image('cHJvbXB0')] },
          { role: 'assistant', content: [toolCall('call_a', { arguments: '' })] },
          { role: 'tool', tool_call_id: 'call_a', name: 'Read', content: [image('cmVzdWx0')], is_error: false }
        ]
      })

      const sent = JSON.stringify(upstream.requests[0]?.body)
      for (const data of ['cHJvbXB0', 'cmVzdWx0', 'image/png']) assert.ok(sent.includes(data), data)
    })

    const reasons = { stop: 'completed', length: 'truncated', content_filter: 'filtered' } as const
    for (const word of finishes) {
      test(`says that an answer is ${reasons[word]}`, async t => {
        const { run } = await bench(t, [[{ text: 'partly' }, { finish: word }]])

        const last = (await run()).at(-1)

        assert.equal(last?.type === 'finish' && last.reason, reasons[word])
      })
    }

    for (const [level, check] of Object.entries(effort)) {
      test(`sends the effort ${level}`, async t => {
        const { upstream, run } = await bench(t, [[{ text: 'ok' }]])

        await run({ effort: level })

        check(upstream.requests[0]?.body ?? {})
      })
    }

    test('sends the credential, the own name and the headers of the provider', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]])

      await run()

      const headers = upstream.requests[0]?.headers ?? {}
      assert.equal(headers[credential[0]], credential[1])
      assert.match(headers['user-agent'] ?? '', /^svc-code\//)
      assert.equal(headers['x-team'], 'blue-team')
    })

    test('headers of the configuration win over those of the adapter, its credential among them', async t => {
      const [name] = credential
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]], { [name.toUpperCase()]: 'mine', Accept: 'text/event-stream, */*' })

      await run()

      const headers = upstream.requests[0]?.headers ?? {}
      assert.deepEqual([headers[name], headers.accept], ['mine', 'text/event-stream, */*'])
    })

    const table: readonly [title: string, status: number, message: string, code: string, retryable: boolean][] = [
      ['a rejected key', 401, 'invalid key', 'provider.auth_error', false],
      ['a forbidden model', 403, 'not yours', 'provider.auth_error', false],
      ['too many requests', 429, 'slow down', 'provider.rate_limit', true],
      ['an account without means', 402, 'Insufficient credits', 'provider.rate_limit', false],
      ['a prompt beyond the window', 400, "This model's maximum context length is 8192 tokens", 'context.overflow', false],
      ['a wrong request', 400, 'unknown field', 'provider.api_error', false],
      ['a broken server', 500, 'oops', 'provider.api_error', true],
      ['a bad gateway', 502, 'oops', 'provider.api_error', true],
      ['an overloaded server', 529, 'later', 'provider.overloaded', true],
      ['an overloaded server by its words', 503, 'The engine is currently overloaded', 'provider.overloaded', true]
    ]
    for (const [title, status, message, code, retryable] of table) {
      test(`calls ${title} (HTTP ${status}) ${code}, ${retryable ? 'worth another try' : 'final'}`, async t => {
        const { run } = await bench(t, [[{ status, body: wire.failure(status, message) }]])

        const error = failure(await run())

        assert.equal(error.code, code)
        assert.equal(error.retryable, retryable)
        assert.equal(error.status, status)
        assert.ok(error.message.includes(message))
      })
    }

    test('reads Retry-After and the ids of the provider', async t => {
      const headers = { 'retry-after': '7', 'x-request-id': 'req-1', 'x-trace-id': 'trace-1' }
      const { run } = await bench(t, [[{ status: 429, headers }]])

      const error = failure(await run())

      assert.equal(error.retry_after_ms, 7000)
      assert.equal(error.request_id, 'req-1')
      assert.equal(error.trace_id, 'trace-1')
    })

    test('never repeats the key or a header value in an error', async t => {
      const { run } = await bench(t, [[{ status: 401, body: wire.failure(401, `bad key ${KEY} of blue-team`) }]])

      const error = failure(await run())

      assert.ok(!JSON.stringify(error).includes(KEY))
      assert.ok(!JSON.stringify(error).includes('blue-team'))
    })

    test('answers a page of a proxy with one short line', async t => {
      const { run } = await bench(t, [
        [{ status: 502, body: '<html><body>Bad Gateway</body></html>' }],
        [{ status: 200, body: '<html>login</html>' }]
      ])

      const first = failure(await run())
      const second = failure(await run())

      assert.equal(first.retryable, true)
      assert.ok(!first.message.includes('<'))
      assert.equal(second.code, 'provider.api_error')
    })

    test('reports a connection that is cut in the middle, after what had arrived', async t => {
      const { run } = await bench(t, [[{ text: 'half' }, { cut: true }]])

      const parts = await run()

      assert.equal(joined(parts, 'text'), 'half')
      assert.equal(failure(parts).code, 'provider.connection_error')
      assert.equal(failure(parts).retryable, true)
    })

    test('reports a stream that simply stops', async t => {
      const { run } = await bench(t, [[{ text: 'half' }, { end: true }]])

      assert.equal(failure(await run()).retryable, true)
    })

    test('reports garbage instead of an event', async t => {
      const { run } = await bench(t, [[{ text: 'half' }, { raw: 'data: {"oops\n\n' }, { text: 'more' }]])

      const parts = await run()

      assert.equal(failure(parts).code, 'provider.api_error')
      assert.equal(joined(parts, 'text'), 'half')
    })

    test('reports an answer without content', async t => {
      const { run } = await bench(t, [[]])

      const error = failure(await run())

      assert.equal(error.name, 'EmptyResponseError')
      assert.equal(error.retryable, true)
    })

    test('reports a server that is not there', async t => {
      const { upstream, run } = await bench(t, [[]])
      await upstream.close()

      const error = failure(await run())

      assert.equal(error.code, 'provider.connection_error')
      assert.equal(error.retryable, true)
      assert.ok(!error.message.includes(KEY))
    })

    test('closes the connection and ends at once when aborted before the answer', async t => {
      const { upstream, llm, model } = await bench(t, [[{ hang: true }]])
      const abort = new AbortController()
      const parts = collect(llm.stream(llmRequest(model), abort.signal))
      const request = await upstream.arrived(0)

      abort.abort()

      assert.deepEqual(await parts, [])
      assert.equal(await request.closed, 'client')
    })

    test('closes the connection and ends at once when aborted in the middle', async t => {
      const { upstream, llm, model } = await bench(t, [[{ text: 'half' }, { hang: true }]])
      const abort = new AbortController()
      const stream = llm.stream(llmRequest(model), abort.signal)[Symbol.asyncIterator]()
      await stream.next()

      abort.abort()

      assert.equal((await stream.next()).done, true)
      assert.equal(await (await upstream.arrived(0)).closed, 'client')
    })

    test('sends nothing when aborted beforehand', async t => {
      const { upstream, llm, model } = await bench(t, [[{ text: 'ok' }]])

      assert.deepEqual(await collect(llm.stream(llmRequest(model), AbortSignal.abort())), [])
      assert.equal(upstream.requests.length, 0)
    })

    test('uses connections again', async t => {
      const { upstream, run } = await bench(t, [[{ text: 'ok' }]])

      for (let i = 0; i < 8; i++) await run()

      assert.equal(upstream.requests.length, 8)
      assert.ok((await upstream.connections()) < 8)
    })
  })
}
