/** Which host of the cloud is called for a location. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { AppError } from '../../../kernel/index.ts'
import { startLlm } from '../../helpers/llm-port.ts'

test('the host follows the location, unless another one is configured', async t => {
  const config: Record<string, unknown> = { models: { m: { provider: 'p', model: 'm', max_context_size: 1000 } } }
  const llm = await startLlm(t, { packs: [llmGenai], config })
  const called = (base_url: string | undefined, location?: string) => {
    const env = { API_KEY: 'k', PROJECT: 'p1', ...(location && { LOCATION: location }) }
    config.providers = { p: { type: 'compat_cloud', base_url, env } }
    return llm.resolve('m').base_url
  }

  assert.equal(called(undefined, 'europe-west1'), 'https://europe-west1-aiplatform.googleapis.com')
  assert.equal(called(undefined, 'global'), 'https://aiplatform.googleapis.com')
  assert.equal(called('https://aiplatform.googleapis.com', 'us-east5'), 'https://us-east5-aiplatform.googleapis.com')
  assert.equal(called('https://aiplatform.googleapis.com/v1beta1', 'us-east5'), 'https://us-east5-aiplatform.googleapis.com/v1beta1')
  assert.equal(called('https://aiplatform.googleapis.com'), 'https://aiplatform.googleapis.com')
  assert.equal(called('https://us-east5-aiplatform.googleapis.com', 'europe-west1'), 'https://us-east5-aiplatform.googleapis.com')
  assert.equal(called('https://gateway.example/cloud', 'europe-west1'), 'https://gateway.example/cloud')
  assert.throws(
    () => called(undefined),
    error => AppError.is(error) && error.code === 40113 && /no base_url/.test(error.message)
  )
})
