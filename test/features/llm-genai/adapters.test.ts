/** Both generate-content adapters pass the shared adapter suite. */
import assert from 'node:assert/strict'
import { GenaiDecoder } from '../../../features/llm-genai/decode.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { llmAdapterSuite } from '../../suites/llm-adapter.ts'
import { llmAdapterFaults } from '../../suites/llm-adapter-faults.ts'

const config = (body: Record<string, unknown>) => (body.generationConfig as { thinkingConfig?: unknown } | undefined)?.thinkingConfig

const shared = {
  pack: llmGenai,
  wire: genaiWire,
  credential: ['x-goog-api-key', 'sk-test-secret'],
  effort: {
    off: (body: Record<string, unknown>) => assert.deepEqual(config(body), { includeThoughts: false, thinkingBudget: 0 }),
    on: (body: Record<string, unknown>) => assert.deepEqual(config(body), { includeThoughts: true }),
    low: (body: Record<string, unknown>) => assert.deepEqual(config(body), { includeThoughts: true, thinkingBudget: 1024 }),
    high: (body: Record<string, unknown>) => assert.deepEqual(config(body), { includeThoughts: true, thinkingBudget: 32_000 })
  }
} as const

llmAdapterSuite({ ...shared, protocol: 'compat_genai' })
llmAdapterSuite({ ...shared, protocol: 'compat_cloud', provider: { env: { PROJECT: 'p1', LOCATION: 'l1' } } })

const decoder = () => new GenaiDecoder()
llmAdapterFaults({ ...shared, protocol: 'compat_genai', decoder })
llmAdapterFaults({ ...shared, protocol: 'compat_cloud', decoder, provider: { env: { PROJECT: 'p1', LOCATION: 'l1' } } })
