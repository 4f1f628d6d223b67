/** What is on the medium before a store says so, and what a failed write leaves. */
import assert from 'node:assert/strict'
import { appendFile, chmod, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { StoreSpec } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { makeFile, replaceFile } from '../../kernel/storage/files.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import type { StoreOf } from '../../kernel/storage/ports.ts'
import { blobSpec, documentSpec, logSpec } from '../../kernel/testing/storage-suite.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

async function watched<S extends StoreSpec>(t: TestContext, spec: S) {
  const home = await freshDir()
  const disk = new WatchedDisk()
  const log = warnings()
  const storage = createStorage({ home, log }, { files: disk.files })
  t.after(() => storage.close())
  return { store: storage.open(spec, { namespace: 'test', dir: 'test' }) as StoreOf<S>, storage, disk, dir: join(home, 'test'), log }
}

const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed

test('a log record is on the medium, its file name too, before its append resolves', async t => {
  const { store, disk } = await watched(t, logSpec)
  await store.append('a', { n: 0 })
  assert.deepEqual(disk.done.slice(-3), ['sync test', 'write a.jsonl', 'sync a.jsonl'])
  assert.ok(disk.done.indexOf('sync test') > disk.done.indexOf('mkdir test'))
  disk.done.length = 0
  await Promise.all([store.append('a', { n: 1 }), store.append('a', { n: 2 })])
  assert.deepEqual(disk.done, ['write a.jsonl', 'sync a.jsonl'], 'two appends share one write and one flush')
})

test('a document and a blob are flushed before their name changes, and the name before they resolve', async t => {
  const { storage, disk } = await watched(t, logSpec)
  const place = { namespace: 'test', dir: 'test' }
  const replaced = (name: string, temporary: string, above: string) => {
    const kept = disk.done.filter(step => !/lock|mkdir/.test(step))
    assert.deepEqual(kept.slice(-4), [`write ${temporary}`, `sync ${temporary}`, `rename ${name}`, `sync ${above}`])
    disk.done.length = 0
  }
  await storage.open(documentSpec, place).put('a', { n: 0 })
  replaced('a.json', 'a.json~', 'test')
  await storage.open(documentSpec, place).update('a', () => ({ n: 1 }))
  replaced('a.json', 'a.json~', 'test')
  await storage.open(blobSpec, place).put('b', Buffer.from('x'))
  const temporary = disk.done.find(step => step.startsWith('write '))?.slice('write '.length)
  replaced('b', temporary ?? '', 'test')
})

test('a directory that a store makes is flushed to the one above it', async t => {
  const { store, disk } = await watched(t, documentSpec)
  await store.put('a/b', { n: 0 })
  const made = disk.done.indexOf('mkdir a')
  assert.ok(disk.done.indexOf('sync a', made) > 0)
  assert.ok(disk.done.indexOf('sync test', made) > 0, 'test holds the name of a')
})

test('with `write` nothing is flushed', async () => {
  const { files, done } = new WatchedDisk()
  await replaceFile(join(await freshDir(), 'a'), 'x', { sync: 'write', files })
  assert.deepEqual(done, ['write a~', 'rename a'])
})

test('a record whose write failed half-way, or whose flush failed, is refused and does not come back', async t => {
  const { store, disk, dir } = await watched(t, logSpec)
  await store.append('a', { n: 0 })
  disk.fail('write', /a\.jsonl$/, 'ENOSPC', 1, true)
  const refused = [store.append('a', { n: 1 }), store.append('a', { n: 2 })]
  for (const append of refused) await assert.rejects(append, notSaved)
  assert.equal(await readFile(join(dir, 'a.jsonl'), 'utf8'), '{"n":0}\n')
  disk.fail('sync', /a\.jsonl$/)
  await assert.rejects(store.append('a', { n: 3 }), notSaved)
  assert.deepEqual(await store.read('a'), [{ n: 0 }])
  await store.append('a', { n: 4 })
  assert.deepEqual(await store.read('a'), [{ n: 0 }, { n: 4 }])
})

test('a refused record that could not be cut off at once is not read, and cut off before the next one', async t => {
  const { store, disk, dir } = await watched(t, logSpec)
  await store.append('a', { n: 0 })
  disk.fail('sync', /a\.jsonl$/)
  disk.fail('truncate', /a\.jsonl$/)
  await assert.rejects(store.append('a', { n: 1 }), notSaved)
  assert.equal(await readFile(join(dir, 'a.jsonl'), 'utf8'), '{"n":0}\n{"n":1}\n')
  assert.deepEqual(await store.read('a'), [{ n: 0 }])
  assert.deepEqual(await store.append('a'), { at: [], end: 8 }, 'the end is that of what was acknowledged')
  await store.append('a', { n: 2 })
  assert.equal(await readFile(join(dir, 'a.jsonl'), 'utf8'), '{"n":0}\n{"n":2}\n')
})

test('a replacement that fails leaves the old content and nothing beside it', async t => {
  const { store, disk, dir } = await watched(t, documentSpec)
  await store.put('a', { n: 0 })
  for (const call of ['write', 'sync', 'rename'] as const) {
    disk.fail(call, /a\.json~?$/, 'ENOSPC')
    await assert.rejects(store.put('a', { n: 1 }), notSaved)
    assert.deepEqual(await readdir(dir), ['a.json'])
  }
  assert.deepEqual(await store.get('a'), { n: 0 })
})

test('what a crash left in place of a temporary file is gone before the new one is made, however long that takes', async t => {
  const { store, disk, dir } = await watched(t, documentSpec)
  await store.put('a', { n: 0 })
  await writeFile(join(dir, 'a.json~'), 'torn')
  disk.before('unlink', /a\.json~$/, async () => {
    for (let round = 0; round < 20; round++) await new Promise(resolve => setImmediate(resolve))
  })
  await store.put('a', { n: 1 })
  assert.deepEqual([await store.get('a'), await readdir(dir)], [{ n: 1 }, ['a.json']])
})

test('a file is put where no directory is yet, which is flushed to the one above it', async () => {
  const { files, done } = new WatchedDisk()
  const dir = join(await freshDir(), 'new')
  await replaceFile(join(dir, 'a'), 'x', { files })
  assert.equal(await readFile(join(dir, 'a'), 'utf8'), 'x')
  assert.deepEqual(done.slice(0, 2), ['mkdir new', `sync ${basename(dirname(dir))}`])
})

test('a name that could not be flushed is not said to be saved', async t => {
  const { store, disk } = await watched(t, documentSpec)
  await store.put('a', { n: 0 })
  disk.fail('sync', /test$/)
  await assert.rejects(store.put('a', { n: 1 }), notSaved)
})

test('a record longer than a line may be is refused, and a longer line is passed over with a warning', async t => {
  const { store, dir, log } = await watched(t, logSpec)
  await store.append('a', { n: 0 })
  await assert.rejects(store.append('a', { n: 1, note: 'x'.repeat(64 * 1024 * 1024) }), /at most/)
  await writeFile(join(dir, 'b.jsonl'), `{"n":0}\n{"n":1,"note":"${'x'.repeat(65 * 1024 * 1024)}"}\n{"n":2}\n`)
  assert.deepEqual(await store.read('b'), [{ n: 0 }, { n: 2 }])
  const back: unknown[] = []
  for await (const { value } of store.scan('b', { reverse: true })) back.push(value)
  assert.deepEqual(back, [{ n: 2 }, { n: 0 }])
  assert.equal(log.texts.length, 2)
})

test('everything that the kernel writes is for its owner alone, whatever lay there before', async t => {
  const { storage, dir } = await watched(t, logSpec)
  const place = { namespace: 'test', dir: 'test' }
  await storage.open(logSpec, place).append('l/a', { n: 0 })
  await storage.open(logSpec, place).append('l/b', { n: 0 })
  await writeFile(join(dir, 'l/a.jsonl'), 'rubbish\n')
  await storage.open(logSpec, place).read('l/a')
  await storage.open(documentSpec, place).put('d/a', { n: 0 })
  await writeFile(join(dir, 'd/b.json~'), 'left by a crash')
  await chmod(join(dir, 'd/b.json~'), 0o644)
  await storage.open(documentSpec, place).put('d/b', { n: 0 })
  await storage.open(blobSpec, place).put('b/a', Buffer.from('x'))
  const entries = await readdir(dir, { recursive: true, withFileTypes: true })
  const modes = await Promise.all(
    entries.map(async entry => [entry.name, entry.isDirectory(), (await stat(join(entry.parentPath, entry.name))).mode & 0o777])
  )
  assert.equal(modes.filter(([, isDirectory]) => !isDirectory).length, 5)
  for (const [name, isDirectory, mode] of modes) assert.equal(mode, isDirectory ? 0o700 : 0o600, String(name))
})

test('a replaced file takes over the rights it is told to, and the stamp tells its content from the one before', async () => {
  const file = join(await freshDir(), 'a')
  const one = await replaceFile(file, 'x')
  const { uid, gid } = await stat(file)
  const two = await replaceFile(file, 'y', { like: { mode: 0o764, uid, gid } })
  assert.equal((await stat(file)).mode & 0o777, 0o764)
  assert.notDeepEqual(one, two)
  const { ino, size, mtimeNs } = await stat(file, { bigint: true })
  assert.deepEqual({ ino: two.ino, size: two.size, mtimeNs: two.mtimeNs }, { ino, size, mtimeNs })
})

test('of several makers of a file one wins, and what it made is on the medium', async () => {
  const dir = await freshDir()
  const disk = new WatchedDisk()
  const made = await Promise.all(['x', 'y', 'z'].map(text => makeFile(join(dir, 'a'), text, disk.files)))
  assert.equal(made.filter(Boolean).length, 1)
  assert.deepEqual(await readdir(dir), ['a'])
  const linked = disk.done.indexOf('link a')
  assert.match(disk.done.slice(0, linked).join(), /sync \./)
  assert.ok(disk.done.indexOf(`sync ${basename(dir)}`) > linked)
})

test('what somebody else left behind the records is cut off before the next one', async t => {
  const { store, dir, log } = await watched(t, logSpec)
  await store.append('a', { n: 0 })
  await appendFile(join(dir, 'a.jsonl'), '{"n":9}\n{"n":')
  await store.append('a', { n: 1 })
  assert.deepEqual(await store.read('a'), [{ n: 0 }, { n: 9 }, { n: 1 }])
  assert.deepEqual(log.texts, ['log: torn tail cut off'])
})
