/** Listing sessions: cursors, pages and filters (contract 2, GET /api/v1/sessions). */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { type Conversation, conversation } from '../helpers/conversation.ts'

async function list(scene: Conversation, query = '') {
  const { code, data } = await scene.api('GET', `/sessions${query}`)
  return code === 0 ? { ids: data.items.map((item: { id: string }) => item.id) as string[], more: data.has_more as boolean } : { code }
}

async function create(scene: Conversation): Promise<string> {
  return (await scene.api('POST', '/sessions', { metadata: { cwd: scene.cwd } })).data.id
}

test('without page_size the whole list comes on one page, also behind a cursor', async t => {
  const scene = await conversation(t)
  for (let count = 0; count < 24; count++) await create(scene)
  const all = await list(scene)
  assert.equal(all.ids?.length, 25)
  assert.equal(all.more, false)
  const [first, , third] = all.ids ?? []
  assert.deepEqual(await list(scene, `?before_id=${first}`), { ids: all.ids?.slice(1), more: false })
  assert.deepEqual(await list(scene, `?after_id=${third}`), { ids: all.ids?.slice(0, 2), more: false })
  assert.deepEqual(await list(scene, `?before_id=${first}&page_size=2`), { ids: all.ids?.slice(1, 3), more: true })
  assert.deepEqual(await list(scene, '?before_id=session_nobody&page_size=2'), { ids: [], more: false })
  for (const id of all.ids ?? []) await scene.api('POST', `/sessions/${id}:archive`)
  const archived = await list(scene, '?archived_only=true')
  assert.deepEqual([archived.ids?.length, archived.more], [20, true], 'archived_only pages by itself')
})

test('filters act before the page is cut, busy after it unless only archived sessions are listed', async t => {
  const scene = await conversation(t)
  const empty = await create(scene)
  await scene.prompt([{ text: 'x' }, { hang: true }])
  await scene.waitFor(event => event.type === 'turn.started')
  const busy = scene.session_id
  assert.deepEqual((await list(scene, '?exclude_empty=true&page_size=1')).ids, [busy])
  assert.deepEqual(await list(scene, '?busy=false&page_size=1'), { ids: [], more: true }, 'the page was cut before')
  assert.deepEqual((await list(scene, '?busy=1')).ids, [busy])
  assert.deepEqual((await list(scene, '?busy=0')).ids, [empty])
  await scene.api('POST', `/sessions/${empty}:archive`)
  assert.deepEqual((await list(scene, '?include_archive=true')).ids?.length, 2)
  assert.deepEqual((await list(scene)).ids, [busy])
  assert.deepEqual(await list(scene, '?archived_only=true&busy=false&page_size=1'), { ids: [empty], more: false })
  assert.deepEqual(await list(scene, '?archived_only=true&include_archive=false'), { ids: [empty], more: false })
  assert.deepEqual(await list(scene, '?archived_only=true&include_archive=true'), { code: 40001 })
  scene.upstream.release()
  await scene.waitFor(event => event.type === 'prompt.completed')
})

test('a workspace filter finds the sessions under every id of its root', async t => {
  const first = await conversation(t)
  const other = 'wd_older_0123456789ab'
  const { home, cwd, session_id } = first
  const { workspace_id } = (await first.api('GET', `/sessions/${session_id}`)).data
  await first.stop()
  const file = join(home, 'workspaces.json')
  const registry = JSON.parse(await readFile(file, 'utf8'))
  registry.workspaces[other] = { ...registry.workspaces[workspace_id], name: 'older' }
  await writeFile(file, JSON.stringify(registry))
  const second = await conversation(t, { home, cwd, session_id })
  assert.deepEqual((await list(second, `?workspace_id=${other}`)).ids, [session_id])
  assert.deepEqual(await list(second, '?workspace_id=wd_older_000000000000'), { code: 40410 })
})

test('the tool list without a session is that of the session created last, and empty while that is cold', async t => {
  const first = await conversation(t)
  assert.ok((await first.api('GET', '/tools')).data.tools.length > 0)
  await first.stop()
  const { home, cwd, session_id } = first
  const second = await conversation(t, { home, cwd, session_id })
  assert.deepEqual((await second.api('GET', '/tools')).data.tools, [])
  await second.api('GET', `/sessions/${session_id}/status`)
  assert.ok((await second.api('GET', '/tools')).data.tools.length > 0)
})
