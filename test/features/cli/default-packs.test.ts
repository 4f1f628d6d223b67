import assert from 'node:assert/strict'
import { test } from 'node:test'
import { defaultPacks, loadDefaultPacks } from '../../../features/default-packs.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('a default pack whose module cannot be loaded is Failed with the reason, and the others run', async t => {
  const broken = { meta: defaultPacks.meta!, terminals: () => Promise.reject(new Error("Cannot find package 'node-pty'")) }

  const { kernel } = await startTestKernel(t, { packs: await loadDefaultPacks([], '1.2.3', broken) })

  const [meta, terminals] = kernel.features()
  assert.deepEqual([meta?.name, meta?.state], ['meta', 'Active'])
  assert.deepEqual([terminals?.name, terminals?.state], ['terminals', 'Failed'])
  assert.match(terminals?.meta.error ?? '', /could not be loaded: Cannot find package 'node-pty'/)
})
