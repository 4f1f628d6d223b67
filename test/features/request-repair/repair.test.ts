/** Requests that are refused for their form, over HTTP through the whole engine. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compactSession } from '../../../features/compaction/contract.ts'
import compaction from '../../../features/compaction/pack.ts'
import type { LlmError, LlmRequest } from '../../../features/llm/index.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import requestRepair from '../../../features/request-repair/pack.ts'
import { refusedFields } from '../../../features/request-repair/refused-fields.ts'
import { Repairs } from '../../../features/request-repair/repairs.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import type { RecordedRequest, Script } from '../../helpers/fake-upstream.ts'
import { llmRequest } from '../../helpers/llm-port.ts'
import { conversation, type Image } from '../../helpers/llm-turn.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'

const image = (data: string): Image => ({ type: 'image', source: { kind: 'base64', media_type: 'image/png', data } })
const pictures = ['AAAA', 'BBBB', 'CCCC'].map(image)
const refuse = (status: number, message: string) => [{ status, body: messagesWire.failure(status, message) }]
const large = refuse(413, 'Request exceeds the maximum size')

const overMessages = { protocol: 'compat_messages', pack: llmMessages, wire: messagesWire }
const overChat = { protocol: 'compat_chat', pack: llmChat, wire: chatWire }

async function bench(t: TestContextLike, script: Script, wire: typeof overMessages = overMessages) {
  const setup = { ...wire, record: 'max_output_size = 9000', packs: [requestRepair], script }
  const { upstream, start, open, ask } = await conversation(t, setup)
  const kernel = await start()
  const session_id = await open(kernel)
  const types = () => kernel.events.map(event => event.type)
  const ended = () =>
    kernel.events.filter(event => event.type === 'turn.ended').map(({ payload }) => payload as { reason: string; error?: { code: string } })
  return { upstream, types, ended, ask: (text: string, media?: readonly Image[]) => ask(kernel, session_id, text, media) }
}

const data = (request: RecordedRequest | undefined) =>
  ['AAAA', 'BBBB', 'CCCC', 'DDDD'].filter(one => JSON.stringify(request?.body).includes(one))

test('a request that is too large goes out again with the two most recent images, then without; for the rest of the turn', async t => {
  const call = [{ tool: { name: 'Echo', args: { x: 1 } } }]
  const { upstream, types, ended, ask } = await bench(t, [large, large, call, [{ text: 'done' }], [{ text: 'again' }]])

  await ask('look', pictures)
  await ask('once more', [image('DDDD')])

  assert.deepEqual(upstream.requests.map(data), [['AAAA', 'BBBB', 'CCCC'], ['BBBB', 'CCCC'], [], [], ['AAAA', 'BBBB', 'CCCC', 'DDDD']])
  assert.match(JSON.stringify(upstream.requests[2]?.body), /left out/)
  assert.deepEqual(
    ended().map(turn => turn.reason),
    ['completed', 'completed']
  )
  assert.ok(!types().includes('turn.step.retrying'))
  assert.equal(types().filter(type => type === 'turn.step.started').length, 3)
})

test('an image or a video that the provider cannot read is left out', async t => {
  const refusals: readonly [status: number, words: string][] = [
    [400, 'Could not process image'],
    [400, 'messages.0.content.1.image.source: Unsupported image type'],
    [400, 'Invalid base64 image_url: cannot decode'],
    [400, 'unknown variant `image_url`, expected `text`'],
    [400, "messages.0.content.1: Input tag 'video' found using 'type' does not match any of the expected tags: 'text'"],
    [404, 'No endpoints found that support image input'],
    [500, 'image input is not supported - hint: if this is unexpected, you may need to provide the mmproj']
  ]
  for (const [status, words] of refusals) {
    const { upstream, ended, ask } = await bench(t, [refuse(status, words), [{ text: 'done' }]])

    await ask('look', pictures.slice(0, 1))

    assert.deepEqual(upstream.requests.map(data), [['AAAA'], []])
    assert.equal(ended()[0]?.reason, 'completed')
  }
})

test('a server that breaks down over a call is asked again as before', async t => {
  const broken = refuse(500, 'Internal error while parsing a tool call')
  const { upstream, types, ended, ask } = await bench(t, [broken, [{ text: 'done' }]], overChat)

  await ask('hello')

  const [first, second] = upstream.requests.map(({ body }) => body.messages)
  assert.deepEqual(second, first)
  assert.deepEqual([ended()[0]?.reason, types().includes('turn.step.retrying')], ['completed', true])
})

test('a refusal of the form brings the strict form: one user message in place of neighbours', async t => {
  const words = 'Conversation roles must alternate user/assistant/user/assistant/...'
  const { upstream, ended, ask } = await bench(t, [refuse(400, words), [{ text: 'done' }]], overChat)

  await ask('hello')

  const roles = upstream.requests.map(({ body }) => (body.messages as { role: string }[]).map(({ role }) => role))
  assert.deepEqual(roles, [
    ['system', 'user', 'user'],
    ['system', 'user']
  ])
  assert.equal(ended()[0]?.reason, 'completed')
})

test('thinking that another provider signed is left out', async t => {
  const { upstream, ended, ask } = await bench(t, [
    [{ thinking: 'hm' }, { text: 'one' }],
    refuse(400, 'messages.1.content.0: Invalid `signature` in `thinking` block'),
    [{ text: 'two' }]
  ])

  await ask('a')
  await ask('b')

  const thinks = upstream.requests.map(({ body }) => JSON.stringify(body.messages).includes('"thinking"'))
  assert.deepEqual(thinks, [false, true, false])
  assert.equal(ended()[1]?.reason, 'completed')
})

test('thinking of earlier turns goes first; the turn that runs keeps its own', async t => {
  const { upstream, ended, ask } = await bench(t, [
    [{ thinking: 'earlier' }, { text: 'one' }],
    [{ thinking: 'of this turn' }, { tool: { name: 'Echo', args: { x: 1 } } }],
    refuse(400, 'messages.1.content.0: Invalid `signature` in `thinking` block'),
    [{ text: 'two' }]
  ])

  await ask('a')
  await ask('b')

  const said = upstream.requests.map(({ body }) => ['earlier', 'of this turn'].filter(one => JSON.stringify(body.messages).includes(one)))
  assert.deepEqual(said, [[], ['earlier'], ['earlier', 'of this turn'], ['of this turn']])
  assert.deepEqual(
    upstream.requests.map(({ body }) => (body.thinking as { type: string }).type),
    ['enabled', 'enabled', 'enabled', 'enabled']
  )
  assert.equal(ended()[1]?.reason, 'completed')
})

test('where the thinking of the turn that runs must go, the model is not asked to think', async t => {
  const { upstream, ended, ask } = await bench(t, [
    [{ thinking: 'hm' }, { tool: { name: 'Echo', args: { x: 1 } } }],
    refuse(400, 'messages.1.content.0: Invalid `signature` in `thinking` block'),
    [{ text: 'done' }]
  ])

  await ask('a')

  assert.deepEqual(
    upstream.requests.map(({ body }) => [(body.thinking as { type: string }).type, JSON.stringify(body.messages).includes('"thinking"')]),
    [
      ['enabled', false],
      ['enabled', true],
      ['disabled', false]
    ]
  )
  assert.equal(ended()[0]?.reason, 'completed')
})

const overKnown = { ...overMessages, model: 'claude-sonnet-4-5' }
const overResponses = { protocol: 'compat_responses', pack: llmResponses, wire: responsesWire }
const mistral = (field: string) => ({
  object: 'error',
  message: { detail: [{ type: 'extra_forbidden', loc: ['body', field], msg: 'Extra inputs are not permitted', input: 'x' }] }
})
const fields: readonly [wire: typeof overMessages, body: unknown, refused: string, instead?: string][] = [
  [overChat, mistral('prompt_cache_key'), 'prompt_cache_key'],
  [
    overChat,
    { detail: [{ loc: ['body', 'stream_options'], msg: 'extra fields not permitted', type: 'value_error.extra' }] },
    'stream_options'
  ],
  [
    overChat,
    {
      error: "[{'type': 'extra_forbidden', 'loc': ('body', 'prompt_cache_key'), 'msg': 'Extra inputs are not permitted', 'input': 'main'}]"
    },
    'prompt_cache_key'
  ],
  [overChat, { error: { message: "property 'prompt_cache_key' is unsupported", type: 'invalid_request_error' } }, 'prompt_cache_key'],
  [overChat, { error: { message: "Extra inputs are not permitted, field: 'promptCacheKey', value: 'ses_5'" } }, 'prompt_cache_key'],
  [
    overChat,
    {
      error: {
        message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        type: 'invalid_request_error',
        param: 'max_tokens',
        code: 'unsupported_parameter'
      }
    },
    'max_tokens',
    'max_completion_tokens'
  ],
  [overKnown, messagesWire.failure(400, 'context_management: Extra inputs are not permitted'), 'context_management'],
  [overMessages, messagesWire.failure(400, 'metadata: Extra inputs are not permitted'), 'metadata'],
  [overResponses, { detail: 'Unsupported parameter: prompt_cache_key' }, 'prompt_cache_key']
]
for (const [wire, body, refused, instead] of fields) {
  test(`${wire.protocol}: ${refused} is left out where the server does not know it, also in later turns (${JSON.stringify(body).slice(0, 40)})`, async t => {
    const { upstream, ended, ask } = await bench(t, [[{ status: 400, body }], [{ text: 'one' }], [{ text: 'two' }]], wire)

    await ask('a')
    await ask('b')

    assert.deepEqual(
      upstream.requests.map(request => refused in request.body),
      [true, false, false]
    )
    if (instead) assert.equal(upstream.requests[1]?.body[instead], upstream.requests[0]?.body[refused])
    assert.deepEqual(
      ended().map(({ reason }) => reason),
      ['completed', 'completed']
    )
  })
}

test('what a server does not know in the header of the messages wire is asked for no more, neither there nor in the body', async t => {
  const unexpected = (...names: string[]) =>
    `Unexpected value(s) ${names.map(name => `\`${name}\``).join(', ')} for the \`anthropic-beta\` header.`
  const refusing: Script = (_, __, { headers }) => {
    const names = String(headers['anthropic-beta'] ?? '').split(',')
    return names[0] === '' ? [{ text: 'done' }] : [{ status: 400, body: messagesWire.failure(400, unexpected(...names)) }]
  }
  const { upstream, ended, ask } = await bench(t, refusing, overKnown)

  await ask('hello')

  assert.deepEqual(
    upstream.requests.map(({ headers, body, path }) => [headers['anthropic-beta'], 'context_management' in body, path.includes('beta')]),
    [
      ['interleaved-thinking-2025-05-14,context-management-2025-06-27', true, true],
      ['context-management-2025-06-27', true, true],
      [undefined, false, false]
    ]
  )
  assert.equal(ended()[0]?.reason, 'completed')
})

test('a field that a server refuses to two agents at a time is left out for both', () => {
  const forms = refusedFields(() => undefined)
  const model = { base_url: 'http://x', protocol: 'compat_chat', name: 'm' }
  const request = { model, messages: [] } as unknown as LlmRequest
  const status = { status: 400, code: 'provider.api_error', name: 'APIError', retryable: false }
  const error: LlmError = { ...status, message: 'Unsupported parameter: prompt_cache_key' }
  const sent = [forms.fit(request), forms.fit(request)]

  assert.deepEqual(
    sent.map(each => forms.refused(each, error)),
    [true, true]
  )
  const next = forms.fit(request)
  assert.deepEqual(next.left_out, ['prompt_cache_key'])
  assert.equal(forms.refused(next, error), false)
})

test('a summary is asked for without the fields that the server does not know, also as the first request', async t => {
  const script: Script = ({ prompt_cache_key: key }) =>
    key === undefined ? [{ text: 'done' }] : [{ status: 400, body: { detail: 'Unsupported parameter: prompt_cache_key' } }]
  const setup = { ...overChat, packs: [requestRepair, compaction], script }
  const { upstream, start, open, ask } = await conversation(t, setup)
  const first = await start()
  const session_id = await open(first)
  await ask(first, session_id, 'hello')
  await first.stop()
  const second = await start()

  assert.equal((await second.call(compactSession, { params: { session_id } })).code, 0)
  await second.waitFor(({ type }) => type === 'compaction.completed' || type === 'compaction.cancelled')

  assert.ok(second.events.some(({ type }) => type === 'compaction.completed'))
  assert.deepEqual(
    upstream.requests.map(({ body }) => 'prompt_cache_key' in body),
    [true, false, true, false]
  )
})

test('an effort that the user asked for is not left out behind his back', async t => {
  const words = "Unsupported parameter: 'reasoning_effort' is not supported with this model."
  const { upstream, ended, ask } = await bench(t, [refuse(400, words)], overChat)

  await ask('a')

  assert.equal(upstream.requests.length, 1)
  assert.equal(ended()[0]?.reason, 'failed')
})

test('what no other form cures ends the turn at once: a second refusal, a full window, another wrong field', async t => {
  const words: readonly [status: number, message: string, code: string, requests: number][] = [
    [413, 'Request exceeds the maximum size', 'provider.api_error', 1],
    [400, 'prompt is too long: 205000 tokens > 200000 maximum', 'context.overflow', 1],
    [400, 'temperature: range 0..1', 'provider.api_error', 1],
    [400, 'tool_use ids must be unique', 'provider.api_error', 2]
  ]
  for (const [status, message, code, requests] of words) {
    const { upstream, ended, types, ask } = await bench(t, [refuse(status, message)])

    await ask('hello')

    assert.equal(upstream.requests.length, requests, message)
    assert.deepEqual([ended()[0]?.reason, ended()[0]?.error?.code], ['failed', code])
    assert.ok(types().includes('error') && !types().includes('turn.step.retrying'))
  }
})

test('a field that one server refuses by name stays for the same model of another one', () => {
  const forms = refusedFields(() => undefined)
  const of = (base_url: string) => llmRequest(resolvedModel({ base_url }))
  const error = { code: 'provider.api_error', name: 'ApiError', retryable: false, status: 400, message: 'unknown field prompt_cache_key' }
  assert.equal(forms.refused(of('http://one.test'), error as LlmError), true)
  assert.deepEqual(
    ['http://one.test', 'http://two.test'].map(url => forms.fit(of(url)).left_out),
    [['prompt_cache_key'], undefined]
  )
})

test('two images are left out at once: they are the recent ones', () => {
  const picture = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
  const tooLarge = { code: 'provider.api_error', name: 'ApiError', retryable: false, status: 413, message: 'too large' } as LlmError
  const learned = (count: number) => {
    const repairs = new Repairs()
    const content = Array.from({ length: count }, () => picture)
    repairs.apply(0, llmRequest(resolvedModel(), { messages: [{ role: 'user', content }] }))
    return [repairs.learn(tooLarge), repairs.learn(tooLarge), repairs.learn(tooLarge)]
  }
  assert.deepEqual(learned(3), ['only recent media', 'no media', undefined])
  assert.deepEqual(learned(2), ['no media', undefined, undefined])
})
