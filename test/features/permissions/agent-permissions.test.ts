import assert from 'node:assert/strict'
import { test } from 'node:test'
import { AgentPermissions } from '../../../features/permissions/agent-permissions.ts'
import { memoryLog, openHistory } from '../../helpers/memory-history.ts'

test('mode and remembered approvals come back with the history; the default is not recorded', async () => {
  const log = memoryLog()
  const first = await AgentPermissions.open(await openHistory(log), 'manual')
  assert.equal(first.own, undefined)
  await first.setForAll('auto', 1)
  await first.setForAll('yolo', 2)
  await first.remember({ tool: 'Bash', argument: 'ls *' })
  await first.remember({ tool: 'Bash', argument: 'ls *' })
  await first.remember({ tool: 'Bash', argument: '' })
  await first.remember({ tool: 'Grep' })

  const second = await AgentPermissions.open(await openHistory(log), 'manual')

  assert.deepEqual(second.own, { mode: 'yolo', at: 2 })
  assert.deepEqual(second.approvals, [{ tool: 'Bash', argument: 'ls *' }, { tool: 'Bash', argument: '' }, { tool: 'Grep' }])
  assert.equal(log.lines.filter(line => line.includes('permission.')).length, 5)
})
