import assert from 'node:assert/strict'
import { test } from 'node:test'
import { clearItems, getItem, readLength, removeItem, setItem } from '../../../features/gui-store/index.ts'
import guiStore from '../../../features/gui-store/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

test('values are kept by key, also over a restart, and every key is an ordinary one', async t => {
  const home = await freshDir()
  const { call, kernel } = await startTestKernel(t, { packs: [guiStore], home })
  const keys = ['theme', '__proto__', 'constructor', 'a/b:c', 'ключ 钥匙', 'x'.repeat(256), '🔑'.repeat(256)]
  for (const key of keys) assert.deepEqual((await call(setItem, { body: { key, value: `of ${key}` } })).data, null)
  await call(setItem, { body: { key: 'theme', value: '' } })
  await kernel.stop()

  const next = await startTestKernel(t, { packs: [guiStore], home })
  assert.equal((await next.call(readLength)).data.length, keys.length)
  assert.equal((await next.call(getItem, { query: { key: 'theme' } })).data.value, '')
  for (const key of keys.slice(1)) assert.equal((await next.call(getItem, { query: { key } })).data.value, `of ${key}`)
})

test('what is not there is null, and removing it is fine', async t => {
  const { call } = await startTestKernel(t, { packs: [guiStore] })
  assert.equal((await call(getItem, { query: { key: 'nope' } })).data.value, null)
  assert.deepEqual([(await call(removeItem, { body: { key: 'nope' } })).code, (await call(clearItems)).code], [0, 0])
  await call(setItem, { body: { key: 'a', value: '1' } })
  await call(setItem, { body: { key: 'b', value: '2' } })
  await call(setItem, { body: { key: '\ufffd', value: '3' } })
  await call(removeItem, { body: { key: 'a' } })
  await call(removeItem, { body: { key: '\ud800' } })
  assert.equal((await call(getItem, { query: { key: '\ufffd' } })).data.value, '3', 'no other key stands for half a pair')
  await call(removeItem, { body: { key: '\ufffd' } })
  assert.equal((await call(readLength)).data.length, 1)
  await call(clearItems)
  assert.equal((await call(readLength)).data.length, 0)
})

test('wrong keys and values name their field and change nothing', async t => {
  const { call } = await startTestKernel(t, { packs: [guiStore] })
  for (const body of [
    { key: '', value: '' },
    { key: 'x'.repeat(257), value: '' },
    { key: '🔑'.repeat(257), value: '' },
    { key: `${'🔑'.repeat(200)}${'x'.repeat(57)}`, value: '' },
    { key: '\ud800', value: '' }
  ]) {
    const refused = await call(setItem, { body })
    assert.deepEqual([refused.code, refused.details?.[0]?.path], [40001, 'body.key'])
  }
  assert.equal((await call(setItem, { body: { key: 'a', value: 5 as unknown as string } })).code, 40001)
  assert.equal((await call(getItem, { query: { key: '' } })).code, 40001)
  assert.equal((await call(readLength)).data.length, 0)
})
