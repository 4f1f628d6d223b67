/** The subagents of the snapshot, by the records of the agent that started them. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryRecord } from '../../../features/history/index.ts'
import { limited } from '../../../features/subagents/chosen.ts'
import {
  completed,
  detached,
  failed,
  rosterState,
  shownOf,
  spawned,
  started,
  stopped,
  suspended
} from '../../../features/subagents/records.ts'
import { runSwarm, usualPace } from '../../../features/subagents/schedule.ts'

const begin = (subagentId: string, more: { model?: string; swarmIndex?: number } = {}) =>
  spawned.of({ subagentId, subagentName: 'coder', parentToolCallId: 'c', parentAgentId: 'main', runInBackground: false, ...more })
const shown = (...records: HistoryRecord[]) =>
  shownOf(
    records.reduce((state, record) => rosterState.reduce(state, record), rosterState.initial()),
    's'
  )

test('subagents stand in the order in which they were first started; one that is taken up again keeps its place', () => {
  const done = completed.of({ subagentId: 'a', resultSummary: 'done' })
  assert.deepEqual(
    shown(begin('a'), begin('b'), done, begin('a')).map(({ id, subagent_phase }) => [id, subagent_phase]),
    [
      ['a', 'queued'],
      ['b', 'queued']
    ]
  )
})

test('those of a swarm stand by their places in it, whichever was started first', () => {
  const found = shown(
    begin('alone'),
    begin('c', { swarmIndex: 3 }),
    begin('a', { swarmIndex: 1 }),
    begin('b', { swarmIndex: 2 }),
    begin('later')
  )
  assert.deepEqual(
    found.map(({ id }) => id),
    ['alone', 'a', 'b', 'c', 'later']
  )
})

test('how a subagent is at work and how it ended: each has its phase, status and last words', () => {
  const ids = ['works', 'waits', 'did', 'failed', 'stopped', 'left']
  const found = shown(
    ...ids.map(id => begin(id, { model: 'm', swarmIndex: 3 })),
    started.of({ subagentId: 'works' }),
    suspended.of({ subagentId: 'waits', reason: 'too many requests' }),
    completed.of({ subagentId: 'did', resultSummary: 'x'.repeat(4000) }),
    failed.of({ subagentId: 'failed', error: 'no model' }),
    stopped.of({ subagentId: 'stopped' }),
    detached.of({ subagentId: 'left' })
  )
  assert.deepEqual(
    found.map(({ id, subagent_phase, status, output_preview, suspended_reason }) => [
      id,
      subagent_phase,
      status,
      output_preview?.slice(0, 10) ?? suspended_reason
    ]),
    [
      ['works', 'working', 'running', undefined],
      ['waits', 'suspended', 'running', 'too many requests'],
      ['did', 'completed', 'completed', 'xxxxxxxxxx'],
      ['failed', 'failed', 'failed', 'no model'],
      ['stopped', 'failed', 'cancelled', undefined]
    ]
  )
  assert.equal(found[2]?.output_preview?.length, 3000)
  const [wide] = shown(begin('a'), completed.of({ subagentId: 'a', resultSummary: `x${'😀'.repeat(2000)}` }))
  assert.equal(wide?.output_preview, `x${'😀'.repeat(1499)}`)
  assert.ok(found.every(({ model, swarm_index, session_id }) => model === 'm' && swarm_index === 3 && session_id === 's'))
})

test('what was over when its turn was cut stays as it ended; what was at work has failed with the turn', () => {
  const cut = { type: 'turn.ended', turn_id: 0, reason: 'cancelled', duration_ms: 1, steps: 1 }
  const done = completed.of({ subagentId: 'done', resultSummary: 'yes' })
  const found = shown(begin('done'), begin('cut'), begin('stopped'), done, stopped.of({ subagentId: 'stopped', with_turn: true }), cut)
  assert.deepEqual(
    found.map(({ id, status, output_preview }) => [id, status, output_preview]),
    [
      ['done', 'completed', 'yes'],
      ['cut', 'failed', 'Main turn cancelled'],
      ['stopped', 'failed', 'Main turn cancelled']
    ]
  )
})

test('without a limit of time nothing but its signal ends an agent', () => {
  const { signal } = new AbortController()
  assert.equal(limited(signal, 0).signal, signal)
})

test('a pause of a swarm that is longer than a timer can wait is the longest, and not none', async t => {
  const warned: string[] = []
  const hear = ({ name }: Error) => void warned.push(name)
  process.on('warning', hear)
  t.after(() => process.off('warning', hear))
  const turn = new AbortController()
  const member = { work: async () => 'limited' as const }
  const ended = runSwarm([member, member], { ...usualPace, limited_ms: 2 ** 31 }, turn.signal)
  await new Promise(setImmediate)
  turn.abort()
  await ended
  assert.deepEqual(warned, [])
})
