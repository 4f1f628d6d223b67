import assert from 'node:assert/strict'
import { test } from 'node:test'
import bookmarks, { addBookmark, BookmarkLimit, bookmarkAdded, listBookmarks } from './pack.ts'
import { SessionMissing, Sessions } from '../../features/sessions/index.ts'
import { startTestKernel, stub } from '../../testing/index.ts'

const sessions = stub(Sessions, { exists: async id => id === 'session_a' })
const params = { session_id: 'session_a' }

test('a bookmark is stored, listed and announced once', async t => {
  const { call, events } = await startTestKernel(t, { packs: [sessions, bookmarks], now: () => new Date(0) })

  const added = await call(addBookmark, { params, body: { label: 'start' } })

  assert.equal(added.code, 0)
  assert.equal(added.data.created_at, '1970-01-01T00:00:00.000Z')
  assert.deepEqual((await call(listBookmarks, { params })).data.items, [added.data])
  assert.deepEqual(events, [{ type: bookmarkAdded.type, payload: added.data }])
})

test('failures answer with their own codes and store nothing', async t => {
  const { call, events } = await startTestKernel(t, { packs: [sessions, bookmarks], config: { bookmarks: { max_per_session: 1 } } })

  assert.equal((await call(addBookmark, { params: { session_id: 'nope' }, body: { label: 'x' } })).code, SessionMissing.code)
  const empty = await call(addBookmark, { params, body: { label: '' } })
  assert.equal(empty.code, 40001)
  assert.equal(empty.details?.[0]?.path, 'body.label')
  assert.equal((await call(addBookmark, { params, body: { label: 'one' } })).code, 0)
  assert.equal((await call(addBookmark, { params, body: { label: 'two' } })).code, BookmarkLimit.code)
  assert.equal(events.length, 1)
})

test('without its requirement the pack waits, and unloading takes its routes away', async t => {
  const alone = await startTestKernel(t, { packs: [bookmarks] })
  assert.deepEqual(alone.kernel.features(), [{ name: 'bookmarks', state: 'Pending', meta: { waiting_for: ['sessions'] } }])

  const { call, kernel } = await startTestKernel(t, { packs: [sessions, bookmarks] })
  await kernel.unload('bookmarks')
  assert.equal((await call(listBookmarks, { params })).code, 40400)
  await kernel.load('bookmarks')
  assert.equal((await call(listBookmarks, { params })).code, 0)
})
