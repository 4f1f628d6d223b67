/** How a summary is asked for: what is tried again, how often, and with what. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keptInputs, newest } from '../../../features/compaction/cut.ts'
import { observedWindow, worthwhile } from '../../../features/compaction/measure.ts'
import { summarise } from '../../../features/compaction/summarise.ts'
import { leftOut } from '../../../features/compaction/texts.ts'
import type { LlmMessage, LlmRequest } from '../../../features/llm/index.ts'
import { replyScript } from '../../../testing/scripted-model.ts'
import { resolvedModel } from '../../helpers/model.ts'
import { failure, type Reply, text } from '../../helpers/scripted-llm.ts'

const said = (words: string): LlmMessage => ({ role: 'user', content: [{ type: 'text', text: words }] })
const picture: LlmMessage = { role: 'user', content: [{ type: 'image', media_type: 'image/png', data: 'AAAA' }] }
const context = (messages: readonly LlmMessage[], more: Partial<LlmRequest> = {}): LlmRequest => ({
  model: resolvedModel({ max_context_size: 10_000 }),
  system: 'system',
  messages,
  tools: [],
  cache_key: '',
  effort: 'off',
  ...more
})

/** What comes of these answers, and what every request held: its messages but the last, which asks. */
async function asked(request: LlmRequest, ...replies: Reply[]) {
  const { stream, requests } = replyScript(...replies)
  const summary = await summarise(
    { llm: { stream }, retryBaseMs: 0 },
    { context: request, instruction: undefined },
    new AbortController().signal
  )
  return { summary, requests, sent: requests.map(({ messages }) => messages.slice(0, -1)) }
}
const end = (reason: 'completed' | 'other' | 'truncated') => ({ type: 'finish', reason }) as const
const words = { type: 'text', text: ' the note ' } as const
const one = [said('one')]

test('a summary is the whole text of an answer that ended well and called nothing', async () => {
  for (const reply of [text(' the note '), [words, end('other')]]) {
    const { summary } = await asked(context(one), reply)
    assert.deepEqual([summary && 'text' in summary && summary.text, (await asked(context(one), reply)).requests.length], ['the note', 1])
  }
  const unusable: Reply[] = [
    [words, { type: 'tool_call', id: 'a', name: 'Read' }, end('completed')],
    [words, end('truncated')],
    text('  '),
    failure({ name: 'EmptyResponseError' })
  ]
  for (const reply of unusable) {
    const { sent, summary } = await asked(context([said('one'), said('two')]), reply, 'good')
    assert.deepEqual(sent, [
      [said('one'), said('two')],
      [said(leftOut), said('two')]
    ])
    assert.ok('text' in summary && summary.dropped === 1)
  }
})

test('answers that are none are asked for without the oldest message five times; failures that pass are tried five times', async () => {
  const many = Array.from({ length: 20 }, (_, n) => said(`message ${n}`))
  const empty = await asked(context(many), text(''))
  assert.deepEqual(
    empty.sent.map(messages => messages.length),
    [20, 20, 19, 18, 17, 16] // the first is left out, and a line stands for it
  )
  assert.ok('error' in empty.summary && empty.summary.error.code === 'compaction.failed')
  assert.equal((await asked(context(many), failure())).requests.length, 5)
  assert.equal((await asked(context(many), failure({ status: 401, retryable: false }))).requests.length, 1)
})

test('a request that is too large goes out with the newest of all messages; images that are refused are left out first', async () => {
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  const ten = Array.from({ length: 10 }, (_, n) => said(`${n}${'x'.repeat(399)}`))
  const { sent, summary } = await asked(context(ten), overflow)
  assert.deepEqual(
    sent.map(messages => messages.filter(({ content }) => !JSON.stringify(content).includes('left out')).length),
    [10, 7, 5, 3]
  )
  assert.ok('error' in summary)

  const large = failure({ status: 413, retryable: false })
  const media = await asked(context([picture, ...ten]), large, large, 'good')
  assert.deepEqual(
    media.sent.map(messages => [messages.length, JSON.stringify(messages).includes('image/png')]),
    [
      [11, true],
      [11, false],
      [8, false]
    ]
  )
  const after = await asked(context([...ten, picture]), failure({ status: 400, retryable: false }), overflow, 'good')
  assert.equal(JSON.stringify(after.sent.at(-1)).includes('image/png'), false)
})

test('results of tools that are too long together are cut: a summary of the step that they belong to is there', async () => {
  const calls: LlmMessage = {
    role: 'assistant',
    content: ['a', 'b', 'c'].map(id => ({ type: 'tool_call', id, name: 'Read', arguments: '{}' }))
  }
  const result = (id: string, size: number): LlmMessage => ({
    role: 'tool',
    tool_call_id: id,
    name: 'Read',
    content: [{ type: 'text', text: `${id}${'x'.repeat(size)}` }],
    is_error: false
  })
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  for (const sizes of [
    [40_000, 40_000, 40_000],
    [90_000, 10, 10],
    [10, 10, 90_000]
  ]) {
    const results = ['a', 'b', 'c'].map((id, at) => result(id, sizes[at] ?? 0))
    const { sent, summary } = await asked(context([said('go'), calls, ...results]), overflow, overflow, 'good')
    assert.ok('text' in summary)
    const last = sent.at(-1) ?? []
    assert.deepEqual(
      last.slice(-4).map(({ role }) => role),
      ['assistant', 'tool', 'tool', 'tool']
    )
    assert.ok(JSON.stringify(last).length < 0.6 * JSON.stringify(sent[0]).length, 'half of it is left')
    assert.match(JSON.stringify(last), /cut here/)
  }
})

test('the texts of one result share what it may take', async () => {
  const text = (letter: string) => ({ type: 'text' as const, text: letter.repeat(30_000) })
  const messages: LlmMessage[] = [
    said('go'),
    { role: 'assistant', content: [{ type: 'tool_call', id: 'a', name: 'mcp__a__b', arguments: '{}' }] },
    { role: 'tool', tool_call_id: 'a', name: 'mcp__a__b', content: ['x', 'y', 'z'].map(text), is_error: false }
  ]
  const overflow = failure({ code: 'context.overflow', status: 400, retryable: false })
  const { sent, summary } = await asked(context(messages), overflow, overflow, 'good')
  assert.ok('text' in summary)
  assert.ok(JSON.stringify(sent.at(-1)).length < 0.6 * JSON.stringify(sent[0]).length, 'half of it is left')
})

test('an answer may take what the window has left, and 4096 tokens at least', async () => {
  const limit = async (context_tokens: number) => (await asked(context(one, { context_tokens }), 'good')).requests[0]?.max_output_tokens
  assert.deepEqual(await Promise.all([limit(0), limit(5_000), limit(9_000)]).then(all => all.slice(1)), [5_000, 4_096])
})

test('limits are what they say: whole inputs that just fit, the newest message alone, growth, 85 % of what was refused', () => {
  const input = { id: 'a', role: 'user', created_at: '', content: [{ type: 'text', text: 'x'.repeat(396) }] } as const
  assert.deepEqual([keptInputs([input], 400).count, keptInputs([input], 400).head], [1, undefined])
  assert.deepEqual(keptInputs([input], 396).head === undefined, false)
  assert.deepEqual(newest([said('short'), said('x'.repeat(4_000))], 0.5), [said('x'.repeat(4_000))])
  assert.deepEqual([worthwhile(undefined, 1000), worthwhile(100, 1000), worthwhile(900, 1000), worthwhile(960, 1000)], [0, 300, 950, 961])
  assert.equal(observedWindow(1000), 850)
})
