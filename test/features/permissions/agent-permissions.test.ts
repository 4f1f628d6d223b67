import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { History, HistoryRecord } from '../../../features/history/index.ts'
import { AgentPermissions } from '../../../features/permissions/agent-permissions.ts'

function fakeHistory(records: HistoryRecord[]): History {
  return {
    records: type => records.filter(record => record.type === type),
    append: async (...added) => void records.push(...added)
  } as Partial<History> as History // only what permissions use
}

test('mode and remembered approvals come back with the history; the default is not recorded', async () => {
  const records: HistoryRecord[] = []
  const first = new AgentPermissions(fakeHistory(records), 'manual')
  assert.equal(first.mode, undefined)
  await first.setMode('auto')
  await first.setMode('yolo')
  await first.remember({ tool: 'Bash', argument: 'ls *' })
  await first.remember({ tool: 'Bash', argument: 'ls *' })
  await first.remember({ tool: 'Bash', argument: '' })
  await first.remember({ tool: 'Grep' })

  const second = new AgentPermissions(fakeHistory(records), 'manual')

  assert.equal(second.mode, 'yolo')
  assert.deepEqual(second.approvals, [{ tool: 'Bash', argument: 'ls *' }, { tool: 'Bash', argument: '' }, { tool: 'Grep' }])
  assert.equal(records.length, 5)
})
