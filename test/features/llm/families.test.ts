/** What is known about models and requests without being configured. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { extraHeaders } from '../../../features/llm/environment.ts'
import { knownCapabilities } from '../../../features/llm/model-families.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { collect, llmRequest, startLlm } from '../../helpers/llm-port.ts'

test('capabilities follow the beginning of the name, whatever stands in front of it; unknown names have none', () => {
  const can = (name: string) => knownCapabilities(name).join(' ')

  assert.equal(can('gpt-4o-mini'), 'image_in')
  assert.equal(can('o3-mini'), 'thinking always_thinking')
  assert.equal(can('o4-mini-2025-04-16'), 'image_in thinking always_thinking')
  assert.equal(can('anthropic/claude-sonnet-4.5'), 'image_in thinking')
  assert.equal(can('us.x:claude-3-5-haiku'), 'image_in')
  assert.equal(can('models/Gemini-2.5-Pro'), 'image_in thinking')
  assert.equal(can('deepseek-reasoner'), 'thinking always_thinking')
  for (const name of ['m', 'my-gpt-4o', 'large-1', '', 'gpt-4', 'claude-2.1']) assert.equal(can(name), '', name)
})

test('headers of the environment are lines; what is no header is passed over', () => {
  assert.deepEqual(extraHeaders('X-Team: blue\r\n\nx-Trace :  a: b \nno header\n: x\nX-Empty:\nbad name: x'), {
    'x-team': 'blue',
    'x-trace': 'a: b'
  })
  assert.deepEqual(extraHeaders('Authorization: Bearer x\nX-Api-Key: y\nHost: z\nCookie: c\nX-Monkey: m'), { 'x-monkey': 'm' })
  assert.deepEqual(extraHeaders(undefined), {})
})

test('headers of the environment go out, those of the program and of the provider win; what is declared and what is known add up', async t => {
  process.env.SVC_CODE_CUSTOM_HEADERS = 'X-Team: blue\nX-Other: env\nUser-Agent: mine'
  t.after(() => delete process.env.SVC_CODE_CUSTOM_HEADERS)
  const upstream = await fakeUpstream(t, [[{ text: 'ok' }]])
  const config = {
    providers: { p: { type: 'compat_chat', base_url: upstream.url, auth: 'none', custom_headers: { 'X-Other': 'provider' } } },
    models: { m: { provider: 'p', model: 'gpt-4o', max_context_size: 1000, capabilities: ['tool_use'] } }
  }
  const llm = await startLlm(t, { packs: [llmChat], config })
  const model = llm.resolve('m')

  await collect(llm.stream(llmRequest(model), new AbortController().signal))

  const { headers } = await upstream.arrived(0)
  assert.deepEqual([headers['x-team'], headers['x-other']], ['blue', 'provider'])
  assert.match(headers['user-agent'] ?? '', /^svc-code\//)
  assert.deepEqual(model.capabilities, ['tool_use', 'image_in'])
})
