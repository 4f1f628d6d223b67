import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptInputs, newest, textEnd, textStart, withoutOldest } from '../../../features/compaction/cut.ts'
import { isFull } from '../../../features/compaction/measure.ts'
import { estimateMessage, estimateText, type HistoryMessage } from '../../../features/history/index.ts'
import type { LlmMessage } from '../../../features/llm/index.ts'

const message = (
  text: string,
  origin: HistoryMessage['origin'] = { kind: 'user' },
  role: HistoryMessage['role'] = 'user'
): HistoryMessage => ({
  id: 'm',
  role,
  created_at: '',
  origin,
  content: [{ type: 'text', text }]
})
const textOf = (part: { content: readonly unknown[] }) => (part.content[0] as { text: string }).text

test('all that the user wrote stays while it fits, also commands of the user; nothing else does', () => {
  const skill = { kind: 'skill_activation', trigger: 'user-slash' }
  const context = [
    message('one'),
    message('reminder', { kind: 'injection', variant: 'date' }),
    message('answer', undefined, 'assistant'),
    message('skill', skill),
    message('by the model', { ...skill, trigger: 'model-tool' }),
    message('task', { kind: 'task' }),
    message('summary', { kind: 'compaction_summary' }),
    message('two')
  ]
  const kept = keptInputs(context, 100_000)
  assert.deepEqual([kept.messages.map(textOf), kept.count, kept.head], [['one', 'skill', 'two'], 3, undefined])
})

test('of too much the beginning and the end stay, cut inside messages, with a note of what is missing between', () => {
  const long = (letter: string) => letter.repeat(40_000) // 10000 tokens each
  const kept = keptInputs([message(long('a')), message(long('b')), message(long('c'))], 200_000)
  assert.deepEqual([kept.count, kept.head, kept.messages.length], [3, 1, 4])
  const [head, gap, cut, last] = kept.messages
  assert.equal(textOf(head!), 'a'.repeat(7996)) // 2000 tokens, of which the role takes one
  assert.match(textOf(gap!), /About 1000\d tokens/)
  assert.equal(gap?.origin?.variant, 'compaction_elision')
  assert.match(textOf(cut!), /^b{31000,32000}$/)
  assert.equal(textOf(last!), long('c'))
  const total = kept.messages.reduce((sum, each) => sum + estimateMessage(each), 0)
  assert.ok(total <= 20_100, `${total}`)
})

test('one message that is too long keeps its beginning and its end, and a small window keeps a quarter', () => {
  const kept = keptInputs([message(`start ${'x'.repeat(100_000)} end`)], 8000)
  assert.deepEqual([kept.messages.length, kept.head], [3, 1])
  assert.match(textOf(kept.messages[0]!), /^start/)
  assert.match(textOf(kept.messages[2]!), /end$/)
  assert.ok(kept.messages.reduce((sum, each) => sum + estimateMessage(each), 0) <= 2050)
})

test('where what came behind a long message takes all that stays, nothing is left of it', () => {
  // 100 tokens each, with that of the role
  const short = Array.from({ length: 180 }, (_, at) => message(`${at} `.padEnd(396, 'y')))
  const kept = keptInputs([message('a'.repeat(400_000)), ...short], 200_000)
  assert.equal(kept.messages.length, 182)
  assert.ok(kept.messages.reduce((sum, each) => sum + estimateMessage(each), 0) <= 20_100)
})

test('a text is cut where the estimate says, and no character in two', () => {
  const mixed = 'ab\u{1f600}cd\u{1f600}'.repeat(50)
  for (let tokens = 0; tokens < 60; tokens++) {
    for (const part of [textStart(mixed, tokens), textEnd(mixed, tokens)]) {
      assert.ok(estimateText(part) <= tokens)
      assert.equal(Buffer.from(part).toString(), part)
    }
  }
  assert.equal(textStart('short', 100), 'short')
  assert.equal(textEnd('short', 100), 'short')
})

test('the most recent messages never begin with the result of a tool', () => {
  const call = (id: string): LlmMessage => ({
    role: 'assistant',
    content: [{ type: 'tool_call', id, name: 'Read', arguments: 'x'.repeat(400) }]
  })
  const result = (id: string): LlmMessage => ({
    role: 'tool',
    tool_call_id: id,
    name: 'Read',
    content: [{ type: 'text', text: 'y'.repeat(400) }],
    is_error: false
  })
  const all: LlmMessage[] = [
    { role: 'user', content: [{ type: 'text', text: 'z'.repeat(400) }] },
    call('a'),
    result('a'),
    call('b'),
    result('b')
  ]
  assert.deepEqual(
    newest(all, 0.7).map(({ role }) => role),
    ['assistant', 'tool']
  )
  assert.deepEqual(newest(all, 0.01), [])
  assert.deepEqual(withoutOldest(all).length, 4)
  assert.deepEqual(
    withoutOldest(withoutOldest(all)).map(({ role }) => role),
    ['assistant', 'tool']
  )
})

test('a context is full at its share of the window, or when the reserve does not fit any more', () => {
  assert.equal(isFull(84_999, 100_000, { ratio: 0.85, reserved: 0 }), false)
  assert.equal(isFull(85_000, 100_000, { ratio: 0.85, reserved: 0 }), true)
  assert.equal(isFull(50_000, 100_000, { ratio: 0.85, reserved: 50_000 }), true)
  assert.equal(isFull(49_999, 100_000, { ratio: 0.85, reserved: 50_000 }), false)
  assert.equal(isFull(40_000, 50_000, { ratio: 0.85, reserved: 50_000 }), false)
})
