/** What a list shows of sessions, what a session shows of itself, and texts that come from prompts. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { SessionState } from '../../../features/sessions/index.ts'
import { lastPromptOf, titleOf } from '../../../features/sessions/title.ts'
import { type ListQuery, listPage, sessionObject } from '../../../features/sessions/view.ts'

const state = (id: string, more: Partial<SessionState> = {}): SessionState => ({
  id,
  version: 1,
  workspace_id: 'wd_a',
  cwd: '/a',
  title: '',
  title_kind: 'replaceable',
  created_at: '2026-01-01T00:00:00.000Z',
  updated_at: '2026-01-01T00:00:00.000Z',
  archived: false,
  agents: {},
  metadata: {},
  ...more
})
const all = (count: number, more: Partial<SessionState> = {}) => Array.from({ length: count }, (_, n) => state(`s${n}`, more))
const page = (sorted: readonly SessionState[], query: ListQuery, busy: readonly string[] = []) => {
  const { rows, has_more } = listPage(sorted, query, id => busy.includes(id))
  return [rows.map(({ id }) => id), has_more]
}

test('pages hold 20 sessions where nobody says how many; a window without a size holds all', () => {
  assert.deepEqual(page(all(21, { archived: true }), { archived_only: true }), [all(20).map(({ id }) => id), true])
  assert.deepEqual(page(all(20, { archived: true }), { archived_only: true }), [all(20).map(({ id }) => id), false])
  assert.deepEqual(page(all(25), {}), [all(25).map(({ id }) => id), false])
})

test('busy looks at the page that was cut, but among archived sessions before it is cut', () => {
  const query = { page_size: 2, busy: true }
  assert.deepEqual(page(all(4), query, ['s1', 's3']), [['s1'], true])
  assert.deepEqual(page(all(4, { archived: true }), { ...query, archived_only: true }, ['s1', 's3']), [['s1', 's3'], false])
})

test('cursors leave out their own session, and lead nowhere where it is not', () => {
  assert.deepEqual(page(all(4), { after_id: 's2' }), [['s0', 's1'], false])
  assert.deepEqual(page(all(4), { before_id: 's2' }), [['s3'], false])
  assert.deepEqual(page(all(4), { before_id: 'gone' }), [[], false])
})

test('a session whose only prompt had no text is not empty', () => {
  assert.deepEqual(page([state('s0', { last_prompt: '' }), state('s1')], { exclude_empty: true }), [['s0'], false])
})

test('a session says when it was archived as long as it is, and always where it works', () => {
  const archived_at = '2026-01-02T00:00:00.000Z'
  assert.equal(sessionObject(state('s', { archived: true, archived_at })).archived_at, archived_at)
  assert.equal('archived_at' in sessionObject(state('s', { archived_at })), false)
  assert.deepEqual(sessionObject(state('s', { metadata: { cwd: '/b', mine: 1 }, child_of: 'p' })).metadata, {
    cwd: '/a',
    mine: 1,
    parent_session_id: 'p',
    child_session_kind: 'child'
  })
})

test('words behind the name of a header stay in a title, a credential behind it does not', () => {
  for (const text of [
    'Implement authorization: only admins may delete projects',
    'Fix the cookie: it is lost after login',
    'Set-Cookie: SameSite is not set',
    'the bearer authentication does not work',
    'Bearer tokens: explain them'
  ])
    assert.equal(titleOf(text), text)
  for (const [text, title] of [
    ['Authorization: Bearer abcdefgh fails, fix it', 'Authorization: [redacted] fails, fix it'],
    ['authorization: s3cr3tvalue fails, fix it', 'authorization: [redacted] fails, fix it'],
    ['with Bearer abc.def.9hi it fails', 'with Bearer [redacted] it fails'],
    ['Cookie: sid=abc; theme=dark is not parsed', 'Cookie: [redacted] is not parsed'],
    ['x-goog-auth: none, x-auth-token: a1b2c3d4 there', 'x-goog-auth: none, x-auth-token [redacted] there']
  ] as const)
    assert.equal(titleOf(text), title)
})

test('titles have 200 characters, prompts 4000; no secret shows because it stands at the cut, and no half of a character', () => {
  assert.deepEqual([titleOf('w '.repeat(300)).length, lastPromptOf('w '.repeat(3000)).length], [200, 4000])
  assert.equal(titleOf('word'.padEnd(300, '!')).length, 200)
  assert.deepEqual(
    [titleOf(`a${'😀'.repeat(300)}`), lastPromptOf(`a${'😀'.repeat(3000)}`)],
    [`a${'😀'.repeat(99)}`, `a${'😀'.repeat(1999)}`]
  )
  assert.equal(titleOf(`${'- '.repeat(95)}sk-${'abcdefghijklmnopqrstuvwxyz'}`).includes('sk-abc'), false)
  assert.equal(titleOf(`key ${'aB3'.repeat(14)}`), 'key [redacted]')
})
