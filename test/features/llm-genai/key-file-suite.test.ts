/** The cloud adapter with a service account passes the shared adapter suite like one with a key. */
import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { fakeTokenService } from '../../helpers/fake-token-service.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'
import { llmAdapterSuite } from '../../suites/llm-adapter.ts'

/** Filled before the first test; the suite reads it anew for each. */
const env: Record<string, string> = { GOOGLE_CLOUD_LOCATION: 'l1' }
const ends: (() => unknown)[] = []
after(() => Promise.all(ends.map(end => end())))
before(async () => {
  const service = await fakeTokenService({ after: end => ends.push(end) }, { token: 'sk-test-secret' })
  env.GOOGLE_APPLICATION_CREDENTIALS = service.serviceAccount()
})

llmAdapterSuite({
  protocol: 'compat_cloud',
  pack: llmGenai,
  wire: genaiWire,
  credential: ['authorization', 'Bearer sk-test-secret'],
  provider: { api_key: '', env },
  effort: {
    on: body => assert.deepEqual((body.generationConfig as { thinkingConfig?: unknown }).thinkingConfig, { includeThoughts: true })
  }
})
