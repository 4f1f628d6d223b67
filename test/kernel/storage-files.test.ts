/** Document, log and blob stores on the file system: the shared suites, crashes, damage. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type TestContext, test } from 'node:test'
import { defineStore, type StoreSpec } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { Type } from '../../kernel/shapes.ts'
import { replaceFile } from '../../kernel/storage/files.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { acquireLock } from '../../kernel/storage/lock.ts'
import type { StoreOf } from '../../kernel/storage/ports.ts'
import { blobSpec, documentSpec, logSpec, storageSuite } from '../../kernel/testing/storage-suite.ts'
import { startChild } from '../helpers/child.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'test' }

async function openedStorage(t: TestContext) {
  const home = await freshDir()
  const log = warnings()
  let storage = createStorage({ home, log })
  t.after(() => storage.close())
  const reopen = async () => {
    await storage.close()
    storage = createStorage({ home, log })
    return storage
  }
  return { dir: join(home, 'test'), home, log, storage, reopen }
}

async function opened<S extends StoreSpec>(t: TestContext, spec: S) {
  const { storage, reopen, ...rest } = await openedStorage(t)
  const store = storage.open(spec, place) as StoreOf<S>
  return { ...rest, store, reopen: async () => (await reopen()).open(spec, place) as StoreOf<S> }
}

storageSuite('files', openedStorage, ['document', 'log', 'blob'])

test('a document is the value itself, readable by its owner only, with nothing else left beside it', async t => {
  const { store, dir } = await opened(t, documentSpec)
  await store.put('a', { n: 1 })
  assert.equal(await readFile(join(dir, 'a.json'), 'utf8'), '{"n":1}')
  assert.equal((await stat(join(dir, 'a.json'))).mode & 0o777, 0o600)
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
  assert.deepEqual(await readdir(dir), ['a.json'])
})

test('an update that changes nothing leaves the file as it is', async t => {
  const { store, dir } = await opened(t, documentSpec)
  await store.put('a', { n: 1 })
  const { ino } = await stat(join(dir, 'a.json'))
  assert.deepEqual(await store.update('a', now => ({ n: now?.n ?? 0 })), { n: 1 })
  assert.equal((await stat(join(dir, 'a.json'))).ino, ino)
  assert.deepEqual(await store.update('a', () => ({ n: 2 })), { n: 2 })
  assert.notEqual((await stat(join(dir, 'a.json'))).ino, ino)
})

test('a damaged document is quarantined with a warning and counts as absent', async t => {
  const { store, dir, log } = await opened(t, documentSpec)
  await mkdir(dir)
  for (const [id, text] of Object.entries({ torn: '{"n":', wrong: '{"n":"x"}', empty: '' })) {
    await writeFile(join(dir, `${id}.json`), text)
    assert.equal(await store.get(id), undefined)
    const aside = (await readdir(dir)).filter(name => name.startsWith(`${id}.json.damaged-`))
    assert.equal(await readFile(join(dir, aside[0]!), 'utf8'), text)
  }
  assert.equal(log.texts.length, 3)
  assert.deepEqual(await store.ids(), [])
  assert.deepEqual(await store.update('torn', now => ({ n: now ? 0 : 5 })), { n: 5 })
})

test('a damaged document of a store that keeps such stays where it is, and every use of it is refused', async t => {
  const { store, dir, log } = await opened(t, { ...documentSpec, keepDamaged: true })
  await mkdir(dir)
  await writeFile(join(dir, 'torn.json'), '{"n":')
  for (const use of [() => store.get('torn'), () => store.update('torn', () => ({ n: 5 }))]) {
    await assert.rejects(use, error => AppError.is(error) && error.spec === PersistenceFailed)
  }
  assert.deepEqual(await readdir(dir), ['torn.json'])
  assert.equal(await readFile(join(dir, 'torn.json'), 'utf8'), '{"n":')
  assert.deepEqual(log.texts, [])
})

test('a pipe in place of a file keeps nobody waiting: it is empty, and takes nothing', { timeout: 10_000 }, async t => {
  const documents = await opened(t, documentSpec)
  const pipe = (dir: string, name: string) => execFileSync('mkfifo', [join(dir, name)])
  await mkdir(documents.dir)
  pipe(documents.dir, 'a.json')
  assert.equal(await documents.store.get('a'), undefined)
  assert.equal(documents.log.texts.length, 1)
  await documents.store.put('a', { n: 1 })
  assert.deepEqual(await documents.store.get('a'), { n: 1 })

  const logs = await opened(t, logSpec)
  await logs.store.append('b', { n: 1 })
  pipe(logs.dir, 'a.jsonl')
  assert.deepEqual(await logs.store.read('a'), [])
  await assert.rejects(logs.store.append('a', { n: 1 }), /a\.jsonl is not a regular file/)

  const blobs = await opened(t, blobSpec)
  await blobs.store.put('b', Buffer.from('b'))
  pipe(blobs.dir, 'a')
  assert.equal((await (await blobs.store.open('a')).toArray()).length, 0)

  pipe(documents.dir, 'lock')
  const lock = await acquireLock(join(documents.dir, 'lock'))
  assert.ok(lock)
  await lock.release()
})

test('an older document is brought up to date, a newer one is left alone and refused', async t => {
  const { store, reopen, dir, home, log } = await opened(t, documentSpec)
  await store.put('a', { n: 1 })
  const value = Type.Object({ count: Type.Integer() })
  const migrate = (old: unknown, from: number) => ({ count: (old as { n: number }).n * 10 + from })
  const storage = createStorage({ home, log })
  t.after(() => storage.close())
  const newer = storage.open(defineStore({ name: 'items', kind: 'document', value, version: 2, migrate }), place)
  assert.deepEqual(await newer.get('a'), { count: 11 })
  await newer.put('a', { count: 3 })
  assert.equal(await readFile(join(dir, 'a.json'), 'utf8'), '{"$version":2,"count":3}')
  assert.deepEqual(await newer.get('a'), { count: 3 })
  await assert.rejects(
    (await reopen()).update('a', () => ({ n: 1 })),
    error => AppError.is(error) && error.spec === PersistenceFailed
  )
  assert.equal(await readFile(join(dir, 'a.json'), 'utf8'), '{"$version":2,"count":3}')
})

test('three processes changing one document lose no change', async t => {
  const home = await freshDir()
  const children = [1, 2, 3].map(() => startChild(t, 'storage', 'count', home, '40'))
  assert.deepEqual(await Promise.all(children.map(child => child.end())), [0, 0, 0])
  assert.equal(await readFile(join(home, 'test', 'counter.json'), 'utf8'), '{"n":120}')
})

test('documents acknowledged before kill -9 are there after it', async t => {
  const { home, store } = await opened(t, documentSpec)
  const child = startChild(t, 'storage', 'write', home, 'document')
  await child.atLeast(60)
  await child.kill()
  for (let slot = 0; slot < 8; slot++) {
    const acknowledged = child.lines.map(Number).filter(n => n % 8 === slot)
    const found = await store.get(`d${slot}`)
    assert.ok(found && found.n >= Math.max(...acknowledged))
  }
})

test('log records acknowledged before kill -9 are there after it, in order', async t => {
  const { home, store } = await opened(t, logSpec)
  const child = startChild(t, 'storage', 'write', home, 'log')
  await child.atLeast(200)
  await child.kill()
  const read = (await store.read('all')).map(item => item.n)
  assert.deepEqual(
    read,
    Array.from(read, (_, n) => n)
  )
  assert.ok(read.length > Math.max(...child.lines.map(Number)))
})

test('a torn tail is not read, and cut off before the first append', async t => {
  const { store, reopen, dir, log } = await opened(t, logSpec)
  await store.append('a', { n: 0 }, { n: 1, note: 'x'.repeat(200_000) })
  const again = await reopen()
  await truncate(join(dir, 'a.jsonl'), 100_000)
  assert.deepEqual(await again.read('a'), [{ n: 0 }])
  await again.append('a', { n: 2 })
  assert.deepEqual(await again.read('a'), [{ n: 0 }, { n: 2 }])
  assert.deepEqual(log.texts, ['log: torn tail cut off'])
})

test('a last record that only misses its newline is kept', async t => {
  const { store, dir } = await opened(t, logSpec)
  await mkdir(dir)
  await writeFile(join(dir, 'a.jsonl'), '{"n":0}\n{"n":1}')
  assert.equal((await store.read('a')).length, 2)
  await store.append('a', { n: 2 })
  assert.deepEqual(await readFile(join(dir, 'a.jsonl'), 'utf8'), '{"n":0}\n{"n":1}\n{"n":2}\n')
})

test('damaged lines are skipped with a warning, and stay', async t => {
  const { store, dir, log } = await opened(t, logSpec)
  await mkdir(dir)
  await writeFile(join(dir, 'a.jsonl'), '{"n":0}\nrubbish\n\n{"n":"x"}\n\0\0\n{"n":1}\n')
  assert.deepEqual(await store.read('a'), [{ n: 0 }, { n: 1 }])
  assert.deepEqual(await store.read('a'), [{ n: 0 }, { n: 1 }])
  assert.equal(log.texts.length, 2)
  await store.append('a', { n: 2 })
  assert.equal(await readFile(join(dir, 'a.jsonl'), 'utf8'), '{"n":0}\nrubbish\n\n{"n":"x"}\n\0\0\n{"n":1}\n{"n":2}\n')
})

test('a log whose file was removed meanwhile is made anew, and no append is lost', async t => {
  const { store, dir } = await opened(t, logSpec)
  await store.append('a', { n: 0 })
  await rm(dir, { recursive: true })
  await store.append('a', { n: 1 })
  assert.deepEqual(await store.read('a'), [{ n: 1 }])
})

test('an append that cannot be written is refused, and later ones work', async t => {
  const { store, dir } = await opened(t, logSpec)
  await mkdir(join(dir, 'a.jsonl'), { recursive: true })
  await assert.rejects(store.append('a', { n: 0 }), error => AppError.is(error) && error.spec === PersistenceFailed)
  await rm(join(dir, 'a.jsonl'), { recursive: true })
  await store.append('a', { n: 1 })
  assert.deepEqual(await store.read('a'), [{ n: 1 }])
})

test('a long log is read in slices: other work goes on meanwhile', async t => {
  const { store } = await opened(t, logSpec)
  await store.append('a', ...Array.from({ length: 60_000 }, (_, n) => ({ n, note: 'x'.repeat(40) })))
  let turns = 0
  const beat = setInterval(() => turns++, 1)
  const read = await store.read('a')
  clearInterval(beat)
  assert.equal(read.length, 60_000)
  assert.ok(turns > 1)
})

test('nothing is accepted after close', async t => {
  const { home, log } = await opened(t, logSpec)
  const storage = createStorage({ home, log })
  const store = storage.open(logSpec, place)
  const pending = store.append('a', { n: 0 })
  await storage.close()
  await pending
  await assert.rejects(store.append('a', { n: 1 }), error => AppError.is(error) && error.spec === PersistenceFailed)
})

test('what a killed put left behind is removed by the next process; what a living one or one elsewhere writes is not', async t => {
  const { store, dir, reopen } = await opened(t, blobSpec)
  await mkdir(join(dir, '~'), { recursive: true })
  const source = new PassThrough()
  const put = store.put('b', source)
  source.write('half')
  let [live] = await readdir(join(dir, '~'))
  while (!live) [live] = await readdir(join(dir, '~'))
  const place = live.split('-')[1]
  for (const name of [`2147483646-${place}-x`, '2147483646-elsewhere-new', '2147483646-elsewhere-old']) {
    await writeFile(join(dir, '~', name), 'half')
  }
  await utimes(join(dir, '~', '2147483646-elsewhere-old'), 0, 0)
  await (await reopen()).put('a', Buffer.from('x'))
  assert.deepEqual((await readdir(join(dir, '~'))).sort(), ['2147483646-elsewhere-new', live].sort())
  source.end()
  await put
})

test('lines that take long are read in slices, too', async t => {
  const { home, log, store } = await opened(t, logSpec)
  await store.append('a', ...Array.from({ length: 200 }, (_, n) => ({ n })))
  const slow = (old: unknown) => {
    const until = performance.now() + 1
    while (performance.now() < until);
    return old
  }
  const storage = createStorage({ home, log })
  t.after(() => storage.close())
  const spec = defineStore({ name: 'items', kind: 'log', value: Type.Object({ n: Type.Integer() }), version: 2, migrate: slow })
  let turns = 0
  let reading = true
  const turn = () => {
    turns++
    if (reading) setImmediate(turn)
  }
  turn()
  assert.equal((await storage.open(spec, place).read('a')).length, 200)
  reading = false
  assert.ok(turns > 20, `${turns} turns of the event loop in 200 ms of work`)
})

test('a damaged document is not moved away while another process puts a good one in its place', async t => {
  const { store, dir, log } = await opened(t, documentSpec)
  await mkdir(dir)
  await writeFile(join(dir, 'a.json'), '{"n":')
  const lock = await acquireLock(join(dir, 'a.json.lock'))
  const got = store.get('a')
  await writeFile(join(dir, 'a.json'), '{"n":1}')
  await lock?.release()
  assert.deepEqual(await got, { n: 1 })
  assert.deepEqual([log.texts, await readdir(dir)], [[], ['a.json']])
})

test('deleting what is not there makes no directory', async t => {
  const { store, dir } = await opened(t, documentSpec)
  await store.delete('a/b')
  await assert.rejects(stat(dir), { code: 'ENOENT' })
})

test('a source that fails before it is read fails its blob, or its file, and nothing else', async t => {
  const { store, dir } = await opened(t, blobSpec)
  const failing = () => new PassThrough().destroy(new Error('gone'))
  await assert.rejects(store.put('a', failing()), { message: 'gone' })
  assert.equal(await store.stat('a'), undefined)
  const disk = new WatchedDisk()
  disk.before('open', /b~$/, async () => void (await stat(dir))) // the source fails meanwhile
  await assert.rejects(replaceFile(join(dir, 'b'), failing(), { files: disk.files }), { message: 'gone' })
})

test('a source whose blob could not even be begun is let go', async t => {
  const disk = new WatchedDisk()
  const storage = createStorage({ home: await freshDir(), log: warnings() }, { files: disk.files })
  t.after(() => storage.close())
  disk.fail('open', /~\/[^/]+$/, 'EMFILE')
  const source = new PassThrough()
  await assert.rejects(storage.open(blobSpec, place).put('a', source), error => AppError.is(error) && error.spec === PersistenceFailed)
  assert.ok(source.destroyed)
})
