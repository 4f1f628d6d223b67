/** Locks between holders: what is looked at twice, what is left alone, numbers, heartbeats, the end. */
import assert from 'node:assert/strict'
import { readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { acquireLock, lockHolder, withLock } from '../../kernel/storage/lock.ts'
import { temporaryName } from '../../kernel/storage/process-life.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir } from '../helpers/temp.ts'

const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed
const dead = JSON.stringify({ pid: 2 ** 31 - 2, nonce: 'dead' })
const elsewhere = JSON.stringify({ pid: process.pid, where: 'other-machine', nonce: 'n' })
const turn = () => new Promise(resolve => setImmediate(resolve))

/** The clock that tells how long something took: the function puts it forward. */
function clock(t: TestContext): (ms: number) => void {
  const now = performance.now.bind(performance)
  let ahead = 0
  t.mock.method(performance, 'now', () => now() + ahead)
  return ms => {
    ahead += ms
  }
}

test('taking over removes what dead takers left, and nothing else in the directory', async () => {
  const dir = await freshDir()
  const path = join(dir, 'a.json.lock')
  const place = (await temporaryName()).split('-')[1]
  const files = [`a.json.lock~${await temporaryName()}`, 'a.json', 'b.json', `note-2147483646-${place}-x`]
  for (const name of files) await writeFile(join(dir, name), '{"n":1}')
  await writeFile(`${path}~${(await temporaryName()).replace(/^\d+/, '2147483646')}`, dead)
  await writeFile(path, dead)
  const lock = await acquireLock(path)
  assert.ok(lock)
  assert.deepEqual((await readdir(dir)).sort(), [...files, 'a.json.lock'].sort())
  await lock.release()
  assert.equal(await openFiles(dir), 0)
})

test('a lock that is given back between two looks is taken', async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, dead)
  const disk = new WatchedDisk()
  disk.before('readFile', /lock$/, () => rm(path))
  const lock = await acquireLock(path, { files: disk.files })
  assert.ok(lock)
  await lock.confirm()
  await lock.release()
})

test('a lock that cannot be written is refused with a reason, not told to be held', async () => {
  const dir = await freshDir()
  const disk = new WatchedDisk()
  disk.fail('link', /lock$/, 'ENOSPC')
  await assert.rejects(acquireLock(join(dir, 'lock'), { files: disk.files }), notSaved)
  await writeFile(join(dir, 'file'), '')
  await assert.rejects(acquireLock(join(dir, 'file', 'lock')), notSaved)
  assert.deepEqual(await readdir(dir), ['file'])
})

test("a file that names no process is nobody's lock", async () => {
  const path = join(await freshDir(), 'lock')
  for (const text of ['{"pid":0,"nonce":"n"}', 'null', '{"pid":1.5}']) {
    await writeFile(path, text)
    assert.equal(await lockHolder(path), undefined)
  }
  const lock = await acquireLock(path)
  assert.ok(lock)
  await lock.release()
})

test('a holder elsewhere may miss three heartbeats', async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, elsewhere)
  await utimes(path, new Date(), new Date(Date.now() - 6_500))
  assert.equal(await acquireLock(path), undefined)
  await utimes(path, new Date(), new Date(Date.now() - 8_500))
  const lock = await acquireLock(path)
  assert.ok(lock)
  await lock.release()
})

test('whoever waits for a lock gives up after ten seconds', async t => {
  const path = join(await freshDir(), 'lock')
  const lock = await acquireLock(path)
  const disk = new WatchedDisk()
  const pass = clock(t)
  disk.before('link', /lock$/, async () => pass(10_001))
  disk.before('link', /lock$/, async () => lock?.release())
  await assert.rejects(
    withLock(path, async () => undefined, { files: disk.files }),
    notSaved
  )
  await lock?.release()
})

test('sections that follow one another within a millisecond have numbers that rise', async () => {
  const path = join(await freshDir(), 'lock')
  let last = 0
  for (let n = 0; n < 30; n++) {
    const fence = await withLock(path, async lock => lock.fence)
    assert.ok(fence > last)
    last = fence
  }
  const lock = await acquireLock(path)
  await lock?.release()
  assert.ok(Date.now() * 1000 > (lock?.fence ?? 0), 'the next process takes its number from the clock')
})

test('a clock that was set back is not waited for', { timeout: 5_000 }, async t => {
  const path = join(await freshDir(), 'lock')
  const lock = await acquireLock(path)
  const now = Date.now.bind(Date)
  t.mock.method(Date, 'now', () => now() - 60_000)
  await lock?.release()
  assert.equal(await lockHolder(path), undefined)
})

test('heartbeats go to the locks that are held: not to a lost one, and not to one that was given back', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const dir = await freshDir()
  const disk = new WatchedDisk()
  const pass = clock(t)
  // One heartbeat serves all locks of a module: with one of its own, what other tests of this process hold does not matter.
  const own = (await import(
    new URL('../../kernel/storage/lock.js?own', import.meta.url).href
  )) as typeof import('../../kernel/storage/lock.ts')
  const [lost, returned, held] = await Promise.all(
    ['lost', 'returned', 'held'].map(name => own.acquireLock(join(dir, name), name === 'held' ? {} : { files: disk.files }))
  )
  await returned?.release()
  await writeFile(join(dir, 'lost'), elsewhere)
  for (const name of ['lost', 'held']) await utimes(join(dir, name), 0, 0)
  let looked = false
  disk.before('readFile', /returned$/, async () => {
    looked = true
  })
  pass(5_000)
  t.mock.timers.tick(2_000)
  while ((await stat(join(dir, 'held'))).mtimeMs === 0) await turn()
  assert.equal((await stat(join(dir, 'lost'))).mtimeMs, 0)
  assert.equal(looked, false)
  const cleared = t.mock.method(globalThis, 'clearInterval')
  await Promise.all([lost?.release(), held?.release()])
  assert.equal(cleared.mock.callCount(), 1, 'the last one ends the heartbeat')
  assert.equal(await readFile(join(dir, 'lost'), 'utf8'), elsewhere)
})
