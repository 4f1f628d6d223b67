/** What clients hear of changes, over a real socket. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configChanged } from '../../../features/config/index.ts'
import {
  createProvider,
  deleteProvider,
  modelCatalogChanged,
  refreshProvider,
  refreshProviders,
  replaceProvider,
  setDefaultModel
} from '../../../features/providers/index.ts'
import { body, discovering, listServer, quiet, start } from './scene.ts'

test('a socket hears of a refresh that changed an alias, and of no other', async t => {
  let models: unknown = { data: [{ id: 'a', context_length: 10 }] }
  const { url } = await listServer(t, () => models)
  const { call, connect } = await start(t, { toml: discovering(url) })
  const socket = await connect()
  const params = { provider_id: 'one' }

  const first = (await call(refreshProvider, { params })).data
  await call(refreshProvider, { params })
  await call(refreshProviders)
  models = 'broken'
  await call(refreshProviders)
  models = { data: [] }
  await call(refreshProviders)
  models = { data: [{ id: 'a', context_length: 11 }] }
  const second = (await call(refreshProviders)).data

  const heard = () => socket.frames.filter(({ type }) => type === modelCatalogChanged.type)
  await socket.next(frame => frame.type === modelCatalogChanged.type && frame.payload.changed[0].added === 0)
  assert.deepEqual(
    heard().map(({ payload: { changed, unchanged, failed } }) => ({ changed, unchanged, failed })),
    [first, second]
  )
  assert.deepEqual(second.changed, [{ provider_id: 'one', provider_name: 'one', added: 0, removed: 0 }])
})

test('a socket hears of every write of a provider once, with the fields that changed and without keys', async t => {
  const { call, connect } = await start(t, { toml: quiet })
  const socket = await connect()
  const { id: _, ...form } = body('one')
  const params = { provider_id: 'one' }

  await call(createProvider, { body: body('one', { api_key: 'sk-hidden' }) })
  await call(replaceProvider, { params, body: { ...form, new_id: 'two', api_key: 'sk-hidden-2' } })
  await call(replaceProvider, { params: { provider_id: 'two' }, body: form })
  await call(replaceProvider, { params: { provider_id: 'two' }, body: form })
  await call(createProvider, { body: body('two') })
  await call(setDefaultModel, { params: { model_id: 'two/small' } })
  await call(deleteProvider, { params: { provider_id: 'two' } })

  const frames = () => socket.frames.filter(({ type }) => type === configChanged.type)
  await socket.next(frame => frame.type === configChanged.type && Object.keys(frame.payload.config.providers).length === 0)
  assert.deepEqual(
    frames().map(({ payload }) => [...payload.changed_fields].sort()),
    [
      ['default_model', 'models', 'providers'],
      ['default_model', 'models', 'providers'],
      ['models', 'providers']
    ],
    'a replace that changes nothing, a refusal and a default that is one already are no changes'
  )
  assert.doesNotMatch(JSON.stringify(socket.frames), /sk-hidden/)
})
