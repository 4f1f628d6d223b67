/** The kv store on level: alone, beside other processes, and through changes of who has the database. */
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Level } from 'level'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { Type } from '../../kernel/shapes.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { kvSpec, storageSuite } from '../../kernel/testing/storage-suite.ts'
import { type Child, startChild } from '../helpers/child.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'unused' }
const recordSpec = defineStore({ name: 'records', value: Type.Object({ n: Type.Integer() }) })

async function openedStorage(t: TestContext, home?: string) {
  const at = home ?? (await freshDir())
  const log = warnings()
  let storage = createStorage({ home: at, log })
  t.after(() => storage.close())
  const reopen = async () => {
    await storage.close()
    storage = createStorage({ home: at, log })
    return storage
  }
  return { home: at, log, storage, reopen }
}

async function opened(t: TestContext, home?: string) {
  const all = await openedStorage(t, home)
  return { ...all, store: all.storage.open(kvSpec, place), reopen: async () => (await all.reopen()).open(kvSpec, place) }
}

/** A home whose database another process has. */
async function ownedElsewhere(t: TestContext): Promise<{ home: string; owner: Child }> {
  const home = await freshDir()
  const owner = startChild(t, 'storage', 'own', home)
  await owner.atLeast(1)
  return { home, owner }
}

storageSuite('level alone', t => openedStorage(t), ['kv'])
storageSuite('level after another process', async t => openedStorage(t, (await ownedElsewhere(t)).home), ['kv'])

test('stores of different packs and names do not see each other', async t => {
  const { storage, store } = await opened(t)
  const other = storage.open(kvSpec, { namespace: 'test2', dir: '' })
  const named = storage.open(recordSpec, place)
  await Promise.all([store.put('a', { n: 1 }), other.put('a', { n: 2 }), named.put('b', { n: 3 })])
  assert.deepEqual(await store.entries(), [['a', { n: 1 }]])
  assert.deepEqual(await other.entries(), [['a', { n: 2 }]])
  assert.deepEqual(await named.keys(), ['b'])
})

test('two kernels of one process share one database, through a link too; the last to close it lets it go', async t => {
  const { home, store, storage } = await opened(t)
  const link = join(await freshDir(), 'link')
  await symlink(home, link)
  const second = createStorage({ home: link, log: warnings() })
  await store.put('a', { n: 1 })
  assert.deepEqual(await second.open(kvSpec, place).get('a'), { n: 1 })
  await storage.close()
  assert.deepEqual(await second.open(kvSpec, place).get('a'), { n: 1 })
  await second.close()
  assert.deepEqual((await readdir(join(home, 'server'))).sort(), ['kv'])
})

test('a storage that never uses kv opens no database', async t => {
  const { home, storage } = await opened(t)
  await storage.close()
  assert.deepEqual(await readdir(home), [])
})

test('records acknowledged before kill -9 are there after it', async t => {
  const { home, storage } = await opened(t)
  const child = startChild(t, 'storage', 'write', home, 'kv')
  await child.atLeast(200)
  await child.kill()
  const keys = new Set((await storage.open(recordSpec, place).keys()).map(Number))
  for (const line of child.lines) assert.ok(keys.has(Number(line)), `record ${line}`)
})

test('a process goes on through kill -9 of the one that has the database: it takes over, no acknowledged record is lost', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { storage } = await opened(t, home)
  const writer = startChild(t, 'storage', 'write', home, 'kv')
  const mine = storage.open(kvSpec, place)
  await Promise.all([writer.atLeast(40), mine.put('before', { n: 1 })])
  const during = Promise.all(Array.from({ length: 200 }, (_, n) => mine.put('last', { n })))
  await owner.kill()
  await during
  assert.deepEqual(await mine.get('last'), { n: 199 })
  assert.deepEqual(await mine.get('before'), { n: 1 })
  await writer.atLeast(writer.lines.length + 40)
  await writer.kill()
  const keys = new Set((await storage.open(recordSpec, place).keys()).map(Number))
  for (const line of writer.lines) assert.ok(keys.has(Number(line)), `record ${line}`)
})

test('a process that ends answers what it was asked, and another one takes over', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { store } = await opened(t, home)
  await store.put('a', { n: 1 })
  const during = Promise.all(Array.from({ length: 100 }, (_, n) => store.put(`k${n}`, { n })))
  owner.say('close')
  assert.equal(await owner.end(), 0)
  await during
  assert.equal((await store.keys()).length, 101)
})

test('what is acknowledged after the disk refused a write is there when the database is opened again', async t => {
  if (spawnSync('prlimit', ['--version']).error) return t.skip('this system has no prlimit')
  const { home, storage } = await opened(t)
  const child = startChild(t, 'storage', 'own', home)
  const limit = (most: string) => execFileSync('prlimit', ['--pid', String(child.pid), `--fsize=${most}`])
  const saved: string[] = []
  const isSaved = async (key: string) => {
    const before = child.lines.length
    child.say(`put ${key} 1`)
    await child.atLeast(before + 1)
    if (child.lines[before] === 'put') saved.push(key)
    return child.lines[before] === 'put'
  }
  await child.atLeast(1)
  // A record that fits in part, as on a disk that becomes full; a database that was opened anew meanwhile has another file.
  for (let n = 0; await isSaved(`a${n}`); n++) {
    const names = await readdir(join(home, 'server', 'kv'))
    const log = await stat(
      join(
        home,
        'server',
        'kv',
        names
          .filter(name => name.endsWith('.log'))
          .sort()
          .at(-1) ?? ''
      )
    )
    limit(`${log.size + 20}:`)
  }
  limit('unlimited:')
  assert.ok(await isSaved('b'))
  child.say('close')
  assert.equal(await child.end(), 0)
  assert.deepEqual((await storage.open(recordSpec, place).keys()).sort(), saved.sort())
})

test('processes that write side by side take turns: each sees what the other was told is saved', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { storage } = await opened(t, home)
  const mine = storage.open(recordSpec, place)
  for (let n = 1; n <= 10; n++) {
    owner.say(`put theirs ${n}`)
    await owner.atLeast(1 + n)
    assert.deepEqual(await mine.get('theirs'), { n })
    await mine.put('mine', { n })
  }
  assert.deepEqual(await mine.entries(), [
    ['mine', { n: 10 }],
    ['theirs', { n: 10 }]
  ])
})

test('a database that could not be reached is tried again at the next request', async t => {
  const { home, store } = await opened(t)
  await writeFile(join(home, 'server'), 'in the way')
  await assert.rejects(store.put('a', { n: 1 }), error => AppError.is(error) && error.spec === PersistenceFailed)
  await rm(join(home, 'server'))
  await store.put('a', { n: 2 })
  assert.deepEqual(await store.get('a'), { n: 2 })
})

test('what waits for a process that stands still is bounded', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { store } = await opened(t, home)
  owner.say('put a 1')
  await owner.atLeast(2)
  process.kill(owner.pid, 'SIGSTOP')
  const note = 'x'.repeat(1_000_000)
  const puts = Array.from({ length: 80 }, (_, n) => store.put('a', { n, note }))
  const last = await Promise.race([puts[79], new Promise(resolve => setTimeout(resolve, 10_000, 'waits'))]).catch((error: unknown) => error)
  process.kill(owner.pid, 'SIGCONT')
  assert.ok(AppError.is(last) && last.spec === PersistenceFailed)
  const ends = await Promise.allSettled(puts)
  const taken = ends.filter(end => end.status === 'fulfilled').length
  assert.ok(taken > 50 && taken < 70, `${taken} MB`)
})

test('the database flushes what it says is saved', async t => {
  const batch = t.mock.method(Level.prototype, 'batch')
  const { store } = await opened(t)
  await store.put('a', { n: 1 })
  assert.deepEqual(batch.mock.calls.at(-1)?.arguments.at(-1), { sync: true })
})

test('a damaged record is quarantined with a warning and counts as absent', async t => {
  const { storage, store, log } = await opened(t)
  const loose = storage.open(defineStore({ name: 'items', value: Type.Any() }), place)
  await loose.batch([
    { type: 'put', key: 'a', value: { n: 'x' } },
    { type: 'put', key: 'b', value: { n: 1 } },
    { type: 'put', key: 'c', value: 7 }
  ])
  assert.equal(await store.get('a'), undefined)
  assert.deepEqual(await store.entries(), [['b', { n: 1 }]])
  assert.equal(log.texts.length, 2)
  assert.deepEqual(await store.keys(), ['b'])
  await store.put('a', { n: 2 })
  assert.deepEqual(await store.get('a'), { n: 2 })
})

test('a database whose files were damaged is repaired or quarantined with a warning, and works', async t => {
  const { home, store, reopen, log } = await opened(t)
  await store.put('a', { n: 1 })
  const again = await reopen()
  await again.put('b', { n: 2 })
  const third = async () => {
    const dir = join(home, 'server', 'kv')
    for (const name of await readdir(dir)) if (name.startsWith('MANIFEST')) await writeFile(join(dir, name), 'rubbish')
    return again
  }
  await third()
  const repaired = await reopen()
  assert.deepEqual(await repaired.keys(), ['a', 'b'])
  await repaired.put('c', { n: 3 })
  assert.ok(log.texts.length > 0)
})
