import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { afterEach, type TestContext, test } from 'node:test'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { acquireLock as acquire, type Lock, lockHolder, withLock } from '../../kernel/storage/lock.ts'
import { documentSpec } from '../../kernel/testing/storage-suite.ts'
import { program, startChild } from '../helpers/child.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

/** Given back with the test: the heartbeat of the process goes on for as long as one is held, and tests of other files wait for its end. */
const taken: (Lock | undefined)[] = []
const acquireLock: typeof acquire = async (...args) => {
  const lock = await acquire(...args)
  taken.push(lock)
  return lock
}
afterEach(async () => {
  await Promise.all(taken.splice(0).map(lock => lock?.release({ soon: true })))
})

test('a lock is held once per machine: the same process asking again is refused until it is released', async () => {
  const path = join(await freshDir(), 'deep', 'lock')
  const lock = await acquireLock(path)
  assert.ok(lock)
  assert.equal(await acquireLock(path), undefined)
  await lock.release()
  await lock.release()
  const again = await acquireLock(path)
  assert.ok(again)
})

test('the file tells who holds the lock, readable by its owner only', async () => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const lock = await acquireLock(path, { info: { port: 4 } })
  const holder = await lockHolder(path)
  assert.equal(holder?.pid, process.pid)
  assert.deepEqual(holder?.info, { port: 4 })
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.deepEqual(await readdir(dir), ['lock'])
  await lock?.release()
  assert.equal(await lockHolder(path), undefined)
})

test('a living process keeps its lock, and gives it back when asked', async t => {
  const path = join(await freshDir(), 'lock')
  const child = startChild(t, 'lock', 'hold', path)
  await child.atLeast(1)
  assert.equal(await acquireLock(path), undefined)
  assert.equal((await lockHolder(path))?.pid, child.pid)
  child.say('release')
  await child.atLeast(2)
  assert.ok(await acquireLock(path))
})

test('a lock ends with kill -9 of its holder, and of many takers exactly one wins', async t => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const child = startChild(t, 'lock', 'hold', path)
  await child.atLeast(1)
  await child.kill()
  assert.equal(await lockHolder(path), undefined)
  const taken = await Promise.all(Array.from({ length: 20 }, () => acquireLock(path)))
  assert.equal(taken.filter(lock => lock !== undefined).length, 1)
  assert.deepEqual(await readdir(dir), ['lock'])
})

test('a taker that died in the middle of taking over does not block the next one', async t => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const child = startChild(t, 'lock', 'hold', path)
  await child.atLeast(1)
  await child.kill()
  const dead = await readFile(path, 'utf8')
  await writeFile(`${path}~take`, dead.replace('nonce":"', 'nonce":"x'))
  await writeFile(`${path}~${(JSON.parse(dead) as { nonce: string }).nonce}`, dead)
  assert.ok(await acquireLock(path))
  assert.deepEqual(await readdir(dir), ['lock'])
})

test('what a taker left that died while it took a free lock goes with the next one; what a living one is writing stays', async t => {
  const dir = await freshDir()
  const child = startChild(t, 'lock', 'hold', join(dir, 'other'))
  await child.atLeast(1)
  const { nonce } = JSON.parse(await readFile(join(dir, 'other'), 'utf8')) as { nonce: string }
  const count = join(dir, 'count')
  const made = `count.lock~${nonce}`
  await writeFile(join(dir, made), '')
  await writeFile(count, '0')
  await startChild(t, 'lock', 'add', count, '1').end()
  assert.ok((await readdir(dir)).includes(made), 'its maker lives')
  await child.kill()
  await startChild(t, 'lock', 'add', count, '1').end()
  assert.deepEqual((await readdir(dir)).sort(), ['count', 'other'])
  assert.equal(await readFile(count, 'utf8'), '2')
})

test('a lock whose directory was away when it was given back is free when that comes back', async () => {
  const dir = await freshDir()
  const path = join(dir, 'home', 'a.lock')
  const lock = await acquireLock(path)
  await rename(join(dir, 'home'), join(dir, 'away'))
  await lock?.release()
  await rename(join(dir, 'away'), join(dir, 'home'))
  assert.equal(await lockHolder(path), undefined)
  assert.ok(await acquireLock(path))
})

test('a process id that was given out again does not keep a dead lock alive', { skip: process.platform !== 'linux' }, async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, JSON.stringify({ pid: process.pid, start: 'another boot:1', nonce: 'n' }))
  assert.ok(await acquireLock(path))
})

test('a process that has ended but was not collected by its parent holds no lock', { skip: process.platform !== 'linux' }, async t => {
  const path = join(await freshDir(), 'lock')
  // The parent becomes a program that collects nobody.
  const parent = spawn('sh', ['-c', 'cat <&3 & echo $!; exec sleep 60'], { stdio: ['ignore', 'pipe', 'ignore', 'pipe'] })
  t.after(() => parent.kill())
  const { stdout } = parent
  assert.ok(stdout)
  const [data] = (await once(stdout, 'data')) as [Buffer]
  const pid = Number(String(data))
  while ((await readFile(`/proc/${parent.pid}/comm`, 'utf8')) !== 'sleep\n') await new Promise(resolve => setTimeout(resolve, 2))
  ;(parent.stdio[3] as Writable).end()
  while (!/\) Z /.test(await readFile(`/proc/${pid}/stat`, 'utf8'))) await new Promise(resolve => setTimeout(resolve, 2))
  await writeFile(path, JSON.stringify({ pid, nonce: 'n' }))
  assert.ok(await acquireLock(path))
})

test('a lock file that a power loss left unreadable is free', async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, '\0\0\0')
  assert.ok(await acquireLock(path))
})

test('three processes counting under one lock lose no count', async t => {
  const file = join(await freshDir(), 'count')
  await writeFile(file, '0')
  const children = [1, 2, 3].map(() => startChild(t, 'lock', 'add', file, '40'))
  const ends = await Promise.all(children.map(child => child.end()))
  assert.deepEqual(ends, [0, 0, 0])
  assert.equal(await readFile(file, 'utf8'), '120')
})

test('takers in several processes killed at random never hold the lock together', async t => {
  const file = join(await freshDir(), 'count')
  await writeFile(file, '0')
  const steady = startChild(t, 'lock', 'add', file, '40')
  for (let i = 0; i < 4; i++) {
    const victim = startChild(t, 'lock', 'hold', `${file}.lock`)
    await victim.atLeast(1)
    await victim.kill()
  }
  assert.equal(await steady.end(), 0)
  assert.equal(await readFile(file, 'utf8'), '40')
})

test('waiting for a lock is bounded and ends with a clear error', async () => {
  const path = join(await freshDir(), 'lock')
  await acquireLock(path)
  await assert.rejects(
    withLock(path, async () => undefined, { timeoutMs: 30 }),
    error => AppError.is(error) && error.spec === PersistenceFailed
  )
})

/** The clock that tells how long something took: the function puts it forward. One for a test, since it would not be put back from two. */
function clock(t: TestContext): (ms: number) => void {
  const now = performance.now.bind(performance)
  let ahead = 0
  t.mock.method(performance, 'now', () => now() + ahead)
  return ms => {
    ahead += ms
  }
}

const elsewhere = (more: object = {}) => JSON.stringify({ pid: process.pid, where: 'other-machine', nonce: 'n', ...more })
const lost = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed

test('after a shortage of descriptors a document can be written again at once: its lock was given back', async t => {
  const home = await freshDir()
  const disk = new WatchedDisk()
  const storage = createStorage({ home, log: warnings() }, { files: disk.files })
  t.after(() => storage.close())
  const store = storage.open(documentSpec, { namespace: 'test', dir: 'test' })
  disk.fail('readFile', /a\.json\.lock$/, 'EMFILE')
  await store.put('a', { n: 1 })
  const began = performance.now()
  await store.put('a', { n: 2 })
  assert.ok(performance.now() - began < 5_000)
  assert.deepEqual(await store.get('a'), { n: 2 })
})

test('a lock that could not be removed is removed for other processes as soon as the system lets it', async () => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const disk = new WatchedDisk()
  const lock = await acquireLock(path, { files: disk.files })
  disk.fail('unlink', /lock$/, 'EIO', 2)
  await lock?.release()
  assert.deepEqual(await readdir(dir), ['lock'])
  assert.equal(await lockHolder(path), undefined)
  while ((await readdir(dir)).length > 0) await new Promise(resolve => setImmediate(resolve))
  assert.ok(await acquireLock(path))
})

test('giving back leaves a lock alone that somebody else holds by now', async () => {
  const path = join(await freshDir(), 'lock')
  const lock = await acquireLock(path)
  await writeFile(path, elsewhere())
  await lock?.release()
  assert.equal(await readFile(path, 'utf8'), elsewhere())
})

test('giving back under the guard leaves a lock alone that was taken over while the guard was waited for', async () => {
  const path = join(await freshDir(), 'lock')
  const disk = new WatchedDisk()
  const lock = await acquireLock(path, { files: disk.files, guarded: true })
  disk.before('link', /lock~take$/, () => writeFile(path, elsewhere()))
  await lock?.release()
  assert.equal(await readFile(path, 'utf8'), elsewhere())
})

test('a holder in another container keeps its lock while its heartbeat is fresh, and loses it when it stops', async () => {
  const path = join(await freshDir(), 'lock')
  const fence = (Date.now() + 60_000) * 1000
  await writeFile(path, elsewhere({ pid: 2 ** 31 - 2, fence }))
  assert.equal(await acquireLock(path), undefined)
  assert.equal((await lockHolder(path))?.nonce, 'n')
  await utimes(path, new Date(), new Date(Date.now() - 20_000))
  assert.equal(await lockHolder(path), undefined)
  const lock = await acquireLock(path)
  assert.ok(lock && lock.fence > fence, 'higher than the number before, whatever the clock says')
})

const unshare = ['-Ur', '--pid', '--fork', '--mount-proc']
const canUnshare = process.platform === 'linux' && spawnSync('unshare', [...unshare, 'true']).status === 0

test('a process in a namespace of its own keeps its lock', { skip: !canUnshare }, async t => {
  const path = join(await freshDir(), 'lock')
  const child = startChild(t, 'lock', 'hold', path)
  await child.atLeast(1)
  assert.equal(child.lines[0], 'held')
  const other = spawnSync('unshare', [...unshare, process.execPath, program('lock'), 'try', path], { encoding: 'utf8' })
  assert.equal(other.stdout.trim(), 'refused', other.stderr)
})

test('a held lock is touched every two seconds', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const path = join(await freshDir(), 'lock')
  const lock = await acquireLock(path)
  clock(t)(5_000)
  await utimes(path, new Date(0), new Date(0))
  t.mock.timers.tick(2_000)
  while ((await stat(path)).mtimeMs === 0) await new Promise(resolve => setImmediate(resolve))
  assert.ok(Date.now() - (await stat(path)).mtimeMs < 5_000)
  await lock?.release()
})

test('fencing numbers rise from holder to holder', async t => {
  const path = join(await freshDir(), 'lock')
  let last = 0
  for (let n = 0; n < 50; n++) {
    const lock = await acquireLock(path)
    assert.ok(lock && lock.fence > last)
    last = lock.fence
    await lock.release()
  }
  const child = startChild(t, 'lock', 'hold', path)
  await child.atLeast(1)
  const theirs = Number((await lockHolder(path))?.fence)
  await child.kill()
  const lock = await acquireLock(path)
  assert.ok(theirs >= last && lock && lock.fence > theirs + 900_000)
})

test('who lost the lock while standing still cannot confirm it, and overwrites no document', async t => {
  const home = await freshDir()
  const path = join(home, 'lock')
  const lock = await acquireLock(path)
  await writeFile(path, elsewhere())
  const pass = clock(t)
  pass(5_000)
  await assert.rejects(lock!.confirm(), lost)

  const disk = new WatchedDisk()
  const storage = createStorage({ home, log: warnings() }, { files: disk.files })
  t.after(() => storage.close())
  const store = storage.open(documentSpec, { namespace: 'test', dir: 'test' })
  await store.put('a', { n: 1 })
  disk.before('sync', /a\.json~$/, async () => {
    await writeFile(join(home, 'test', 'a.json.lock'), elsewhere())
    pass(10_000)
  })
  await assert.rejects(store.put('a', { n: 2 }), lost)
  assert.deepEqual(await store.get('a'), { n: 1 })
})

test('who saw a dead lock that another one has taken over since does not take it over a second time', async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, JSON.stringify({ pid: 2 ** 31 - 2, nonce: 'dead' }))
  const disk = new WatchedDisk()
  let faster: Lock | undefined
  disk.before('link', /~take$/, async () => {
    faster = await acquireLock(path)
  })
  assert.equal(await acquireLock(path, { files: disk.files }), undefined)
  assert.ok(faster)
  await faster.confirm()
  assert.equal((await lockHolder(path))?.nonce, (JSON.parse(await readFile(path, 'utf8')) as { nonce: string }).nonce)
  await faster.release()
  assert.ok(await acquireLock(path))
})
