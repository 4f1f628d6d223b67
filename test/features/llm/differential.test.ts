/**
 * Our adapters beside the public client packages of their wires: the same history goes out through both, and both read the same recorded
 * streams. Where they differ, the difference is listed here with its reason; one that is not listed fails, and so does one that is gone.
 */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { LlmMessage, LlmPart } from '../../../features/llm/index.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { collect, llmRequest, startLlm, toolCall, user } from '../../helpers/llm-port.ts'
import { type PublicPrompt, publicClients, publicStream } from '../../helpers/public-clients.ts'
import { type Case, cases, type PublicProtocol, recordedStreams } from '../../helpers/recorded-streams.ts'

const packs = { compat_chat: llmChat, compat_responses: llmResponses, compat_messages: llmMessages, compat_genai: llmGenai }
const protocols = Object.keys(packs) as PublicProtocol[]

/** A server that answers everything with one stream and remembers what it was sent last. */
async function replaying(t: TestContextLike, stream: string) {
  let body = ''
  const server = createServer(async (req, res) => {
    body = ''
    for await (const chunk of req) body += String(chunk)
    res.writeHead(200, { 'content-type': 'text/event-stream' }).end(stream)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, sent: () => JSON.parse(body) as unknown }
}

const schema = { type: 'object', properties: { path: { type: 'string' } }, required: ['path'] } as const
const reads = { name: 'Read', description: 'Reads a file' }

/** Both clients on one server. */
async function both(t: TestContextLike, protocol: PublicProtocol, stream: string) {
  const { url, sent } = await replaying(t, stream)
  const { model, effort, options, replay, open } = publicClients[protocol]
  const llm = await startLlm(t, {
    packs: [packs[protocol]],
    config: {
      providers: { p: { type: protocol, base_url: url, api_key: 'k' } },
      models: { m: { provider: 'p', model, max_context_size: 100_000, capabilities: ['thinking', 'image_in'] } }
    }
  })
  const ours = async (messages: readonly LlmMessage[]) => {
    const request = llmRequest(llm.resolve('m'), {
      messages,
      system: 'be kind',
      effort,
      cache_key: '',
      max_output_tokens: 8000,
      tools: [{ ...reads, parameters: schema }]
    })
    return said(await collect(llm.stream(request, new AbortController().signal)))
  }
  const theirs = (prompt: PublicPrompt) =>
    publicStream(open(url, model), {
      prompt: [{ role: 'system', content: 'be kind' }, ...prompt],
      tools: [{ type: 'function', ...reads, inputSchema: schema as never }],
      maxOutputTokens: 8000,
      providerOptions: options
    })
  return { ours, theirs, sent, replay }
}

const ends = {
  completed: 'stop',
  tool_calls: 'tool-calls',
  truncated: 'length',
  filtered: 'content-filter',
  paused: 'other',
  other: 'other'
}

/** Our parts in the words of `publicStream`. */
function said(parts: readonly LlmPart[]): string[] {
  const lines: string[] = []
  const calls = new Map<string, number>()
  let last = ''
  for (const part of parts) {
    const kind = part.type === 'thinking' ? 'think' : part.type === 'text' ? 'say' : part.type
    if (part.type === 'thinking' || part.type === 'text') {
      if (part.text === '') continue
      if (last === kind) lines[lines.length - 1] += part.text
      else lines.push(`${kind} ${part.text}`)
    } else if (part.type === 'tool_call') calls.set(part.id, lines.push(`call ${part.name} `) - 1)
    else if (part.type === 'tool_arguments') lines[calls.get(part.id)!] += part.text
    else if (part.type === 'usage') lines.push(`spend ${part.usage.inputOther} ${part.usage.output} ${part.usage.inputCacheRead}`)
    else if (part.type === 'finish') lines.push(`end ${ends[part.reason]}`)
    else lines.push('error')
    last = kind
  }
  return lines.map(line => line.trim())
}

interface Difference {
  readonly theirs: readonly string[]
  readonly ours: readonly string[]
  readonly why: string
}

/** Streams that are read in another way. */
const otherwise: Readonly<Partial<Record<`${PublicProtocol}: ${Case}`, Difference>>> = {
  'compat_chat: a broken call after a text': {
    theirs: ['say I call.', 'spend 6 5 4', 'end other'],
    ours: ['say I call.', 'error'],
    why: 'asked again the model may make the call; a turn would end here as if nothing were missing'
  },
  'compat_genai: a broken call after a text': {
    theirs: ['say I call.', 'spend 6 5 4', 'end error'],
    ours: ['say I call.', 'error'],
    why: 'the same is an error of its own here'
  },
  'compat_responses: an end without a reason': {
    theirs: ['say Hel', 'end other'],
    ours: ['say Hel', 'error'],
    why: 'a connection that ends early cut the answer off: it is asked for again'
  },
  'compat_messages: an end without a reason': {
    theirs: ['say Hel'],
    ours: ['say Hel', 'error'],
    why: 'a connection that ends early cut the answer off: it is asked for again'
  },
  'compat_genai: an end without a reason': {
    theirs: ['say Hel', 'end other'],
    ours: ['say Hel', 'error'],
    why: 'a connection that ends early cut the answer off: it is asked for again'
  }
}

for (const protocol of protocols) {
  for (const what of cases) {
    const stream = recordedStreams[protocol][what]
    if (stream === undefined) continue
    const difference = otherwise[`${protocol}: ${what}`]
    test(`${protocol}: ${what} is read ${difference ? `in another way, because ${difference.why}` : 'the same'}`, async t => {
      const { ours, theirs } = await both(t, protocol, stream)

      const found = { theirs: await theirs([{ role: 'user', content: [{ type: 'text', text: 'go' }] }]), ours: await ours([user('go')]) }

      if (difference) assert.deepEqual(found, { theirs: difference.theirs, ours: difference.ours })
      else assert.deepEqual(found.ours, found.theirs)
    })
  }
}

const messageType = 'the type of a message may be left out; every other item names its own'
const breakpoint = 'a session is asked again with the same beginning: it is read from the cache'
const strictAnswer = 'servers that hold what comes to the types of the protocol refuse an answer without'
const output = 'the keys that the API documents for the result of a function and for its failure'
const callId = 'the id goes back only where the provider gave one: not every server of this wire knows the field'

/** What differs in the bodies, by its path; numbers of entries stand as they are. */
const requests: Readonly<Record<PublicProtocol, Readonly<Record<string, string>>>> = {
  compat_chat: {},
  compat_responses: {
    '+input.0.type': messageType,
    '+input.2.content.0.annotations': strictAnswer,
    '+input.2.id': strictAnswer,
    '+input.2.status': strictAnswer,
    '+input.2.type': messageType,
    '+input.7.type': messageType,
    '+tools.0.strict': 'absent means strict to some servers, and strict takes only schemas in which every property is required'
  },
  compat_messages: {
    '+context_management': 'the provider is told to keep all thinking, as the configuration says by default',
    '+messages.0.content.1.cache_control': breakpoint,
    '+messages.2.content.2.cache_control': breakpoint,
    '+system.0.cache_control': breakpoint,
    '+tools.0.cache_control': breakpoint,
    '-tools.0.eager_input_streaming': 'an option of one provider that others of the wire do not know',
    max_tokens: 'theirs adds the budget of thinking to the limit; ours is the limit of the whole answer, as the wire defines it',
    'messages.2.content.0.content': 'a list of blocks says the same as a text and can hold pictures, too',
    'messages.2.content.1.content': 'a list of blocks says the same as a text and can hold pictures, too'
  },
  compat_genai: {
    '+contents.2.parts.0.functionResponse.response.output': output,
    '+contents.2.parts.1.functionResponse.response.error': output,
    '-contents.2.parts.0.functionResponse.response.content': output,
    '-contents.2.parts.0.functionResponse.response.name': output,
    '-contents.2.parts.1.functionResponse.response.content': output,
    '-contents.2.parts.1.functionResponse.response.name': output,
    '-contents.1.parts.2.functionCall.id': callId,
    '-contents.1.parts.3.functionCall.id': callId,
    '-contents.2.parts.0.functionResponse.id': callId,
    '-contents.2.parts.1.functionResponse.id': callId,
    '-contents.1.parts.3.thoughtSignature': 'of calls side by side only the first carries a signature',
    'generationConfig.thinkingConfig.thinkingLevel': 'the names of levels are words of an enumeration, written in capitals there'
  }
}

for (const protocol of protocols) {
  test(`${protocol}: the same history goes out the same, but for what is listed`, async t => {
    const { ours, theirs, sent, replay } = await both(t, protocol, recordedStreams[protocol]['a text']!)
    const input = (path: string) => ({ path })
    await theirs([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'read a' },
          { type: 'file', mediaType: 'image/png', data: 'AAAA' }
        ]
      },
      {
        role: 'assistant',
        content: [
          { type: 'reasoning', text: 'hm', providerOptions: replay.theirs },
          { type: 'text', text: 'Looking.' },
          { type: 'tool-call', toolCallId: 'call_1', toolName: 'Read', input: input('a') },
          { type: 'tool-call', toolCallId: 'call_2', toolName: 'Read', input: input('b') }
        ]
      },
      {
        role: 'tool',
        content: [
          { type: 'tool-result', toolCallId: 'call_1', toolName: 'Read', output: { type: 'text', value: 'A' } },
          { type: 'tool-result', toolCallId: 'call_2', toolName: 'Read', output: { type: 'error-text', value: 'no' } }
        ]
      },
      { role: 'user', content: [{ type: 'text', text: 'go on' }] }
    ])
    const theirBody = sent()
    const result = (tool_call_id: string, text: string, is_error = false): LlmMessage => ({
      role: 'tool',
      tool_call_id,
      name: 'Read',
      content: [{ type: 'text', text }],
      is_error
    })
    await ours([
      {
        role: 'user',
        content: [
          { type: 'text', text: 'read a' },
          { type: 'image', media_type: 'image/png', data: 'AAAA' }
        ]
      },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', text: 'hm', signature: replay.ours },
          { type: 'text', text: 'Looking.' },
          toolCall('call_1'),
          toolCall('call_2', { arguments: '{"path":"b"}' })
        ]
      },
      result('call_1', 'A'),
      result('call_2', 'no', true),
      user('go on')
    ])

    assert.deepEqual(differences(aligned(theirBody), sent(), ''), Object.keys(requests[protocol]).sort())
  })
}

/** Their system prompt of the responses wire is the first message; ours is the field for it, which no message can be taken for. */
function aligned(body: unknown): unknown {
  const { input, ...rest } = body as { input?: readonly { readonly role?: string; readonly content: unknown }[] }
  const [first, ...others] = input ?? []
  return first?.role === 'developer' ? { ...rest, instructions: first.content, input: others } : body
}

/** Paths at which two JSON values differ: `-path` only theirs, `+path` only ours, `path` both and not the same. */
function differences(theirs: unknown, ours: unknown, path: string): string[] {
  if (typeof theirs !== 'object' || typeof ours !== 'object' || theirs === null || ours === null) return theirs === ours ? [] : [path]
  const [left, right] = [new Map(Object.entries(theirs)), new Map(Object.entries(ours))]
  const found = [...new Set([...left.keys(), ...right.keys()])].flatMap(key => {
    const below = path === '' ? key : `${path}.${key}`
    if (!right.has(key)) return [`-${below}`]
    return left.has(key) ? differences(left.get(key), right.get(key), below) : [`+${below}`]
  })
  return found.sort()
}
