import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { archiveSession } from '../../../features/sessions/index.ts'
import { idsOf, scene } from './scene.ts'

test('an item carries workspace, facts and activity; what is absent is null', async t => {
  const { make, query, directory, sessions } = await scene(t)
  const cwd = await directory()
  const id = await make(cwd)
  const { data } = await query({})
  const state = await sessions.state(id)
  assert.deepEqual(data, {
    items: [
      {
        id,
        workspace: { id: state?.workspace_id, cwd },
        meta: {
          title: null,
          last_prompt: null,
          created_at: Date.parse(state?.created_at ?? ''),
          updated_at: Date.parse(state?.updated_at ?? ''),
          archived: false,
          archived_at: null
        },
        activity: { status: 'idle' }
      }
    ],
    total: 1,
    has_more: false,
    next_page_token: null
  })
})

test('filters: archive, prompt, moment, workspace and status; several values of one are alternatives', async t => {
  const { make, query, call, directory, sessions } = await scene(t)
  const [here, there] = [await directory(), await directory()]
  const [a, b, c, d] = [await make(here), await make(here), await make(there), await make(there)]
  await call(archiveSession, { params: { session_id: a } })
  const asking = await sessions.load(b)
  asking.promptSubmitted('hello')
  asking.work.turnStarted('main')
  const failing = await sessions.load(c)
  failing.work.turnStarted('main')
  failing.work.turnEnded('main', 'failed')
  const [workspaceOfHere, workspaceOfThere] = [(await sessions.state(a))?.workspace_id, (await sessions.state(c))?.workspace_id]
  const ids = async (filter: Record<string, unknown>) => {
    const { data, code } = await query({ sort: 'meta.created_at_desc', ...filter })
    assert.equal(code, 0)
    assert.equal(data.total, idsOf(data).length)
    return idsOf(data)
  }

  assert.deepEqual(await ids({}), [d, c, b])
  assert.deepEqual(await ids({ 'meta.archived': 'true' }), [a])
  assert.deepEqual(await ids({ 'meta.archived': 'all' }), [d, c, b, a])
  assert.deepEqual(await ids({ 'meta.has_prompt': 'true' }), [b])
  assert.deepEqual(await ids({ 'meta.has_prompt': 'false' }), [d, c])
  assert.deepEqual(await ids({ 'workspace.id': workspaceOfHere }), [b])
  assert.deepEqual(await ids({ 'workspace.id': [workspaceOfHere, workspaceOfThere, 'wd_nobody_000000000000'] }), [d, c, b])
  assert.deepEqual(await ids({ 'workspace.id': 'nonsense' }), [])
  assert.deepEqual(await ids({ 'activity.status': 'running' }), [b])
  asking.work.pending('question', 1)
  assert.deepEqual(await ids({ 'activity.status': 'question' }), [b])
  asking.work.pending('approval', 1)
  assert.deepEqual(await ids({ 'activity.status': ['approval', 'failed'] }), [c, b])
  assert.deepEqual(await ids({ 'activity.status': 'idle' }), [d])
  const updated = Date.parse((await sessions.state(d))?.updated_at ?? '')
  assert.deepEqual(await ids({ 'meta.updated_before': updated }), [d])
  assert.deepEqual(await ids({ 'meta.updated_after': updated }), [d, c, b])
  assert.deepEqual(await ids({ 'meta.updated_after': updated + 1 }), [c, b])
  const [least, most] = [String(Number.MIN_SAFE_INTEGER), String(Number.MAX_SAFE_INTEGER)]
  assert.deepEqual(await ids({ 'meta.updated_after': least, 'meta.updated_before': most }), [d, c, b])
  const { work } = await sessions.load(d)
  work.turnStarted('main')
  work.turnEnded('main', 'cancelled')
  assert.deepEqual(await ids({ 'activity.status': 'idle' }), [d])
})

const refused: readonly (readonly [Record<string, unknown>, string])[] = [
  [{ 'activity.status': 'asleep' }, 'query.activity.status'],
  [{ 'activity.status': ['idle', 'asleep'] }, 'query.activity.status.1'],
  [{ 'meta.archived': 'maybe' }, 'query.meta.archived'],
  [{ 'meta.has_prompt': '1' }, 'query.meta.has_prompt'],
  [{ 'meta.updated_after': 'yesterday' }, 'query.meta.updated_after'],
  [{ 'meta.updated_before': '9007199254740992' }, 'query.meta.updated_before'],
  [{ view: 'tree' }, 'query.view'],
  [{ sort: 'title' }, 'query.sort'],
  [{ include: 'git,weather' }, 'query.include'],
  [{ fields: 'id' }, 'query.fields'],
  [{ fields: 'id,archived', include: 'git' }, 'query.include'],
  [{ page_size: 101 }, 'query.page_size'],
  [{ page_size: 0 }, 'query.page_size'],
  [{ page_size: 10_001, fields: 'archived,id' }, 'query.page_size'],
  [{ 'group.page_size': 5 }, 'query.group.page_size'],
  [{ 'group.page_size': 101, view: 'by_workspace' }, 'query.group.page_size'],
  [{ page: 0 }, 'query.page'],
  [{ page: 1, page_token: 'x' }, 'query.page']
]
test('what does not fit is refused, and the field is named', async t => {
  const { query } = await scene(t)
  for (const [asked, path] of refused) {
    const { code, details } = await query(asked)
    assert.deepEqual([code, details?.[0]?.path], [40001, path], JSON.stringify(asked))
  }
})

test('the projection shows ids and archive flags, up to 10,000 a page', async t => {
  const { make, query, call, directory } = await scene(t)
  const cwd = await directory()
  const [a, b] = [await make(cwd), await make(cwd)]
  await call(archiveSession, { params: { session_id: a } })
  const { data } = await query({ fields: 'archived,id', page_size: 10_000, 'meta.archived': 'all' })
  assert.deepEqual((data as { items: unknown }).items, [
    { id: b, archived: false },
    { id: a, archived: true }
  ])
})

test('tokens lead through every page once, in every sort; other conditions and damaged tokens answer 40922', async t => {
  const { make, query, directory } = await scene(t, { now: sameMoments() })
  const cwd = await directory()
  const made = new Set<string>()
  for (let n = 0; n < 7; n++) made.add(await make(cwd))
  for (const sort of ['meta.updated_at_desc', 'meta.updated_at_asc', 'meta.created_at_desc']) {
    const whole = idsOf((await query({ sort })).data)
    const walked: string[] = []
    let page_token: string | null | undefined
    do {
      const { data } = await query({ sort, page_size: 2, ...(page_token ? { page_token } : {}) })
      assert.equal(data.total, 7)
      walked.push(...idsOf(data))
      page_token = data.next_page_token
      assert.equal(data.has_more, page_token !== null)
    } while (page_token)
    assert.deepEqual(walked, whole)
    assert.deepEqual(new Set(walked), made)
  }

  const { data } = await query({ page_size: 2 })
  const first = data.next_page_token
  const [{ workspace }] = (data as unknown as { items: [{ workspace: { id: string } }] }).items
  const both = { 'workspace.id': [workspace.id, 'wd_a'], 'activity.status': ['idle', 'failed'] }
  const swapped = { 'workspace.id': ['wd_a', workspace.id], 'activity.status': ['failed', 'idle'] }
  const { next_page_token: page_token } = (await query({ page_size: 2, ...both })).data
  assert.equal(
    idsOf((await query({ page_size: 2, ...swapped, page_token })).data).length,
    2,
    'values in another order are the same condition'
  )
  const read = (token: string | null) => JSON.parse(Buffer.from(token ?? '', 'base64url').toString('utf8'))
  const others = [
    { page_size: 3 },
    { sort: 'meta.created_at_desc' },
    { 'meta.has_prompt': false },
    { view: 'by_workspace' },
    { include: 'git' }
  ]
  for (const changed of [...others, { fields: 'id,archived' }, { 'meta.archived': 'all' }, { 'workspace.id': 'wd_a' }]) {
    const answer = await query({ page_size: 2, ...changed, page_token: first })
    assert.equal(answer.code, 40922, JSON.stringify(changed))
  }
  for (const page_token of [
    'x',
    '',
    Buffer.from('[]').toString('base64url'),
    Buffer.from('null').toString('base64url'),
    `${first}A`.slice(3),
    `${first}.`,
    `${first}=`,
    Buffer.from(JSON.stringify({ ...read(first), v: 2 })).toString('base64url')
  ]) {
    assert.equal((await query({ page_size: 2, page_token })).code, 40922, page_token)
  }
})

test('pages by number make no token; one behind the end is empty', async t => {
  const { make, query, directory } = await scene(t)
  const cwd = await directory()
  const [a, b, c] = [await make(cwd), await make(cwd), await make(cwd)]
  const page = async (number: number, page_size = 2) => {
    const { data } = await query({ page_size, page: number })
    return [idsOf(data), data.has_more, data.next_page_token, data.total]
  }
  assert.deepEqual(await page(1), [[c, b], true, null, 3])
  assert.deepEqual(await page(2), [[a], false, null, 3])
  assert.deepEqual(await page(9), [[], false, null, 3])
  assert.deepEqual(await page(1, 3), [[c, b, a], false, null, 3])
})

test('by workspace: groups by their first session, ties by id, with totals, pages and tokens of their own', async t => {
  const { make, query, directory, sessions, home } = await scene(t)
  const places = [await directory(), await directory(), await directory()]
  const ids = new Map<string, string[]>()
  for (let n = 0; n < 9; n++) {
    const id = await make(places[n % 3] ?? '')
    const workspace = (await sessions.state(id))?.workspace_id ?? ''
    ids.set(workspace, [id, ...(ids.get(workspace) ?? [])])
  }
  const expected = [...ids].reverse().map(([workspace, all]) => ({ workspace, sessions: all.slice(0, 2), total: 3 }))
  const groups = (data: unknown) =>
    (data as { groups: { workspace: { id: string; cwd: string }; sessions: { id: string }[]; total: number }[] }).groups.map(group => ({
      workspace: group.workspace.id,
      sessions: group.sessions.map(({ id }) => id),
      total: group.total
    }))
  const view = { view: 'by_workspace', 'group.page_size': 2 }
  const { data } = await query(view)
  assert.deepEqual(groups(data), expected)
  assert.deepEqual([data.total, data.has_more, data.next_page_token], [3, false, null])

  const first = (await query({ ...view, page_size: 2 })).data
  assert.deepEqual(groups(first), expected.slice(0, 2))
  const second = (await query({ ...view, page_size: 2, page_token: first.next_page_token })).data
  assert.deepEqual([groups(second), second.has_more, second.next_page_token], [expected.slice(2), false, null])
  assert.equal((await query({ ...view, 'group.page_size': 3, page_size: 2, page_token: first.next_page_token })).code, 40922)
  assert.deepEqual(groups((await query({ ...view, page_size: 2, page: 2 })).data), expected.slice(2))
  const marks = (await query({ view: 'by_workspace', fields: 'id,archived', 'group.page_size': 10_000 })).data
  assert.deepEqual(groups(marks)[0]?.sessions.length, 3)
  assert.deepEqual(groups((await query({ ...view, 'meta.has_prompt': true })).data), [])

  const [{ workspace: id } = { workspace: '' }] = expected
  const older = 'wd_older_0123456789ab'
  const registry = JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8'))
  registry.workspaces = { [older]: registry.workspaces[id], ...registry.workspaces }
  await writeFile(join(home, 'workspaces.json'), JSON.stringify(registry))
  assert.equal(groups((await query(view)).data)[0]?.workspace, older, 'also when a page of it was shown before its root got another row')
})

/** Three looks at the clock share a moment, so that sorts have ties. */
function sameMoments() {
  let looks = 0
  return () => new Date(Date.parse('2026-01-01T00:00:00Z') + Math.floor(looks++ / 9) * 1000)
}
