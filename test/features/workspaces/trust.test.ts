/** Trust in a workspace: default, change, persistence, notice. */
import assert from 'node:assert/strict'
import { mkdir, rename, rmdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  deleteWorkspace,
  listWorkspaces,
  readTrust,
  registerWorkspace,
  trustWorkspace,
  untrustWorkspace,
  WorkspaceMissing,
  Workspaces
} from '../../../features/workspaces/index.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'

test('trust is off until given, survives a restart, and its listeners hear changes only', async t => {
  const heard: [string, boolean][] = []
  const listener = definePack({
    name: 'listener',
    needs: { workspaces: Workspaces },
    setup: (_ctx, services) => {
      services.workspaces.onTrustChange((id, trusted) => heard.push([id, trusted]))
    }
  })
  const first = await startTestKernel(t, { packs: [workspaces, listener] })
  const { id } = (await first.call(registerWorkspace, { body: { root: first.home } })).data
  const params = { workspace_id: id }

  assert.deepEqual((await first.call(readTrust, { params })).data, { trusted: false })
  assert.deepEqual((await first.call(trustWorkspace, { params })).data, { trusted: true })
  assert.deepEqual((await first.call(trustWorkspace, { params })).data, { trusted: true })
  await first.stop()
  const second = await startTestKernel(t, { packs: [workspaces], home: first.home })
  assert.deepEqual((await second.call(readTrust, { params })).data, { trusted: true })
  assert.deepEqual((await second.call(untrustWorkspace, { params })).data, { trusted: false })
  assert.deepEqual((await second.call(readTrust, { params })).data, { trusted: false })
  assert.deepEqual(heard, [[id, true]])
})

test('an unknown workspace has no trust to read or change, and unregistering withdraws it', async t => {
  const { call, home } = await startTestKernel(t, { packs: [workspaces] })
  const unknown = { params: { workspace_id: 'wd_a_0123456789ab' } }
  for (const route of [readTrust, trustWorkspace, untrustWorkspace]) assert.equal((await call(route, unknown)).code, WorkspaceMissing.code)

  const params = { workspace_id: (await call(registerWorkspace, { body: { root: home } })).data.id }
  await call(trustWorkspace, { params })
  await call(deleteWorkspace, { params })
  await call(registerWorkspace, { body: { root: home } })
  assert.deepEqual((await call(readTrust, { params })).data, { trusted: false })
})

test('a workspace whose trust cannot be withdrawn stays registered', async t => {
  const { call, home } = await startTestKernel(t, { packs: [workspaces] })
  const params = { workspace_id: (await call(registerWorkspace, { body: { root: home } })).data.id }
  await call(trustWorkspace, { params })
  const file = join(home, 'trust.json')
  await rename(file, `${file}.kept`)
  await mkdir(file)
  assert.notEqual((await call(deleteWorkspace, { params })).code, 0)
  assert.equal((await call(listWorkspaces)).data.items.length, 1)

  await rmdir(file)
  await rename(`${file}.kept`, file)
  assert.equal((await call(deleteWorkspace, { params })).code, 0)
  await call(registerWorkspace, { body: { root: home } })
  assert.deepEqual((await call(readTrust, { params })).data, { trusted: false })
})
