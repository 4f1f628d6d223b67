/** Servers that say nothing for too long. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createUpstream, streamEvents } from '../../../features/llm/index.ts'
import { ChatDecoder } from '../../../features/llm-chat/decode.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { collect, failure, joined } from '../../helpers/llm-port.ts'
import { resolvedModel } from '../../helpers/model.ts'

async function run(t: TestContextLike, steps: readonly Step[]) {
  const upstream = await fakeUpstream(t, [steps])
  const pool = createUpstream({}, { connect_ms: 1000, silence_ms: 50 })
  t.after(() => pool.close())
  const model = resolvedModel({ base_url: upstream.url })
  const request = { model, path: '/chat/completions', headers: {}, body: {}, decoder: new ChatDecoder({ model: 'm' }) }
  return { upstream, parts: await collect(streamEvents(pool, request, new AbortController().signal)) }
}

test('a server that does not answer is given up and hung up on', async t => {
  const { upstream, parts } = await run(t, [{ hang: true }])

  const { code, name, retryable } = failure(parts)
  assert.deepEqual([code, name, retryable], ['provider.connection_error', 'TimeoutError', true])
  assert.equal(await upstream.requests[0]?.closed, 'client')
})

test('a stream that falls silent is given up, after what had arrived', async t => {
  const { upstream, parts } = await run(t, [{ text: 'half' }, { hang: true }])

  assert.equal(joined(parts, 'text'), 'half')
  assert.deepEqual([failure(parts).name, failure(parts).retryable], ['TimeoutError', true])
  assert.equal(await upstream.requests[0]?.closed, 'client')
})

test('a stream that falls silent after its finish reason is whole', async t => {
  const { parts } = await run(t, [{ text: 'all' }, { finish: 'stop' }, { hang: true }])

  assert.equal(parts.at(-1)?.type, 'finish')
})
