/** Both chat completions adapters pass the shared adapter suite. */
import assert from 'node:assert/strict'
import { ChatDecoder, failureOf } from '../../../features/llm-chat/decode.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import { chatWire } from '../../helpers/upstream-chat.ts'
import { llmAdapterSuite } from '../../suites/llm-adapter.ts'
import { llmAdapterFaults } from '../../suites/llm-adapter-faults.ts'

const shared = { pack: llmChat, wire: chatWire, credential: ['authorization', 'Bearer sk-test-secret'] } as const

llmAdapterSuite({
  ...shared,
  protocol: 'compat_chat',
  effort: {
    off: body => assert.equal(body.reasoning_effort, undefined),
    on: body => assert.equal(body.reasoning_effort, undefined),
    high: body => assert.equal(body.reasoning_effort, 'high')
  }
})

llmAdapterSuite({
  ...shared,
  protocol: 'svc',
  effort: {
    off: body => assert.deepEqual(body.thinking, { type: 'disabled' }),
    on: body => assert.deepEqual(body.thinking, { type: 'enabled', keep: 'all' }),
    high: body => assert.deepEqual(body.thinking, { type: 'enabled', effort: 'high', keep: 'all' })
  }
})

const decoder = () => new ChatDecoder({ model: 'm' })
llmAdapterFaults({ ...shared, protocol: 'compat_chat', decoder, failureOf })
llmAdapterFaults({ ...shared, protocol: 'svc', decoder, failureOf })
