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

test('mode and remembered rules come back with the history; the default is not recorded', async () => {
  const records: HistoryRecord[] = []
  const first = new AgentPermissions(fakeHistory(records), 'manual')
  assert.equal(first.mode, undefined)
  await first.setMode('auto')
  await first.setMode('yolo')
  await first.remember('Bash(ls \\*)')
  await first.remember('Bash(ls \\*)')
  await assert.rejects(first.remember('not a rule'))

  const second = new AgentPermissions(fakeHistory(records), 'manual')

  assert.equal(second.mode, 'yolo')
  assert.deepEqual(second.rules, [{ tool: 'Bash', args: 'ls \\*', not: false }])
  assert.equal(records.length, 3)
})
