/** To whom this installation introduces itself. */
import assert from 'node:assert/strict'
import { release } from 'node:os'
import { test } from 'node:test'
import llmChat from '../../../features/llm-chat/pack.ts'
import llmMessages from '../../../features/llm-messages/pack.ts'
import { withEnvironment } from '../../helpers/environment.ts'
import { fakeUpstream, type Step } from '../../helpers/fake-upstream.ts'
import { collect, failure, llmRequest, startLlm } from '../../helpers/llm-port.ts'

const words = ['platform', 'version', 'device-name', 'device-model', 'os-version', 'device-id'].map(word => `x-svc-${word}`)

async function scene(t: Parameters<typeof startLlm>[0], script: Step[][], provider: object, model: object = {}) {
  const upstream = await fakeUpstream(t, script)
  const config = {
    providers: { p: { base_url: upstream.url, api_key: 'sk-secret-key', ...provider } },
    models: { m: { provider: 'p', model: 'm', max_context_size: 1000, ...model } }
  }
  const llm = await startLlm(t, { packs: [llmChat, llmMessages], config })
  const send = () => collect(llm.stream(llmRequest(llm.resolve('m')), new AbortController().signal))
  const headersOf = async (n: number) => (await upstream.arrived(n)).headers
  return { send, headersOf }
}

const ok = [{ text: 'ok' }]

test('requests to svc providers say which host asks, on either wire, with one id', async t => {
  const { send, headersOf } = await scene(t, [ok, ok], { type: 'svc' })
  await send()
  await send()
  const headers = await headersOf(0)
  for (const word of words) assert.ok(headers[word], word)
  assert.match(headers['user-agent'] ?? '', /^svc-code\/\d/)
  assert.equal((await headersOf(1))['x-svc-device-id'], headers['x-svc-device-id'])

  const other = await scene(t, [ok], { type: 'svc' }, { protocol: 'compat_messages' })
  await other.send()
  assert.ok((await other.headersOf(0))['x-svc-device-id'])
})

test('no other provider hears of the host, whatever wire its models speak', async t => {
  for (const [type, protocol] of [
    ['compat_chat', undefined],
    ['compat_chat', 'svc'],
    ['compat_messages', undefined],
    [undefined, undefined]
  ]) {
    const { send, headersOf } = await scene(t, [ok], { type }, { protocol })
    await send()
    const headers = await headersOf(0)
    assert.match(String(headers['user-agent']), /^svc-code\/\d/)
    assert.deepEqual(
      words.filter(word => headers[word] !== undefined),
      []
    )
  }
})

test('headers of the provider win over what the host says of itself, and that over those of the environment', async t => {
  withEnvironment(t, { SVC_CODE_CUSTOM_HEADERS: 'X-Svc-Version: env\nX-Team: blue' })
  const custom_headers = { 'User-Agent': 'mine/1', 'X-Svc-Device-Name': 'somewhere' }
  const { send, headersOf } = await scene(t, [ok], { type: 'svc', custom_headers })
  await send()
  const headers = await headersOf(0)
  assert.deepEqual([headers['user-agent'], headers['x-svc-device-name'], headers['x-team']], ['mine/1', 'somewhere', 'blue'])
  assert.match(String(headers['x-svc-version']), /^\d/)
})

test('an error that repeats what it was told of the host is shown, but for the id of the device', async t => {
  let id = ''
  const upstream = await fakeUpstream(t, (_body, _n, { headers }) => {
    id = String(headers['x-svc-device-id'])
    return [{ status: 400, body: { error: { message: `no system ${headers['x-svc-os-version']} of ${id}` } } }]
  })
  const config = {
    providers: { p: { type: 'svc', base_url: upstream.url, api_key: 'sk-secret-key' } },
    models: { m: { provider: 'p', model: 'm', max_context_size: 1000 } }
  }
  const llm = await startLlm(t, { packs: [llmChat], config })
  const { message } = failure(await collect(llm.stream(llmRequest(llm.resolve('m')), new AbortController().signal)))
  assert.ok(message.includes(`no system ${release()} of`), message)
  assert.ok(id.length > 20 && !message.includes(id), message)
})
