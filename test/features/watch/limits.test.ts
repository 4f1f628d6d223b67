/** Limits of watching at their edge, what a refusal leaves, and the end of the thread that watches. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, utimesSync, writeFileSync } from 'node:fs'
import { mkdir, realpath, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import threads, { Worker } from 'node:worker_threads'
import { createSession } from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import type { FileChange } from '../../../features/watch/change.ts'
import watch from '../../../features/watch/pack.ts'
import { Room, type WatchedPath } from '../../../features/watch/room.ts'
import { type WatchListener, type WatchRequest, WatchTrouble } from '../../../features/watch/service.ts'
import { shares, Watchers } from '../../../features/watch/watchers.ts'
import { WholeWatcher } from '../../../features/watch/whole-watcher.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import type { Connection } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { setEnvironment, withEnvironment } from '../../helpers/environment.ts'
import { freshDir } from '../../helpers/temp.ts'

async function start(t: TestContextLike, config: object = {}, below = '') {
  const cwd = join(await realpath(await freshDir()), below)
  await mkdir(cwd, { recursive: true })
  const kernel = await startTestKernel(t, { packs: [workspaces, sessions, watch], config: { watch: { window_ms: 20, ...config } } })
  const session_id = (await kernel.call(createSession, { body: { metadata: { cwd } } })).data.id
  const client = await kernel.connect()
  const lines = () =>
    client.frames.flatMap(({ type, payload }) =>
      type === 'event.fs.changed'
        ? (payload as { changes: { path: string; change: string }[] }).changes.map(({ path, change }) => `${change} ${path}`)
        : []
    )
  return {
    cwd,
    client,
    lines,
    ask: (type: string, payload: object) => client.request(type, { session_id, ...payload }),
    async told(line: string) {
      if (!lines().includes(line)) await client.next(() => lines().includes(line))
    },
    async fill(dir: string, count: number) {
      await mkdir(join(cwd, dir), { recursive: true })
      for (let n = 0; n < count; n++) await writeFile(join(cwd, dir, String(n)), '')
    }
  }
}

test('exactly as many files as are allowed are watched, and a refused call holds none of them', async t => {
  const { cwd, ask, fill } = await start(t, { max_entries: 6 })
  await fill('a', 5)
  await fill('b', 5)
  await fill('c', 6)
  await symlink('/', join(cwd, 'out'))
  assert.equal((await ask('watch_fs_add', { paths: ['a', 'out'] })).code, 41304)
  assert.equal((await ask('watch_fs_add', { paths: ['c'] })).code, 42902)
  assert.equal((await ask('watch_fs_add', { paths: ['b'] })).code, 0)
  assert.equal((await ask('watch_fs_add', { paths: ['a'] })).code, 42902)
  assert.deepEqual((await ask('watch_fs_remove', { paths: ['./b/', '../x', 'none'] })).payload, { watched_paths: [], current_count: 0 })
  assert.equal((await ask('watch_fs_add', { paths: ['a'] })).code, 0)
})

test('more files than a machine without watches could look at are watched where there are some', async t => {
  const { ask, fill, cwd, told } = await start(t)
  await fill('many', 2100)
  assert.equal((await ask('watch_fs_add', { paths: ['many'] })).code, 0)
  await writeFile(join(cwd, 'many/new'), '')
  await told('created many/new')
})

test('a working directory below a .git is watched like any other', async t => {
  const { ask, cwd, told } = await start(t, {}, '.git/modules/sub')
  assert.equal((await ask('watch_fs_add', { paths: ['.'] })).code, 0)
  await writeFile(join(cwd, 'new'), '')
  await told('created new')
})

test('a change that two watches of a connection see is told once', async t => {
  const { ask, cwd, told, lines } = await start(t, { window_ms: 300 })
  await mkdir(join(cwd, 'src'))
  await ask('watch_fs_add', { paths: ['.'], recursive: false })
  await ask('watch_fs_add', { paths: ['src'], recursive: true })
  await rm(join(cwd, 'src'), { recursive: true })
  await writeFile(join(cwd, 'end'), '')
  await told('deleted src')
  await told('created end')
  assert.deepEqual(
    lines().filter(line => line === 'deleted src'),
    ['deleted src']
  )
})

test('a file that comes into a new directory between its reading and its watching is told', { timeout: 20_000 }, async t => {
  const cwd = await freshDir()
  const watcher = new WholeWatcher({ ignoreInitial: true })
  t.after(() => watcher.close())
  const handler = watcher._nodeFsHandler
  const watchWith = handler._watchWithNodeFs.bind(handler)
  handler._watchWithNodeFs = (path, listener) => {
    if (path === join(cwd, 'new')) writeFileSync(join(path, 'between'), '')
    return watchWith(path, listener)
  }
  watcher.add(cwd)
  await once(watcher, 'ready')
  const added = once(watcher, 'add')
  await mkdir(join(cwd, 'new'))
  assert.equal((await added)[0], join(cwd, 'new/between'))
})

test('what changes in a directory that is read for long is not forgotten: it is read once more', async t => {
  const watcher = new WholeWatcher({ ignoreInitial: true })
  t.after(() => watcher.close())
  const reading = watcher._throttle('readdir', '/large', 1)
  assert.ok(reading)
  assert.equal(watcher._throttle('readdir', '/large', 1), false) // something changed
  await new Promise(resolve => setTimeout(resolve, 20)) // the time in which the library would have it read
  assert.equal(reading.clear(), 1)
})

const namesFiles = ['linux', 'darwin', 'win32'].includes(process.platform)

test('a tree takes one watch per directory, and of each file in it changes are told', { skip: !namesFiles, timeout: 20_000 }, async t => {
  const cwd = await freshDir()
  const [first, second] = [join(cwd, 'a/0'), join(cwd, 'b/1')]
  for (const dir of ['a', 'b']) {
    await mkdir(join(cwd, dir))
    for (let n = 0; n < 40; n++) await writeFile(join(cwd, dir, String(n)), '')
  }
  const watcher = new WholeWatcher({ ignoreInitial: true })
  t.after(() => watcher.close())
  const told = (event: 'change' | 'unlink', path: string) =>
    new Promise<void>(resolve => watcher.on(event, (given: string) => given === path && resolve()))
  watcher.add(cwd)
  await once(watcher, 'ready')
  assert.deepEqual([...watcher._closers.keys()].sort(), [cwd, join(cwd, 'a'), join(cwd, 'b')])
  const changes = [told('change', first), told('change', second), told('unlink', join(cwd, 'b/2'))]
  await writeFile(first, 'written')
  await writeFile(join(cwd, 'b/new'), 'put in its place')
  await rename(join(cwd, 'b/new'), second)
  await rm(join(cwd, 'b/2'))
  await Promise.all(changes)
})

test('a file that changes between the reading of its new directory and its watching is told', { timeout: 20_000 }, async t => {
  const cwd = await freshDir()
  const file = join(cwd, 'new/file')
  const watcher = new WholeWatcher({ ignoreInitial: true })
  t.after(() => watcher.close())
  const handler = watcher._nodeFsHandler
  const read = handler._handleRead.bind(handler)
  const added = new Promise<void>(resolve => watcher.on('add', path => path === file && resolve()))
  let reads = 0
  handler._handleRead = async (...given) => {
    const answer = await read(...given)
    if (given[0] === join(cwd, 'new') && reads++ === 0) await added.then(() => utimesSync(file, 1, 1))
    return answer
  }
  watcher.add(cwd)
  await once(watcher, 'ready')
  const changed = once(watcher, 'change')
  mkdirSync(join(cwd, 'new'))
  writeFileSync(file, '')
  assert.equal((await changed)[0], file)
})

test('a change is told by the nearest of the paths that a connection watches, by none of those that others watch', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: string[] = []
  const client = (name: string) =>
    ({
      send: ({ payload }: { payload: { changes: { path: string }[] } }) => told.push(`${name}: ${payload.changes.map(({ path }) => path)}`)
    }) as unknown as Connection
  const room = new Room({
    session_id: 'session_a',
    windowMs: 100,
    maxChanges: 10,
    now: () => new Date(0),
    seq: 0,
    empty: () => undefined
  })
  const [one, two] = [client('one'), client('two')]
  for (const path of ['.', 'src']) room.put(one, { path, recursive: path !== '.', release: () => undefined })
  room.put(two, { path: '.', recursive: false, release: () => undefined })
  const src = () => ({ path: 'src', change: 'created', kind: 'directory' }) as const
  for (const tell of [
    () => room.changed(two, '.', [src()]),
    () => room.changed(one, '.', [src()]),
    () => room.changed(one, 'src', [src()])
  ]) {
    tell()
    t.mock.timers.tick(100)
  }
  assert.deepEqual(told, ['two: src', 'one: src'])
})

test('exactly as many changes as are listed are listed, one more is none', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: unknown[] = []
  const connection = { send: ({ payload }: { payload: unknown }) => told.push(payload) } as unknown as Connection
  const room = new Room({
    session_id: 'session_a',
    windowMs: 100,
    maxChanges: 2,
    now: () => new Date(0),
    seq: 0,
    empty: () => undefined
  })
  room.put(connection, { path: '.', recursive: true, release: () => undefined })
  const change = (path: string) => ({ path, change: 'created', kind: 'file' }) as const
  const two = [change('a'), change('b')]
  for (const changes of [two, [...two, change('c')]]) {
    room.changed(connection, '.', changes)
    t.mock.timers.tick(100)
  }
  assert.deepEqual(told, [
    { coalesced_window_ms: 100, changes: two },
    { coalesced_window_ms: 100, changes: [], truncated: true, count: 3 }
  ])
})

test('who watches many paths has each change found its path without a look at the others', t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const told: unknown[] = []
  const connection = { send: ({ payload }: { payload: unknown }) => told.push(payload) } as unknown as Connection
  const options = { session_id: 'session_a', windowMs: 100, maxChanges: 500, now: () => new Date(0), seq: 0, empty: () => undefined }
  const room = new Room(options)
  let looks = 0
  const watching = (path: string, recursive = true) => {
    const watched: WatchedPath = {
      recursive,
      release: () => undefined,
      get path() {
        looks++
        return path
      }
    }
    room.put(connection, watched)
  }
  for (let n = 0; n < 98; n++) watching(`src/${n}`)
  watching('src', false)
  watching('.')
  const change = (path: string) => ({ path, change: 'created', kind: 'file' }) as const
  const [below, beside, deep, top] = ['src/7/a/b', 'src/a', 'src/a/b', 'a/b'].map(change) as [
    FileChange,
    FileChange,
    FileChange,
    FileChange
  ]
  looks = 0
  for (const path of ['src/7', 'src', '.']) room.changed(connection, path, [below, beside, deep, top])
  assert.ok(looks <= 3 * 4 * 3, `${looks} looks`)
  t.mock.timers.tick(100)
  assert.deepEqual(told, [{ coalesced_window_ms: 100, changes: [below, beside, deep, top] }])
})

test('of a batch of changes each of many who watch gets its own without a look at all others', () => {
  let looks = 0
  const watching = (path: string, recursive = true) => ({
    recursive,
    get path() {
      looks++
      return path
    }
  })
  const users = [watching(''), watching('src', false), watching('src'), ...Array.from({ length: 100 }, (_, n) => watching(`src/${n}`))]
  const change = (path: string) => ({ path, change: 'created', kind: 'file' }) as const
  const own = shares(users, ['.', 'a', 'src', 'src/7', 'src/7/a', 'src/70/a/b'].map(change))
  assert.ok(looks <= users.length + 6 * 5 * 3, `${looks} looks`)
  const told = (at: number) => own.get(users[at]!)?.map(({ path }) => path)
  assert.deepEqual([0, 1, 2, 10, 73, 74].map(told), [
    ['.', 'a', 'src', 'src/7', 'src/7/a', 'src/70/a/b'],
    ['src', 'src/7'],
    ['src', 'src/7', 'src/7/a', 'src/70/a/b'],
    ['src/7', 'src/7/a'],
    ['src/70/a/b'],
    []
  ])
})

test('the environment says how long a window is and how many changes it lists; what is no such number says nothing', async t => {
  const names = { window: 'SVC_CODE_FS_WATCH_DEBOUNCE_MS', changes: 'SVC_CODE_FS_WATCH_MAX_CHANGES_PER_WINDOW' }
  withEnvironment(t, { [names.window]: undefined, [names.changes]: undefined })
  const flood = async (window: string, changes: string) => {
    setEnvironment({ [names.window]: window, [names.changes]: changes })
    const { ask, fill, client } = await start(t, { max_changes: 1 })
    await ask('watch_fs_add', { paths: ['.'] })
    await fill('new', 30)
    const { payload } = await client.next(({ type, payload: told }) => {
      const { changes: listed = [], truncated } = told as { changes?: unknown[]; truncated?: boolean }
      return type === 'event.fs.changed' && (truncated || listed.length > 1)
    })
    const { coalesced_window_ms, truncated } = payload as { coalesced_window_ms: number; truncated?: boolean }
    return [coalesced_window_ms, truncated]
  }
  assert.deepEqual(await flood('150', '1000'), [150, undefined])
  for (const bad of ['0', '-1', '1.5', 'x', '60001']) assert.deepEqual(await flood(bad, '0'), [20, true], bad)
})

test('the thread that watches ends 5 s after there is nothing to watch, whether it was let go of or refused', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { terminate } = Worker.prototype
  let ended = 0
  t.mock.method(Worker.prototype, 'terminate', function (this: Worker) {
    ended++
    return terminate.call(this)
  })
  const root = await realpath(await freshDir())
  const watchers = new Watchers(2, call => call())
  t.after(() => watchers.close())
  const listener = { changed: () => undefined, unknown: () => undefined }
  const release = await watchers.watch({ root }, listener)
  release()
  t.mock.timers.tick(4999)
  ;(await watchers.watch({ root }, listener))()
  t.mock.timers.tick(4999)
  assert.equal(ended, 0, 'who comes back meanwhile finds it')
  t.mock.timers.tick(1)
  assert.equal(ended, 1)
  for (const name of ['a', 'b']) await mkdir(join(root, name))
  await assert.rejects(watchers.watch({ root }, listener), { trouble: 'too_many' })
  t.mock.timers.tick(5000)
  assert.equal(ended, 2)
})

test('a path that is lost while others of the call are opened refuses the call; nothing of it is watched', async t => {
  const { ask } = await start(t)
  const released: string[] = []
  let lose: WatchListener['lost']
  t.mock.method(Watchers.prototype, 'watch', async ({ path = '' }: WatchRequest, listener: WatchListener) => {
    if (path === 'b') lose?.(new WatchTrouble('too_many', 'a has grown'))
    lose = listener.lost
    return () => released.push(path)
  })
  const answer = await ask('watch_fs_add', { paths: ['a', 'b'] })
  assert.deepEqual([answer.code, answer.payload, released], [42902, { watched_paths: [], current_count: 0 }, ['a', 'b']])
})

test('where no thread can be had a watch is refused, and the next one of that path is not kept waiting for it', async t => {
  const root = await realpath(await freshDir())
  const watchers = new Watchers(2, call => call())
  t.after(() => watchers.close())
  const listener = { changed: () => undefined, unknown: () => undefined }
  const refuse = () => {
    throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
  }
  t.mock.method(threads, 'Worker', refuse as never)
  const restore = mockedBuiltins(t)
  await assert.rejects(watchers.watch({ root }, listener), { trouble: 'failed' })
  restore()
  const release = await watchers.watch({ root }, listener)
  release()
})
