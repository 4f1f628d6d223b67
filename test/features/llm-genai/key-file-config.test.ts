/** A key file in the real configuration: shown nowhere, its token service listed, refused offline. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { Llm, Outbound } from '../../../features/llm/index.ts'
import llm from '../../../features/llm/pack.ts'
import llmGenai from '../../../features/llm-genai/pack.ts'
import { listModels, listProviders } from '../../../features/providers/index.ts'
import providers from '../../../features/providers/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { fakeTokenService } from '../../helpers/fake-token-service.ts'
import { fakeUpstream } from '../../helpers/fake-upstream.ts'
import { collect, failure, joined, llmRequest } from '../../helpers/llm-port.ts'
import { freshDir } from '../../helpers/temp.ts'
import { genaiWire } from '../../helpers/upstream-genai.ts'

async function start(t: TestContext, { offline = false } = {}) {
  const home = await freshDir()
  const service = await fakeTokenService(t)
  const upstream = await fakeUpstream(t, [[{ text: 'hello' }]], { wire: genaiWire })
  const file = join(home, 'key.json')
  await writeFile(file, service.serviceAccount())
  await writeFile(
    join(home, 'config.toml'),
    `default_model = "m"
[providers.p]
type = "compat_cloud"
base_url = "${upstream.url}"
env = { GOOGLE_APPLICATION_CREDENTIALS = "${file}", GOOGLE_CLOUD_LOCATION = "l1" }
[providers.text]
type = "compat_cloud"
env = { GOOGLE_APPLICATION_CREDENTIALS = '${service.serviceAccount()}', GOOGLE_CLOUD_LOCATION = "l1" }
[providers.broken]
type = "compat_cloud"
env = { GOOGLE_APPLICATION_CREDENTIALS = "${home}/none.json" }
[providers.other]
type = "compat_chat"
base_url = "https://models.invalid"
env = { SOME_CREDENTIALS = "${file}" }
[models.m]
provider = "p"
model = "m"
max_context_size = 1000
[models.text]
provider = "text"
model = "m"
max_context_size = 1000
`
  )
  let found: { llm: Llm; outbound: Outbound } | undefined
  const user = definePack({
    name: 'user',
    needs: { llm: Llm, outbound: Outbound },
    setup(_, services) {
      found = services
    }
  })
  const kernel = await startTestKernel(t, { packs: [config, llm, llmGenai, providers, user], home, offline })
  assert.ok(found)
  const services = found
  const ask = () => collect(services.llm.stream(llmRequest(services.llm.resolve()), new AbortController().signal))
  return { ...kernel, ...services, service, upstream, ask }
}

test('a provider with a key file is connected, and nobody is shown what is in it', async t => {
  const { call, rest, ask } = await start(t)

  const { items } = (await call(listProviders)).data
  assert.deepEqual(
    items.map(({ id, has_api_key, status }) => [id, has_api_key, status]),
    [
      ['p', true, 'connected'],
      ['text', true, 'connected'],
      ['broken', true, 'connected'],
      ['other', false, 'unconfigured']
    ]
  )
  const { data } = await call(readConfig)
  const shown = JSON.stringify([data, items, (await call(listModels)).data, await rest.json('GET', '/api/v1/config')])
  assert.ok(!shown.includes('PRIVATE KEY') && !shown.includes('key.json'))
  assert.equal(joined(await ask(), 'text'), 'hello')
})

test('the list of hosts names who gives the tokens, and the host of the region', async t => {
  const { outbound, service, upstream } = await start(t)

  const { hosts } = await outbound.report()

  assert.deepEqual(
    hosts.map(({ url, why }) => [url, why]),
    [
      [upstream.url, 'models of provider p'],
      ['https://l1-aiplatform.googleapis.com', 'models of provider text'],
      ['https://models.invalid', 'models of provider other'],
      [service.token_uri, 'access tokens of providers p, text'],
      [undefined, 'access tokens of provider broken (the key file cannot be used)']
    ]
  )
})

test('offline, nobody is asked for a token, and the turn says why', async t => {
  const { ask, service, upstream } = await start(t, { offline: true })

  const error = failure(await ask())

  assert.deepEqual([error.name, error.retryable], ['OfflineError', false])
  assert.match(error.message, /^127\.0\.0\.1:\d+ was not called: the server runs offline/)
  assert.deepEqual([service.asked.length, upstream.requests.length], [0, 0])
})
