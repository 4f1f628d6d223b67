/** The responses adapter passes the shared adapter suite. */
import assert from 'node:assert/strict'
import { failureOf, ResponsesDecoder } from '../../../features/llm-responses/decode.ts'
import llmResponses from '../../../features/llm-responses/pack.ts'
import { responsesWire } from '../../helpers/upstream-responses.ts'
import { llmAdapterSuite } from '../../suites/llm-adapter.ts'
import { llmAdapterFaults } from '../../suites/llm-adapter-faults.ts'

llmAdapterSuite({
  protocol: 'compat_responses',
  pack: llmResponses,
  wire: responsesWire,
  credential: ['authorization', 'Bearer sk-test-secret'],
  effort: {
    off: body => assert.deepEqual([body.reasoning, body.include], [undefined, undefined]),
    on: body => assert.deepEqual([body.reasoning, body.include], [{ summary: 'auto' }, ['reasoning.encrypted_content']]),
    high: body => assert.deepEqual(body.reasoning, { effort: 'high', summary: 'auto' })
  }
})

llmAdapterFaults({
  protocol: 'compat_responses',
  pack: llmResponses,
  wire: responsesWire,
  decoder: () => new ResponsesDecoder('m'),
  failureOf
})
