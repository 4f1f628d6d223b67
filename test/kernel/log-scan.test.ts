/** Scanning logs on the file system: tails, damage, long lines, other processes, time. */
import assert from 'node:assert/strict'
import { appendFile, mkdir, readdir, readlink, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { Type } from '../../kernel/shapes.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import type { LogRange, LogStore } from '../../kernel/storage/ports.ts'
import { type Item, logSpec } from '../../kernel/testing/storage-suite.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'test' }

async function opened(t: TestContext) {
  const home = await freshDir()
  const log = warnings()
  const fresh = () => {
    const storage = createStorage({ home, log })
    t.after(() => storage.close())
    return storage
  }
  const dir = join(home, 'test')
  await mkdir(dir)
  return { dir, log, file: join(dir, 'a.jsonl'), store: fresh().open(logSpec, place), fresh }
}

async function scanned(store: LogStore<Item>, range?: LogRange) {
  const entries: { at: number; next: number; n: number; length: number }[] = []
  for await (const { at, next, value } of store.scan('a', range)) entries.push({ at, next, n: value.n, length: value.note?.length ?? 0 })
  return entries
}

/** Both directions must tell the same. */
async function bothWays(store: LogStore<Item>, range?: LogRange) {
  const entries = await scanned(store, range)
  assert.deepEqual((await scanned(store, { ...range, reverse: true })).reverse(), entries)
  return entries
}

const isRefused = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed

test('a torn tail is not seen, and the end is where the next append puts its record', async t => {
  const { store, file } = await opened(t)
  await writeFile(file, `{"n":0}\n{"n":1,"note":"${'x'.repeat(600_000)}`)
  assert.deepEqual(await bothWays(store), [{ at: 0, next: 8, n: 0, length: 0 }])
  assert.deepEqual(await store.append('a'), { at: [], end: 8 })
  assert.equal((await stat(file)).size, 600_023)
  assert.deepEqual(await store.append('a', { n: 2 }), { at: [8], end: 16 })
  assert.deepEqual(await bothWays(store, { from: 8 }), [{ at: 8, next: 16, n: 2, length: 0 }])
})

test('positions around a last record without newline hold before and after its repair', async t => {
  const { store, file } = await opened(t)
  await writeFile(file, '{"n":0}\n{"n":1}')
  const last = { at: 8, next: 16, n: 1, length: 0 }
  assert.deepEqual(await bothWays(store, { from: 8 }), [last])
  assert.deepEqual(await bothWays(store, { from: 8, to: last.next }), [last])
  assert.deepEqual(await bothWays(store, { from: last.next }), [])
  await assert.rejects(scanned(store, { to: 15 }), isRefused)
  assert.deepEqual(await store.append('a'), { at: [], end: 16 })
  assert.deepEqual(await store.append('a', { n: 2 }), { at: [16], end: 24 })
  assert.deepEqual(await bothWays(store, { from: 8, to: last.next }), [last])
})

test('damaged lines in the middle are skipped with one warning per scan', async t => {
  const { store, file, log } = await opened(t)
  await writeFile(file, '{"n":0}\nrubbish\n\n{"n":"x"}\n{"n":1}\n')
  assert.deepEqual(
    (await bothWays(store)).map(entry => [entry.at, entry.n]),
    [
      [0, 0],
      [27, 1]
    ]
  )
  assert.equal(log.texts.length, 2)
})

test('long lines at both ends are read in both directions', async t => {
  const { store } = await opened(t)
  const long = 'é'.repeat(1_500_000)
  await store.append('a', { n: 0, note: long }, { n: 1 }, { n: 2, note: 'x'.repeat(262_144) }, { n: 3 }, { n: 4, note: long })
  assert.deepEqual(
    (await bothWays(store)).map(entry => [entry.n, entry.length]),
    [
      [0, 1_500_000],
      [1, 0],
      [2, 262_144],
      [3, 0],
      [4, 1_500_000]
    ]
  )
})

test('a line of the greatest length takes time in proportion, in both directions', async t => {
  const { store } = await opened(t)
  await store.append('a', { n: 0 }, { n: 1, note: 'x'.repeat(63 * 1024 * 1024) }, { n: 2 })
  assert.deepEqual(
    (await bothWays(store)).map(entry => entry.n),
    [0, 1, 2]
  )
})

test('lines that end where a chunk ends are told apart', async t => {
  const { store, file } = await opened(t)
  const lineOf = (n: number, bytes: number) => `{"n":${n},"note":"${'x'.repeat(bytes - 18)}"}\n`
  // 256 KiB, the size of a chunk, and one byte less and more.
  for (const bytes of [262_143, 262_144, 262_145, 131_072]) {
    await writeFile(file, [0, 1, 2, 3].map(n => lineOf(n, bytes)).join(''))
    assert.deepEqual(
      (await bothWays(store)).map(entry => [entry.at, entry.n]),
      [0, 1, 2, 3].map(n => [n * bytes, n])
    )
  }
})

test('a position inside a record is refused', async t => {
  const { store } = await opened(t)
  await store.append('a', { n: 0 }, { n: 1 })
  for (const position of [1, 7, 9, 15]) {
    for (const range of [{ from: position }, { to: position }, { to: position, reverse: true }]) {
      await assert.rejects(scanned(store, range), isRefused)
    }
  }
})

test('a scan is not disturbed by another process that appends, cuts its torn tail, or replaces the log', async t => {
  const { store, file } = await opened(t)
  await writeFile(file, Array.from({ length: 2000 }, (_, n) => `{"n":${n},"note":"${'x'.repeat(500)}"}\n`).join(''))
  const whole = (await stat(file)).size
  for (const reverse of [false, true]) {
    await appendFile(file, '{"n')
    let count = 0
    for await (const { value } of store.scan('a', { reverse })) {
      if (count === 0) await truncate(file, whole)
      if (count === 1) await appendFile(file, '{"n":2001}\n{"n":2002}\n')
      assert.equal(value.n, reverse ? 1999 - count : count)
      count++
    }
    assert.equal(count, 2000)
    await truncate(file, whole)
  }
  let count = 0
  for await (const { value } of store.scan('a')) {
    if (count === 0) await store.delete('a')
    assert.equal(value.n, count)
    count++
  }
  assert.equal(count, 2000)
})

test('a scan that is left early closes its file', { skip: process.platform !== 'linux' }, async t => {
  const { store, file } = await opened(t)
  await store.append('a', { n: 0 }, { n: 1 })
  await store.release('a')
  for await (const _entry of store.scan('a')) break
  const handles = await readdir('/proc/self/fd')
  const names = await Promise.all(handles.map(fd => readlink(join('/proc/self/fd', fd)).catch(() => '')))
  assert.ok(!names.includes(file))
})

test('records that take long are scanned in slices: other work goes on meanwhile', async t => {
  const { store, fresh } = await opened(t)
  await store.append('a', ...Array.from({ length: 200 }, (_, n) => ({ n })))
  const slow = (old: unknown) => {
    const until = performance.now() + 1
    while (performance.now() < until);
    return old
  }
  const spec = defineStore({ name: 'items', kind: 'log', value: Type.Object({ n: Type.Integer() }), version: 2, migrate: slow })
  let passes = 0
  let scanning = true
  const pass = () => {
    passes++
    if (scanning) setImmediate(pass)
  }
  pass()
  assert.equal((await scanned(fresh().open(spec, place))).length, 200)
  scanning = false
  assert.ok(passes > 20, `${passes} passes of the event loop in 200 ms of work`)
})

test('nothing is scanned after close', async t => {
  const { fresh } = await opened(t)
  const storage = fresh()
  const store = storage.open(logSpec, place)
  await store.append('a', { n: 0 })
  await storage.close()
  await assert.rejects(scanned(store), isRefused)
})
