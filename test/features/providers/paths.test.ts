/** Ids and aliases in URLs, methods that are no routes, and order of checks, as raw HTTP. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { ModelMissing, ProviderExists, ProviderManaged, ProviderMissing } from '../../../features/providers/index.ts'
import { body, paths, quiet, start } from './scene.ts'

const base = '/api/v1/providers'

test('ids of any script and names that objects have are created, read, replaced, refreshed and deleted through their URLs', async t => {
  const { rest, file } = await start(t)
  const ids = ['my work ', 'Ünï-9_', '模型', '𝒜', 'constructor', 'toString', 'hasOwnProperty', 'prototype', '0', 'x'.repeat(500)]

  for (const id of ids) {
    const one = `${base}/${encodeURIComponent(id)}`
    const { id: _, ...form } = body(id)
    assert.equal((await rest.json('POST', base, body(id))).status, 201, id)
    assert.deepEqual((await rest.json('GET', one)).data, {
      id,
      type: 'compat_chat',
      ...(id === ids[0] && { default_model: `${id}/small` }),
      has_api_key: false,
      status: 'unconfigured',
      models: [`${id}/small`]
    })
    assert.equal((await rest.json('PUT', one, { ...form, default_model: 'small' })).code, 0, id)
    assert.deepEqual((await rest.json('POST', `${one}:refresh`)).data, { changed: [], unchanged: [id], failed: [] })
    const alias = encodeURIComponent(`${id}/small`)
    assert.equal((await rest.json('POST', `/api/v1/models/${alias}:set_default`)).code, 0, id)
    assert.equal((await file()).default_model, `${id}/small`)
  }
  assert.deepEqual(((await rest.json('GET', base)).data as { items: { id: string }[] }).items.map(({ id }) => id).sort(), [...ids].sort())
  for (const id of ids) assert.equal((await rest.raw('DELETE', `${base}/${encodeURIComponent(id)}`)).status, 204, id)
  assert.deepEqual(Object.keys(await file()), ['default_model'])
})

test('ids that break the rule are refused on create and on rename', async t => {
  const { rest, toml } = await start(t, { toml: `${quiet}[providers.one]\n` })
  const before = await toml()
  const { id: _, ...form } = body('one')

  const bad = ['__proto__', 'a:b', 'managed:svc-code', 'a/b', 'a.b', '-a', '_a', ' a', 'a\n', 'a\tb', 'e\u0301', '😀', '', 'x'.repeat(501)]
  for (const id of bad) {
    const created = await rest.json('POST', base, body(id))
    const renamed = await rest.json('PUT', `${base}/one`, { ...form, new_id: id })
    assert.deepEqual([created.code, paths(created), renamed.code, paths(renamed)], [40001, ['body.id'], 40001, ['body.new_id']], id)
    assert.deepEqual([created.status, created.data], [200, null])
  }
  assert.equal(await toml(), before)
})

test('a patch brings in no provider and no model that no path can name', async t => {
  const { rest, toml } = await start(t, { toml: quiet })

  for (const name of ['', 'a\nb']) {
    const answer = await rest.json('POST', '/api/v1/config', {
      providers: { [name]: { type: 'svc' } },
      models: { [name]: { provider: 'p', model: 'm', max_context_size: 1 } }
    })
    assert.equal(answer.code, 40001, JSON.stringify(name))
    assert.equal(paths(answer)?.length, 2)
  }
  assert.equal(await toml(), quiet)
})

test('upper and lower case are different ids, aliases and types', async t => {
  const { rest } = await start(t)

  for (const id of ['acme', 'Acme']) assert.equal((await rest.json('POST', base, body(id))).code, 0)
  assert.equal((await rest.json('GET', `${base}/ACME`)).code, ProviderMissing.code)
  assert.equal((await rest.json('POST', '/api/v1/models/ACME%2Fsmall:set_default')).code, ModelMissing.code)
  assert.deepEqual(paths(await rest.json('POST', base, body('x', { type: 'Compat_Chat' }))), ['body.type'])
  assert.equal((await rest.json('GET', '/api/v1/Providers')).code, 40400)
})

test('ids of the file that break the rule are served, with colon and slash in the URL', async t => {
  const { rest, file } = await start(t, { toml: `${quiet}[providers."a:b/c"]\n[providers."a:refresh"]\n` })
  const { id: _, ...form } = body('x')

  assert.equal(((await rest.json('GET', `${base}/a:b%2Fc`)).data as { id: string }).id, 'a:b/c')
  assert.equal(((await rest.json('GET', `${base}/a%3Arefresh`)).data as { id: string }).id, 'a:refresh')
  assert.deepEqual((await rest.json('POST', `${base}/a%3Ab%2Fc:refresh`)).data, { changed: [], unchanged: ['a:b/c'], failed: [] })
  assert.equal((await rest.json('PUT', `${base}/a:b%2Fc`, form)).code, 0)
  assert.equal((await rest.json('PUT', `${base}/a:b%2Fc`, { ...form, new_id: 'a:b/c' })).code, 0, 'a rename to itself is none')
  assert.equal((await rest.raw('DELETE', `${base}/a:refresh`)).status, 204)
  assert.deepEqual(Object.keys((await file()).providers as object), ['a:b/c'])
})

test('HEAD is answered like GET, other methods and shapes of paths are no routes', async t => {
  const { rest } = await start(t, { toml: `${quiet}[providers.one]\napi_key = "k"\n` })

  for (const path of ['/api/v1/providers', '/api/v1/providers/one', '/api/v1/models', '/api/v1/auth']) {
    const { status, body: bytes } = await rest.raw('HEAD', path)
    assert.deepEqual([status, bytes.length], [200, 0], path)
  }
  for (const [method, path] of [
    ['PATCH', '/api/v1/providers/one'],
    ['PUT', '/api/v1/providers'],
    ['DELETE', '/api/v1/providers'],
    ['GET', '/api/v1/providers:refresh'],
    ['GET', '/api/v1/providers/one/models'],
    ['POST', '/api/v1/providers/'],
    ['POST', '/api/v1/models'],
    ['DELETE', '/api/v1/models/one'],
    ['POST', '/api/v1/auth']
  ] as const) {
    const { status, code } = await rest.json(method, path)
    assert.deepEqual([status, code], [404, 40400], `${method} ${path}`)
  }
  for (const path of ['/providers', '/providers/one', '/models', '/auth'])
    assert.equal((await rest.raw('GET', `/api/v1${path}`, { token: null })).status, 401)
})

test('bodies that are ignored may be anything', async t => {
  const { rest } = await start(t, { toml: `${quiet}[providers.one]\n[models.m]\nprovider = "one"\nmodel = "m"\nmax_context_size = 1\n` })

  const routes = ['providers:refresh', 'providers:refresh_oauth', 'providers/one:refresh', 'models/m:set_default']
  for (const path of routes) {
    for (const given of ['{broken', '[]', '"text"', 'null', '']) {
      const headers = { 'content-type': 'application/json' }
      const { status, body: bytes } = await rest.raw('POST', `/api/v1/${path}`, { headers, body: given })
      assert.deepEqual([status, (JSON.parse(bytes.toString()) as { code: number }).code], [200, 0], `${path} ${given}`)
    }
  }
})

test('a body that is none, or too large, is a 40001 and changes nothing', async t => {
  const { rest, home } = await start(t, { toml: `${quiet}[providers.one]\n` })
  const before = await readFile(join(home, 'config.toml'))
  const huge = { ...body('huge'), api_key: 'k'.repeat(1_100_000) }
  const many = body('many', { models: Array.from({ length: 5001 }, (_, n) => ({ model: `${n}`, max_context_size: 1 })) })

  for (const [method, path] of [
    ['POST', base],
    ['PUT', `${base}/one`]
  ] as const) {
    for (const given of [undefined, null, [], 'text', 5, {}, huge, many]) assert.equal((await rest.json(method, path, given)).code, 40001)
  }
  assert.deepEqual(await readFile(join(home, 'config.toml')), before)
})

test('checks come in order: form, unknown, login, taken, alias of another; after each refusal the file is the same', async t => {
  const toml = `${quiet}
[providers.one]
[providers.two]
[providers."managed:svc-code"]
oauth = { storage = "file", key = "svc-code" }
[models."new/small"]
provider = "two"
model = "x"
max_context_size = 1
[models."one/other"]
provider = "two"
model = "x"
max_context_size = 1
`
  const { rest, toml: text } = await start(t, { toml })
  const { id: _, ...form } = body('x')
  const put = async (id: string, more: object) => {
    const answer = await rest.json('PUT', `${base}/${id}`, { ...form, ...more })
    assert.equal(await text(), toml)
    return [answer.code, paths(answer)?.[0]]
  }
  const collides = { models: [{ model: 'other', max_context_size: 1 }] }
  const placeholder = ['$', '{X}'].join('')

  assert.deepEqual(await put('nope', { new_id: 'two', models: [] }), [40001, 'body.models'])
  assert.deepEqual(await put('nope', { new_id: 'a:b' }), [40001, 'body.new_id'])
  assert.deepEqual(await put('nope', { base_url: ` x${placeholder}` }), [40001, 'body.base_url'])
  assert.deepEqual(await put('nope', { default_model: 'y' }), [40001, 'body.default_model'])
  assert.deepEqual(await put('nope', { new_id: 'two' }), [ProviderMissing.code, undefined])
  assert.deepEqual(await put('managed:svc-code', { new_id: 'two' }), [ProviderManaged.code, undefined])
  assert.deepEqual(await put('one', { new_id: 'two', ...collides }), [ProviderExists.code, undefined])
  assert.deepEqual(await put('one', { new_id: 'new' }), [40001, 'body.new_id'])
  assert.deepEqual(await put('one', collides), [40001, 'body.models'])
  const refused = [
    await rest.json('DELETE', `${base}/nope`),
    await rest.json('DELETE', `${base}/managed:svc-code`),
    await rest.json('POST', base, body('one', collides)),
    await rest.json('POST', base, body('new')),
    await rest.json('POST', `${base}/nope:refresh`),
    await rest.json('POST', `${base}/nope:zap`),
    await rest.json('POST', '/api/v1/models/nope:set_default')
  ]
  assert.deepEqual(
    refused.map(({ code, status }) => [code, status]),
    [40412, 40003, 40921, 40001, 40412, 40001, 40413].map(code => [code, 200])
  )
  assert.equal(await text(), toml)
})
