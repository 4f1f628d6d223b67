/** The promises of a model stream hold for any adapter. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { guardStream } from '../../../features/llm/guard.ts'
import type { FinishReason, LlmPart, LlmRequest } from '../../../features/llm/index.ts'
import { sendInForm } from '../../../features/llm/request-forms.ts'
import { collect, failure, llmRequest } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

const model = resolvedModel({
  protocol: 'x',
  api_key: 'sk-very-secret',
  headers: { 'user-agent': 'svc-code/1', 'x-token': 'header-secret' }
})
const text: LlmPart = { type: 'text', text: 'hi' }
const finish: LlmPart = { type: 'finish', reason: 'completed' }

function guarded(open: () => AsyncIterable<LlmPart>, signal = new AbortController().signal, failed?: (error: unknown) => void) {
  return guardStream(open, model, signal, failed)
}

async function* of(...parts: LlmPart[]): AsyncGenerator<LlmPart> {
  yield* parts
}

test('a good stream passes unchanged', async () => {
  assert.deepEqual(await collect(guarded(() => of(text, finish))), [text, finish])
})

test('nothing follows the first finish or error, and the adapter is told to stop', async () => {
  let stopped = false
  async function* adapter(): AsyncGenerator<LlmPart> {
    try {
      yield* [text, finish, text, finish]
    } finally {
      stopped = true
    }
  }

  assert.deepEqual(await collect(guarded(adapter)), [text, finish])
  assert.equal(stopped, true)
})

test('an adapter that throws, at once or later, ends the stream with an internal error that is logged', async () => {
  const logged: unknown[] = []
  const broken = new TypeError('sk-very-secret is undefined')
  async function* later(): AsyncGenerator<LlmPart> {
    yield text
    throw broken
  }
  const atOnce = () => {
    throw broken
  }

  async function* nothing(): AsyncGenerator<LlmPart> {
    yield undefined as never
  }

  for (const open of [later, atOnce, nothing]) {
    const error = failure(await collect(guarded(open, undefined, reason => logged.push(reason))))
    assert.deepEqual([error.code, error.retryable], ['internal', false])
    assert.ok(!error.message.includes('secret'))
  }
  assert.deepEqual(logged.slice(0, 2), [broken, broken])
  assert.equal(logged.length, 3)
})

test('an adapter that cannot end what it began ends nothing else: the failure is logged', async () => {
  const broken = new Error('no socket')
  const adapter = (next: () => Promise<IteratorResult<LlmPart>>) => () => ({
    [Symbol.asyncIterator]: () => ({
      next,
      return: () => {
        throw broken
      }
    })
  })
  const logged: unknown[] = []
  const failed = (error: unknown) => logged.push(error)

  const abort = new AbortController()

  failure(
    await collect(
      guarded(
        adapter(async () => ({ value: finish })),
        undefined,
        failed
      )
    )
  )
  const next = guarded(
    adapter(() => new Promise(() => undefined)),
    abort.signal,
    failed
  ).next()
  abort.abort()

  assert.equal((await next).done, true)
  await new Promise(setImmediate)
  assert.deepEqual(logged, [broken, broken])
})

test('a stream that stops without a finish is a retryable error', async () => {
  assert.equal(failure(await collect(guarded(() => of(text)))).retryable, true)
})

test('an answer without content is a retryable error, unless it was filtered or cut off while thinking', async () => {
  const thinking: LlmPart = { type: 'thinking', text: 'hmm' }
  const end = (reason: FinishReason): LlmPart => ({ type: 'finish', reason })
  const last = async (...parts: LlmPart[]) => (await collect(guarded(() => of(...parts)))).at(-1)?.type

  assert.equal(await last(end('completed')), 'error')
  assert.equal(await last({ type: 'text', text: '' }, end('completed')), 'error')
  assert.equal(await last(thinking, end('completed')), 'error')
  assert.equal(await last(end('truncated')), 'error')
  assert.equal(await last(end('filtered')), 'finish')
  assert.equal(await last(thinking, end('truncated')), 'finish')
  assert.equal(await last(thinking, end('paused')), 'finish')
  assert.equal(await last(thinking, end('other')), 'error')
  assert.equal(await last({ type: 'tool_call', id: 'a', name: 'Read' }, end('completed')), 'finish')
})

test('error texts carry neither the key nor header values', async () => {
  const error: LlmPart = {
    type: 'error',
    error: { code: 'x', name: 'X', message: 'sent sk-very-secret and header-secret', retryable: false }
  }

  assert.equal(failure(await collect(guarded(() => of(error)))).message, 'sent [redacted] and [redacted]')
  // Nor do ids, nor what has the shape of a key that is not ours.
  const ids = { request_id: 'r sk-very-secret', trace_id: 't header-secret' }
  const other = { code: 'x', name: 'X', message: `not ${'sk-'}${'abcdefghijklmnopqrstuvwxyz'}`, retryable: false, ...ids }
  const { message, request_id, trace_id } = failure(await collect(guarded(() => of({ type: 'error', error: other }))))
  assert.deepEqual([message, request_id, trace_id], ['not [redacted]', 'r [redacted]', 't [redacted]'])
})

test('a request that is refused for its form goes out at most nine times', async () => {
  let sent = 0
  const refuse: LlmPart = { type: 'error', error: { code: 'x', name: 'X', message: 'no', retryable: false } }
  const form = { fit: (request: LlmRequest) => request, refused: () => true }
  const stream = sendInForm(llmRequest(model), { items: () => [form] }, () => {
    sent++
    return of(refuse)
  })
  assert.equal(failure(await collect(stream)).message, 'no')
  assert.equal(sent, 9)
})

test('abort ends the stream although the adapter hangs', async () => {
  const abort = new AbortController()
  async function* stuck(): AsyncGenerator<LlmPart> {
    yield text
    await new Promise(() => undefined)
  }
  const stream = guarded(stuck, abort.signal)
  await stream.next()
  const next = stream.next()

  abort.abort()

  assert.equal((await next).done, true)
})

test('an aborted signal opens nothing', async () => {
  let opened = false
  const open = () => {
    opened = true
    return of(text)
  }

  assert.deepEqual(await collect(guarded(open, AbortSignal.abort())), [])
  assert.equal(opened, false)
})
