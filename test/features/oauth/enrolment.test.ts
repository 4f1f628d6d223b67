/** What a login and a logout do to a configuration that holds something already. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { readToml } from '../../../features/config/toml.ts'
import { logout, readLogin } from '../../../features/oauth/index.ts'
import { type FakeAnswer, twoModels } from '../../helpers/fake-oauth.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type SceneOptions, scene } from './scene.ts'

const before = `default_model = "svc-code/gone"
default_provider = "managed:svc-code"

[providers."managed:svc-code"]
type = "svc"
default_model = "svc-code/gone"
custom_headers = { X-Team = "t" }

[models."svc-code/gone"]
provider = "managed:svc-code"
model = "gone"
max_context_size = 1

[models."svc-code/small"]
provider = "managed:svc-code"
model = "small"
max_context_size = 1
off_effort = "none" # mine
overrides = { cost = { input = 1, output = 1 } }

[models."svc-code/large"]
provider = "other"
model = "theirs"
max_context_size = 1

[models.fast]
provider = "managed:svc-code"
model = "gone"
max_context_size = 1

[secondary_model]
default_model = "svc-code/small"
[secondary_model.models]
"svc-code/small" = "a"
"svc-code/gone" = "b"
`

async function started(t: TestContext, toml: string, options: SceneOptions = {}) {
  const home = await freshDir()
  const path = join(home, 'config.toml')
  await writeFile(path, toml)
  const text = () => readFile(path, 'utf8')
  const file = async () => readToml(await text()) as Record<string, Record<string, Record<string, unknown>>>
  return { ...(await scene(t, { ...options, home })), text, file }
}

test('a login settles its list as a refresh does: what is gone leaves every default and the pool, the rest stays', async t => {
  const { logIn, file, text } = await started(t, before)

  await logIn()

  const { models, providers, secondary_model, default_model, default_provider } = await file()
  assert.deepEqual(Object.keys(models!), ['svc-code/small', 'svc-code/large', 'fast'])
  assert.deepEqual(models!['svc-code/small'], {
    provider: 'managed:svc-code',
    model: 'small',
    max_context_size: 32_768,
    capabilities: ['tool_use'],
    off_effort: 'none',
    overrides: { cost: { input: 1, output: 1 } }
  })
  assert.deepEqual(models!['svc-code/large'], { provider: 'other', model: 'theirs', max_context_size: 1 }, 'of another provider')
  const record = providers!['managed:svc-code']!
  assert.deepEqual([record.default_model, record.custom_headers, record.model_source], [undefined, { 'X-Team': 't' }, 'oauth-catalog'])
  assert.deepEqual(secondary_model, { default_model: 'svc-code/small', models: { 'svc-code/small': 'a' } })
  assert.deepEqual([default_model, default_provider], ['svc-code/small', 'managed:svc-code'])
  assert.ok((await text()).includes('# mine'))
})

test('a logout takes out the provider and what pointed at it; what others own stays', async t => {
  const { logIn, call, file } = await started(t, before)
  await logIn()

  await call(logout, { body: {} })

  assert.deepEqual(await file(), { models: { 'svc-code/large': { provider: 'other', model: 'theirs', max_context_size: 1 } } })
})

test('prices and efforts of the list are read as everywhere: a usual effort that is not offered is none', async t => {
  const list: FakeAnswer = {
    body: {
      data: [
        { id: 'a', context_length: 1, think_efforts: { support: true, valid_efforts: ['low'], default_effort: 'high' } },
        { id: 'b', context_length: 1, display_name: ' ', pricing: { prompt: '0.000001', completion: '0.000002' } }
      ]
    }
  }
  const { logIn, file } = await started(t, '', { scripts: { models: [list] } })

  await logIn()

  const common = { provider: 'managed:svc-code', max_context_size: 1, capabilities: ['tool_use'] }
  assert.deepEqual((await file()).models, {
    'svc-code/a': { ...common, model: 'a', support_efforts: ['low'] },
    'svc-code/b': { ...common, model: 'b', cost: { input: 1, output: 2 } }
  })
})

test('a list that cannot be read does not spoil the login', async t => {
  for (const body of [[], { data: [{ id: 'x' }] }, 'page', { data: [] }]) {
    const { logIn, login, file } = await started(t, '', { scripts: { models: [{ body }, twoModels] } })

    await logIn()

    assert.equal(login.status('managed:svc-code'), 'authenticated')
    assert.deepEqual([Object.keys((await file()).providers!), (await file()).models], [['managed:svc-code'], undefined])
  }
})

test('a damaged configuration is left as it is, and the login says what is in the way', async t => {
  const toml = 'services = 5 # mine\n'
  const { logIn, call, text } = await started(t, toml)

  await logIn()

  const { data } = await call(readLogin, { query: {} })
  assert.equal(data?.status, 'denied')
  assert.match(data?.error_message ?? '', /services is not a table/)
  assert.equal(await text(), toml)
})
