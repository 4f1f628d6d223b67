/** The retry table over HTTP: which failures are tried again, how often, when, and what a turn tells about it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import { listMessages } from '../../../features/messages/index.ts'
import { abortSession } from '../../../features/prompts/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import type { Script } from '../../helpers/fake-upstream.ts'
import { conversation } from '../../helpers/llm-turn.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'

async function bench(t: TestContextLike, script: Script, toml = '') {
  const setup = { protocol: 'compat_chat', pack: llmChat, wire: chatWire, script, toml }
  const { upstream, start, open, ask, submit } = await conversation(t, setup)
  const kernel = await start()
  const session_id = await open(kernel)
  const payloads = (type: string) =>
    kernel.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
  return {
    upstream,
    kernel,
    params: { session_id },
    payloads,
    ask: () => ask(kernel, session_id, 'go'),
    submit: () => submit(kernel, session_id, 'go'),
    ended: () => payloads('turn.ended').map(({ reason, error }) => [reason, (error as { code?: string } | undefined)?.code])
  }
}
const answer = [{ text: 'whole' }]
const attempts = (n: number) => `[loop_control]\nmax_attempts_per_step = ${n}`

const retried: readonly [status: number, message: string, code: string][] = [
  [408, 'timeout', 'provider.api_error'],
  [409, 'conflict', 'provider.api_error'],
  [429, 'slow down', 'provider.rate_limit'],
  [500, 'oops', 'provider.api_error'],
  [502, 'oops', 'provider.api_error'],
  [503, 'the engine is overloaded', 'provider.overloaded'],
  [504, 'oops', 'provider.api_error'],
  [529, 'later', 'provider.overloaded']
]
for (const [status, message, code] of retried) {
  test(`HTTP ${status} is tried again in a new step, and ends the turn as ${code} when nothing is left`, async t => {
    const failed = [{ status, body: chatWire.failure(status, message) }]
    const { upstream, payloads, ended, ask } = await bench(t, [failed, answer, failed], attempts(2))

    await ask()
    await ask()

    const [first] = payloads('turn.step.retrying')
    const { turnId, step, stepId, failedAttempt, nextAttempt, maxAttempts, statusCode } = first ?? {}
    assert.deepEqual([turnId, step, failedAttempt, nextAttempt, maxAttempts, statusCode], [0, 1, 1, 2, 2, status])
    assert.equal(stepId, payloads('turn.step.started')[0]?.stepId)
    assert.equal(typeof first?.delayMs, 'number')
    assert.match(String(first?.errorMessage), new RegExp(message))
    assert.ok(String(first?.errorName).endsWith('Error'))
    assert.deepEqual(
      payloads('turn.step.started').map(one => one.step),
      [1, 2, 1, 2]
    )
    assert.deepEqual(upstream.requests[1]?.body.messages, upstream.requests[0]?.body.messages)
    assert.deepEqual(ended(), [
      ['completed', undefined],
      ['failed', code]
    ])
    assert.deepEqual(payloads('error')[0]?.details, { statusCode: status })
  })
}

const final: readonly [status: number, message: string, code: string][] = [
  [400, 'unknown field', 'provider.api_error'],
  [400, "This model's maximum context length is 8192 tokens", 'context.overflow'],
  [401, 'invalid key', 'provider.auth_error'],
  [402, 'pay first', 'provider.api_error'],
  [403, 'not yours', 'provider.auth_error'],
  [404, 'no such model', 'provider.api_error'],
  [413, 'too large', 'provider.api_error'],
  [422, 'wrong', 'provider.api_error'],
  [429, 'You exceeded your current quota, please check your plan and billing details', 'provider.rate_limit']
]
for (const [status, message, code] of final) {
  test(`HTTP ${status} (${message.slice(0, 24)}) ends the turn at once as ${code}`, async t => {
    const { upstream, payloads, ended, ask } = await bench(t, [[{ status, body: chatWire.failure(status, message) }]])

    await ask()

    assert.equal(upstream.requests.length, 1)
    assert.deepEqual(payloads('turn.step.retrying'), [])
    assert.deepEqual(ended(), [['failed', code]])
    assert.equal(payloads('error')[0]?.retryable, false)
  })
}

const broken: Readonly<Record<string, Script>> = {
  'a connection that is cut in the middle': [[{ text: 'half' }, { tool: { name: 'Echo', args: { x: 1 } } }, { cut: true }], answer],
  'a stream that simply stops': [[{ text: 'half' }, { end: true }], answer],
  'an error in the stream': [[{ text: 'half' }, { raw: 'data: {"error":{"message":"oops","code":500}}\n\n' }], answer],
  'garbage in the stream': [[{ text: 'half' }, { raw: 'data: {"oops\n\n' }], answer],
  'an answer without content': [[], answer],
  'an answer of thoughts alone': [[{ thinking: 'hm' }], answer],
  'a connection that is reset before the answer': [[{ cut: true }], answer],
  'a page instead of a stream': [[{ status: 200, body: '<html>login</html>' }], answer]
}
for (const [title, script] of Object.entries(broken)) {
  test(`${title} is tried again, and nothing of it stays`, async t => {
    const { kernel, params, payloads, ended, ask } = await bench(t, script)

    await ask()

    assert.equal(payloads('turn.step.retrying').length, 1)
    assert.deepEqual(ended(), [['completed', undefined]])
    const { items } = (await kernel.call(listMessages, { params })).data
    assert.deepEqual(
      items.filter(item => item.role === 'assistant' || item.role === 'tool').map(item => item.content),
      [[{ type: 'text', text: 'whole' }]]
    )
    assert.deepEqual(payloads('tool.call.started'), [])
  })
}

test('Retry-After counts in seconds without an upper limit, and an abort ends the wait at once', async t => {
  const { upstream, kernel, params, payloads, ended, submit } = await bench(t, [[{ status: 429, headers: { 'retry-after': '86400' } }]])
  await submit()
  const retrying = await kernel.waitFor(event => event.type === 'turn.step.retrying')
  assert.equal((retrying.payload as { delayMs: number }).delayMs, 86_400_000)

  await kernel.call(abortSession, { params })
  await kernel.waitFor(event => event.type === 'prompt.aborted')

  assert.equal(upstream.requests.length, 1)
  assert.deepEqual(ended(), [['cancelled', undefined]])
  assert.equal(payloads('turn.ended')[0]?.interruptReason, 'user_cancelled')
  // The step that clients show as retrying ends.
  assert.deepEqual(
    payloads('turn.step.interrupted').map(({ step, reason }) => [step, reason]),
    [[1, 'aborted']]
  )
})

test('attempts count anew with every step that succeeds, and 0 attempts are one', async t => {
  const busy = [{ status: 503 }]
  const call = [{ tool: { name: 'Echo', args: { x: 1 } } }]
  const several = await bench(t, [busy, call, busy, answer], attempts(2))
  const single = await bench(t, [busy], attempts(0))

  await several.ask()
  await single.ask()

  assert.deepEqual(
    several.payloads('turn.step.retrying').map(({ step, failedAttempt }) => [step, failedAttempt]),
    [
      [1, 1],
      [3, 1]
    ]
  )
  assert.deepEqual(several.ended(), [['completed', undefined]])
  assert.equal(single.upstream.requests.length, 1)
})

test('repeated steps count against the limit of steps', async t => {
  const { upstream, ended, ask } = await bench(t, [[{ status: 503 }]], '[loop_control]\nmax_steps_per_turn = 2')

  await ask()

  assert.equal(upstream.requests.length, 2)
  assert.deepEqual(ended(), [['failed', 'loop.max_steps_exceeded']])
})

test('an abort closes the connection to the provider, before its answer and in it', async t => {
  const { upstream, kernel, params, submit, ended } = await bench(t, [[{ hang: true }], [{ text: 'half' }, { hang: true }]])

  await submit()
  const silent = await upstream.arrived(0)
  await kernel.call(abortSession, { params })
  assert.equal(await silent.closed, 'client')

  await submit()
  await kernel.waitFor(event => event.type === 'assistant.delta')
  await kernel.call(abortSession, { params })
  assert.equal(await (await upstream.arrived(1)).closed, 'client')
  assert.deepEqual(ended()[0], ['cancelled', undefined])
})

test('two calls with one id both run, and both results go back', async t => {
  const twice = [1, 2].map(x => ({ name: 'Echo', args: { x }, id: 'same' }))
  const { upstream, ask } = await bench(t, [[{ tools: twice }], answer])

  await ask()

  const sent = (await upstream.arrived(1)).body.messages as { role: string; content: string; tool_call_id?: string }[]
  const results = sent.filter(message => message.role === 'tool')
  assert.deepEqual(
    results.map(message => message.content),
    ['echo of 1', 'echo of 2']
  )
  assert.equal(new Set(results.map(message => message.tool_call_id)).size, 2)
})
