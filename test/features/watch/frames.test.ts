import assert from 'node:assert/strict'
import { mkdirSync, rmSync } from 'node:fs'
import { mkdir, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { archiveSession, createSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import { archiveSessions } from '../../../features/sessions-v2/index.ts'
import sessionsV2 from '../../../features/sessions-v2/pack.ts'
import { FileWatches } from '../../../features/watch/index.ts'
import { NewestFrames } from '../../../features/watch/newest-frames.ts'
import watch from '../../../features/watch/pack.ts'
import { Room } from '../../../features/watch/room.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { type Connection, definePack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

type Change = { path: string; change: string; kind: string }

async function start(t: TestContextLike, config: Record<string, unknown> = {}) {
  const cwd = await realpath(await freshDir())
  let service: FileWatches | undefined
  const user = definePack({
    name: 'user',
    needs: { watches: FileWatches },
    setup(_ctx, { watches }) {
      service = watches
    }
  })
  const home = await freshDir()
  const packs = [workspaces, sessions, watch, user]
  const kernel = await startTestKernel(t, { packs, home, config: { watch: { window_ms: 20, ...config } } })
  const session = async () => (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  const session_id = await session()
  const connect = async () => {
    const client = await kernel.connect()
    const ask = (type: string, payload: object) => client.request(type, { session_id, ...payload })
    const frames = () => client.frames.filter(({ type }) => type === 'event.fs.changed')
    const changes = () => frames().flatMap(({ payload }) => (payload as { changes: Change[] }).changes)
    const lines = () => changes().map(({ path, change, kind }) => `${change} ${kind} ${path}`)
    /** Resolves when this line has come. */
    const told = async (line: string) => {
      if (!lines().includes(line)) await client.next(({ type }) => type === 'event.fs.changed' && lines().includes(line))
    }
    return { client, ask, frames, lines, told }
  }
  return { ...kernel, cwd, session, session_id, connect, service: () => service as FileWatches }
}

test('whoever watches a directory is told what is created, modified and deleted in it, and nobody else', async t => {
  const { cwd, connect, session_id } = await start(t)
  await mkdir(join(cwd, 'src/deep'), { recursive: true })
  await writeFile(join(cwd, 'src/old'), 'x')
  const one = await connect()
  const two = await connect()
  assert.deepEqual((await one.ask('watch_fs_add', { paths: ['./src/'] })).payload, { watched_paths: ['src'], current_count: 1 })
  await two.ask('watch_fs_add', { paths: ['other', '.'], recursive: false })
  await writeFile(join(cwd, 'src/deep/new'), 'x')
  await one.told('created file src/deep/new')
  await writeFile(join(cwd, 'src/old'), 'xx')
  await one.told('modified file src/old')
  await symlink('/etc', join(cwd, 'src/link'))
  await one.told('created symlink src/link')
  await rename(join(cwd, 'src/old'), join(cwd, 'top'))
  await one.told('deleted file src/old')
  await two.told('created file top')
  assert.deepEqual(two.lines(), ['created file top'])
  assert.ok(!one.lines().includes('created file top'))
  const [first, second] = [...one.frames(), ...two.frames()].sort((a, b) => Number(a.seq) - Number(b.seq))
  assert.deepEqual([first?.seq, second?.seq, first?.session_id, first?.epoch], [1, 2, session_id, undefined])
  assert.equal((first?.payload as { coalesced_window_ms: number } | undefined)?.coalesced_window_ms, 20)
})

test('a link to nothing is told when it comes, changes and goes, and once when what it names comes', async t => {
  const { cwd, connect } = await start(t)
  await mkdir(join(cwd, 'src'))
  await symlink('nowhere', join(cwd, 'src/old'))
  await writeFile(join(cwd, 'plain'), '')
  await symlink('../plain', join(cwd, 'src/turned'))
  const { ask, told, lines } = await connect()
  await ask('watch_fs_add', { paths: ['src'] })
  await symlink('nowhere', join(cwd, 'src/new'))
  await told('created symlink src/new')
  await symlink('missing', join(cwd, 'src/.next'))
  await rename(join(cwd, 'src/.next'), join(cwd, 'src/turned'))
  await told('modified symlink src/turned')
  await rm(join(cwd, 'src/old'))
  await told('deleted symlink src/old')
  await writeFile(join(cwd, 'src/nowhere'), '')
  await told('created file src/nowhere')
  await rm(join(cwd, 'src/new'))
  await told('deleted symlink src/new')
  assert.equal(lines().filter(line => line === 'created symlink src/new').length, 1)
})

test('a file in the place of a link is told, and followed on, and so is a link in the place of a file', async t => {
  const { cwd, connect } = await start(t)
  await writeFile(join(cwd, 'plain'), '')
  await symlink('plain', join(cwd, 'config'))
  await writeFile(join(cwd, 'note'), '')
  const { ask, told, lines } = await connect()
  await ask('watch_fs_add', { paths: ['.'] })
  await writeFile(join(cwd, '.next'), 'x')
  await rename(join(cwd, '.next'), join(cwd, 'config'))
  await told('modified file config')
  await symlink('plain', join(cwd, '.link'))
  await rename(join(cwd, '.link'), join(cwd, 'note'))
  await told('modified symlink note')
  await rm(join(cwd, 'config'))
  await told('deleted file config')
  await rm(join(cwd, 'note'))
  await told('deleted symlink note')
  assert.ok(!lines().includes('modified file note'))
})

test('a directory that takes the place of one that was removed at once is followed on, and what was in the old one is gone', async t => {
  const { cwd, connect } = await start(t)
  for (const name of ['one', 'two', 'three', 'four']) {
    await mkdir(join(cwd, name, 'sub'), { recursive: true })
    await writeFile(join(cwd, name, 'sub/old'), '')
  }
  const { ask, told, lines } = await connect()
  await ask('watch_fs_add', { paths: ['.'] })
  for (const name of ['one', 'two', 'three', 'four']) {
    rmSync(join(cwd, name), { recursive: true })
    mkdirSync(join(cwd, name))
    await told(`deleted file ${name}/sub/old`)
    await told(`created directory ${name}`)
    await writeFile(join(cwd, name, 'new'), '')
    await told(`created file ${name}/new`)
  }
  assert.ok(!lines().some(line => /deleted directory \w+$/.test(line)))
})

test('a directory that takes the place of a link or a file at once is told, with what comes into it', async t => {
  const { cwd, connect } = await start(t)
  await writeFile(join(cwd, 'file'), '')
  await symlink('file', join(cwd, 'link'))
  const { ask, told } = await connect()
  await ask('watch_fs_add', { paths: ['.'] })
  await symlink('nowhere', join(cwd, 'dangling'))
  await told('created symlink dangling')
  for (const name of ['file', 'link', 'dangling']) {
    rmSync(join(cwd, name))
    mkdirSync(join(cwd, name))
    await told(`created directory ${name}`)
    await writeFile(join(cwd, name, 'new'), '')
    await told(`created file ${name}/new`)
    await rm(join(cwd, name), { recursive: true })
    await told(`deleted directory ${name}`)
  }
})

test('a link whose way leads through a file, or is too long, is a link to nothing, and what lies beside it is told', async t => {
  const { cwd, connect } = await start(t)
  await writeFile(join(cwd, 'file'), '')
  await symlink('file/below', join(cwd, 'link'))
  await symlink('x'.repeat(300), join(cwd, 'long'))
  const { ask, told } = await connect()
  assert.equal((await ask('watch_fs_add', { paths: ['.'] })).code, 0)
  await writeFile(join(cwd, 'new'), '')
  await told('created file new')
  await symlink('file/below', join(cwd, 'other'))
  await told('created symlink other')
  await rm(join(cwd, 'link'))
  await told('deleted symlink link')
})

test('a path that is not there is told when it comes, goes and comes again, as a directory or as a file', async t => {
  const { cwd, connect } = await start(t)
  const { ask, told } = await connect()
  await ask('watch_fs_add', { paths: ['a/b', 'notes.md'] })
  await mkdir(join(cwd, 'a/b/c'), { recursive: true })
  await writeFile(join(cwd, 'a/b/c/x'), '1')
  await told('created directory a/b')
  await told('created file a/b/c/x')
  await rm(join(cwd, 'a'), { recursive: true })
  await told('deleted directory a/b')
  await told('deleted file a/b/c/x')
  await mkdir(join(cwd, 'a/b'), { recursive: true })
  await writeFile(join(cwd, 'a/b/again'), '1')
  await told('created file a/b/again')
  await writeFile(join(cwd, 'notes.md'), '1')
  await told('created file notes.md')
  await rm(join(cwd, 'notes.md'))
  await told('deleted file notes.md')
})

test('a path that comes is told once, also where others watch what lies above it', async t => {
  const { cwd, connect } = await start(t, { window_ms: 1 })
  const [one, other] = [await connect(), await connect()]
  await one.ask('watch_fs_add', { paths: ['.', 'later'], recursive: false })
  await other.ask('watch_fs_add', { paths: ['.'], recursive: false })
  await mkdir(join(cwd, 'later'))
  await other.told('created directory later')
  await one.told('created directory later')
  await writeFile(join(cwd, 'later/x'), '')
  await one.told('created file later/x')
  assert.deepEqual(one.lines(), ['created directory later', 'created file later/x'])
})

test('files with names as editors give to backups and drafts are told as all others', async t => {
  const { cwd, connect } = await start(t)
  const { ask, told } = await connect()
  await ask('watch_fs_add', { paths: ['.'] })
  for (const name of ['notes~', '.notes.swp', 'v1.2.swx', 'a.subl1.tmp']) {
    await writeFile(join(cwd, name), '1')
    await told(`created file ${name}`)
  }
})

test('a directory with a backslash in its name is watched, and files in it that nobody may read are told, too', async t => {
  const { cwd, connect } = await start(t)
  await mkdir(join(cwd, 'a\\b/c\\d'), { recursive: true })
  await writeFile(join(cwd, 'a\\b/old'), '', { mode: 0 })
  const { ask, told } = await connect()
  await ask('watch_fs_add', { paths: ['a\\b'] })
  await writeFile(join(cwd, 'a\\b/c\\d/new'), '', { mode: 0 })
  await told('created file a\\b/c\\d/new')
  await rm(join(cwd, 'a\\b/old'))
  await told('deleted file a\\b/old')
})

test('what lies in .git is not told, and a removed watch tells nothing', async t => {
  const { cwd, connect } = await start(t)
  await mkdir(join(cwd, '.git/refs'), { recursive: true })
  const { ask, told, lines } = await connect()
  await ask('watch_fs_add', { paths: ['.', 'sub'] })
  assert.deepEqual((await ask('watch_fs_remove', { paths: ['nope', '../x', 'sub'] })).payload, {
    watched_paths: ['.'],
    current_count: 1
  })
  await writeFile(join(cwd, '.git/refs/head'), '1')
  await writeFile(join(cwd, '.env'), '1')
  await told('created file .env')
  // Making a file and writing it are two changes where a window ends between them.
  assert.deepEqual(
    lines().filter(line => line !== 'modified file .env'),
    ['created file .env']
  )
  assert.deepEqual((await ask('watch_fs_remove', { paths: ['.'] })).payload, { watched_paths: [], current_count: 0 })
})

test('bad paths, sessions and runtimes are refused whole, and the number of paths is limited over all sessions', async t => {
  const { cwd, connect, session } = await start(t, { max_paths: 3 })
  await symlink('/', join(cwd, 'out'))
  const { ask } = await connect()
  const codeOf = async (payload: object) => {
    const { code, payload: data } = await ask('watch_fs_add', payload)
    if (code !== 0) assert.deepEqual(data, { watched_paths: [], current_count: 0 })
    return code
  }
  for (const bad of ['', '/', '/etc', '..', 'a/../..', 'out', 'out/etc', 'out/nope/x'])
    assert.equal(await codeOf({ paths: ['ok', bad] }), 41304, bad)
  assert.equal(await codeOf({ paths: ['ok', 'a\0b'] }), 40001)
  assert.equal(await codeOf({ session_id: 'session_nope', paths: ['a'] }), 40409)
  assert.equal(await codeOf({ paths: ['a'], runtime_id: 'far' }), 40420)
  assert.equal((await ask('watch_fs_add', { paths: 'a' })).code, 40001)
  assert.deepEqual((await ask('watch_fs_add', { paths: ['a', './a', 'b'] })).payload, { watched_paths: ['a', 'b'], current_count: 2 })
  const other = await session()
  assert.equal(await codeOf({ session_id: other, paths: ['a', 'b'] }), 42902)
  assert.deepEqual((await ask('watch_fs_add', { session_id: other, paths: ['c'], recursive: false })).payload, {
    watched_paths: ['c'],
    current_count: 3
  })
  assert.equal(await codeOf({ session_id: other, paths: ['c'] }), 0, 'the same path in another way is none more')
  assert.equal(await codeOf({ paths: ['a'] }), 0)
  assert.equal(await codeOf({ paths: ['d'] }), 42902)
})

test('a path that leads out is refused, and one that a link leads to is told, also where others watch above them', async t => {
  const { cwd, connect } = await start(t)
  await mkdir(join(cwd, 'src'))
  await symlink('/etc', join(cwd, 'out'))
  await symlink('src', join(cwd, 'in'))
  await (await connect()).ask('watch_fs_add', { paths: ['.'] })
  const { ask, told } = await connect()
  for (const bad of ['out', 'out/nope']) assert.equal((await ask('watch_fs_add', { paths: [bad] })).code, 41304, bad)
  assert.equal((await ask('watch_fs_add', { paths: ['in'] })).code, 0)
  await writeFile(join(cwd, 'src/new'), '')
  await told('created file in/new')
})

test('more files than may be watched are refused, and a flood of changes comes as one truncated window', async t => {
  const { cwd, connect } = await start(t, { max_entries: 60, max_changes: 10, window_ms: 300 })
  await mkdir(join(cwd, 'many'))
  for (let n = 0; n < 80; n++) await writeFile(join(cwd, `many/${n}`), '')
  const { ask, client } = await connect()
  assert.equal((await ask('watch_fs_add', { paths: ['many'] })).code, 42902)
  await mkdir(join(cwd, 'few'))
  assert.equal((await ask('watch_fs_add', { paths: ['few'] })).code, 0)
  for (let n = 0; n < 30; n++) await writeFile(join(cwd, `few/${n}`), '')
  const { payload } = await client.next(({ type }) => type === 'event.fs.changed')
  const { changes, truncated, count } = payload as { changes: Change[]; truncated: boolean; count: number }
  assert.deepEqual([changes, truncated], [[], true])
  assert.ok(count > 10)
})

test('a watch that grows beyond the limit ends with a truncated window', async t => {
  const { cwd, connect } = await start(t, { max_entries: 20 })
  const { ask, client } = await connect()
  assert.equal((await ask('watch_fs_add', { paths: ['.'] })).code, 0)
  for (let n = 0; n < 40; n++) await writeFile(join(cwd, `${n}`), '')
  await client.next(({ type, payload }) => type === 'event.fs.changed' && (payload as { count?: number }).count === 0)
  assert.deepEqual((await ask('watch_fs_add', { paths: [] })).payload, { watched_paths: [], current_count: 0 })
})

test('a link that takes the place of a watched directory shows nothing of where it leads', async t => {
  const { cwd, connect } = await start(t)
  const outside = await freshDir()
  await mkdir(join(cwd, 'src/sub'), { recursive: true })
  await writeFile(join(cwd, 'src/sub/inner'), '1')
  await writeFile(join(cwd, 'src/plain'), '1')
  await writeFile(join(outside, 'secret'), '1')
  const { ask, told, lines } = await connect()
  await ask('watch_fs_add', { paths: ['.', 'src'] })
  await rename(join(cwd, 'src/sub'), join(cwd, 'moved'))
  await symlink(outside, join(cwd, 'src/sub'))
  await told('created file moved/inner')
  await writeFile(join(outside, 'second'), '1')
  await rename(join(cwd, 'src'), join(cwd, 'gone'))
  await symlink(outside, join(cwd, 'src'))
  await told('created file gone/plain')
  await writeFile(join(outside, 'third'), '1')
  await writeFile(join(cwd, 'end'), '1')
  await told('created file end')
  assert.deepEqual(
    lines().filter(line => /secret|second|third/.test(line)),
    []
  )
})

test('archiving the session ends its watches, and so does the end of the connection', async t => {
  const { cwd, connect, call, session_id, session } = await start(t)
  const one = await connect()
  await one.ask('watch_fs_add', { paths: ['.'] })
  await call(archiveSession, { params: { session_id } })
  assert.deepEqual((await one.ask('watch_fs_remove', { paths: [] })).payload, { watched_paths: [], current_count: 0 })
  const other = await session()
  await one.ask('watch_fs_add', { session_id: other, paths: ['.'] })
  await one.client.close()
  const two = await connect()
  await two.ask('watch_fs_add', { session_id: other, paths: ['.'] })
  await writeFile(join(cwd, 'x'), '1')
  await two.told('created file x')
  assert.equal(two.frames()[0]?.seq, 1)
  assert.equal(one.frames().length, 0)
  await two.ask('watch_fs_remove', { session_id: other, paths: ['.'] })
  await two.ask('watch_fs_add', { session_id: other, paths: ['.'] })
  await writeFile(join(cwd, 'y'), '1')
  await two.told('created file y')
  const seqs = two.frames().map(({ seq }) => Number(seq))
  assert.deepEqual(
    seqs,
    seqs.map((_, at) => at + 1),
    'numbers go on when everybody had gone'
  )
})

test('archiving a session that is not loaded ends its watches', async t => {
  const { cwd, home, session_id, stop } = await start(t)
  await stop()
  const again = await startTestKernel(t, { packs: [workspaces, sessions, sessionsV2, watch], home })
  const client = await again.connect()
  assert.equal((await client.request('watch_fs_add', { session_id, paths: ['.'] })).code, 0)
  await again.call(archiveSessions, { body: { ids: [session_id] } })
  await writeFile(join(cwd, 'later'), '')
  assert.deepEqual((await client.request('watch_fs_remove', { session_id, paths: [] })).payload, { watched_paths: [], current_count: 0 })
})

test('a path that is watched in another way is let go of first; with the last path goes what is kept of its session', () => {
  const told: string[] = []
  const say = (word: string) => () => void told.push(word)
  const room = new Room({
    session_id: 'session_a',
    windowMs: 1000,
    maxChanges: 1,
    now: () => new Date(0),
    seq: 0,
    empty: say('empty')
  })
  const connection = {} as Connection
  room.put(connection, { path: 'a', recursive: false, release: say('flat') })
  room.put(connection, { path: 'a', recursive: true, release: say('deep') })
  room.remove(connection, 'a')
  assert.deepEqual(told, ['flat', 'deep', 'empty'])
})

test('what is kept of sessions that nobody watches is bounded, the newest ones stay', () => {
  const newest = new NewestFrames()
  for (let n = 0; n < 3000; n++) newest.keep(`session_${n}`, n)
  assert.equal(newest.size, 1000)
  assert.deepEqual([newest.take('session_2999'), newest.take('session_0'), newest.size], [2999, 0, 999])
})

test('other packs watch a directory of their own, and share what is watched above it', async t => {
  const { cwd, service } = await start(t)
  const seen: string[] = []
  let heard = () => {}
  const next = () =>
    new Promise<void>(resolve => {
      heard = resolve
    })
  const listener = {
    changed(changes: readonly { path: string }[]) {
      seen.push(...changes.map(({ path }) => path))
      heard()
    },
    unknown: () => undefined
  }
  const undoAll = await service().watch({ root: cwd }, { changed: () => undefined, unknown: () => undefined })
  const undo = await service().watch({ root: cwd, path: 'skills', recursive: false }, listener)
  let told = next()
  await mkdir(join(cwd, 'skills'))
  await told
  told = next()
  await writeFile(join(cwd, 'skills/SKILL.md'), '1')
  await told
  await mkdir(join(cwd, 'skills2'))
  await writeFile(join(cwd, 'skills2/SKILL.md'), '1')
  told = next()
  await writeFile(join(cwd, 'skills/more'), '1')
  await told
  assert.deepEqual([...new Set(seen)], ['skills', 'skills/SKILL.md', 'skills/more'])
  undo()
  undoAll()
  const undoFlat = await service().watch({ root: cwd, recursive: false }, { changed: () => undefined, unknown: () => undefined })
  const undoDeep = await service().watch({ root: cwd }, listener)
  told = next()
  await writeFile(join(cwd, 'skills/deep'), '1')
  await told
  undoDeep()
  undoFlat()
  await assert.rejects(service().watch({ root: join(cwd, 'nope') }, listener), /not there/)
})
