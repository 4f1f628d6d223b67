/** Providers: list, create, read, replace, delete, with every rule and error, through the front door. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readConfig } from '../../../features/config/index.ts'
import {
  createProvider,
  deleteProvider,
  listModels,
  listProviders,
  ProviderExists,
  ProviderManaged,
  ProviderMissing,
  readProvider,
  replaceProvider,
  setDefaultModel
} from '../../../features/providers/index.ts'
import { body, logins, paths, start } from './scene.ts'

const params = (provider_id: string) => ({ provider_id })
/** Written in parts: it is text, no template. */
const placeholder = ['$', '{HOST}'].join('')
const managed = `[providers."managed:svc-code"]
type = "svc"
oauth = { storage = "file", key = "svc-code" }
`

test('a created provider is there at once, with its aliases and, being the first, its default model', async t => {
  const { call, rest, file, events } = await start(t)
  const models = [
    { model: 'small', max_context_size: 1000 },
    {
      model: 'ns/big',
      max_context_size: 9000,
      display_name: 'Big',
      capabilities: ['thinking'],
      max_output_size: 50,
      support_efforts: ['low'],
      adaptive_thinking: true
    }
  ]

  const answer = await call(createProvider, {
    body: { id: 'my work', type: 'compat_chat', api_key: 'sk-1', base_url: ' https://models.example/v1 ', default_model: 'ns/big', models }
  })

  assert.equal(answer.status, 201)
  assert.equal(answer.code, 0)
  const item = {
    id: 'my work',
    type: 'compat_chat',
    base_url: 'https://models.example/v1',
    default_model: 'my work/ns/big',
    has_api_key: true,
    status: 'connected',
    models: ['my work/small', 'my work/ns/big']
  }
  assert.deepEqual(answer.data, item)
  assert.deepEqual((await call(listProviders)).data.items, [item])
  assert.deepEqual((await call(readProvider, { params: params('my work') })).data, { ...item, api_key: 'sk-1' })
  assert.deepEqual(
    (await call(listModels)).data.items.map(({ model }) => model),
    item.models
  )
  assert.deepEqual(await file(), {
    default_model: 'my work/ns/big',
    providers: {
      'my work': { type: 'compat_chat', base_url: 'https://models.example/v1', default_model: 'my work/ns/big', api_key: 'sk-1' }
    },
    models: {
      'my work/small': { provider: 'my work', model: 'small', max_context_size: 1000 },
      'my work/ns/big': { provider: 'my work', ...models[1] }
    }
  })
  assert.equal(events.length, 1, 'one save, one event')
  assert.ok(!JSON.stringify([events, await rest.json('GET', '/api/v1/config')]).includes('sk-1'))
})

test('an existing default model is never changed by a new provider, not even a dangling one; a blank one counts as none', async t => {
  const { call, file } = await start(t, { toml: 'default_model = "gone/gone"\n' })
  await call(createProvider, { body: body('one') })
  assert.equal((await file()).default_model, 'gone/gone')

  const blank = await start(t, { toml: 'default_model = " "\n' })
  await blank.call(createProvider, { body: body('one') })
  assert.equal((await blank.file()).default_model, 'one/small')
})

test('a provider without a key is unconfigured; its default is the global one when that is its own', async t => {
  const { call } = await start(t)

  const { data } = await call(createProvider, { body: body('local', { api_key: '' }) })

  assert.deepEqual(data, {
    id: 'local',
    type: 'compat_chat',
    default_model: 'local/small',
    has_api_key: false,
    status: 'unconfigured',
    models: ['local/small']
  })
  await call(createProvider, { body: body('other') })
  const defaults = async () => (await call(listProviders)).data.items.map(({ default_model }) => default_model)
  assert.deepEqual(await defaults(), ['local/small', undefined])
  await call(setDefaultModel, { params: { model_id: 'other/small' } })
  assert.deepEqual(await defaults(), [undefined, 'other/small'])
  assert.ok(!('api_key' in (await call(readProvider, { params: params('local') })).data))
})

test('a body that breaks a rule names each field and writes nothing', async t => {
  const { call, rest, file } = await start(t)
  const refused = async (given: object, ...expected: string[]) => {
    const answer = await rest.json('POST', '/api/v1/providers', given)
    assert.equal(answer.code, 40001)
    assert.equal(answer.status, 200)
    assert.deepEqual(paths(answer), expected, JSON.stringify(given))
  }

  await refused({}, 'body.id', 'body.type', 'body.models')
  await refused(body('x', { type: 'other' }), 'body.type')
  await refused(body('x', { models: [] }), 'body.models')
  await refused(body('x', { models: [{ model: '', max_context_size: 0 }] }), 'body.models.0.model', 'body.models.0.max_context_size')
  await refused(body('x', { models: [{ model: 'm', max_context_size: 1.5 }] }), 'body.models.0.max_context_size')
  await refused(body('x', { models: [{ model: 'm', max_context_size: 1, display_name: '\ud800' }] }), 'body.models.0.display_name')
  await refused(body('x', { base_url: 'https://x.example/\ud800' }), 'body.base_url')
  // What no path could name.
  for (const model of ['a\nb', 'a\u0000', 'm'.repeat(1_001)])
    await refused(body('x', { models: [{ model, max_context_size: 1 }] }), 'body.models.0.model')
  for (const id of ['', '-x', ' x', 'a/b', 'a:b', 'a.b', '__proto__']) await refused(body(id), 'body.id')
  const twice = [
    { model: 'm', max_context_size: 1 },
    { model: 'm', max_context_size: 2 }
  ]
  await refused(body('x', { models: twice }), 'body.models')
  await refused(body('x', { default_model: 'other' }), 'body.default_model')
  for (const base_url of [`https://${placeholder}/v1`, 'models.example/v1', 'localhost:8080', 'ftp://models.example', '/v1', 'https://'])
    await refused(body('x', { base_url }), 'body.base_url')
  await refused(
    body('/', { base_url: placeholder, default_model: 'y', models: twice }),
    'body.id',
    'body.base_url',
    'body.models',
    'body.default_model'
  )
  // All of it together: what misses the shape, and what the rules say of the rest.
  await refused(
    body('/', { type: 5, api_key: 'a\nb', base_url: placeholder, default_model: 'y', models: [{ model: 'm' }, ...twice, 'n'] }),
    'body.type',
    'body.models.0.max_context_size',
    'body.models.3',
    'body.id',
    'body.api_key',
    'body.base_url',
    'body.models',
    'body.default_model'
  )
  await refused(body(5 as never, { models: {}, default_model: 'y' }), 'body.id', 'body.models')
  await assert.rejects(file(), { code: 'ENOENT' })
  assert.equal((await call(createProvider, { body: body('Ünï 9-_') })).code, 0)
  const renamed = await rest.json(
    'PUT',
    `/api/v1/providers/${encodeURIComponent('Ünï 9-_')}`,
    body(undefined as never, { new_id: '/', type: 'other', models: twice })
  )
  assert.deepEqual(paths(renamed), ['body.type', 'body.new_id', 'body.models'])
})

test('a taken id answers 40921, an alias of another provider 40001', async t => {
  const { call, toml } = await start(t, { toml: '[models."new/small"]\nprovider = "other"\nmodel = "x"\nmax_context_size = 1\n' })
  await call(createProvider, { body: body('one') })
  const before = await toml()

  const again = await call(createProvider, { body: body('one') })
  assert.equal(again.code, ProviderExists.code)
  assert.equal(again.status, 200)
  assert.deepEqual(paths(await call(createProvider, { body: body('new') })), ['body.models'])
  assert.equal(await toml(), before)
})

test('unknown ids answer 40412 on every route, also names that objects have', async t => {
  const { call } = await start(t, { toml: '[providers.one]\n' })

  for (const id of ['nope', 'constructor', '__proto__']) {
    assert.equal((await call(readProvider, { params: params(id) })).code, ProviderMissing.code)
    const { id: _, ...form } = body(id)
    assert.equal((await call(replaceProvider, { params: params(id), body: form })).code, ProviderMissing.code)
    assert.equal((await call(deleteProvider, { params: params(id) })).code, ProviderMissing.code)
  }
})

const hand = `# mine
default_model = "old/a" # the first
default_provider = "old"

[providers.first]
type = "compat_chat"

[providers.old]
type = "compat_chat"
base_url = "https://old.example"
api_key = "sk-old" # keep
default_model = "old/a"
custom_headers = { X-Team = "t" }

[providers.last]
type = "compat_messages"

[models."old/a"]
provider = "old"
model = "a"
max_context_size = 1
display_name = "A"
max_output_size = 5
adaptive_thinking = true
off_effort = "none" # by hand

[models."old/b"]
provider = "old"
model = "b"
max_context_size = 2

[models.fast]
provider = "old"
model = "a"
max_context_size = 3

[models."last/x"]
provider = "last"
model = "x"
max_context_size = 4

[secondary_model]
default_model = "old/a"

[secondary_model.models]
"old/a" = "cheap"
"old/b" = "other"
"last/x" = "third"
`

test('replace rewrites the form fields and the aliases, keeps the rest, and touches no default', async t => {
  const { call, file, toml } = await start(t, { toml: hand })

  const { code, data } = await call(replaceProvider, {
    params: params('old'),
    body: {
      type: 'compat_responses',
      models: [
        { model: 'c', max_context_size: 7 },
        { model: 'a', max_context_size: 10 }
      ]
    }
  })

  assert.equal(code, 0)
  assert.deepEqual(data.provider, {
    id: 'old',
    type: 'compat_responses',
    default_model: 'old/a',
    has_api_key: true,
    status: 'connected',
    models: ['old/a', 'fast', 'old/c']
  })
  const after = (await file()) as { providers: Record<string, object>; models: Record<string, object>; secondary_model: { models: object } }
  assert.deepEqual(after.providers.old, { type: 'compat_responses', api_key: 'sk-old', custom_headers: { 'X-Team': 't' } })
  assert.deepEqual(after.models['old/a'], { provider: 'old', model: 'a', max_context_size: 10, off_effort: 'none' })
  assert.deepEqual(Object.keys(after.models), ['old/a', 'fast', 'last/x', 'old/c'])
  assert.deepEqual((await file()).default_model, 'old/a')
  assert.equal(Object.keys(after.secondary_model.models).length, 3)
  for (const comment of ['# mine', '# the first', '# keep', '# by hand']) assert.ok((await toml()).includes(comment), comment)
  assert.deepEqual(
    (await call(listProviders)).data.items.map(({ id }) => id),
    ['first', 'old', 'last']
  )
})

test('the key is kept, replaced or cleared', async t => {
  const { call } = await start(t, { toml: hand })
  const { id: _, ...form } = body('old')
  const keyAfter = async (more: object) => {
    const { data } = await call(replaceProvider, { params: params('old'), body: { ...form, ...more } })
    const read = (await call(readProvider, { params: params('old') })).data
    return [data.provider.has_api_key, data.provider.status, read.api_key]
  }

  assert.deepEqual(await keyAfter({}), [true, 'connected', 'sk-old'])
  assert.deepEqual(await keyAfter({ api_key: 'sk-new' }), [true, 'connected', 'sk-new'])
  assert.deepEqual(await keyAfter({ api_key: '' }), [false, 'unconfigured', undefined])
})

test('an empty base_url is none, as a form without one sends it', async t => {
  const { rest, file } = await start(t)
  const { id: _, ...form } = body('p', { base_url: 'https://models.example/v1' })
  const stored = async () => ((await file()).providers as Record<string, { base_url?: string }>).p?.base_url

  assert.equal((await rest.json('POST', '/api/v1/providers', { ...form, id: 'p', base_url: '' })).status, 201)
  assert.equal(await stored(), undefined)
  await rest.json('PUT', '/api/v1/providers/p', form)
  assert.equal(await stored(), 'https://models.example/v1')
  const { code, data } = await rest.json('PUT', '/api/v1/providers/p', { ...form, base_url: '' })
  assert.deepEqual([code, 'base_url' in (data as { provider: object }).provider, await stored()], [0, false, undefined])
})

test('a rename migrates aliases, defaults and the pool in one save', async t => {
  const { call, file, events } = await start(t, { toml: hand })

  const { code, data } = await call(replaceProvider, {
    params: params('old'),
    body: { new_id: 'new', type: 'compat_chat', default_model: 'a', models: [{ model: 'a', max_context_size: 5 }] }
  })

  assert.equal(code, 0)
  assert.equal(data.provider.id, 'new')
  assert.equal(data.provider.default_model, 'new/a')
  assert.deepEqual(data.provider.models, ['new/a', 'fast'])
  assert.equal(events.length, 1)
  assert.deepEqual(
    (await call(listProviders)).data.items.map(({ id }) => id),
    ['first', 'new', 'last']
  )
  const after = (await file()) as Record<string, Record<string, Record<string, unknown>>>
  assert.equal(after.default_provider, 'new')
  assert.equal(after.default_model, 'new/a')
  assert.equal(after.providers!.old, undefined)
  assert.equal(after.providers!.new!.api_key, 'sk-old')
  assert.equal(after.models!.fast!.provider, 'new')
  assert.equal(after.models!['new/a']!.off_effort, 'none')
  assert.deepEqual(after.secondary_model, { default_model: 'new/a', models: { 'new/a': 'cheap', 'last/x': 'third' } })
  assert.equal((await call(readProvider, { params: params('old') })).code, ProviderMissing.code)
})

test('a rename whose default model is not listed any more leaves the default where it is, and the pool goes with its own', async t => {
  const { call, file } = await start(t, { toml: hand })

  await call(replaceProvider, {
    params: params('old'),
    body: { new_id: 'new', type: 'svc', models: [{ model: 'b', max_context_size: 5 }] }
  })

  const after = await file()
  assert.equal(after.default_model, 'old/a')
  assert.equal(after.default_provider, 'new')
  assert.equal(after.secondary_model, undefined)
})

test('a rename to the same id is none; to a bad, taken or colliding one it is refused and nothing is written', async t => {
  const toml = `${hand}\n[models."new/a"]\nprovider = "last"\nmodel = "x"\nmax_context_size = 1\n\n${managed}`
  const { call, toml: text } = await start(t, { toml })
  const form = { type: 'compat_chat' as const, models: [{ model: 'a', max_context_size: 1 }] }
  const put = (id: string, more: object) => call(replaceProvider, { params: params(id), body: { ...form, ...more } })

  assert.deepEqual(paths(await put('old', { new_id: 'a/b' })), ['body.new_id'])
  assert.deepEqual(paths(await put('old', { base_url: placeholder })), ['body.base_url'])
  assert.equal((await put('nope', { new_id: 'last' })).code, ProviderMissing.code)
  assert.equal((await put('managed:svc-code', { new_id: 'last' })).code, ProviderManaged.code)
  assert.equal((await put('old', { new_id: 'last' })).code, ProviderExists.code)
  const collision = await put('old', { new_id: 'new' })
  assert.deepEqual([collision.code, paths(collision)], [40001, ['body.new_id']])
  assert.equal(await text(), toml)
  assert.equal((await put('old', { new_id: 'old' })).code, 0)
})

test('delete and rename take out of the pool, too, what a replace had dropped before', async t => {
  const toml = hand.replace('[secondary_model]\ndefault_model = "old/a"', '[secondary_model]\ndefault_model = "last/x"')
  const { call, file } = await start(t, { toml })
  const form = { type: 'compat_chat' as const, models: [{ model: 'a', max_context_size: 5 }] }
  const pool = async () => (await file()).secondary_model as { models: Record<string, string> } | undefined

  await call(replaceProvider, { params: params('old'), body: form })
  await call(replaceProvider, { params: params('old'), body: { ...form, new_id: 'new' } })
  assert.deepEqual((await pool())?.models, { 'new/a': 'cheap', 'last/x': 'third' })

  await call(replaceProvider, { params: params('last'), body: form })
  await call(deleteProvider, { params: params('last') })
  assert.equal(await pool(), undefined)
})

test('delete answers 204 without a body, takes the aliases and their place in the pool, and leaves the defaults', async t => {
  const { call, rest, file, toml } = await start(t, { toml: hand })

  const answer = await rest.raw('DELETE', '/api/v1/providers/old')

  assert.deepEqual([answer.status, answer.body.length], [204, 0])
  const after = (await file()) as Record<string, object>
  assert.deepEqual(Object.keys(after.models!), ['last/x'])
  assert.equal(after.default_model, 'old/a')
  assert.equal(after.default_provider, 'old')
  assert.equal(after.secondary_model, undefined)
  assert.ok((await toml()).startsWith('# mine\n'))
  assert.equal((await call(deleteProvider, { params: params('old') })).code, ProviderMissing.code)
  assert.equal((await call(deleteProvider, { params: params('last') })).status, 204)
})

test('a provider of a login cannot be replaced or deleted; it is connected while the login lasts', async t => {
  let status: 'authenticated' | 'expired' = 'authenticated'
  const { call, kernel, toml } = await start(t, { toml: managed, more: [logins({ status: () => status })] })
  const id = 'managed:svc-code'
  const { id: _, ...form } = body(id)

  assert.equal((await call(readProvider, { params: params(id) })).data.status, 'connected')
  status = 'expired'
  assert.equal((await call(readProvider, { params: params(id) })).data.status, 'unconfigured')
  assert.equal((await call(replaceProvider, { params: params(id), body: form })).code, ProviderManaged.code)
  assert.equal((await call(deleteProvider, { params: params(id) })).code, ProviderManaged.code)
  await kernel.unload('logins')
  const [item] = (await call(listProviders)).data.items
  assert.deepEqual([item?.status, item?.has_api_key], ['unconfigured', false])
  assert.equal(await toml(), managed)
})

test('records of the file are shown with their defaults: type, key of the env table, default model by bare name', async t => {
  const { call } = await start(t, {
    toml: '[providers.one]\ndefault_model = "m"\nenv = { ONE_API_KEY = "sk-env" }\n\n[models."one/m"]\nprovider = "one"\nmodel = "m"\nmax_context_size = 1\n'
  })

  const { data } = await call(readProvider, { params: params('one') })

  assert.deepEqual(data, {
    id: 'one',
    type: 'compat_chat',
    default_model: 'one/m',
    has_api_key: true,
    status: 'connected',
    models: ['one/m']
  })
})

test('while the file cannot be parsed every write is a 40001 that blames no field', async t => {
  const { call } = await start(t, { toml: 'broken = \n' })

  const answer = await call(createProvider, { body: body('one') })

  assert.equal(answer.code, 40001)
  assert.deepEqual(paths(answer), [''])
  assert.deepEqual((await call(readConfig)).data.providers, {})
})
