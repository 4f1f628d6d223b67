/** Edges of document, log and blob stores: order within a process, odd files, bounds, handles that must not stay open. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { LeaseLost } from '../../kernel/index.ts'
import { Type } from '../../kernel/shapes.ts'
import type { Fence } from '../../kernel/storage/fences.ts'
import { KeyedQueue, replaceFile } from '../../kernel/storage/files.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { acquireLock } from '../../kernel/storage/lock.ts'
import type { DocumentStore } from '../../kernel/storage/ports.ts'
import { blobSpec, documentSpec, Item, logSpec } from '../../kernel/testing/storage-suite.ts'
import { mockedBuiltins } from '../helpers/builtins.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { latch } from '../helpers/latch.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'test' }
const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed

async function opened(t: TestContext) {
  const home = await freshDir()
  const disk = new WatchedDisk()
  const log = warnings()
  const storage = createStorage({ home, log }, { files: disk.files })
  t.after(() => storage.close().catch(() => undefined)) // a test may have made its end fail
  const [documents, logs, blobs] = [storage.open(documentSpec, place), storage.open(logSpec, place), storage.open(blobSpec, place)]
  return { dir: join(home, 'test'), disk, log, storage, documents, logs, blobs }
}

test('ids come sorted, eight levels deep, and without what is no document', async t => {
  const { dir, documents } = await opened(t)
  const deep = 'a/b/c/d/e/f/g/h'
  for (const id of ['z', deep, 'a/x', 'a-b']) await documents.put(id, { n: 1 })
  await mkdir(join(dir, 'dir.json'))
  await mkdir(join(dir, 'odd~', 'in'), { recursive: true })
  for (const name of ['odd~/in/x.json', 'with space.json', 'b.json~', 'note.txt']) await writeFile(join(dir, name), '{"n":1}')
  assert.deepEqual(await documents.ids(), ['a-b', deep, 'a/x', 'z'])
  await assert.rejects(
    async () => documents.put('b.json/x', { n: 1 }),
    (error: Error) => !AppError.is(error)
  )
})

test('a change that fails holds up none behind it', async t => {
  const { disk, documents } = await opened(t)
  disk.fail('sync', /a\.json~$/)
  const [first, second] = [documents.put('a', { n: 1 }), documents.put('a', { n: 2 })]
  await assert.rejects(first, error => notSaved(error) && /^test\/a\.json could not/.test((error as Error).message))
  await second
  assert.deepEqual(await documents.get('a'), { n: 2 })
})

test('below a lease that another server has taken nothing is replaced, removed or quarantined', async t => {
  const home = await freshDir()
  const dir = join(home, 'test')
  const lost = () => Promise.reject(new LeaseLost(dir))
  const fence: Fence = { check: lost, look: lost, temporary: async () => join(dir, '.lease-1', 'x~'), overtaken: false }
  const storage = createStorage({ home, log: warnings(), fences: { of: () => fence } })
  t.after(() => storage.close())
  const [documents, logs, blobs] = [storage.open(documentSpec, place), storage.open(logSpec, place), storage.open(blobSpec, place)]
  await mkdir(dir)
  for (const name of ['a.json', 'b', 'l.jsonl']) await writeFile(join(dir, name), '{"n":1}\n')
  await writeFile(join(dir, 'damaged.json'), '{"n":')
  const refused = (error: unknown) => error instanceof LeaseLost
  await assert.rejects(documents.put('a', { n: 2 }), refused)
  await assert.rejects(documents.delete('a'), refused)
  await assert.rejects(
    documents.update('a', () => undefined),
    refused
  )
  await assert.rejects(documents.get('damaged'), refused)
  await assert.rejects(logs.append('l', { n: 2 }), refused)
  await assert.rejects(logs.delete('l'), refused)
  await assert.rejects(blobs.put('b', Buffer.from('x')), refused)
  await assert.rejects(blobs.delete('b'), refused)
  assert.deepEqual((await blobs.stat('b'))?.size, 8)
  assert.deepEqual((await readdir(dir)).sort(), ['a.json', 'b', 'damaged.json', 'l.jsonl', '~'])
  assert.deepEqual([await documents.get('a'), await logs.read('l')], [{ n: 1 }, [{ n: 1 }]])
})

test('work on one key waits for all that was asked for before, also when some of it has ended', async () => {
  const queue = new KeyedQueue()
  const begun: number[] = []
  const ends = [latch(), latch(), latch()]
  const run = (n: number) =>
    queue.run('a', async () => {
      begun.push(n)
      await ends[n]?.opened
    })
  const [first, second] = [run(0), run(1)]
  ends[0]?.open()
  await first
  const third = run(2)
  assert.deepEqual([begun, queue.isBusy('a')], [[0, 1], true])
  ends[1]?.open()
  await second
  ends[2]?.open()
  await third
  await queue.idle()
  assert.deepEqual([begun, queue.isBusy('a')], [[0, 1, 2], false])
})

test('closing waits also for changes that are asked for meanwhile', async t => {
  const { dir, disk, storage, documents } = await opened(t)
  let second: Promise<unknown> = Promise.resolve()
  disk.before('rename', /a\.json$/, async () => {
    second = documents.put('b', { n: 2 })
  })
  const first = documents.put('a', { n: 1 })
  await storage.close()
  assert.equal(await readFile(join(dir, 'b.json'), 'utf8'), '{"n":2}')
  await Promise.all([first, second])
})

test('a damaged document is kept also when it is changed without being read, and each damage under a name of its own', async t => {
  const { dir, documents } = await opened(t)
  await mkdir(dir)
  for (const text of ['first', 'second']) {
    await writeFile(join(dir, 'a.json'), text)
    assert.deepEqual(await documents.update('a', now => ({ n: now ? 0 : 1 })), { n: 1 })
    for (const moment = Date.now(); Date.now() === moment; ); // the names tell milliseconds apart
  }
  const aside = (await readdir(dir)).filter(name => name.includes('.damaged-')).sort()
  assert.deepEqual(await Promise.all(aside.map(name => readFile(join(dir, name), 'utf8'))), ['first', 'second'])
})

test('a document that cannot be brought up to date is quarantined', async t => {
  const { dir, documents, storage, log } = await opened(t)
  await documents.put('a', { n: 1 })
  const migrate = () => {
    throw new Error('unknown shape')
  }
  const newer = storage.open(defineStore({ name: 'items', kind: 'document', value: Item, version: 2, migrate }), place)
  assert.equal(await newer.get('a'), undefined)
  assert.equal(log.texts.length, 1)
  assert.deepEqual(await documents.ids(), [])
  assert.match((await readdir(dir)).join(), /^a\.json\.damaged-/)
})

test('a value that is no object carries its version, too', async t => {
  const { dir, storage } = await opened(t)
  for (const [name, value, given] of [
    ['list', Type.Array(Type.Integer()), [1, 2]],
    ['number', Type.Integer(), 7]
  ] as const) {
    const store = storage.open(defineStore({ name, kind: 'document', value, version: 2 }), place) as DocumentStore<unknown>
    await store.put(name, given)
    assert.deepEqual(await store.get(name), given)
    assert.deepEqual(JSON.parse(await readFile(join(dir, `${name}.json`), 'utf8')), { $version: 2, $value: given })
  }
})

test('whether a document is damaged is looked at again under its lock', async t => {
  const { dir, disk, documents, log } = await opened(t)
  await mkdir(dir)
  await writeFile(join(dir, 'a.json'), '{"n":')
  const lock = await acquireLock(join(dir, 'a.json.lock'))
  disk.before('link', /a\.json\.lock$/, async () => {
    await writeFile(join(dir, 'a.json'), '{"n":1}')
    await lock?.release()
  })
  assert.deepEqual(await documents.get('a'), { n: 1 })
  assert.deepEqual(log.texts, [])
})

test('deleting waits for another process that changes the document', async t => {
  const { dir, disk, documents } = await opened(t)
  await documents.put('a', { n: 1 })
  const lock = await acquireLock(join(dir, 'a.json.lock'))
  const seen: string[] = []
  disk.before('link', /a\.json\.lock$/, async () => {
    seen.push(await readFile(join(dir, 'a.json'), 'utf8'))
    await lock?.release()
  })
  await documents.delete('a')
  assert.deepEqual(seen, ['{"n":1}'])
  assert.equal(await documents.get('a'), undefined)
  await documents.put('a', { n: 2 })
  disk.fail('unlink', /a\.json$/, 'EIO')
  await assert.rejects(documents.delete('a'), notSaved)
})

test('where directories cannot be flushed, what is written counts as saved', async t => {
  const { disk, documents } = await opened(t)
  await documents.put('a', { n: 1 })
  disk.fail('sync', /test$/, 'EINVAL')
  await documents.put('a', { n: 2 })
  disk.fail('open', /test$/, 'EISDIR')
  await documents.put('a', { n: 3 })
  assert.deepEqual(await documents.get('a'), { n: 3 })
})

test('a replaced file keeps its special rights, and its owner where the system allows that', async () => {
  const file = join(await freshDir(), 'a')
  const disk = new WatchedDisk()
  await replaceFile(file, 'x')
  const { uid, gid } = await stat(file)
  disk.fail('chown', /a~$/, 'EPERM')
  await replaceFile(file, 'y', { like: { mode: 0o102750, uid, gid }, files: disk.files })
  assert.equal((await stat(file)).mode & 0o7777, 0o2750)
  if (process.getuid?.() !== 0) return
  await replaceFile(file, 'z', { like: { mode: 0o100600, uid: 12_345, gid: 12_345 } })
  const found = await stat(file)
  assert.deepEqual([found.uid, found.gid], [12_345, 12_345])
})

test('no file stays open, whether the work went well or not, but those of logs until they are released', async t => {
  const { dir, disk, storage, documents, logs, blobs } = await opened(t)
  await documents.put('a', { n: 1 })
  await documents.update('a', () => ({ n: 2 }))
  disk.fail('sync', /a\.json~$/)
  await assert.rejects(documents.put('a', { n: 3 }), notSaved)
  await blobs.put('b', Buffer.from('x'))
  await assert.rejects(blobs.put('b', Buffer.from('xx'), { maxBytes: 1 }))
  assert.equal(await openFiles(dir), 0, 'documents and blobs')
  await writeFile(join(dir, 'c.jsonl'), 'rubbish\n{"n":1}\n')
  await logs.read('c')
  assert.equal(await openFiles(dir), 0, 'a log that is read')
  if (process.platform === 'linux') {
    await logs.append('d', { n: 1 })
    await rm(join(dir, 'd.jsonl'))
    await logs.append('d', { n: 2 })
    assert.equal(await openFiles(dir), 1, 'a log that was made anew')
    await logs.delete('d')
    assert.equal(await openFiles(dir), 0, 'a deleted log')
  }
  await logs.append('e', { n: 1 })
  await logs.release('e')
  assert.equal(await openFiles(dir), 0, 'a released log')
  await Promise.all(Array.from({ length: 100 }, (_, n) => logs.append(`l${n}`, { n })))
  await logs.append('l0', { n: 1 })
  assert.ok((await openFiles(dir)) <= 2 * 64 + 1, 'sixty-four in use, as many being closed, and the newest')
  await storage.close()
  assert.equal(await openFiles(dir), 0, 'after the end')
})

test('a file that cannot be closed is told at the end, and the others are closed all the same', async t => {
  const { dir, disk, storage, logs } = await opened(t)
  for (const id of ['a', 'b']) await logs.append(id, { n: 1 })
  disk.fail('close', /a\.jsonl$/)
  await assert.rejects(storage.close(), AggregateError)
  assert.equal(await openFiles(dir), 0)
})

test('a change for whose flush no descriptor is left is refused before it is made', async t => {
  const { dir, documents } = await opened(t)
  await documents.put('a', { n: 1 })
  const { openSync } = fs
  const { open } = fs.promises
  const check = (path: unknown) => {
    if (path === dir) throw Object.assign(new Error('EMFILE'), { code: 'EMFILE', syscall: 'open' })
  }
  t.mock.method(fs, 'openSync', (...args: Parameters<typeof openSync>) => {
    check(args[0])
    return openSync(...args)
  })
  t.mock.method(fs.promises, 'open', async (...args: Parameters<typeof open>) => {
    check(args[0])
    return await open(...args)
  })
  const restore = mockedBuiltins(t)
  await assert.rejects(documents.put('a', { n: 2 }), notSaved)
  assert.equal((await documents.get('a'))?.n, 1)
  restore()
  await documents.put('a', { n: 3 })
  assert.deepEqual([(await documents.get('a'))?.n, await openFiles(dir)], [3, 0])
})

test('a directory that cannot be made is told with the reason, which making those above it as well hides', async t => {
  const { disk, documents } = await opened(t)
  for (const code of ['ENOENT', 'EROFS']) disk.fail('mkdir', /deep$/, code) // as the system does: with those above it, and alone
  await assert.rejects(documents.put('deep/a', { n: 1 }), ({ cause }: Error) => (cause as NodeJS.ErrnoException).code === 'EROFS')
  disk.fail('mkdir', /deep$/, 'ENOENT')
  await documents.put('deep/er/a', { n: 1 })
  assert.equal((await documents.get('deep/er/a'))?.n, 1)
})

test('a directory that cannot be looked through for what dead processes left refuses no blob', async t => {
  const { disk, blobs } = await opened(t)
  disk.fail('readdir', /~$/)
  for (const id of ['a', 'b']) assert.equal((await blobs.put(id, Buffer.from(id))).size, 1)
})

test('a source of exactly the allowed size is taken', async t => {
  const { disk, blobs } = await opened(t)
  assert.equal((await blobs.put('a', Buffer.alloc(1000), { maxBytes: 1000 })).size, 1000)
  disk.fail('unlink', /a$/)
  await assert.rejects(blobs.delete('a'), notSaved)
})

test('records of a newer version are skipped with a warning, and stay where they are', async t => {
  const { dir, log, logs, storage } = await opened(t)
  const newer = storage.open(defineStore({ name: 'items', kind: 'log', value: Item, version: 2 }), place)
  await logs.append('a', { n: 1 })
  await newer.append('a', { n: 2 })
  assert.deepEqual(await logs.read('a'), [{ n: 1 }])
  assert.deepEqual(log.texts, ['log records of a newer version skipped'])
  assert.deepEqual(await readdir(dir), ['a.jsonl'])
  assert.deepEqual(await newer.read('a'), [{ n: 1 }, { n: 2 }])
})
