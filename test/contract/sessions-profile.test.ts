/** Creating a session, profile updates and what follows from them (contract 2, POST sessions, POST profile, GET status). */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { conversation } from '../helpers/conversation.ts'

const extra =
  '[providers.q]\ntype = "compat_chat"\nbase_url = "https://example.invalid/v1"\n[models.keyless]\nprovider = "q"\nmodel = "x"\nmax_context_size = 1000'

test('a model that cannot be used is refused as a bad field, and what came before it stays', async t => {
  const { api, session_id } = await conversation(t, { toml: extra })
  const profile = (body: unknown) => api('POST', `/sessions/${session_id}/profile`, body)
  for (const model of ['unknown', 'keyless']) {
    const refused = await profile({ title: `for ${model}`, agent_config: { model } })
    assert.equal(refused.code, 40001)
    assert.equal(refused.details?.[0]?.path, 'body.agent_config.model')
    assert.equal((await api('GET', `/sessions/${session_id}`)).data.title, `for ${model}`)
  }
  assert.equal((await profile({ agent_config: { model: '' } })).code, 0, 'an empty model is ignored')
})

test('a thinking level can be set while the default model has no credential', async t => {
  const { api, session_id } = await conversation(t)
  assert.equal((await api('POST', '/config', { default_model: 'keyless', providers: { q: { type: 'compat_chat' } } })).code, 0)
  const models = { keyless: { provider: 'q', model: 'x', maxContextSize: 1000, baseUrl: 'https://example.invalid/v1' } }
  assert.equal((await api('POST', '/config', { models })).code, 0)
  const refused = await api('POST', `/sessions/${session_id}/prompts`, { content: [{ type: 'text', text: 'x' }] })
  assert.equal(refused.code, 40111)
  assert.equal((await api('POST', `/sessions/${session_id}/profile`, { agent_config: { thinking: 'high' } })).code, 0)
})

test('before the first prompt the status shows the permission mode that the session will have', async t => {
  const { api, session_id } = await conversation(t, { toml: 'default_permission_mode = "yolo"' })
  assert.equal((await api('GET', `/sessions/${session_id}/status`)).data.permission, 'yolo')
})

test('a session keeps the modes that were the default when it was made, used or not, in its forks and after a restart; new ones have the new', async t => {
  const first = await conversation(t, { toml: 'default_permission_mode = "auto"\ndefault_plan_mode = true' })
  const { home, cwd, session_id: used, api } = first
  const make = async (path: string, body: unknown) => (await api('POST', path, body)).data.id as string
  const unused = await make('/sessions', { metadata: { cwd } })
  await first.turn([])
  const modesOf = async (from: typeof api, id: string) => {
    const { permission, plan_mode } = (await from('GET', `/sessions/${id}/status`)).data
    return [permission, plan_mode]
  }

  await api('POST', '/config', { default_permission_mode: 'yolo', default_plan_mode: false })

  const later = await make('/sessions', { metadata: { cwd } })
  const copy = await make(`/sessions/${unused}:fork`, {})
  const expected = async (from: typeof api) => {
    for (const id of [used, unused, copy]) assert.deepEqual(await modesOf(from, id), ['auto', true])
    assert.deepEqual(await modesOf(from, later), ['yolo', false])
  }
  await expected(api)
  await first.stop()
  const again = await conversation(t, { home, cwd, session_id: used, toml: 'default_permission_mode = "manual"' })
  await expected(again.api)
})

test('skills next to a prompt_id are a bad body only for a session that exists', async t => {
  const { api, session_id } = await conversation(t)
  const body = { content: [{ type: 'text', text: 'x' }], prompt_id: 'a', skills: [{ name: 'x' }] }
  assert.equal((await api('POST', '/sessions/session_nobody/prompts', body)).code, 40401)
  assert.equal((await api('POST', `/sessions/${session_id}/prompts`, body)).code, 40001)
})

test('a working directory that is relative, missing or a file answers 40409; no directory at all is a bad field', async t => {
  const { api, cwd } = await conversation(t)
  const create = async (body: unknown) => api('POST', '/sessions', body)
  await writeFile(join(cwd, 'file'), '')
  for (const bad of ['relative/dir', join(cwd, 'gone'), join(cwd, 'file')]) {
    assert.equal((await create({ metadata: { cwd: bad } })).code, 40409, bad)
  }
  for (const body of [{}, { metadata: {} }, { metadata: { cwd: 5 } }]) {
    const { code, details } = await create(body)
    assert.deepEqual([code, details?.[0]?.path], [40001, 'body.metadata.cwd'])
  }
})

test('metadata is stored at creation and merged key by key later; cwd and goal are not part of it', async t => {
  const { api, cwd, events } = await conversation(t)
  const { id, workspace_id } = (await api('POST', '/sessions', { metadata: { cwd, a: 1, goal: 'x' } })).data
  const again = await api('POST', '/sessions', { workspace_id, metadata: { b: 1 } })
  assert.deepEqual(again.data.metadata, { b: 1, cwd }, 'next to workspace_id no cwd is needed')
  const profile = (body: unknown) => api('POST', `/sessions/${id}/profile`, body)
  const before = (await api('GET', `/sessions/${id}`)).data
  assert.deepEqual((await profile({})).data, before, 'an empty update is a read')
  const { data } = await profile({ metadata: { b: { x: 1 }, cwd: '/etc', goal: 1 } })
  assert.deepEqual(data.metadata, { a: 1, b: { x: 1 }, cwd })
  assert.deepEqual((await profile({ metadata: { b: { y: 2 } } })).data.metadata, { a: 1, b: { y: 2 }, cwd })
  events.length = 0
  const titled = (await profile({ title: 'Mine' })).data
  assert.deepEqual(
    events.map(event => event.type),
    ['session.meta.updated']
  )
  assert.equal(titled.title, 'Mine')
})
