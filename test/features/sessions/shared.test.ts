/** What servers of one home tell each other about sessions, in the order in which a server that stood still would tell it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { firstState } from '../../../features/sessions/create.ts'
import { type SessionFact, SharedSessions } from '../../../features/sessions/shared.ts'

const id = 'session_a'
const state = firstState(id, 'wd_a_000000000000', '/nowhere', {}, new Date(0))
const working = { busy: true, main_turn_active: true, pending_interaction: 'none' } as const
const resting = { ...working, busy: false, main_turn_active: false }
const fact = (fence: number, work: SessionFact['work'], title = state.title): SessionFact => ({
  id,
  fence,
  state: { ...state, title },
  work
})

function scene() {
  const shown: string[] = []
  const shared = new SharedSessions({
    tell: () => undefined,
    own: () => undefined,
    all: () => [],
    show: ({ title }) => void shown.push(title),
    forget: () => void shown.push('gone')
  })
  shared.present(true)
  return { shared, shown }
}

test('the server that took a session over says what goes on in it, whatever the one before believed last', () => {
  const { shared } = scene()
  shared.told([fact(1, working)], 'before')
  assert.deepEqual(shared.work(id), working)
  shared.told([fact(2, resting)], 'after')
  assert.deepEqual([shared.work(id), shared.isLoaded(id)], [resting, true])
  shared.told([{ id }], 'after')
  assert.deepEqual([shared.work(id), shared.isLoaded(id)], [undefined, false])
})

test('a server that stood still and goes on changes nothing in what the next one tells', () => {
  const { shared, shown } = scene()
  shared.told([fact(1, working, 'old')], 'before')
  shared.told([fact(2, working, 'new')], 'after')
  shared.told([fact(1, resting, 'old'), { id }], 'before')
  shared.left('before')
  assert.deepEqual(shared.work(id), working)
  shared.told([{ id }], 'after')
  shared.told([fact(1, working, 'old')], 'before')
  assert.equal(shared.work(id), undefined)
  assert.deepEqual(shown, ['old', 'new'])
})

test('a session changes hands in both directions, and a change without loading it counts as well', () => {
  const { shared, shown } = scene()
  shared.told([fact(1, working)], 'one')
  shared.told([{ id }], 'one')
  shared.told([fact(2, undefined, 'archived')], 'other')
  shared.told([fact(3, working)], 'one')
  assert.deepEqual(shared.work(id), working)
  assert.deepEqual(shown.slice(1), ['archived', state.title])
})

test('nothing is known of what a server had that has left, nor of a session that was deleted', () => {
  const { shared, shown } = scene()
  shared.told([fact(1, working)], 'one')
  shared.left('one')
  assert.equal(shared.work(id), undefined)
  shared.told([fact(2, working)], 'other')
  shared.told([{ id, gone: true }], 'one')
  assert.equal(shared.work(id), undefined)
  assert.deepEqual(shown.slice(-1), ['gone'])
})
