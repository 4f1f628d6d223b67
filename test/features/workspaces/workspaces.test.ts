/** Registering, renaming and unregistering project directories through the front door. */
import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { readFileSync, writeFileSync } from 'node:fs'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as pass } from 'node:timers/promises'
import {
  deleteWorkspace,
  listWorkspaces,
  PathMissing,
  registerWorkspace,
  renameWorkspace,
  SessionCounter,
  WorkspaceMissing,
  workspaceCreated,
  workspaceDeleted,
  workspaceUpdated
} from '../../../features/workspaces/index.ts'
import { Latest } from '../../../features/workspaces/latest.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { workspaceId } from '../../../features/workspaces/root.ts'
import { type DocumentStore, PersistenceFailed } from '../../../kernel/index.ts'
import { startTestKernel, stub } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

async function project(name = 'My Project'): Promise<string> {
  const dir = await freshDir()
  const root = join(dir, name)
  await mkdir(root)
  return root
}

test('a workspaces.json that is a loop of links is a failure of the disk, until it is gone', async t => {
  const { call, home } = await startTestKernel(t, { packs: [workspaces] })
  const file = join(home, 'workspaces.json')
  await symlink(file, file)
  assert.equal((await call(listWorkspaces)).code, PersistenceFailed.code)
  await rm(file)
  assert.deepEqual((await call(listWorkspaces)).data.items, [])
})

test('a directory is registered once, announced, and kept in workspaces.json', async t => {
  const root = await project()
  const { call, events, home } = await startTestKernel(t, { packs: [workspaces], now: () => new Date(0) })

  const { code, data } = await call(registerWorkspace, { body: { root } })

  assert.equal(code, 0)
  const hash = createHash('sha256').update(root).digest('hex').slice(0, 12)
  const expected = {
    id: `wd_my-project_${hash}`,
    root,
    name: 'My Project',
    created_at: '1970-01-01T00:00:00.000Z',
    last_opened_at: '1970-01-01T00:00:00.000Z',
    session_count: 0
  }
  assert.deepEqual(data, expected)
  assert.deepEqual(events, [{ type: workspaceCreated.type, payload: { ...expected, workspace: expected } }])
  const { id, session_count: _, ...row } = expected
  assert.deepEqual(JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8')), {
    version: 1,
    workspaces: { [id]: row },
    deleted_workspace_ids: []
  })
})

test('registering a root again refreshes last_opened_at and keeps root text, name and created_at', async t => {
  const root = await project()
  let time = 0
  const { call, events } = await startTestKernel(t, { packs: [workspaces], now: () => new Date(time) })
  const first = (await call(registerWorkspace, { body: { root: `${root}/`, name: ' first ' } })).data

  time = 5_000
  const again = (await call(registerWorkspace, { body: { root, name: 'second' } })).data

  assert.deepEqual(again, { ...first, last_opened_at: '1970-01-01T00:00:05.000Z' })
  assert.equal(again.root, `${root}/`)
  assert.equal(again.name, ' first ')
  assert.equal(events.at(-1)?.type, workspaceUpdated.type)
  assert.deepEqual((await call(listWorkspaces)).data.items, [again])
})

test('roots that are registered and renamed at once are each answered and listed as the file has them', async t => {
  const roots = await Promise.all(Array.from({ length: 20 }, (_, n) => project(`p${n}`)))
  const { call, home } = await startTestKernel(t, { packs: [workspaces] })
  const rows = await Promise.all(
    roots.map(async root => {
      const { id } = (await call(registerWorkspace, { body: { root } })).data
      const [renamed, listed] = await Promise.all([
        call(renameWorkspace, { params: { workspace_id: id }, body: { name: `new ${id}` } }),
        call(listWorkspaces)
      ])
      assert.ok(listed.data.items.some(row => row.id === id))
      assert.equal(renamed.data.name, `new ${id}`)
      return (await call(listWorkspaces)).data.items.find(row => row.id === id)
    })
  )
  const file = JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8')) as { workspaces: Record<string, object> }
  for (const row of rows) assert.deepEqual(row, { id: row?.id, ...file.workspaces[row?.id ?? ''], session_count: 0 })
})

test('a registration that is on disk is answered and told, also where nothing can be read right behind it', async t => {
  const root = await project()
  const home = await freshDir()
  const file = join(home, 'workspaces.json')
  const counts = async () => {
    await rm(file)
    await symlink(file, file)
    throw new Error('no counts')
  }
  const { call, events } = await startTestKernel(t, { home, packs: [stub(SessionCounter, { counts }), workspaces] })
  const { code, data } = await call(registerWorkspace, { body: { root } })
  assert.deepEqual([code, data.root, data.session_count], [0, root, 0])
  assert.equal(events.filter(event => event.type === workspaceCreated.type).length, 1)
})

test('a relative root answers 40001, a missing one and a file 40409', async t => {
  const root = await project()
  const { call } = await startTestKernel(t, { packs: [workspaces] })
  await writeFile(join(root, 'file'), '')

  const relative = await call(registerWorkspace, { body: { root: 'a/b' } })
  assert.equal(relative.code, 40001)
  assert.equal(relative.details?.[0]?.path, 'body.root')
  for (const end of ['\0', '\ud800']) {
    const misspelled = await call(registerWorkspace, { body: { root: `${root}${end}` } })
    assert.deepEqual([misspelled.code, misspelled.details?.[0]?.path], [40001, 'body.root'])
  }
  for (const name of ['nope', 'file', 'file/below']) {
    assert.equal((await call(registerWorkspace, { body: { root: join(root, name) } })).code, PathMissing.code)
  }
  const long = await call(registerWorkspace, { body: { root, name: 'x'.repeat(101) } })
  assert.equal(long.details?.[0]?.path, 'body.name')
  assert.deepEqual((await call(listWorkspaces)).data.items, [])
})

test('a rename changes the name alone and is announced', async t => {
  const root = await project()
  const { call, events } = await startTestKernel(t, { packs: [workspaces] })
  const { data } = await call(registerWorkspace, { body: { root } })

  const renamed = await call(renameWorkspace, { params: { workspace_id: data.id }, body: { name: 'Other' } })

  assert.deepEqual(renamed.data, { ...data, name: 'Other' })
  assert.deepEqual(events.at(-1), { type: workspaceUpdated.type, payload: { ...renamed.data, workspace: renamed.data } })
})

test('an unknown id answers 40410 and a malformed one 40001', async t => {
  const { call } = await startTestKernel(t, { packs: [workspaces] })
  const body = { name: 'x' }

  assert.equal((await call(renameWorkspace, { params: { workspace_id: 'wd_a_0123456789ab' }, body })).code, WorkspaceMissing.code)
  assert.equal((await call(deleteWorkspace, { params: { workspace_id: 'wd_a_0123456789ab' } })).code, WorkspaceMissing.code)
  for (const workspace_id of ['a', 'wd_A_0123456789ab', 'wd_a_0123456789a', 'wd_a_0123456789ab%2e']) {
    const answer = await call(deleteWorkspace, { params: { workspace_id } })
    assert.equal(answer.code, 40001)
    assert.equal(answer.details?.[0]?.path, 'params.workspace_id')
  }
})

test('a deleted workspace leaves a tombstone, its files alone, and comes back as a fresh row with its sessions', async t => {
  const root = await project()
  let time = 0
  const counter = stub(SessionCounter, { counts: async () => new Map([[workspaceId(root), 3]]) })
  const { call, events, home } = await startTestKernel(t, { packs: [counter, workspaces], now: () => new Date(time) })
  const { id } = (await call(registerWorkspace, { body: { root, name: 'first' } })).data

  assert.deepEqual((await call(deleteWorkspace, { params: { workspace_id: id } })).data, { deleted: true })

  assert.deepEqual(events.at(-1), { type: workspaceDeleted.type, payload: { workspace_id: id, root } })
  assert.deepEqual(JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8')).deleted_workspace_ids, [id])
  assert.equal((await call(deleteWorkspace, { params: { workspace_id: id } })).code, WorkspaceMissing.code)
  time = 9_000
  const back = (await call(registerWorkspace, { body: { root } })).data
  assert.deepEqual(
    { id: back.id, name: back.name, created_at: back.created_at, session_count: back.session_count },
    {
      id,
      name: 'My Project',
      created_at: '1970-01-01T00:00:09.000Z',
      session_count: 3
    }
  )
  assert.deepEqual(JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8')).deleted_workspace_ids, [])
})

test('two servers on one home see each other and lose no registration', async t => {
  const roots = await Promise.all(Array.from({ length: 8 }, (_, n) => project(`p${n}`)))
  const one = await startTestKernel(t, { packs: [workspaces] })
  const two = await startTestKernel(t, { packs: [workspaces], home: one.home })

  await Promise.all(roots.map((root, n) => (n % 2 ? one : two).call(registerWorkspace, { body: { root } })))

  for (const { call } of [one, two]) {
    const { items } = (await call(listWorkspaces)).data
    assert.deepEqual(items.map(item => item.root).sort(), [...roots].sort())
  }
})

test('a name has 100 characters at most, however many units of UTF-16 they take', async t => {
  const root = await project(`n${'🌱'.repeat(60)}`) // a name of a directory has 255 bytes at most
  const { call } = await startTestKernel(t, { packs: [workspaces] })
  const { id: workspace_id, name } = (await call(registerWorkspace, { body: { root } })).data
  assert.equal(name, `n${'🌱'.repeat(60)}`)
  const longest = `${'🌱'.repeat(99)}n`
  assert.equal((await call(renameWorkspace, { params: { workspace_id }, body: { name: longest } })).data.name, longest)
  assert.equal((await call(listWorkspaces)).data.items[0]?.name, longest)
  const refused = await call(renameWorkspace, { params: { workspace_id }, body: { name: `${longest}n` } })
  assert.deepEqual([refused.code, refused.details?.[0]?.path], [40001, 'body.name'])
})

test('a root that has a row under another id keeps that id when it is registered again', async t => {
  const root = await project('n'.repeat(120))
  const { call, home } = await startTestKernel(t, { packs: [workspaces] })
  const first = (await call(registerWorkspace, { body: { root } })).data
  assert.equal(first.name, 'n'.repeat(100))
  const file = JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8'))
  file.workspaces = { wd_old_0123456789ab: { ...file.workspaces[first.id], root: `${root}/` } }
  await writeFile(join(home, 'workspaces.json'), JSON.stringify(file))

  assert.equal((await call(registerWorkspace, { body: { root } })).data.id, 'wd_old_0123456789ab')

  const { items } = (await call(listWorkspaces)).data
  assert.deepEqual(
    items.map(({ id }) => id),
    ['wd_old_0123456789ab']
  )
})

test('a root under two ids counts as one workspace and goes as one', async t => {
  const root = await project()
  const counter = stub(SessionCounter, {
    counts: async () =>
      new Map([
        ['wd_old_0123456789ab', 2],
        [workspaceId(root), 1]
      ])
  })
  const { call, home } = await startTestKernel(t, { packs: [counter, workspaces] })
  const { id } = (await call(registerWorkspace, { body: { root } })).data
  const file = JSON.parse(await readFile(join(home, 'workspaces.json'), 'utf8'))
  file.workspaces.wd_old_0123456789ab = { ...file.workspaces[id], root: `${root}/` }
  await writeFile(join(home, 'workspaces.json'), JSON.stringify(file))

  const { items } = (await call(listWorkspaces)).data
  assert.deepEqual(
    items.map(item => [item.id, item.session_count]),
    [[id, 3]]
  )
  await call(deleteWorkspace, { params: { workspace_id: id } })
  assert.deepEqual((await call(listWorkspaces)).data.items, [])
})

test('what was read before a change is on disk is not taken for the latest after it', async () => {
  const dir = await freshDir()
  const file = join(dir, 'a.json')
  writeFileSync(file, '"old"')
  let held: Promise<void> | undefined
  const store: Pick<DocumentStore<string>, 'get' | 'update'> = {
    get: async () => {
      const text = readFileSync(file, 'utf8')
      await held
      return JSON.parse(text)
    },
    update: async (_id, change) => {
      const next = change(undefined)
      writeFileSync(file, JSON.stringify(next))
      return next
    }
  }
  const latest = new Latest({ store, id: 'a', dir, empty: '' })
  await latest.get()
  await pass()
  writeFileSync(file, '"older"')

  let release = () => {}
  held = new Promise(resolve => {
    release = resolve
  })
  const reading = latest.get()
  await latest.update(() => 'changed')
  release()
  await reading
  assert.equal(await latest.get(), 'changed')
})
