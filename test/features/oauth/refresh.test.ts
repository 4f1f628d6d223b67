/** Login and providers together: the models of the managed provider are listed once. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listModels, refreshLogins } from '../../../features/providers/index.ts'
import providers from '../../../features/providers/pack.ts'
import { scene } from './scene.ts'

test('a refresh after the login keeps its aliases instead of adding second ones', async t => {
  const { call, logIn } = await scene(t, { packs: [providers] })
  await logIn()
  const before = (await call(listModels)).data.items.map(item => item.model)
  assert.ok(before.length > 0 && before.every(alias => alias.startsWith('svc-code/')), before.join(' '))

  const report = (await call(refreshLogins)).data

  assert.deepEqual(report.failed, [])
  assert.deepEqual(
    (await call(listModels)).data.items.map(item => item.model),
    before
  )
})
