/** The offline switch: who is still called, who is not, and what is said about it. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Config } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import {
  createUpstream,
  isOfflineEnvironment,
  Llm,
  LlmModels,
  Outbound,
  OutboundHosts,
  readText,
  transportError
} from '../../../features/llm/index.ts'
import llm from '../../../features/llm/pack.ts'
import llmChat from '../../../features/llm-chat/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { collect, failure, joined, llmRequest } from '../../helpers/llm-port.ts'
import { freshDir } from '../../helpers/temp.ts'

const never = new AbortController().signal
const file = (local: string, more = '') => `
${more}
[providers.away]
base_url = "https://name:word@models.invalid/v1?key=k"
api_key = "k1"
[providers.local]
auth = "none"
base_url = "${local}"
[models.away]
provider = "away"
model = "x"
max_context_size = 1000
[models.local]
provider = "local"
model = "x"
max_context_size = 1000
`

async function start(t: TestContext, text: string, offline = false) {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), text)
  let found: { llm: Llm; outbound: Outbound; config: Config } | undefined
  const user = definePack({
    name: 'user',
    needs: { llm: Llm, outbound: Outbound, config: Config },
    setup(ctx, services) {
      found = services
      ctx.contribute(OutboundHosts, { pack: ctx.name, hosts: () => [{ why: 'a page', when: 'somebody names it' }] })
      ctx.contribute(LlmModels, {
        alias: 'brought',
        provider_id: 'brought',
        protocol: 'compat_chat',
        name: 'x',
        display_name: 'X',
        base_url: 'http://127.0.0.1:1/v1',
        auth: 'none',
        max_context_size: 1,
        capabilities: []
      })
    }
  })
  await startTestKernel(t, { packs: [config, llm, llmChat, user], home, offline })
  assert.ok(found)
  const upstream = createUpstream({})
  t.after(() => upstream.close())
  const ask = (alias: string, services = found!) => collect(services.llm.stream(llmRequest(services.llm.resolve(alias)), never))
  return { ...found, upstream, ask }
}

test('offline, a configured provider on this machine answers and another machine is not called, with the reason', async t => {
  const local = await fakeUpstream(t, [[{ text: 'here' }]])
  const { ask } = await start(t, file(local.url), true)

  assert.equal(joined(await ask('local'), 'text'), 'here')
  const error = failure(await ask('away'))

  assert.deepEqual([error.code, error.name, error.retryable], ['provider.connection_error', 'OfflineError', false])
  assert.equal(error.message, 'models.invalid was not called: the server runs offline (--offline or SVC_CODE_OFFLINE)')
})

test('offline, a server on this machine that is no configured provider is not called, by any kind of request', async t => {
  const local = await fakeUpstream(t, [[{ text: 'here' }]])
  const other = await fakeUpstream(t, [[{ text: 'there' }]])
  const { ask, upstream } = await start(t, file(local.url), true)

  await assert.rejects(upstream.get(`${other.url}/models`, {}, never), { code: 'EOFFLINE' })
  await assert.rejects(upstream.postForm(other.url, {}, {}, never), { code: 'EOFFLINE' })
  assert.match(failure(await ask('brought')).message, /^127\.0\.0\.1:1 was not called/)
  assert.equal(other.requests.length, 0)
  assert.match(await readText((await upstream.get(`${local.url}/models`, {}, never)).body), /here/)
})

test('offline, what only looks like this machine is not called', async t => {
  const local = await fakeUpstream(t, [[{ text: 'here' }]])
  const looks = [
    `http://0.0.0.0:${local.port}`,
    'http://localhost.models.invalid',
    'http://127.0.0.1.models.invalid',
    'http://127.0.0.1@models.invalid'
  ]
  for (const url of looks) {
    const { upstream } = await start(t, file(url), true)
    await assert.rejects(upstream.get(url, {}, never), { code: 'EOFFLINE' }, url)
  }
  assert.equal(local.requests.length, 0)
})

test('offline = true in the file counts from the next request on, and its end, too', async t => {
  const other = await fakeUpstream(t, [[{ status: 200, body: {} }]])
  const { upstream, config: settings } = await start(t, file('http://127.0.0.1:1'))
  const get = async () => (await upstream.get(other.url, {}, never)).status

  assert.equal(await get(), 200)
  await settings.patch({ offline: true })
  const refusal = await get().catch(error => error)
  await settings.patch({ offline: null })

  assert.match(transportError(refusal, 'x').message, /was not called: the server runs offline \(offline = true in config\.toml/)
  assert.equal(await get(), 200)
})

test('a switch that cannot be read counts as on', async t => {
  const odd = await start(t, file('http://127.0.0.1:1', 'offline = "yes"'))
  await assert.rejects(odd.upstream.get('http://models.invalid', {}, never), { code: 'EOFFLINE' })

  const broken = await start(t, 'offline = tru')
  await assert.rejects(broken.upstream.get('http://models.invalid', {}, never), /config\.toml/)
})

test('the environment switches on with anything but no', () => {
  const values = ['1', 'true', ' On ', undefined, '', '0', 'False', 'no', 'off']
  assert.deepEqual(
    values.map(value => isOfflineEnvironment({ SVC_CODE_OFFLINE: value })),
    [true, true, true, false, false, false, false, false, false]
  )
})

test('the report names every host with its pack, and what the switch refuses', async t => {
  const online = await (await start(t, file('http://127.0.0.1:8080/v1'))).outbound.report()
  assert.equal(online.offline, undefined)
  assert.deepEqual(
    online.hosts.map(({ refused }) => refused),
    [false, false, false, false]
  )

  const { hosts, offline } = await (await start(t, file('http://127.0.0.1:8080/v1'), true)).outbound.report()
  assert.match(offline ?? '', /--offline/)
  assert.deepEqual(
    hosts.map(({ pack, url, why, refused }) => [pack, url, why, refused]),
    [
      ['llm', 'https://models.invalid', 'models of provider away', true],
      ['llm', 'http://127.0.0.1:8080', 'models of provider local', false],
      ['llm', 'http://127.0.0.1:1/v1', 'model brought of a pack', true],
      ['user', undefined, 'a page', true]
    ]
  )
})
