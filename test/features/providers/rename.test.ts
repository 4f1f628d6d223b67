/** What a rename takes along, and what becomes of a renamed provider that a registry lists. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { importRegistry } from '../../../features/catalog/index.ts'
import catalog from '../../../features/catalog/pack.ts'
import { readProvider, refreshProvider, refreshProviders, replaceProvider } from '../../../features/providers/index.ts'
import { listServer, paths, quiet, start } from './scene.ts'

const model = (provider: string, name: string, more = '') =>
  `[models."${more || `${provider}/${name}`}"]\nprovider = "${provider}"\nmodel = "${name}"\nmax_context_size = 1\n`
const form = (...names: string[]) => ({
  type: 'compat_chat' as const,
  models: names.map(name => ({ model: name, max_context_size: 2 }))
})

test('aliases, both defaults and the pool move in one save, also aliases below the old id that are called otherwise', async t => {
  const toml = `default_model = "old/short"
default_provider = "old"
${quiet}
[providers.old]
default_model = "old/a"
${model('old', 'a')}
${model('old', 'vendor/long', 'old/short')}
${model('old', 'a', 'fast')}
${model('other', 'a', 'old/foreign')}
[providers.other]
[secondary_model]
model = "old/a"
[secondary_model.models]
"old/short" = "one"
"fast" = "two"
"old/foreign" = "three"
`
  const { call, file, events } = await start(t, { toml })

  const { code, data } = await call(replaceProvider, {
    params: { provider_id: 'old' },
    body: { ...form('a', 'vendor/long'), new_id: 'new id', default_model: 'a' }
  })

  assert.equal(code, 0)
  assert.deepEqual(data.provider.models, ['new id/a', 'new id/short', 'fast', 'new id/vendor/long'])
  assert.equal(data.provider.default_model, 'new id/a')
  assert.equal(events.filter(({ type }) => type === 'event.config.changed').length, 1)
  const after = (await file()) as Record<string, Record<string, Record<string, unknown>>>
  assert.deepEqual([after.default_model, after.default_provider], ['new id/short', 'new id'])
  assert.deepEqual(Object.keys(after.models!), ['new id/a', 'new id/short', 'fast', 'old/foreign', 'new id/vendor/long'])
  assert.equal(after.models!['old/foreign']!.provider, 'other')
  assert.deepEqual(after.secondary_model, {
    model: 'new id/a',
    models: { 'new id/short': 'one', fast: 'two', 'old/foreign': 'three' }
  })
})

test('fields that nobody knows move, too, also those that look like known ones', async t => {
  const toml = `${quiet}[providers.old]\ntype = "compat_chat"\nbase_urls = ["x"]\n${model('old', 'a')}maxContextSize = 7\n${model('old', 'b')}`
  const { call, file } = await start(t, { toml })

  const answer = await call(replaceProvider, { params: { provider_id: 'old' }, body: { ...form('a', 'b'), new_id: 'new' } })

  assert.equal(answer.code, 0, answer.msg)
  const after = (await file()) as Record<string, Record<string, Record<string, unknown>>>
  assert.deepEqual(after.providers?.new?.base_urls, ['x'])
  assert.equal(after.models?.['new/a']?.maxContextSize, 7)
})

test('an alias below the old id that would become one of another provider refuses the rename', async t => {
  const toml = `${quiet}[providers.old]\n${model('old', 'vendor/long', 'old/short')}\n[providers.other]\n${model('other', 'x', 'new/short')}`
  const { call, toml: text } = await start(t, { toml })

  const answer = await call(replaceProvider, { params: { provider_id: 'old' }, body: { ...form('vendor/long'), new_id: 'new' } })

  assert.deepEqual([answer.code, paths(answer)], [40001, ['body.new_id']])
  assert.equal(await text(), toml)
})

test('a listed model gets its alias although that of another one would come to stand there', async t => {
  const { call, file } = await start(t, { toml: `${quiet}[providers.old]\n${model('old', 'vendor/long', 'old/short')}` })

  await call(replaceProvider, { params: { provider_id: 'old' }, body: { ...form('vendor/long', 'short'), new_id: 'new' } })

  const models = Object.entries((await file()).models as Record<string, { model: string }>)
  assert.deepEqual(
    models.map(([alias, record]) => [alias, record.model]),
    [
      ['new/vendor/long', 'vendor/long'],
      ['new/short', 'short']
    ]
  )
})

const registry = (...ids: string[]) =>
  Object.fromEntries(
    ids.map(id => [id, { id, name: `N ${id}`, api: `https://${id}.example`, type: 'compat_chat', models: { m: { id: `up/${id}` } } }])
  )

test('a renamed provider of a registry goes on under its new name; another rename back is one, too', async t => {
  let listed = registry('a', 'b')
  const { url } = await listServer(t, () => listed)
  const { call, file } = await start(t, { toml: quiet, more: [catalog] })
  const body = { url: `${url}/api.json` }
  await call(importRegistry, { body })
  const rename = (from: string, new_id: string) =>
    call(replaceProvider, { params: { provider_id: from }, body: { ...form('up/a'), new_id } })
  const state = async () => {
    const { providers, models } = (await file()) as Record<string, Record<string, { source: unknown }>>
    return [Object.keys(providers!), Object.keys(models!), providers!.work?.source]
  }

  assert.equal((await rename('a', 'work')).code, 0)
  const moved = { kind: 'apiJson', url: body.url, id: 'a' }
  assert.deepEqual(await state(), [['work', 'b'], ['work/m', 'b/m', 'work/up/a'], moved])

  const report = (await call(refreshProviders)).data
  assert.deepEqual(report, {
    changed: [{ provider_id: 'work', provider_name: 'N a', added: 0, removed: 1 }],
    unchanged: ['b'],
    failed: []
  })
  assert.deepEqual(await state(), [['work', 'b'], ['work/m', 'b/m'], moved])
  assert.deepEqual((await call(refreshProvider, { params: { provider_id: 'work' } })).data.unchanged, ['work'])

  const again = (await call(importRegistry, { body })).data
  assert.deepEqual(
    again.providers.map(({ id }) => id),
    ['work', 'b']
  )
  assert.deepEqual(await state(), [['work', 'b'], ['work/m', 'b/m'], moved])

  listed = registry('b')
  assert.deepEqual((await call(refreshProviders)).data.changed, [{ provider_id: 'work', provider_name: 'work', added: 0, removed: 1 }])
  assert.equal((await call(readProvider, { params: { provider_id: 'work' } })).code, 40412)

  listed = registry('a', 'b')
  await call(refreshProviders)
  await rename('a', 'work')
  await rename('work', 'a')
  const { providers } = (await file()) as Record<string, Record<string, { source: unknown }>>
  assert.deepEqual(providers!.a?.source, { kind: 'apiJson', url: body.url })
})

test('a listed provider whose id is the new name of a renamed one of its registry gets another, and keeps it', async t => {
  let listed = registry('a')
  const { url } = await listServer(t, () => listed)
  const { call, file } = await start(t, { toml: quiet, more: [catalog] })
  const body = { url: `${url}/api.json` }
  await call(importRegistry, { body })
  await call(replaceProvider, { params: { provider_id: 'a' }, body: { ...form('m'), new_id: 'b' } })
  listed = registry('a', 'b', 'b-2')

  for (const _ of ['the first time', 'again']) {
    const { providers } = (await call(importRegistry, { body })).data
    assert.deepEqual(
      providers.map(({ id, models }) => [id, models]),
      [
        ['b', ['b/m']],
        ['b-3', ['b-3/m']],
        ['b-2', ['b-2/m']]
      ]
    )
    const records = ((await file()) as Record<string, Record<string, { source: unknown }>>).providers!
    assert.deepEqual(
      [records.b?.source, records['b-3']?.source].map(source => (source as { id: string }).id),
      ['a', 'b']
    )
  }
})
