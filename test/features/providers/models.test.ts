/** GET /models, :set_default and GET /auth through the front door. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { LlmAdapters, LlmModels } from '../../../features/llm/index.ts'
import { listModels, ModelMissing, readAuth, setDefaultModel } from '../../../features/providers/index.ts'
import { definePack } from '../../../kernel/index.ts'
import { logins, start } from './scene.ts'

const toml = `# models of mine
default_model = "acme/big" # for now

[providers.acme]
type = "compat_chat"
api_key = "sk-secret"

[models."acme/big"]
provider = "acme"
model = "big"
max_context_size = 32000
capabilities = ["thinking"]
support_efforts = ["low", "high"]
default_effort = "low"

[models.bare]
provider = "acme"
model = "ns/small:7b"
max_context_size = 8000
overrides = { display_name = "Small", max_context_size = 4000 }

[models.orphan]
provider = "gone"
model = "lost"
max_context_size = 1
`

test('a fresh home has no models, is not ready, and no file is written', async t => {
  const { call, file, events } = await start(t)

  assert.deepEqual((await call(listModels)).data, { items: [] })
  assert.deepEqual((await call(readAuth)).data, { ready: false, providers_count: 0, default_model: null, managed_provider: null })
  assert.deepEqual(events, [])
  await assert.rejects(file(), { code: 'ENOENT' })
})

test('models are listed in the order of the file, with overrides, and an orphan belongs to nobody', async t => {
  const { call } = await start(t, { toml })

  assert.deepEqual((await call(listModels)).data.items, [
    {
      provider: 'acme',
      model: 'acme/big',
      display_name: 'big',
      max_context_size: 32000,
      capabilities: ['thinking'],
      support_efforts: ['low', 'high'],
      default_effort: 'low'
    },
    { provider: 'acme', model: 'bare', display_name: 'Small', max_context_size: 4000 },
    { provider: '', model: 'orphan', display_name: 'lost', max_context_size: 0 }
  ])
})

test('set_default stores the alias and leaves the rest of the file alone', async t => {
  const { call, toml: text } = await start(t, { toml })

  const { code, data } = await call(setDefaultModel, { params: { model_id: 'bare' } })

  assert.equal(code, 0)
  assert.equal(data.default_model, 'bare')
  assert.equal(data.model.max_context_size, 4000)
  assert.equal(await text(), toml.replace('"acme/big" # for now', '"bare" # for now'))
  assert.equal((await call(readAuth)).data.default_model, 'bare')
})

test('set_default takes an alias with slash and colon, URL-encoded, and ignores the body', async t => {
  const { rest, file } = await start(t, { toml: toml.replace('[models.bare]', '[models."acme/ns/small:7b"]') })

  const answer = await rest.json('POST', '/api/v1/models/acme%2Fns%2Fsmall%3A7b:set_default', ['ignored'])

  assert.equal(answer.code, 0)
  assert.equal((await file()).default_model, 'acme/ns/small:7b')
})

test('set_default refuses what is no alias, and other actions', async t => {
  const { call, rest, toml: text } = await start(t, { toml })

  for (const model_id of ['nope', 'big', 'constructor', '__proto__'])
    assert.equal((await call(setDefaultModel, { params: { model_id } })).code, ModelMissing.code)
  for (const tail of ['bare', 'bare:zap', 'bare:', ':set_default']) {
    const answer = await rest.json('POST', `/api/v1/models/${tail}`)
    assert.equal(answer.code, 40001, tail)
    assert.equal(answer.details?.length, 1)
  }
  assert.equal(await text(), toml)
})

test('a record of the file that is no model is no alias, and asking for it writes nothing', async t => {
  const odd = 'default_model = "fine"\n[models]\nnumber = 5\n[models.fine]\nprovider = "p"\nmodel = "m"\nmax_context_size = 1\n'
  const broken = `${odd}[models.broken]\nprovider = "p"\nmodel = "m"\nmax_context_size = "big"\n`
  const { call, events, toml: text } = await start(t, { toml: broken })

  for (const model_id of ['number', 'broken'])
    assert.equal((await call(setDefaultModel, { params: { model_id } })).code, ModelMissing.code, model_id)

  assert.equal(await text(), broken)
  assert.ok(!events.some(({ type }) => type === 'event.config.changed'))
})

test('models that a pack brings along can be chosen and make the server ready', async t => {
  const model = {
    alias: 'demo/one',
    provider_id: 'demo',
    protocol: 'demo',
    name: 'one',
    display_name: 'One',
    max_context_size: 10,
    capabilities: [],
    fallback_default: true
  }
  const demo = definePack({
    name: 'demo-models',
    setup(ctx) {
      ctx.contribute(LlmModels, { ...model, alias: 'demo/zero', fallback_default: false })
      ctx.contribute(LlmModels, model)
    }
  })
  const { call, kernel, home } = await start(t, { more: [demo] })
  const listed = async () => (await call(listModels)).data.items.map(({ model, provider }) => [model, provider])

  assert.deepEqual(await listed(), [
    ['demo/zero', 'demo'],
    ['demo/one', 'demo']
  ])
  assert.deepEqual((await call(readAuth)).data, { ready: true, providers_count: 1, default_model: 'demo/one', managed_provider: null })
  assert.equal((await call(setDefaultModel, { params: { model_id: 'demo/one' } })).data.model.provider, 'demo')
  await writeFile(join(home, 'config.toml'), '[providers.own]\n[models."demo/one"]\nprovider = "own"\nmodel = "m"\nmax_context_size = 1\n')
  assert.deepEqual(await listed(), [
    ['demo/one', 'own'],
    ['demo/zero', 'demo']
  ])
  await kernel.unload('demo-models')
  assert.deepEqual(await listed(), [['demo/one', 'own']])
})

test('readiness follows the configuration and the managed login', async t => {
  const managed = `${toml}\n[providers."managed:svc-code"]\ntype = "svc"\napi_key = ""\noauth = { storage = "file", key = "svc-code" }\n`
  let status: 'authenticated' | 'expired' | 'revoked' | 'unauthenticated' = 'authenticated'
  const { call, kernel, home } = await start(t, { toml: managed, more: [logins({ status: () => status })] })
  const auth = async () => (await call(readAuth)).data

  for (status of ['authenticated', 'expired', 'unauthenticated', 'revoked'] as const) {
    assert.deepEqual(await auth(), {
      ready: status !== 'revoked',
      providers_count: 2,
      default_model: 'acme/big',
      managed_provider: { name: 'managed:svc-code', status }
    })
  }
  await writeFile(join(home, 'config.toml'), managed.replace(/oauth = .*/, 'api_key = "k"').replace('api_key = ""\n', ''))
  const { ready, managed_provider } = await auth()
  assert.deepEqual([ready, managed_provider?.status], [true, 'unauthenticated'], 'it works by its own key')
  await writeFile(join(home, 'config.toml'), managed)
  await kernel.unload('logins')
  assert.equal((await auth()).managed_provider?.status, 'unauthenticated')
})

test('a default model that does not exist, and one whose provider is gone, are warned of, and are set all the same', async t => {
  const adapter = definePack({
    name: 'adapter',
    setup: ctx => ctx.contribute(LlmAdapters, { protocol: 'compat_chat', needs_credential: true, stream: () => assert.fail('not asked') })
  })
  const { call, home } = await start(t, { toml: toml.replace('acme/big"', 'acme/bigg"'), more: [adapter] })
  const auth = async () => (await call(readAuth)).data
  const write = (text: string) => writeFile(join(home, 'config.toml'), text)

  const { ready, default_model, warnings } = await auth()
  assert.deepEqual({ ready, default_model }, { ready: true, default_model: 'acme/bigg' })
  assert.deepEqual(warnings, ['the default model acme/bigg cannot be used: model acme/bigg is not known'])

  await write(toml.replace('api_key = "sk-secret"\n', ''))
  assert.equal((await auth()).ready, true)
  assert.equal('warnings' in (await auth()), false)
  await write(`telemetry = 5\n${toml.replace('api_key = "sk-secret"\n', '')}`)
  assert.equal('warnings' in (await auth()), false, 'of the file as a whole only')
  assert.deepEqual((await call(readAuth, { query: { check_model: true } })).data.warnings, [
    'the default model acme/big cannot be used: provider acme has no credential'
  ])

  await write(`default_model = "a/b"\n[providers.other]\n[models."a/b"]\nprovider = "gone"\nmodel = "b"\nmax_context_size = 1\n`)
  assert.equal((await auth()).ready, true)
  assert.match((await auth()).warnings?.[0] ?? '', /provider gone of model a\/b is not configured/)

  await write('default_model = "a\n')
  assert.match((await auth()).warnings?.[0] ?? '', /^config\.toml cannot be used: line 1, column \d+: /)
})
