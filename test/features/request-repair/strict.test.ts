/** The strict form of a conversation. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LlmMessage } from '../../../features/llm/index.ts'
import { strictForm } from '../../../features/request-repair/forms.ts'
import { toolCall, user } from '../../helpers/llm-port.ts'

const assistant = (text: string, ...ids: string[]): LlmMessage => ({
  role: 'assistant',
  content: [...(text === '' ? [] : [{ type: 'text', text } as const]), ...ids.map(id => toolCall(id))]
})
const result = (id: string, text = id): LlmMessage => ({
  role: 'tool',
  tool_call_id: id,
  name: 'Read',
  content: [{ type: 'text', text }],
  is_error: false
})
const shape = (messages: readonly LlmMessage[]) =>
  strictForm(messages).map(message =>
    message.role === 'tool'
      ? `result ${message.tool_call_id}`
      : [
          message.role,
          ...message.content.map(part => (part.type === 'text' ? part.text : part.type === 'tool_call' ? part.id : part.type))
        ].join(' ')
  )

test('a conversation in order stays as it is', () => {
  const [one, two] = ['call00001', 'call00002'] as const
  const messages = [user('a'), assistant('b', one, two), result(one), result(two), assistant('d'), user('e')]

  assert.deepEqual(strictForm(messages), messages)
})

test('it begins with the user, and roles take turns', () => {
  assert.deepEqual(
    shape([assistant('lost'), user('a'), user('b'), assistant('c'), assistant('d', 'call00001'), result('call00001'), user('e')]),
    ['user a b', 'assistant c d call00001', 'result call00001', 'assistant I have these results.', 'user e']
  )
})

test('every call stands once and has one result right behind it', () => {
  const messages = [
    user('a'),
    assistant('', 'call00001', 'call00001', 'call00002'),
    user('in between'),
    result('call00001', 'first'),
    result('call00001', 'second'),
    result('ghost'),
    assistant('', 'call00001'),
    assistant('z')
  ]

  assert.deepEqual(shape(messages), [
    'user a',
    'assistant call00001',
    'result call00001',
    'assistant I have these results.',
    'user in between',
    'assistant z'
  ])
})

test('empty texts and messages that hold nothing else are left out', () => {
  assert.deepEqual(shape([user('a'), user(' '), assistant('\n'), user('b')]), ['user a b'])
})

test('pictures of results follow all of them, shown by the user, who says what comes next in one breath', () => {
  const picture = { type: 'image', media_type: 'image/png', data: 'AAAA' } as const
  const withPicture = { ...result('call00001'), content: [picture] } as LlmMessage
  const messages = [user('a'), assistant('', 'call00001', 'call00002'), withPicture, result('call00002')]

  assert.deepEqual(shape([...messages, user('b')]).slice(1), [
    'assistant call00001 call00002',
    'result call00001',
    'result call00002',
    'assistant I have these results.',
    'user Images of the results above: image b'
  ])
  assert.match(JSON.stringify(strictForm(messages)[2]), /an image; it follows/)
})

test('ids become nine letters and digits, the same for a call and its result, others for others', () => {
  const messages = [user('a'), assistant('', 'call_1', 'call_2'), result('call_1'), result('call_2')]
  const [, calls = '', ...results] = shape(messages)

  const ids = calls.split(' ').slice(1)
  assert.ok(ids.every(id => /^[a-z0-9]{9}$/.test(id)) && ids[0] !== ids[1], calls)
  assert.deepEqual(
    results,
    ids.map(id => `result ${id}`)
  )
})
