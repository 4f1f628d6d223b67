import assert from 'node:assert/strict'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { crc32 } from 'node:zlib'
import { Catalog, type CatalogPorts } from '../../../features/sessions/catalog.ts'
import type { SessionState } from '../../../features/sessions/service.ts'
import { testEnvironment } from '../../../kernel/testing.ts'
import { latch } from '../../helpers/latch.ts'
import { idsOf, scene } from '../sessions-v2/scene.ts'

const stateOf = (home: string, workspace: string, id: string) => join(home, 'sessions', workspace, id, 'state.json')
type Item = { id: string; meta: { title: string } }
const titles = (data: unknown) => (data as { items: Item[] }).items.map(({ meta }) => meta.title)

/** Three sessions that a server before has left. */
async function left(t: Parameters<typeof scene>[0]) {
  const first = await scene(t)
  const cwd = await first.directory()
  const ids: string[] = []
  for (const title of ['one', 'two', 'three']) ids.push(await first.make(cwd, title))
  const workspace = (await first.sessions.state(ids[0] ?? ''))?.workspace_id ?? ''
  await first.stop()
  return { home: first.home, ids, workspace, index: join(first.home, 'sessions', '.index.jsonl') }
}

function catalogOf(home: string, get: () => Promise<SessionState>): Catalog {
  const store = { get } as unknown as CatalogPorts['store']
  return new Catalog({
    root: join(home, 'sessions'),
    store,
    storeAt: () => store,
    log: testEnvironment().log,
    scanMs: 0,
    leasesElsewhere: async () => undefined,
    takenOver: Promise.resolve(),
    rescue: async () => undefined
  })
}

test('a start reads no state file that is as it was left, and each one that is not', async t => {
  const { home, ids, workspace, index } = await left(t)
  const other = stateOf(home, workspace, ids[1] ?? '')
  const lines = (await readFile(index, 'utf8')).split('\n').map(line => {
    const text = line.slice(line.indexOf(' ') + 1).replace('"one"', '"known to the index only"')
    return line === '' ? '' : `${crc32(text).toString(16)} ${text}`
  })
  await writeFile(index, lines.join('\n'))
  await writeFile(other, (await readFile(other, 'utf8')).replace('"two"', '"deux"'))

  const { query } = await scene(t, { home })

  assert.deepEqual(titles((await query({ sort: 'meta.created_at_desc' })).data), ['three', 'deux', 'known to the index only'])
})

test('a session is read as its state file says, also while the index is still compared with the disk', async t => {
  const { home, ids, workspace } = await left(t)
  const [id = ''] = ids
  const path = stateOf(home, workspace, id)
  await writeFile(path, (await readFile(path, 'utf8')).replace('"one"', '"un"'))
  const comparing = latch()
  const go = latch()
  let reads = 0
  const get = async () => {
    if (++reads === 1) {
      comparing.open()
      await go.opened
    }
    return JSON.parse(await readFile(path, 'utf8'))
  }
  const catalog = catalogOf(home, get)
  const warm = catalog.warm()
  await comparing.opened

  assert.equal((await catalog.find(id))?.title, 'un')
  assert.equal((await catalog.find(ids[1] ?? ''))?.title, 'two')
  assert.equal(reads, 2, 'a session whose file is as the index says is not read')
  go.open()
  await warm
  await catalog.close()
})

test('what the server of a session tells while its file is read is newer than the file', async t => {
  const { home, ids, workspace } = await left(t)
  const [id = ''] = ids
  const written: SessionState = JSON.parse(await readFile(stateOf(home, workspace, id), 'utf8'))
  const reading = latch()
  const go = latch()
  const catalog = catalogOf(home, async () => {
    reading.open()
    await go.opened
    return written
  })
  const found = catalog.find(id)
  await reading.opened
  catalog.showForeign({ ...written, title: 'told', updated_at: '2099-01-01T00:00:00.000Z' })
  go.open()

  assert.equal((await found)?.title, 'told')
  assert.equal((await catalog.find(id))?.title, 'told')
  await catalog.close()
})

test('without its index, with a damaged one and with lines cut off the list is the same', async t => {
  const { home, ids, index } = await left(t)
  const good = await readFile(index, 'utf8')
  const damaged = [
    '',
    good.slice(0, good.length / 2),
    good.replaceAll('"one"', '"eno"'),
    'nonsense\n\n{}\n',
    good.replaceAll('"title"', '"tilte"')
  ]
  for (const text of damaged) {
    await writeFile(index, text)
    const server = await scene(t, { home })
    const { data } = await server.query({ sort: 'meta.created_at_desc' })
    assert.deepEqual(idsOf(data), ids.toReversed())
    assert.deepEqual(titles(data), ['three', 'two', 'one'])
    await server.stop()
  }
})

test('an index that grew by changes is written anew with one line for each session', async t => {
  const { home, ids, index } = await left(t)
  const good = await readFile(index, 'utf8')
  await appendFile(index, good.repeat(2000))
  const server = await scene(t, { home })
  await server.query({})
  for (const id of ids) await (await server.sessions.load(id)).update(state => ({ ...state, title: `${state.title}!` }))
  await server.stop()
  const lines = (await readFile(index, 'utf8')).split('\n').filter(line => line !== '')
  assert.equal(lines.length, 3)
})
