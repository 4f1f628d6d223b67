/** Changes of the configuration while a refresh asks, and writes of many clients at once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { patchConfig, readConfig } from '../../../features/config/index.ts'
import {
  createProvider,
  deleteProvider,
  listModels,
  listProviders,
  modelCatalogChanged,
  refreshProvider,
  refreshProviders,
  replaceProvider
} from '../../../features/providers/index.ts'
import { latch } from '../../helpers/latch.ts'
import { body, discovering, listServer, quiet, start } from './scene.ts'

const params = { provider_id: 'one' }
const list = { data: [{ id: 'found', context_length: 10 }] }

/** A provider whose answer waits for `release`. */
async function slow(t: Parameters<typeof listServer>[0], more = '') {
  const [asked, released] = [latch(), latch()]
  const { url } = await listServer(t, async () => {
    asked.open()
    await released.opened
    return list
  })
  const scene = await start(t, { toml: discovering(url) + more })
  return { ...scene, url, arrived: asked.opened, release: released.open }
}

test('a provider that is deleted while it is asked stays deleted', async t => {
  const { call, file, events, arrived, release } = await slow(t)

  const report = call(refreshProvider, { params })
  await arrived
  await call(deleteProvider, { params })
  release()

  assert.deepEqual((await report).data, { changed: [], unchanged: [], failed: [] })
  assert.deepEqual(Object.keys(await file()), ['model_catalog'])
  assert.ok(!events.some(({ type }) => type === modelCatalogChanged.type))
})

test('a provider that became another one while it was asked does not get the models of the first', async t => {
  const { call, file, arrived, release } = await slow(t)

  const report = call(refreshProvider, { params })
  await arrived
  await call(replaceProvider, {
    params,
    body: { type: 'svc', base_url: 'http://127.0.0.1:9', models: [{ model: 'mine', max_context_size: 1 }] }
  })
  release()

  assert.deepEqual((await report).data, { changed: [], unchanged: [], failed: [{ provider: 'one', reason: 'it was changed meanwhile' }] })
  assert.deepEqual(Object.keys((await file()).models as object), ['one/mine'])
})

test('whatever of a question changes while it is put, its answer is for another provider', async t => {
  for (const change of [{ custom_headers: { 'X-Team': 't' } }, { model_source: 'static' }, { env: { ONE_API_KEY: 'k' } }]) {
    const { call, arrived, release } = await slow(
      t,
      '[models."one/found"]\nprovider = "one"\nmodel = "found"\nmax_context_size = 10\ncapabilities = ["tool_use"]\n'
    )

    const report = call(refreshProvider, { params })
    await arrived
    assert.equal((await call(patchConfig, { body: { providers: { one: change } } })).code, 0)
    release()

    assert.deepEqual((await report).data.failed, [{ provider: 'one', reason: 'it was changed meanwhile' }], Object.keys(change)[0])
  }
})

test('at most four providers are asked at a time', async t => {
  let asked = 0
  const [four, released] = [latch(), latch()]
  const { url } = await listServer(t, async ({ path }) => {
    if (path === '/other') return {}
    if (++asked === 4) four.open()
    await released.opened
    return list
  })
  const providers = Array.from({ length: 8 }, (_, n) => `[providers.p${n}]\nbase_url = "${url}"\nmodel_source = "discover"\n`)
  const { call } = await start(t, { toml: quiet + providers.join('') })

  const report = call(refreshProviders)
  await four.opened
  await fetch(`${url}/other`)

  assert.equal(asked, 4)
  released.open()
  assert.equal((await report).data.changed.length, 8)
})

test('a renamed provider is not added again by the answer for its old name; what others write meanwhile stays', async t => {
  const { call, file, arrived, release } = await slow(t)

  const report = call(refreshProviders)
  await arrived
  await call(createProvider, { body: body('two') })
  await call(replaceProvider, { params, body: { type: 'svc', new_id: 'three', models: [{ model: 'mine', max_context_size: 1 }] } })
  release()

  assert.deepEqual((await report).data, { changed: [], unchanged: [], failed: [] })
  const { providers, models } = (await file()) as Record<string, object>
  assert.deepEqual(
    [Object.keys(providers!), Object.keys(models!).sort()],
    [
      ['three', 'two'],
      ['three/mine', 'two/small']
    ]
  )
})

test('refreshes that are asked for while one runs share the next round', async t => {
  let asked = 0
  const released = latch()
  const { url } = await listServer(t, async () => {
    if (++asked === 1) await released.opened
    return list
  })
  const { call, events } = await start(t, { toml: discovering(url) })

  const rounds = Array.from({ length: 20 }, () => call(refreshProviders))
  await new Promise(resolve => setImmediate(resolve))
  released.open()
  const reports = await Promise.all(rounds)

  assert.ok(asked <= 3, `${asked} questions for 20 requests`)
  assert.ok(reports.every(({ code, data }) => code === 0 && data.failed.length === 0))
  assert.equal(events.filter(({ type }) => type === modelCatalogChanged.type).length, 1)
})

test('fifty creates and fifty deletes at once end consistent: every one is answered, nothing is lost or left over', async t => {
  const { call, file } = await start(t, { toml: quiet })
  const names = Array.from({ length: 50 }, (_, n) => `p${n}`)
  for (const name of names) assert.equal((await call(createProvider, { body: body(`old ${name}`) })).code, 0)

  const answers = await Promise.all(
    names.flatMap(name => [
      call(createProvider, { body: body(name) }),
      call(deleteProvider, { params: { provider_id: `old ${name}` } }),
      call(createProvider, { body: body('same') })
    ])
  )

  const codes = answers.map(({ code }) => code)
  assert.deepEqual([codes.filter(code => code === 0).length, codes.filter(code => code === 40921).length], [101, 49])
  const { providers, models } = (await file()) as Record<string, object>
  assert.deepEqual(Object.keys(providers!).sort(), [...names, 'same'].sort())
  assert.deepEqual(Object.keys(models!).sort(), [...names, 'same'].map(name => `${name}/small`).sort())
  const shown = (await call(listProviders)).data.items
  assert.ok(shown.every(({ id, models: aliases }) => aliases.length === 1 && aliases[0] === `${id}/small`))
  assert.equal((await call(listModels)).data.items.length, 51)
  assert.deepEqual(Object.keys((await call(readConfig)).data.providers).sort(), Object.keys(providers!).sort())
})
