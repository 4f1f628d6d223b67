import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { Conversation } from '../../../features/history/conversation.ts'
import { saveConversation } from '../../../features/history/conversation-saved.ts'
import type { CoreRecord, History, HistoryMessage, HistoryRecord, StateSpec } from '../../../features/history/index.ts'
import { interruptedResult } from '../../../features/history/project.ts'
import { estimateText } from '../../../features/history/tokens.ts'
import { callsOf } from '../../../features/llm/index.ts'
import { latch } from '../../helpers/latch.ts'
import { memoryLog, openHistory as open } from '../../helpers/memory-history.ts'
import { project } from './naive.ts'

const text = (value: string) => [{ type: 'text', text: value }]
const user = (id: string, value: string, kind = 'user'): HistoryMessage => ({
  id,
  role: 'user',
  created_at: '',
  content: text(value),
  origin: { kind }
})
const calls = (id: string, ...ids: string[]): HistoryMessage => ({
  id,
  role: 'assistant',
  created_at: '',
  content: [],
  tool_calls: ids.map(call => ({ id: call, name: 'Read', arguments: '{}' }))
})
const result = (id: string, value: string, extra: Partial<HistoryMessage> = {}): HistoryMessage => ({
  id: `r-${id}`,
  role: 'tool',
  created_at: '',
  tool_call_id: id,
  tool_name: 'Read',
  content: value === '' ? [] : text(value),
  ...extra
})

const turn: CoreRecord[] = [
  { type: 'prompt.accepted', prompt_id: 'msg_1', content: text('hello') },
  { type: 'turn.started', turn_id: 0, origin: { kind: 'user' }, prompt_id: 'msg_1' },
  { type: 'message', id: 'msg_1', role: 'user', prompt_id: 'msg_1', origin: { kind: 'user' }, turn_id: 0 },
  { type: 'step.begin', turn_id: 0, step: 1, step_id: 's1' },
  { type: 'step.message', turn_id: 0, step: 1, content: text('let me look'), tool_calls: [{ id: 'c1', name: 'Read', arguments: '{}' }] },
  { type: 'tool.result', turn_id: 0, step: 1, tool_call_id: 'c1', tool_name: 'Read', content: text('data') },
  {
    type: 'step.end',
    turn_id: 0,
    step: 1,
    reason: 'tool_use',
    model: 'm',
    usage: { inputOther: 10, output: 5, inputCacheRead: 1, inputCacheCreation: 0 }
  },
  { type: 'turn.ended', turn_id: 0, reason: 'completed' },
  { type: 'prompt.settled', prompt_ids: ['msg_1'], status: 'completed' }
]

const lastMode: StateSpec<string> = {
  name: 'mode',
  version: 1,
  initial: () => '',
  reduce: (state, record) => (record.type === 'permission.mode' ? String(record.mode) : state)
}

const idsIn = async (history: History) => (await history.messages.page({ size: 100 })).messages.map(message => message.id)

test('replaying the journal gives the state that was live', async () => {
  const log = memoryLog()
  const live = await open(log)
  for (const record of turn) await live.append(record)
  await live.append({ type: 'permission.mode', mode: 'yolo' })

  const again = await open(log)

  const all = { size: 100 }
  assert.deepEqual(await again.messages.page(all), await live.messages.page(all))
  assert.deepEqual(await again.project(), await live.project())
  assert.deepEqual(again.lastTurn(), live.lastTurn())
  assert.deepEqual(again.prompts(), live.prompts())
  assert.deepEqual(again.usage(), live.usage())
  assert.equal(again.contextTokens(), live.contextTokens())
  assert.equal((await again.track(lastMode)).value, 'yolo')
  assert.equal((await live.track(lastMode)).value, 'yolo')
  assert.equal(again.prompt('msg_1')?.status, 'completed')
  assert.equal((JSON.parse(log.lines[0] ?? '{}') as { type: string }).type, 'metadata')
  assert.ok(again.hasToolCall('c1'))
})

test('messages without an id are named after their number', async () => {
  const history = await open(memoryLog())
  await history.append(...turn)
  assert.deepEqual(await idsIn(history), ['msg_1', 'msg_session_a_000001', 'msg_session_a_000002'])
})

test('a refused write leaves nothing behind in memory', async () => {
  const log = memoryLog()
  const history = await open(log)
  log.refuse = true
  await assert.rejects(history.append(turn[0] as HistoryRecord), /disk full/)
  assert.equal(history.prompt('msg_1'), undefined)
  log.refuse = false
  await history.append(turn[0] as HistoryRecord)
  assert.equal(history.prompt('msg_1')?.status, 'queued')
})

test('after a refused write memory agrees with the disk, also about what was appended meanwhile', async () => {
  const log = memoryLog()
  const slow = { ...log }
  const disk = latch()
  slow.append = async (id, ...records) => {
    await disk.opened
    if (records.some(record => (record as HistoryRecord).refused)) throw new Error('disk full')
    await new Promise(setImmediate) // the write after the refused one ends later
    return log.append(id, ...records)
  }
  const history = await open(slow)
  const refused = history.append({ type: 'message', role: 'user', id: 'lost', content: text('lost'), refused: true })
  const meanwhile = history.append({ type: 'message', role: 'user', id: 'kept', content: text('kept') })

  disk.open()
  await assert.rejects(refused, /disk full/)
  await meanwhile

  const onDisk = await idsIn(await open(log))
  assert.deepEqual(onDisk, ['kept'])
  assert.deepEqual(await idsIn(history), onDisk)
})

test('results stand after their calls in call order, missing ones are made up, orphans are dropped', () => {
  const projected = project([
    user('u', 'go'),
    calls('a', 'x', 'y'),
    result('y', 'Y'),
    result('ghost', 'boo'),
    user('v', 'next'),
    result('x', 'late')
  ])
  assert.deepEqual(
    projected.map(message => [message.role, message.role === 'tool' ? message.tool_call_id : '']),
    [
      ['user', ''],
      ['assistant', ''],
      ['tool', 'x'],
      ['tool', 'y'],
      ['user', '']
    ]
  )
  const missing = project([calls('a', 'x')])[1]
  assert.ok(missing?.role === 'tool' && missing.is_error && JSON.stringify(missing.content).includes(interruptedResult.slice(0, 30)))
})

test('of two results of one call the model gets the first', () => {
  const sent = project([calls('m1', 'c1'), result('c1', 'first'), result('c1', 'second')])
  assert.deepEqual(
    sent.filter(message => message.role === 'tool').map(message => message.content),
    [text('first')]
  )
})

test('submissions in a row become one message, injections keep their own', () => {
  const projected = project([user('a', 'one'), user('b', 'two'), user('c', 'note', 'injection'), user('d', 'three')])
  assert.deepEqual(
    projected.map(message => message.content),
    [[{ type: 'text', text: 'one\n\ntwo' }], [{ type: 'text', text: 'note' }], [{ type: 'text', text: 'three' }]]
  )
})

test('errors, empty outputs and notes are marked for the model only', () => {
  const [, failed, empty, noted] = project([
    calls('a', 'x', 'y', 'z'),
    result('x', 'no such file', { is_error: true }),
    result('y', ''),
    result('z', 'text', { note: '3 lines' })
  ])
  assert.match(JSON.stringify(failed?.content), /<system>The tool call failed\.<\/system>\\nno such file/)
  assert.match(JSON.stringify(empty?.content), /no output/)
  assert.deepEqual(noted?.content, [{ type: 'text', text: 'text\n3 lines' }])
})

test('whatever the history, every projected call has exactly one result right after it', () => {
  const id = fc.constantFrom('a', 'b', 'c', 'd')
  const message = fc.oneof(
    fc.string().map(value => user('u', value)),
    fc.uniqueArray(id, { maxLength: 3 }).map(ids => calls('m', ...ids)),
    id.map(call => result(call, 'out'))
  )
  fc.assert(
    fc.property(fc.array(message, { maxLength: 12 }), messages => {
      const projected = project(messages)
      for (let at = 0; at < projected.length; at++) {
        const one = projected[at]
        if (one?.role !== 'assistant') continue
        const after = projected.slice(at + 1, at + 1 + callsOf(one).length)
        assert.deepEqual(
          after.map(next => (next.role === 'tool' ? next.tool_call_id : next.role)),
          callsOf(one).map(call => call.id)
        )
      }
      assert.equal(
        projected.filter(one => one.role === 'tool').length,
        projected.reduce((count, one) => count + callsOf(one).length, 0)
      )
    })
  )
})

test('what a provider wants back survives the journal: signatures of thinking, extras of calls', async () => {
  const content = [
    { type: 'thinking', thinking: 'hmm', signature: 'sig-1' },
    { type: 'thinking', thinking: '', signature: 'sig-2' }
  ]
  const call = { id: 'a', name: 'Read', arguments: '{}', extras: { seal: 'sig-3' } }
  const log = memoryLog()
  await (await open(log)).append(...turn, { type: 'step.message', turn_id: 0, step: 1, content, tool_calls: [call] })

  const projected = await (await open(log)).project()

  assert.deepEqual(
    projected.findLast(message => message.role === 'assistant'),
    {
      role: 'assistant',
      content: [
        { type: 'thinking', text: 'hmm', signature: 'sig-1' },
        { type: 'thinking', text: '', signature: 'sig-2' },
        { type: 'tool_call', ...call }
      ]
    }
  )
})

test('calls stand where the model made them; of those that do not say it, behind everything else', () => {
  const part = (type: 'text' | 'thinking', value: string) => ({ type, [type]: value })
  const call = (id: string, after?: number) => ({ id, name: 'Read', arguments: '{}', ...(after !== undefined && { after }) })
  const content = [part('thinking', 'a'), part('text', ' '), part('thinking', 'b'), part('text', 'c')]

  const [answer] = project([
    {
      id: 'm',
      role: 'assistant',
      created_at: '',
      content,
      tool_calls: [call('1', 1), call('2', 3), call('3', 3), call('4'), call('5', 99)]
    }
  ])

  assert.deepEqual(
    answer?.content.map(one => (one.type === 'tool_call' ? one.id : 'text' in one && one.text)),
    ['a', '1', 'b', '2', '3', 'c', '4', '5']
  )
  assert.ok(!JSON.stringify(answer).includes('after'))
})

test('damaged or unknown records change nothing', () => {
  const conversation = new Conversation()
  const before = saveConversation(conversation)
  conversation.apply({ type: 'tool.result' })
  conversation.apply({ type: 'turn.ended', turn_id: 7, reason: 'completed' })
  conversation.apply({ type: 'something.new', value: 1 })
  assert.deepEqual(saveConversation(conversation), before)
})

test('tokens: a quarter per ascii character, one per other unit', () => {
  assert.equal(estimateText('abcde'), 2)
  assert.equal(estimateText('äö'), 2)
})
