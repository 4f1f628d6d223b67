/** The built-in directory is read like a live one, and all of it can be used. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type DirectoryEntry, importCatalog, listCatalog } from '../../../features/catalog/index.ts'
import { snapshot } from '../../../features/catalog/snapshot.ts'
import { startCatalog } from './scene.ts'

const isLocal = ({ id }: DirectoryEntry) => id.startsWith('local-')

const protocols: Readonly<Record<string, DirectoryEntry['wire_type']>> = {
  anthropic: 'compat_messages',
  openai: 'compat_responses',
  google: 'compat_genai',
  'google-vertex': 'compat_cloud',
  xai: 'compat_responses',
  meta: 'compat_responses',
  deepseek: 'compat_chat',
  mistral: 'compat_chat',
  moonshotai: 'compat_chat',
  zai: 'compat_chat',
  minimax: 'compat_messages',
  xiaomi: 'compat_chat',
  groq: 'compat_chat',
  cerebras: 'compat_chat',
  togetherai: 'compat_chat',
  'fireworks-ai': 'compat_chat',
  openrouter: 'compat_chat',
  'local-chat': 'compat_chat',
  'local-responses': 'compat_responses',
  'local-messages': 'compat_messages'
}

test('every entry is listed with its protocol, its endpoint and the name of its key, servers on this machine last', async t => {
  const { call } = await startCatalog(t)

  const { items } = (await call(listCatalog)).data

  assert.deepEqual(Object.fromEntries(items.map(({ id, wire_type }) => [id, wire_type])), protocols)
  assert.deepEqual(
    items.map(({ id }) => id),
    Object.keys(protocols)
  )
  for (const one of items) {
    assert.deepEqual([one.rejected, one.guessed, one.needs_base_url], [false, false, false], one.id)
    if (isLocal(one)) assert.equal(one.env_key, null)
    else assert.match(one.env_key ?? '', /^[A-Z]+(_[A-Z]+)*_KEY$/, one.id)
  }
})

test('every entry can be imported, none of its models is lost, and each has a price', async t => {
  const { call, file } = await startCatalog(t)
  const listed = JSON.parse(snapshot) as Record<string, { models: object }>

  for (const { id, models } of (await call(listCatalog)).data.items) {
    const { status, data } = await call(importCatalog, { body: { catalog_id: id } })
    assert.equal(status, 201)
    assert.equal(data.models_imported, models.length)
    assert.equal(models.length, Object.keys(listed[id]?.models ?? {}).length)
    assert.match(data.provider.base_url ?? '', isLocal({ id } as DirectoryEntry) ? /^http:\/\/127\.0\.0\.1:/ : /^https:\/\/\S+[^/]$/)
  }

  const { providers } = (await file()) as { providers: Record<string, { auth?: string }> }
  const keyless = Object.keys(providers).filter(id => providers[id]!.auth === 'none')
  assert.ok(keyless.length === 3 && keyless.every(id => id.startsWith('local-')), 'a server on this machine needs no key, all others do')
  const { models } = (await file()) as { models: Record<string, { cost?: { input: number; output: number } }> }
  for (const [alias, { cost }] of Object.entries(models)) {
    assert.ok(cost, alias)
    assert.equal(cost.input > 0 && cost.output > 0, !alias.startsWith('local-'), alias)
  }
})

test('it is small and holds no placeholder', () => {
  assert.ok(Buffer.byteLength(snapshot) <= 60 * 1024)
  assert.ok(!snapshot.includes('${'))
})
