/** No seeded secret leaves the server, from whatever domain. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { patchConfig, readConfig } from '../../../features/config/index.ts'
import config from '../../../features/config/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

const toml = `
api_key = "LEAK-01"
[providers.token]
type = "svc"
api_key = "LEAK-02"
base_url = "https://user:LEAK-03@host/v1?api_key=LEAK-04"
oauth = { storage = "file", key = "LEAK-05" }
custom_headers = { "X-Auth" = "LEAK-06" }
env = { ANY_NAME = "LEAK-07" }
source = { kind = "apiJson", url = "https://h/?token=LEAK-08", api_key = "LEAK-09" }
[models."token/m"]
provider = "token"
model = "m"
max_context_size = 1000
api_key = "LEAK-10"
overrides = { api_key = "LEAK-11", oauth = { key = "LEAK-12" } }
[services.svc_search]
base_url = "https://s"
api_key = "LEAK-13"
custom_headers = { Authorization = "LEAK-14" }
[services.other]
access_token = "LEAK-15"
passwords = 1
password = 123456
[secondary_model]
model = "x"
api_key = "LEAK-16"
[unmodelled.deep]
list = [{ client_secret = "LEAK-17" }]
headers = { a = "LEAK-18" }
tokens = ["LEAK-19"]
refreshToken = "LEAK-20"
[packs.config.some]
password = "LEAK-21"
[loop_control]
max_steps_per_turn = 3
`

test('secrets stay out of GET, POST, events and raw, and other fields stay in', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'config.toml'), toml)
  const { call, events } = await startTestKernel(t, { packs: [config], home })

  const got = await call(readConfig)
  const posted = await call(patchConfig, { body: { providers: { token: { api_key: 'LEAK-22' } }, telemetry: true } })

  assert.equal(posted.code, 0)
  assert.equal(events.filter(({ type }) => type === 'event.config.changed').length, 1)
  assert.doesNotMatch(JSON.stringify([got, posted, events]), /LEAK|123456/)
  assert.deepEqual(got.data.providers.token, { type: 'svc', base_url: 'https://host/v1?api_key=', has_api_key: true })
  const raw = got.data.raw as Record<string, Record<string, Record<string, unknown>>>
  assert.deepEqual(raw.providers!.token, {
    type: 'svc',
    base_url: 'https://host/v1?api_key=',
    source: { kind: 'apiJson', url: 'https://h/?token=' }
  })
  assert.deepEqual(got.data.models['token/m'], { provider: 'token', model: 'm', maxContextSize: 1000, overrides: {} })
})

test('a refused patch does not repeat the values it was given', async t => {
  const { call } = await startTestKernel(t, { packs: [config] })

  const refused = await call(patchConfig, { body: { services: { svc_search: { api_key: ['LEAK-23'] } } } as never })

  assert.equal(refused.code, 40001)
  assert.doesNotMatch(JSON.stringify(refused), /LEAK/)
})
