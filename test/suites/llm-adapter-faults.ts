/**
 * What every model adapter makes of servers that answer badly or loosely: encodings, old HTTP, broken bodies, errors of every shape,
 * odd event streams. Run once per protocol, beside the adapter suite.
 */
import assert from 'node:assert/strict'
import type { Socket } from 'node:net'
import { describe, test } from 'node:test'
import { brotliCompressSync, deflateSync, gzipSync } from 'node:zlib'
import type { EventDecoder, Llm, LlmPart, LlmRequest, ResolvedModel } from '../../features/llm/index.ts'
import type { Pack } from '../../kernel/index.ts'
import type { TestContextLike } from '../../kernel/testing.ts'
import { calls, collect, failure, joined, llmRequest, startLlm } from '../helpers/llm-port.ts'
import { type HeadOptions, halfAnswer, head, type RawUpstream, rawUpstream, wholeAnswer } from '../helpers/upstream-raw.ts'
import type { UpstreamWire } from '../helpers/upstream-wire.ts'

export interface AdapterWithFaults {
  readonly protocol: string
  readonly pack: Pack
  readonly wire: UpstreamWire
  /** Reads one response; `failureOf` looks at each event first. */
  readonly decoder: () => EventDecoder
  readonly failureOf?: (event: object) => unknown
  /** More fields of the provider record. */
  readonly provider?: Readonly<Record<string, unknown>>
}

interface Bench {
  readonly server: RawUpstream
  readonly llm: Llm
  readonly model: ResolvedModel
  run(request?: Partial<LlmRequest>): ReturnType<typeof collect>
}

/** Declares the tests of one adapter. */
export function llmAdapterFaults({ protocol, pack, wire, decoder, failureOf, provider }: AdapterWithFaults): void {
  async function bench(t: TestContextLike, answer: (socket: Socket, n: number) => void): Promise<Bench> {
    const server = await rawUpstream(t, answer)
    const config = {
      providers: { p: { type: protocol, base_url: server.url(wire), api_key: 'sk-test-secret', ...provider } },
      models: { 'p/m': { provider: 'p', model: 'm', max_context_size: 100_000 } }
    }
    const llm = await startLlm(t, { packs: [pack], config })
    const model = llm.resolve('p/m')
    return { server, llm, model, run: request => collect(llm.stream(llmRequest(model, request), new AbortController().signal)) }
  }
  const answers = (t: TestContextLike, options: HeadOptions, ...bodies: readonly (string | Uint8Array)[]) =>
    bench(t, (socket, n) => {
      socket.write(head(options))
      socket.end(bodies[Math.min(n, bodies.length - 1)] ?? '')
    })
  const whole = wholeAnswer(wire, 'Grüße, 世界')

  describe(`the ${protocol} adapter and servers that answer oddly`, () => {
    const encodings = {
      gzip: gzipSync,
      'x-gzip': gzipSync,
      deflate: deflateSync,
      br: brotliCompressSync,
      'gzip, identity': gzipSync,
      'deflate, br': (text: string) => brotliCompressSync(deflateSync(text))
    }
    for (const [encoding, compress] of Object.entries(encodings)) {
      test(`reads an answer that came as ${encoding}, although it asked for none`, async t => {
        const { run } = await answers(t, { headers: { 'content-encoding': encoding } }, compress(whole))

        const parts = await run()

        assert.equal(joined(parts, 'text'), 'Grüße, 世界')
        assert.equal(parts.at(-1)?.type, 'finish')
      })
    }

    test('reads a compressed error, and reports a compressed stream that breaks off', async t => {
      const error = JSON.stringify(wire.failure(400, 'no such field'))
      const { run } = await bench(t, (socket, n) => {
        const headers = { 'content-encoding': 'gzip', ...(n === 0 && { 'content-type': 'application/json' }) }
        socket.write(head({ status: n === 0 ? 400 : 200, headers }))
        socket.end(n === 0 ? gzipSync(error) : gzipSync(whole).subarray(0, 40))
      })

      assert.match(failure(await run()).message, /no such field/)
      const cut = failure(await run())
      assert.deepEqual([cut.code, cut.retryable], ['provider.connection_error', true])
    })

    test('reads an answer over HTTP/1.0, which ends with the connection', async t => {
      const { run } = await answers(t, { version: '1.0', headers: { connection: '' } }, whole)

      const parts = await run()

      assert.equal(joined(parts, 'text'), 'Grüße, 世界')
      assert.equal(parts.at(-1)?.type, 'finish')
    })

    const loose: Readonly<Record<string, (stream: string) => string>> = {
      'lines that end with CR and LF': stream => stream.replaceAll(/\r?\n/g, '\r\n'),
      'lines that end with CR alone': stream => stream.replaceAll(/\r?\n/g, '\r'),
      'no space after the colon': stream => stream.replaceAll(/^(\w+): /gm, '$1:'),
      'a byte order mark in front': stream => `\uFEFF${stream}`,
      'comments, ids and retry times in between': stream =>
        stream.replaceAll(/^data:/gm, ': keep-alive\nid: 7\nretry: 3000\nodd line\ndata:'),
      'empty events in between': stream => stream.replaceAll(/(\r?\n){2}/g, '\n\n\n\ndata:\n\ndata: \n\n'),
      'comments after the last event': stream => `${stream}: bye\n\n`,
      'no empty line after the last event': stream => stream.replace(/[\r\n]+$/, ''),
      'no data but the text of the events, without names': stream => stream.replaceAll(/^event:.*\r?\n/gm, '')
    }
    for (const [title, change] of Object.entries(loose)) {
      test(`reads an event stream with ${title}`, async t => {
        const { run } = await answers(t, {}, change(whole))

        const parts = await run()

        assert.equal(joined(parts, 'text'), 'Grüße, 世界')
        assert.equal(parts.at(-1)?.type, 'finish')
      })
    }

    const half = halfAnswer(wire, 'half')
    const cuts: Readonly<Record<string, [headers: Record<string, string>, body: string | Uint8Array]>> = {
      'ends in the middle of a chunk': [
        { 'transfer-encoding': 'chunked' },
        `${Buffer.byteLength(half).toString(16)}\r\n${half}\r\nff\r\ndata: {`
      ],
      'ends without the last chunk': [{ 'transfer-encoding': 'chunked' }, `${Buffer.byteLength(half).toString(16)}\r\n${half}\r\n`],
      'is shorter than it said': [{ 'content-length': '100000' }, half],
      'ends in the middle of an event': [{}, `${half}data: {"cho`],
      'ends in the middle of a character': [{}, Buffer.concat([Buffer.from(`${half}data: {"x": "`), Buffer.of(0xe4, 0xb8)])]
    }
    for (const [title, [headers, body]] of Object.entries(cuts)) {
      test(`reports an answer that ${title}, after what had arrived`, async t => {
        const { run } = await answers(t, { headers }, body)

        const parts = await run()

        assert.equal(joined(parts, 'text'), 'half')
        const { code, retryable } = failure(parts)
        assert.deepEqual([code, retryable], ['provider.connection_error', true])
      })
    }

    for (const [title, options] of Object.entries<HeadOptions>({
      'HTTP 204': { status: 204, headers: { 'content-type': '', 'content-length': '' } },
      'an empty body': {},
      'an empty body without type': { headers: { 'content-type': '' } }
    })) {
      test(`calls ${title} an answer without content`, async t => {
        const { run } = await answers(t, options, '')

        const { name, code, retryable } = failure(await run())

        assert.deepEqual([name, code, retryable], ['EmptyResponseError', 'provider.api_error', true])
      })
    }

    test('does not follow a redirect, and says where it leads without what stands in its query', async t => {
      const other = await rawUpstream(t, socket => void socket.end(head() + whole))
      const location = `${other.url(wire)}/elsewhere?key=secret`
      const { run } = await answers(t, { status: 307, headers: { location } })

      const { message, retryable, status } = failure(await run())

      assert.deepEqual([status, retryable], [307, false])
      assert.ok(message.includes(new URL(location).origin))
      assert.ok(!message.includes('secret'))
      assert.equal(other.count, 0)
    })

    const bodies: readonly [title: string, type: string, body: string, said: RegExp][] = [
      ['an object with an object', 'application/json', '{"error":{"message":"no such field","code":"x"}}', /no such field/],
      ['an object with a text', 'application/json', '{"error":"no such field"}', /no such field/],
      ['a list of objects', 'application/json; charset=utf-8', '[{"error":{"message":"no such field"}}]', /no such field/],
      ['a text', 'application/json', '"no such field"', /no such field/],
      ['a bare message', 'application/json', '{"object":"error","message":"no such field","code":400}', /no such field/],
      ['a detail', 'application/json', '{"detail":"no such field"}', /no such field/],
      ['a list of details', 'application/json', '{"detail":[{"loc":["body","x"],"msg":"no such field"}]}', /x: no such field/],
      [
        'a message with a list of details',
        'application/json',
        '{"object":"error","message":{"detail":[{"type":"extra_forbidden","loc":["body","x"],"msg":"no such field"}]},"type":"invalid_request_error"}',
        /x: no such field/
      ],
      ['a list of errors', 'application/json', '{"errors":[{"message":"no such field"}]}', /no such field/],
      [
        'the words of a provider behind a gateway',
        'application/json',
        '{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\\"error\\":\\"no such field\\"}"}}}',
        /Provider returned error.*no such field/
      ],
      ['null', 'application/json', 'null', /HTTP 400$/],
      ['a number', 'application/json', '7', /HTTP 400$/],
      ['broken JSON', 'application/json', '{"error":{"message":"no such', /HTTP 400.*no such/],
      ['plain text', 'text/plain', 'no such field', /no such field/],
      ['a page', 'text/html', '<!doctype html><p>no such field</p>', /HTTP 400$/],
      ['nothing', 'application/json', '', /HTTP 400$/],
      ['nothing at all', '', '', /HTTP 400$/]
    ]
    for (const [title, type, body, said] of bodies) {
      test(`reads an error whose body is ${title}`, async t => {
        const { run } = await answers(t, { status: 400, headers: { 'content-type': type } }, body)

        const { code, status, retryable, message } = failure(await run())

        assert.deepEqual([code, status, retryable], ['provider.api_error', 400, false])
        assert.match(message, said)
      })
    }

    const inStream: readonly [title: string, event: string][] = [
      ['as an object', 'data: {"error":{"message":"it is overloaded"}}\n\n'],
      ['as a text', 'data: {"error":"it is overloaded"}\n\n'],
      ['as an event of that name', 'event: error\ndata: {"message":"it is overloaded"}\n\n'],
      ['as the text of such an event', 'event: error\ndata: it is overloaded\n\n'],
      ['as an object of that kind', 'data: {"object":"error","message":"it is overloaded","code":503}\n\n'],
      ['as a field of that name', 'error: {"code":503,"message":"it is overloaded"}\n\n']
    ]
    for (const [title, event] of inStream) {
      test(`reads an error in the stream ${title}`, async t => {
        const { run } = await answers(t, {}, `${half}${event}`)

        const parts = await run()

        assert.equal(joined(parts, 'text'), 'half')
        const { code, retryable, message } = failure(parts)
        assert.deepEqual([code, retryable], ['provider.overloaded', true])
        assert.match(message, /it is overloaded/)
      })
    }

    test('reads an error that stands where the event stream was promised', async t => {
      const { run } = await answers(t, {}, '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}')

      assert.equal(failure(await run()).name, 'QuotaExhaustedError')
    })

    for (const type of ['application/json', 'text/html; charset=utf-8']) {
      test(`reads an event stream that is called ${type}`, async t => {
        const { run, server } = await bench(t, socket => {
          socket.write(head({ headers: { 'content-type': type } }))
          for (const piece of ['\n', ': wait\n', `\n${whole.slice(0, 7)}`, whole.slice(7)]) socket.write(piece)
          socket.end()
        })

        const parts = await run()

        assert.equal(joined(parts, 'text'), 'Grüße, 世界')
        assert.equal(parts.at(-1)?.type, 'finish')
        await server.gone(0)
      })
    }

    test('tells of a JSON answer without a word', async t => {
      const { run } = await answers(t, { headers: { 'content-type': 'application/json' } }, '\n ')

      assert.deepEqual([failure(await run()).name, failure(await run()).retryable], ['StreamFormatError', true])
    })

    test('repeats the words of a JSON answer that is no stream', async t => {
      const { run } = await answers(t, { headers: { 'content-type': 'application/json' } }, '{"code":7,"msg":"the engine is off"}')

      const { name, message } = failure(await run())

      assert.equal(name, 'StreamFormatError')
      assert.match(message, /the engine is off/)
    })

    test('hangs up on an event without end', async t => {
      const junk = 'x'.repeat(1 << 20)
      const { run, server } = await bench(t, socket => {
        socket.write(`${head()}data: {"x": "`)
        const more = () => {
          while (!socket.destroyed && socket.write(junk));
        }
        socket.on('drain', more)
        more()
      })

      const { message, retryable } = failure(await run())

      assert.match(message, /oversized/)
      assert.equal(retryable, false)
      await server.gone(0)
    })

    test('hangs up on lines without end that are no events', async t => {
      const junk = 'garbage line\n'.repeat(10_000)
      const { run, server } = await bench(t, socket => {
        socket.write(head())
        const more = () => {
          while (!socket.destroyed && socket.write(junk));
        }
        socket.on('drain', more)
        more()
      })

      assert.match(failure(await run()).message, /no event stream/)
      await server.gone(0)
    })

    test('takes events of every shape without breaking', () => {
      const one = decoder()
      const parts: LlmPart[] = []

      for (const event of oddEvents()) {
        for (const reader of [one, decoder()]) {
          failureOf?.(event)
          reader.feed(event, parts)
          parts.push(...reader.end(undefined))
        }
      }

      for (const part of parts) {
        if ('text' in part) assert.equal(typeof part.text, 'string')
        if ('id' in part) assert.equal(typeof part.id, 'string')
        if (part.type === 'usage') assert.ok(Object.values(part.usage).every(count => Number.isInteger(count) && count >= 0))
      }
    })

    test('keeps two calls with one id apart', async t => {
      const reply = { n: 0, model: 'm', tool_count: 0, state: {} }
      const two = ['a', 'b'].map(path => ({ name: 'Read', args: { path }, id: 'same' }))
      const events = [...wire.start(reply), ...wire.tools(two, reply), ...wire.finish('tool_calls', reply), ...wire.done(reply)]
      const { run } = await answers(t, {}, events.join(''))

      const found = calls(await run())

      assert.equal(new Set(found.map(call => call.id)).size, 2)
      assert.deepEqual(
        found.map(call => JSON.parse(call.arguments)),
        [{ path: 'a' }, { path: 'b' }]
      )
    })
  })
}

/** Every field of the wires with a value of every kind, in every kind of event. */
function* oddEvents(): Generator<object> {
  const values = [null, 1, -1.5, 'x', '', true, [], {}, [null], [[]], [1], ['x'], [{}], { x: null }, [{ text: 1 }], [{ type: 'text' }]]
  const types = ['message_start', 'content_block_start', 'content_block_delta', 'content_block_stop', 'message_delta', 'error']
  const responses = ['output_item.added', 'output_item.done', 'output_text.delta', 'output_text.done', 'reasoning_summary_text.delta']
  const ends = ['function_call_arguments.delta', 'function_call_arguments.done', 'completed', 'incomplete', 'failed']
  const events = [undefined, ...types, ...[...responses, ...ends].map(name => `response.${name}`)]
  const outer = ['choices', 'delta', 'usage', 'message', 'content_block', 'index', 'item', 'response', 'candidates', 'usageMetadata']
  const inner = ['parts', 'tool_calls', 'function', 'functionCall', 'content', 'reasoning_details', 'output', 'prompt_tokens_details']
  const names = [
    ...outer,
    ...inner,
    'promptFeedback',
    'text',
    'id',
    'input',
    'summary',
    'arguments',
    'input_tokens_details',
    'thoughtSignature'
  ]
  const kinds = [undefined, 'tool_use', 'thinking', 'text', 'function_call', 'message', 'reasoning', 'text_delta', 'input_json_delta']
  for (const value of values) {
    for (const name of names) {
      for (const type of events) {
        yield { type, [name]: value }
        for (const kind of kinds) {
          const thing = { type: kind, name: 'Read', [name]: value }
          yield { type, index: 0, output_index: 0, item: thing, content_block: thing, delta: thing, response: { output: [thing] } }
        }
      }
      yield { choices: [{ delta: { [name]: value } }], usage: { [name]: value } }
      yield { choices: [{ delta: { tool_calls: [{ function: { name: 'Read', [name]: value }, [name]: value }] } }] }
      yield { candidates: [{ content: { [name]: value } }], usageMetadata: { [name]: value } }
      yield { candidates: [{ content: { parts: [{ [name]: value }, { functionCall: { name: 'Read', [name]: value } }] } }] }
      yield { message: { usage: { [name]: value } }, response: { usage: { [name]: value } }, type: 'message_start' }
    }
  }
}
