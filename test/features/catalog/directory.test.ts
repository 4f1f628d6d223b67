/** The live directory over HTTP: cache, shared fetch, patience, ways back. */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Options } from '../../../features/catalog/contract.ts'
import { DIRECTORY_LIMIT_BYTES, directoryUrl } from '../../../features/catalog/directory.ts'
import { DirectoryUnavailable, EntryMissing, importCatalog, listCatalog, readCatalogEntry } from '../../../features/catalog/index.ts'
import type { Scene } from '../providers/scene.ts'
import { silent, stalled, startCatalog, upstream } from './scene.ts'

const entry = (id: string) => ({ id, name: id, api: `https://${id}.example`, models: { m: { id: 'm', limit: { context: 1000 } } } })
const ids = async ({ call }: Pick<Scene, 'call'>) => (await call(listCatalog)).data.items.map(({ id }) => id)
/** First entry of the built-in directory. */
const builtIn = 'anthropic'

test('a live directory keeps upstream order, is fetched once for all who wait and then every ten minutes', async t => {
  const live = await upstream(t, { zeta: entry('zeta'), alpha: entry('alpha') })
  let at = Date.now()
  const scene = await startCatalog(t, { directory: live.url, now: () => new Date(at) })
  assert.equal(live.asked.length, 0, 'nothing is fetched before somebody asks')

  assert.deepEqual(await Promise.all([ids(scene), ids(scene), ids(scene)]), Array(3).fill(['zeta', 'alpha']))
  assert.deepEqual(
    live.asked.map(({ path }) => path),
    ['/api.json']
  )
  const { headers } = live.asked[0]!
  assert.match(String(headers['user-agent']), /^svc-code\//)
  assert.equal(headers.accept, 'application/json')
  at += 599_000
  await ids(scene)
  assert.equal(live.asked.length, 1)

  at += 2_000
  live.reply = 503
  assert.deepEqual(await ids(scene), ['zeta', 'alpha'], 'the older answer serves')
  assert.equal(live.asked.length, 2)
  at += 59_000
  await ids(scene)
  assert.equal(live.asked.length, 2, 'for a minute')
  live.reply = { beta: entry('beta') }
  at += 2_000
  assert.deepEqual(await ids(scene), ['beta'])

  at -= 86_400_000
  live.reply = { gamma: entry('gamma') }
  assert.deepEqual(await ids(scene), ['gamma'], 'a clock that goes back keeps nothing fresh for longer')
})

test('one entry is an own entry of the directory: names of the language are unknown', async t => {
  const live = await upstream(t, { alpha: entry('alpha') })
  const { call } = await startCatalog(t, { directory: live.url })

  const { data } = await call(readCatalogEntry, { params: { catalog_id: 'alpha' } })
  assert.deepEqual(data, {
    id: 'alpha',
    name: 'alpha',
    wire_type: 'compat_chat',
    guessed: true,
    needs_base_url: false,
    rejected: false,
    reject_reason: null,
    env_key: null,
    models: [{ id: 'm', max_context_size: 1000, capabilities: ['tool_use'], reasoning: false }]
  })
  for (const catalog_id of ['nope', 'constructor', '__proto__', 'toString'])
    assert.equal((await call(readCatalogEntry, { params: { catalog_id } })).code, EntryMissing.code)
})

test('a directory that fails gives way to the built-in one, which then counts as asked for ten minutes', async t => {
  const tooLong = Buffer.alloc(DIRECTORY_LIMIT_BYTES + 1, ' ')
  for (const reply of [500, 302, 404, 'not json', '[]', {}, '{"a":{"id":"a"}', 'null', tooLong]) {
    const live = await upstream(t, reply)
    let at = Date.now()
    const scene = await startCatalog(t, { directory: `${live.url}/api.json`, now: () => new Date(at) })
    assert.equal((await ids(scene))[0], builtIn)
    at += 599_000
    await ids(scene)
    assert.deepEqual(
      live.asked.map(({ path }) => path),
      ['/api.json'],
      'no redirect is followed, and nobody asks again'
    )
    live.reply = { a: entry('a') }
    at += 2_000
    assert.deepEqual(await ids(scene), ['a'])
  }
})

test('an address that nobody listens on, or that is none, gives way to the built-in directory', async t => {
  for (const directory of ['http://127.0.0.1:1', 'file:///etc', 'models.example']) {
    assert.equal((await ids(await startCatalog(t, { directory })))[0], builtIn)
  }
})

test('off and nothing mean that there is no live directory, whatever the deployment says', async t => {
  const live = await upstream(t, { a: entry('a') })
  const options = { directory: live.url }
  for (const directory of ['off', 'OFF', '', ' ']) assert.equal((await ids(await startCatalog(t, { directory, options })))[0], builtIn)
  assert.equal(live.asked.length, 0)

  assert.deepEqual(await ids(await startCatalog(t, { options })), ['a'])
})

test('the address is the root of a directory or its document; a query stays', () => {
  const at = (SVC_CODE_CATALOG_URL: string) => directoryUrl({ SVC_CODE_CATALOG_URL }, 'off')

  assert.equal(at('https://d.example'), 'https://d.example/api.json')
  assert.equal(at('https://d.example/sub//'), 'https://d.example/sub/api.json')
  assert.equal(at(' https://d.example/sub?v=2 '), 'https://d.example/sub/api.json?v=2')
  assert.equal(at('https://d.example/api.json?v=2'), 'https://d.example/api.json?v=2')
  assert.equal(at('https://d.example/mine.json'), 'https://d.example/mine.json')
  assert.equal(directoryUrl({}, 'https://d.example'), 'https://d.example/api.json')
  assert.equal(directoryUrl({}, 'off'), undefined)
  assert.equal(at('models.example'), 'models.example', 'the request says what is wrong with it')
})

test('nobody waits long for a slow directory: the built-in one answers, and the next caller gets what came in the end', async t => {
  const live = await upstream(t, silent)
  const scene = await startCatalog(t, { directory: live.url, options: { patience_ms: 1 } })

  assert.equal((await ids(scene))[0], builtIn)
  assert.equal((await ids(scene))[0], builtIn)
  assert.equal((await scene.call(readCatalogEntry, { params: { catalog_id: builtIn } })).data.id, builtIn)
  const unknown = scene.call(readCatalogEntry, { params: { catalog_id: 'slow' } })
  live.reply = { slow: entry('slow') }
  live.release()

  assert.equal((await unknown).data.id, 'slow', 'an entry that the built-in one lacks is worth the wait')
  assert.deepEqual(await ids(scene), ['slow'])
  assert.equal(live.asked.length, 1)
})

test('nobody waits long when the cache has run out either: the older answer serves meanwhile', async t => {
  const live = await upstream(t, { old: entry('old') })
  let at = Date.now()
  const scene = await startCatalog(t, { directory: live.url, now: () => new Date(at), options: { patience_ms: 1 } })
  await scene.call(readCatalogEntry, { params: { catalog_id: 'old' } })
  assert.deepEqual(await ids(scene), ['old'])

  at += 601_000
  live.reply = silent
  assert.deepEqual(await ids(scene), ['old'])
  const unknown = scene.call(readCatalogEntry, { params: { catalog_id: 'new' } })
  live.reply = { new: entry('new') }
  live.release()
  assert.equal((await unknown).data.id, 'new')
})

test('a directory that does not finish in its time, ten seconds unless said otherwise, counts as failed', async t => {
  for (const reply of [silent, stalled]) {
    const live = await upstream(t, reply)
    const scene = await startCatalog(t, { directory: live.url, options: { snapshot: false, timeout_ms: 20 } })
    assert.equal((await scene.call(listCatalog)).code, DirectoryUnavailable.code)
    assert.equal(live.asked.length, 1)
  }
  assert.equal(Options.properties.timeout_ms.default, 10_000)
})

test('without a built-in directory a failure is 50004 on every route that needs one, and nothing is remembered', async t => {
  const live = await upstream(t, 500)
  const { call, rest } = await startCatalog(t, { directory: live.url, options: { snapshot: false } })

  assert.equal((await call(listCatalog)).code, DirectoryUnavailable.code)
  assert.equal((await call(readCatalogEntry, { params: { catalog_id: 'a' } })).code, DirectoryUnavailable.code)
  const refused = await call(importCatalog, { body: { catalog_id: 'a' } })
  assert.deepEqual([refused.status, refused.code, refused.data], [200, 50004, null])
  assert.equal((await rest.json('POST', '/api/v1/providers:import_catalog', {})).code, 40001, 'validation comes first')
  live.reply = { a: entry('a') }
  assert.equal((await call(importCatalog, { body: { catalog_id: 'a' } })).code, 0)

  const alone = await startCatalog(t, { options: { snapshot: false } })
  assert.equal((await alone.call(listCatalog)).code, DirectoryUnavailable.code)
})

test('offline the built-in directory answers and nobody is called, until the switch is off', async t => {
  const live = await upstream(t, { live: entry('live') })
  const started = await startCatalog(t, { directory: live.url, offline: true })
  assert.equal((await ids(started))[0], builtIn)
  await started.stop()

  const { home, ...scene } = await startCatalog(t, { directory: live.url, toml: 'offline = true\n' })
  assert.equal((await ids(scene))[0], builtIn)
  assert.equal((await scene.call(readCatalogEntry, { params: { catalog_id: 'live' } })).code, EntryMissing.code)
  assert.equal(live.asked.length, 0)

  const changed = scene.waitFor(({ type }) => type === 'event.config.changed')
  await writeFile(join(home, 'config.toml'), '')
  await changed
  assert.deepEqual(await ids(scene), ['live'])
})
