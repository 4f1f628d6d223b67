/** A disk that stands still: what waits for it is bounded, and goes on when it moves again. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { Level } from 'level'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { documentSpec, kvSpec, logSpec } from '../../kernel/testing.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { latch } from '../helpers/latch.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'test' }
const note = 'x'.repeat(1_000_000)

async function opened(t: TestContext) {
  const disk = new WatchedDisk()
  const storage = createStorage({ home: await freshDir(), log: warnings() }, { files: disk.files })
  t.after(() => storage.close())
  return { disk, storage }
}

/** Writes until one is refused; answers how many were taken before. */
async function refusedAfter(write: (n: number) => Promise<unknown>): Promise<{ taken: number; all: Promise<unknown> }> {
  const taken: Promise<unknown>[] = []
  for (let n = 0; n < 100; n++) {
    const writing = write(n)
    const refused = await Promise.race([
      writing.then(
        () => false,
        error => AppError.is(error) && error.spec === PersistenceFailed
      ),
      new Promise<false>(resolve => setImmediate(() => resolve(false)))
    ])
    if (refused) return { taken: n, all: Promise.all(taken) }
    taken.push(writing)
  }
  return { taken: 100, all: Promise.all(taken) }
}

test('records of a log', async t => {
  const { disk, storage } = await opened(t)
  const moving = latch()
  disk.before('write', /a\.jsonl$/, () => moving.opened)
  const store = storage.open(logSpec, place)
  const { taken, all } = await refusedAfter(n => store.append('a', { n, note }))
  assert.ok(taken > 60 && taken < 70, `${taken} MB`)
  moving.open()
  await all
  assert.equal((await store.read('a')).length, taken)
  const later = latch() // what was written waits no more
  disk.before('write', /a\.jsonl$/, () => later.opened)
  const again = await refusedAfter(n => store.append('a', { n, note }))
  later.open()
  await again.all
  assert.equal(again.taken, taken)
  assert.ok(disk.done.filter(step => step === 'write a.jsonl').length > taken / 5, 'no write is much larger than 4 MiB')
})

test('documents', async t => {
  const { disk, storage } = await opened(t)
  const moving = latch()
  disk.before('write', /a\.json~$/, () => moving.opened)
  const store = storage.open(documentSpec, place)
  const { taken, all } = await refusedAfter(n => store.put('a', { n, note }))
  assert.ok(taken > 30 && taken < 40, `${taken} MB`)
  moving.open()
  await all
  assert.equal((await store.get('a'))?.n, taken - 1)
  await store.put('a', { n: 100, note })
  await store.put('large', { n: 0, note: note.repeat(34) })
})

test('records of the kv database', async t => {
  const { storage } = await opened(t)
  const store = storage.open(kvSpec, place)
  await store.put('first', { n: 0 })
  const moving = latch()
  const batch: (...args: unknown[]) => unknown = Level.prototype.batch
  const sizes: number[] = []
  t.mock.method(Level.prototype, 'batch', async function (this: Level, ...args: unknown[]) {
    const [ops] = args as [readonly { value?: string }[]]
    sizes.push(ops.reduce((sum, { value = '' }) => sum + value.length, 0))
    await moving.opened
    return Reflect.apply(batch, this, args)
  })
  const { taken, all } = await refusedAfter(n => store.put(`k${n}`, { n, note }))
  assert.ok(taken > 60 && taken < 70, `${taken} MB`)
  moving.open()
  await all
  assert.ok(Math.max(...sizes) < 9 * 1024 * 1024, 'no flush is much larger than 8 MiB')
  assert.equal((await store.keys()).length, taken + 1)
  await store.put('again', { n: 0, note })
})
