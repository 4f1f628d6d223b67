import assert from 'node:assert/strict'
import { test } from 'node:test'
import { listWorkspaces } from '../../../features/workspaces/index.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('a fresh home has no workspaces', async t => {
  const { call } = await startTestKernel(t, { packs: [workspaces] })

  const { data } = await call(listWorkspaces)

  assert.deepEqual(data.items, [])
})
