/** The subagents of the snapshot, by the records of the agent that started them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { completed, rosterState, shownOf, spawned } from '../../../features/subagents/records.ts'

test('subagents stand in the order in which they were first started; one that is taken up again keeps its place', () => {
  const start = (subagentId: string) =>
    spawned.of({ subagentId, subagentName: 'coder', parentToolCallId: 'c', parentAgentId: 'main', runInBackground: false })
  const records = [start('a'), start('b'), completed.of({ subagentId: 'a', resultSummary: 'done' }), start('a')]
  const roster = records.reduce((state, record) => rosterState.reduce(state, record), rosterState.initial())
  assert.deepEqual(
    shownOf(roster, 's').map(({ id, subagent_phase }) => [id, subagent_phase]),
    [
      ['a', 'queued'],
      ['b', 'queued']
    ]
  )
})
