/** Credentials inside a base_url are kept and never shown. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listProviders, readProvider, replaceProvider } from '../../../features/providers/index.ts'
import { body, start } from './scene.ts'

const url = 'https://me:LEAK-1@models.example/v1?api_key=LEAK-2&api-version=2'
const shown = 'https://models.example/v1?api_key=&api-version=2'
const toml = `[providers.p]\ntype = "compat_chat"\nbase_url = " ${url} "\napi_key = "LEAK-3"\n`

test('a base_url is shown without user name, password and keys, also by the answer that carries the api_key', async t => {
  const { call } = await start(t, { toml })

  const list = await call(listProviders)
  const { data: one } = await call(readProvider, { params: { provider_id: 'p' } })

  assert.deepEqual([list.data.items[0]?.base_url, one.base_url, one.api_key], [shown, shown, 'LEAK-3'])
  assert.doesNotMatch(JSON.stringify(list), /LEAK/)
})

test('a replace with the URL as it is shown, or changed behind its host, keeps its credentials; another host gets none, and new ones count', async t => {
  const { call, file } = await start(t, { toml })
  const { id: _, ...form } = body('p')
  const replace = async (base_url: string) => {
    const answer = await call(replaceProvider, { params: { provider_id: 'p' }, body: { ...form, base_url } })
    assert.equal(answer.code, 0, answer.msg)
    assert.doesNotMatch(JSON.stringify(answer), /LEAK/)
    return ((await file()).providers as Record<string, { base_url: string }>).p?.base_url
  }

  assert.equal(await replace(shown), ` ${url} `)
  const changed = await replace('https://models.example/v2/chat?api-version=3&api_key=')
  assert.equal(changed, 'https://me:LEAK-1@models.example/v2/chat?api-version=3&api_key=LEAK-2')
  assert.equal(await replace('https://models.example/v2'), 'https://me:LEAK-1@models.example/v2')
  assert.equal(await replace('https://you:other@models.example/v2?api_key=b'), 'https://you:other@models.example/v2?api_key=b')
  assert.equal(await replace('https://other.example/v2?api_key='), 'https://other.example/v2?api_key=')
  await replace(url)
  const elsewhere = 'https://models.example\n.other.example/v2?api_key='
  assert.equal(await replace(elsewhere), elsewhere)
})
