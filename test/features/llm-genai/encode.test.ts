/** Request bodies of the generate-content wire. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmContent, LlmMessage, LlmRequest, ResolvedModel } from '../../../features/llm/index.ts'
import { encode } from '../../../features/llm-genai/encode.ts'
import { llmRequest, toolCall, user } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = resolvedModel({ protocol: 'compat_genai' })
const body = (request: Partial<LlmRequest>, change: Partial<ResolvedModel> = {}) => encode(llmRequest({ ...model, ...change }, request))
const contents = (messages: readonly LlmMessage[], change: Partial<ResolvedModel> = {}) =>
  body({ messages }, change).contents as { role: string; parts: Record<string, unknown>[] }[]
const image = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
const calling = (...calls: { id: string; extras?: Record<string, string> }[]): LlmMessage => ({
  role: 'assistant',
  content: calls.map(({ id, ...more }) => toolCall(id, more))
})
const result = (tool_call_id: string, content: readonly LlmContent[], is_error = false): LlmMessage => ({
  role: 'tool',
  tool_call_id,
  name: 'Read',
  content,
  is_error
})
const text = (value: string): LlmContent => ({ type: 'text', text: value })

test('a plain request', () => {
  const parameters = { type: 'object', properties: { path: { type: 'string' } }, additionalProperties: false }
  const tools = [
    { name: 'Read', description: 'reads', parameters },
    { name: 'Now', description: 'the time', parameters: { type: 'object', properties: {} } }
  ]

  assert.deepEqual(body({ system: 'be kind', tools, max_output_tokens: 500 }, { temperature: 0.5, top_p: 0.9 }), {
    systemInstruction: { parts: [{ text: 'be kind' }] },
    contents: [{ role: 'user', parts: [{ text: 'hello' }] }],
    tools: [
      {
        functionDeclarations: [
          { name: 'Read', description: 'reads', parameters: { type: 'object', properties: { path: { type: 'string' } } } },
          { name: 'Now', description: 'the time' }
        ]
      }
    ],
    generationConfig: { maxOutputTokens: 500, temperature: 0.5, topP: 0.9 }
  })
})

test('the results of one step stand in one content, their images after them; ids only where the provider gave them', () => {
  const wire = contents([
    calling({ id: 'a', extras: { genai_id: 'own-a', genai_signature: 's' } }, { id: 'b' }),
    result('a', [image]),
    result('b', [text('no')], true),
    user('next')
  ])

  assert.deepEqual(wire, [
    {
      role: 'model',
      parts: [
        { functionCall: { id: 'own-a', name: 'Read', args: { path: 'a' } }, thoughtSignature: 's' },
        { functionCall: { name: 'Read', args: { path: 'a' } } }
      ]
    },
    {
      role: 'user',
      parts: [
        { functionResponse: { id: 'own-a', name: 'Read', response: { output: '(the result is an image; it follows)' } } },
        { functionResponse: { name: 'Read', response: { error: 'no' } } },
        { inlineData: { mimeType: 'image/png', data: 'AAAA' } }
      ]
    },
    { role: 'user', parts: [{ text: 'next' }] }
  ])
})

test('thinking goes back with the signature of this wire only; calls keep theirs when nothing else is kept', () => {
  const assistant: LlmMessage = {
    role: 'assistant',
    content: [
      { type: 'thinking', text: 'hm', signature: 'genai:s1' },
      { type: 'thinking', text: 'foreign', signature: 's2' },
      { type: 'thinking', text: 'bare' },
      text('so'),
      { type: 'thinking', text: '', signature: 'genai:answer:s3' },
      toolCall('a', { arguments: '', extras: { genai_signature: 's4' } })
    ]
  }
  const call = { functionCall: { name: 'Read', args: {} }, thoughtSignature: 's4' }

  assert.deepEqual(contents([assistant])[0]?.parts, [
    { text: 'hm', thought: true, thoughtSignature: 's1' },
    { text: 'so' },
    { text: '', thoughtSignature: 's3' },
    call
  ])
  assert.deepEqual(contents([assistant, user('x')], { thinking_keep: 'off' })[0]?.parts, [{ text: 'so' }, call])
})

test('the newest models get a signature with the first call of every step of the turn that runs, a placeholder where there is none', () => {
  const signature = { genai_signature: 's' }
  const calls = (name: string, request: Partial<LlmRequest> = {}) => {
    const messages = [
      user('a'),
      calling({ id: '1' }),
      result('1', [text('x')]),
      { role: 'assistant', content: [text('so')] } as const,
      user('b'),
      calling({ id: '2' }, { id: '3' }),
      result('2', []),
      result('3', []),
      calling({ id: '4', extras: signature }),
      result('4', [])
    ]
    const sent = body({ messages, ...request }, { name }).contents as { parts: Record<string, unknown>[] }[]
    return sent.flatMap(({ parts }) => parts.flatMap(part => ('functionCall' in part ? [part.thoughtSignature] : [])))
  }
  const skip = 'skip_thought_signature_validator'

  assert.deepEqual(calls('gemini-3-pro-preview'), [undefined, skip, undefined, 's'])
  assert.deepEqual(calls('gemini-2.5-pro'), [undefined, undefined, undefined, 's'])
  assert.deepEqual(calls('gemini-3-pro-preview', { replayed_thinking: 'turn' }), [undefined, skip, undefined, 's'])
  assert.deepEqual(calls('gemini-3-pro-preview', { replayed_thinking: 'none' }), [undefined, skip, undefined, skip])
})

test('images go inline or by reference; what the provider cannot take is said to the model', () => {
  const of = (part: LlmContent) => contents([{ role: 'user', content: [part] }])[0]?.parts[0]

  assert.deepEqual(of({ type: 'image_url', url: 'data:image/webp;base64,AA==' }), { inlineData: { mimeType: 'image/webp', data: 'AA==' } })
  assert.deepEqual(of({ type: 'image_url', url: 'https://x/y.png?z=1' }), {
    fileData: { mimeType: 'image/png', fileUri: 'https://x/y.png?z=1' }
  })
  assert.deepEqual(of({ type: 'image_url', url: 'file:///x.png' }), {
    text: '[an image at an address of another kind; it cannot be sent to this provider]'
  })
  assert.deepEqual(of({ ...image, media_type: 'image/gif' }), { text: '[an image of type image/gif; it cannot be sent to this provider]' })
})

test('effort becomes a level or a budget, by family and by word', () => {
  const of = (name: string, effort: string, capabilities: string[] = []) => {
    const { generationConfig } = body({ effort }, { name, capabilities })
    return (generationConfig as { thinkingConfig?: unknown } | undefined)?.thinkingConfig
  }
  const level = (thinkingLevel: string, includeThoughts = true) => ({ includeThoughts, thinkingLevel })
  const budget = (thinkingBudget: number, includeThoughts = true) => ({ includeThoughts, thinkingBudget })

  assert.deepEqual(of('gemini-3-flash', 'off'), level('MINIMAL', false))
  assert.deepEqual(of('gemini-3.1-pro-preview', 'off'), level('LOW', false))
  assert.deepEqual(of('gemini-3-flash', 'medium'), level('MEDIUM'))
  assert.deepEqual(of('gemini-3-flash', 'xhigh'), level('HIGH'))
  assert.deepEqual(of('gemini-3-flash', 'constructor'), level('CONSTRUCTOR'))
  assert.deepEqual(of('models/gemini-4', 'on'), { includeThoughts: true })
  assert.deepEqual(of('gemini-2.5-pro', 'off'), budget(128, false))
  assert.deepEqual(of('gemini-2.5-flash', 'off'), budget(0, false))
  assert.deepEqual(of('gemini-2.5-flash', 'high'), budget(24_576))
  assert.deepEqual(of('gemini-2.5-pro', 'max'), budget(32_000))
  assert.equal(of('gemini-2.0-flash', 'high'), undefined)
  assert.equal(of('m', 'off'), undefined)
  assert.deepEqual(of('m', 'medium'), budget(4096))
  assert.deepEqual(of('m', 'off', ['thinking']), budget(0, false))
})
