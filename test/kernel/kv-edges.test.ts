/** Edges of the kv store: what its parts do when one of them fails, what is kept and what is not. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Level } from 'level'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { KvDatabase, KvTexts } from '../../kernel/storage/kv.ts'
import { lockHolder } from '../../kernel/storage/lock.ts'
import { Item, kvSpec } from '../../kernel/testing/storage-suite.ts'
import { startChild } from '../helpers/child.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'unused' }
const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed
const puts = (key: string, value: string) => [{ type: 'put', key, value }] as const

async function opened(t: TestContext) {
  const home = await freshDir()
  const log = warnings()
  const storage = createStorage({ home, log })
  t.after(() => storage.close().catch(() => undefined)) // a test may have made its end fail
  return { home, server: join(home, 'server'), log, storage, store: storage.open(kvSpec, place) }
}

async function anEngine(t: TestContext) {
  const dir = join(await freshDir(), 'kv')
  const log = warnings()
  const engine = await KvTexts.open(dir, log)
  t.after(() => engine.close())
  return { dir, log, engine }
}

test('a database that refuses a write refuses all that share it, in the words of the store', async t => {
  const { store } = await opened(t)
  await store.put('a', { n: 1 })
  const full = Object.assign(new Error('full'), { code: 'LEVEL_WRITE_FAILED' })
  const batch = t.mock.method(Level.prototype, 'batch', () => Promise.reject(full))
  const refused = await Promise.allSettled([store.put('a', { n: 2 }), store.put('b', { n: 2 })])
  batch.mock.restore()
  for (const end of refused) assert.ok(end.status === 'rejected' && notSaved(end.reason) && (end.reason as Error).cause === full)
  assert.deepEqual(await store.entries(), [['a', { n: 1 }]])
})

test('writes that come together are put on the medium together', async t => {
  const { engine } = await anEngine(t)
  const batch = t.mock.method(Level.prototype, 'batch')
  await Promise.all([engine.write(puts('a', '1'), 2), engine.write(puts('b', '1'), 2)])
  assert.deepEqual(
    batch.mock.calls.map(call => call.arguments.at(-1)),
    [{ sync: true }]
  )
})

test('a text is moved away by what is stored then, not by what was stored when the write before it began', async t => {
  const { engine } = await anEngine(t)
  await engine.write(puts('a', 'damaged'), 2)
  await Promise.all([engine.write(puts('a', 'good'), 2), engine.move('a', '~a', 'damaged')])
  assert.equal(await engine.get('a'), 'good')
  await engine.move('a', '~a', 'good')
  assert.equal(await engine.get('a'), undefined)
  assert.equal(await engine.get('~a'), 'good')
})

test('a list is what it was at one moment, however long it is', async t => {
  const { engine } = await anEngine(t)
  const value = 'x'.repeat(700)
  const puts = Array.from({ length: 2500 }, (_, n) => ({ type: 'put', key: String(n).padStart(5, '0'), value }) as const)
  await engine.write(puts, 0)
  const [entries] = await Promise.all([engine.entries('0', '1'), engine.write([{ type: 'put', key: '02400', value: 'later' }], 0)])
  assert.deepEqual([entries.length, entries[2400]], [2500, ['02400', value]])
})

test('writes that are too large for one flush are put on the medium in several, in their order', async t => {
  const { engine } = await anEngine(t)
  const batch = t.mock.method(Level.prototype, 'batch')
  await Promise.all([1, 2, 3].map(n => engine.write(puts('a', String(n)), 5 * 1024 * 1024)))
  assert.equal(batch.mock.callCount(), 3)
  assert.equal(await engine.get('a'), '3')
})

test('a database that cannot be opened for another reason than damage is left as it is', async t => {
  const { dir, log } = await anEngine(t)
  await assert.rejects(KvTexts.open(dir, log))
  assert.deepEqual([log.texts, await readdir(join(dir, '..'))], [[], ['kv']])
})

test('a pipe in place of a file of the database is refused by its name, and holds no thread', async t => {
  const { dir, engine, log } = await anEngine(t)
  await engine.close()
  await rm(join(dir, 'CURRENT'))
  execFileSync('mkfifo', [join(dir, 'CURRENT')])
  await assert.rejects(KvTexts.open(dir, log), error => notSaved(error) && /CURRENT/.test((error as Error).message))
})

test('a database that cannot be repaired is quarantined whole, and a new one begins', async t => {
  const { dir, engine, log } = await anEngine(t)
  await engine.write(puts('a', '1'), 2)
  await engine.close()
  for (const name of await readdir(dir)) if (name.startsWith('MANIFEST')) await writeFile(join(dir, name), 'rubbish')
  t.mock.method(Level as unknown as { repair(): Promise<void> }, 'repair', () => Promise.reject(new Error('no')))
  const fresh = await KvTexts.open(dir, log)
  t.after(() => fresh.close())
  assert.equal(await fresh.get('a'), undefined)
  const aside = (await readdir(join(dir, '..'))).find(name => name.startsWith('kv.damaged-'))
  assert.ok((await readdir(join(dir, '..', aside ?? ''))).some(name => name.startsWith('MANIFEST')))
  assert.equal(log.texts.length, 2)
})

test('a failed start of the database keeps neither its lock nor the end of the storage', async t => {
  const { server, store, storage } = await opened(t)
  await mkdir(server)
  await writeFile(join(server, 'kv'), 'in the way')
  await assert.rejects(store.put('a', { n: 1 }), notSaved)
  assert.equal(await lockHolder(join(server, 'kv.lock')), undefined)
  await rm(join(server, 'kv'))
  await store.put('a', { n: 2 })
  await storage.close()

  const other = await opened(t)
  await writeFile(other.server, 'in the way')
  await assert.rejects(other.store.put('a', { n: 1 }), notSaved)
  await other.storage.close()
})

test('a storage that is closed twice gives its share back once; one that is opened meanwhile waits for the end', async t => {
  const { home, storage, store } = await opened(t)
  const second = createStorage({ home, log: warnings() })
  await Promise.all([store.put('a', { n: 1 }), second.open(kvSpec, place).get('a')])
  await storage.close()
  await storage.close()
  assert.deepEqual(await second.open(kvSpec, place).get('a'), { n: 1 })
  const third = createStorage({ home, log: warnings() })
  t.after(() => third.close())
  const closing = second.close()
  assert.deepEqual(await third.open(kvSpec, place).get('a'), { n: 1 })
  await closing
})

test('a database that does not close cleanly is told, and its lock is given back', async t => {
  const { server, storage, store } = await opened(t)
  await store.put('a', { n: 1 })
  const close = Level.prototype.close
  t.mock.method(Level.prototype, 'close', async function (this: Level) {
    await close.call(this)
    throw new Error('no')
  })
  await assert.rejects(storage.close(), AggregateError)
  assert.equal(await lockHolder(join(server, 'kv.lock')), undefined)
})

test('a record of a newer version is refused when it is asked for, passed over in a range, and kept', async t => {
  const { storage, store, log } = await opened(t)
  const newer = storage.open(defineStore({ name: 'items', value: Item, version: 2 }), place)
  await Promise.all([store.put('a', { n: 1 }), newer.put('b', { n: 2 })])
  await assert.rejects(store.get('b'), notSaved)
  assert.deepEqual(await store.entries(), [['a', { n: 1 }]])
  assert.deepEqual(log.texts, ['kv record of a newer version skipped'])
  assert.deepEqual(await newer.get('b'), { n: 2 })
})

test('names that could meet those of another store are refused, and keys by their bytes', async t => {
  const { storage, store } = await opened(t)
  assert.throws(() => storage.open(kvSpec, { namespace: 'a!b', dir: '' }))
  await assert.rejects(store.put('é'.repeat(2049), { n: 1 }), (error: Error) => !AppError.is(error))
  await store.put('é'.repeat(2048), { n: 1 })
  assert.deepEqual(await store.keys(), ['é'.repeat(2048)])
})

test('a request ends within its time while a process that stands still has the database', async t => {
  const home = await freshDir()
  const owner = startChild(t, 'storage', 'own', home)
  await owner.atLeast(1)
  process.kill(owner.pid, 'SIGSTOP')
  const put = (kv: KvDatabase) => kv.use(engine => engine.write(puts('a', '2'), 2))
  const hasty = new KvDatabase(join(home, 'server'), warnings(), { patienceMs: 300, holdMs: 200 })
  await assert.rejects(put(hasty), error => notSaved(error) && /300 ms/.test((error as Error).message))
  await hasty.close()
  process.kill(owner.pid, 'SIGCONT')
  const patient = new KvDatabase(join(home, 'server'), warnings())
  t.after(() => patient.close())
  await put(patient)
})

test('a database is given back after a moment, and opened again with the next request', async t => {
  const server = join(await freshDir(), 'server')
  const kv = new KvDatabase(server, warnings(), { patienceMs: 10_000, holdMs: 1 })
  t.after(() => kv.close())
  await kv.use(engine => engine.write(puts('a', '1'), 2))
  while (await lockHolder(join(server, 'kv.lock'))) await new Promise(resolve => setTimeout(resolve, 2))
  assert.equal(await kv.use(engine => engine.get('a')), '1')
})
