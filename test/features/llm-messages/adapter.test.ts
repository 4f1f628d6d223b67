/** The messages adapter passes the shared adapter suite. */
import assert from 'node:assert/strict'
import { MessagesDecoder } from '../../../features/llm-messages/decode.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import { messagesWire } from '../../helpers/upstream-messages.ts'
import { llmAdapterSuite } from '../../suites/llm-adapter.ts'
import { llmAdapterFaults } from '../../suites/llm-adapter-faults.ts'

llmAdapterSuite({
  protocol: 'compat_messages',
  pack: llmMessages,
  wire: messagesWire,
  credential: ['x-api-key', 'sk-test-secret'],
  effort: {
    off: body => assert.deepEqual(body.thinking, { type: 'disabled' }),
    on: body => assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 32_000 }),
    low: body => assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 1024 }),
    medium: body => assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 4096 }),
    high: body => assert.deepEqual(body.thinking, { type: 'enabled', budget_tokens: 32_000 }),
    max: body => {
      assert.deepEqual(body.thinking, { type: 'adaptive', display: 'summarized' })
      assert.deepEqual(body.output_config, { effort: 'max' })
    }
  }
})

llmAdapterFaults({ protocol: 'compat_messages', pack: llmMessages, wire: messagesWire, decoder: () => new MessagesDecoder() })
