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
  const messages = [user('a'), assistant('b', 'c1', 'c2'), result('c1'), result('c2'), assistant('d'), user('e')]

  assert.deepEqual(strictForm(messages), messages)
})

test('it begins with the user, and roles take turns', () => {
  assert.deepEqual(shape([assistant('lost'), user('a'), user('b'), assistant('c'), assistant('d', 'c1'), result('c1'), user('e')]), [
    'user a b',
    'assistant c d c1',
    'result c1',
    'user e'
  ])
})

test('every call stands once and has one result right behind it', () => {
  const messages = [
    user('a'),
    assistant('', 'c1', 'c1', 'c2'),
    user('in between'),
    result('c1', 'first'),
    result('c1', 'second'),
    result('ghost'),
    assistant('', 'c1'),
    assistant('z')
  ]

  assert.deepEqual(shape(messages), ['user a', 'assistant c1', 'result c1', 'user in between', 'assistant z'])
})

test('empty texts and messages that hold nothing else are left out', () => {
  assert.deepEqual(shape([user('a'), user(' '), assistant('\n'), user('b')]), ['user a b'])
})
