/** Files of JSON lines under faults: what is acknowledged stays, and what is refused is gone, whatever comes after. */
import assert from 'node:assert/strict'
import { appendFile, readFile, truncate, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ulid } from 'ulid'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { createJournals } from '../../kernel/realtime/file-journals.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { logSpec, testEnvironment } from '../../kernel/testing.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed
const long = 'x'.repeat(100)

async function aLog(t: TestContext) {
  const home = await freshDir()
  const disk = new WatchedDisk()
  const storage = createStorage({ home, log: warnings() }, { files: disk.files })
  t.after(() => storage.close())
  const store = storage.open(logSpec, { namespace: 'test', dir: 'test' })
  const numbers = async () => (await store.read('a')).map(item => item.n)
  return { path: join(home, 'test', 'a.jsonl'), disk, store, numbers }
}

/** A log whose last append was refused and could not be cut off: the next one to open the file cuts it to the record before. */
async function uncut(t: TestContext) {
  const it = await aLog(t)
  await it.store.append('a', { n: 0 })
  it.disk.fail('write', /a\.jsonl$/, 'ENOSPC', 1, true)
  it.disk.fail('truncate', /a\.jsonl$/)
  await assert.rejects(it.store.append('a', { n: 1 }), notSaved)
  return it
}

async function aJournal(t: TestContext, handles?: number) {
  const home = await freshDir()
  const disk = new WatchedDisk()
  const log = warnings()
  const env = { ...testEnvironment(), home, server_id: ulid(), newId: () => ulid() }
  const journals = createJournals(
    { ...env, log: { ...env.log, warn: log.warn } as never },
    { files: disk.files, ...(handles && { handles }) }
  )
  t.after(() => journals.close().catch(() => undefined)) // a test may have made its end fail
  return { path: join(home, 'server', 'events', 's.jsonl'), disk, journals, log }
}

const line = (seq: number, text = 'x') => Buffer.from(`${JSON.stringify({ type: 'note.added', seq, payload: { text } })}\n`)
const seqs = async (path: string) =>
  (await readFile(path, 'utf8'))
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(row => (JSON.parse(row) as { seq: number }).seq)
const turn = () => new Promise(resolve => setImmediate(resolve))

test('what is appended after a failed write stays when the file is opened again', async t => {
  const { disk, store, numbers } = await aLog(t)
  await store.append('a', { n: 0 })
  disk.fail('write', /a\.jsonl$/, 'ENOSPC', 1, true)
  await assert.rejects(store.append('a', { n: 1 }), notSaved)
  for (const n of [2, 3]) {
    await store.append('a', { n, note: long })
    await store.release('a')
  }
  assert.deepEqual(await numbers(), [0, 2, 3])
})

test('a log that is deleted and begun anew after a failed write is not cut to where it was', async t => {
  const { store, numbers } = await uncut(t)
  await store.delete('a')
  for (const n of [4, 5, 6]) await store.append('a', { n, note: long })
  await store.release('a')
  assert.deepEqual(await numbers(), [4, 5, 6])
  await store.append('a', { n: 7 })
  assert.deepEqual(await numbers(), [4, 5, 6, 7])
})

test('of a long log only the records between two positions are read, in either direction', async t => {
  const { store } = await aLog(t)
  const { at } = await store.append('a', ...Array.from({ length: 400 }, (_, n) => ({ n, note: 'x'.repeat(1_000 + n) })))
  for (const [first, last] of [
    [0, 399],
    [3, 300],
    [270, 280]
  ] as const) {
    for (const reverse of [false, true]) {
      const seen: number[] = []
      for await (const { value, at: place } of store.scan('a', { from: at[first] ?? 0, to: at[last] ?? 0, reverse })) {
        assert.equal(place, at[value.n])
        seen.push(value.n)
      }
      assert.deepEqual(
        reverse ? seen.reverse() : seen,
        Array.from({ length: last - first }, (_, n) => first + n)
      )
    }
  }
})

test('a write that the system takes only in parts is made whole', async t => {
  const { path, disk, store } = await aLog(t)
  await store.append('a', { n: 0 })
  for (const bytes of [1, 8, 11]) {
    disk.takeOnly(bytes, /a\.jsonl$/)
    await Promise.all([1, 2, 3].map(n => store.append('a', { n })))
  }
  const three = '{"n":1}\n{"n":2}\n{"n":3}\n'
  assert.equal(await readFile(path, 'utf8'), `{"n":0}\n${three}${three}${three}`)
  disk.takeOnly(0, /a\.jsonl$/)
  await assert.rejects(store.append('a', { n: 9 }), notSaved)
})

test('a last line that could be torn is no record, even if it is JSON', async t => {
  const { path, store } = await aLog(t)
  await store.append('a', { n: 0 })
  await store.release('a')
  await appendFile(path, '12')
  await store.append('a', { n: 1 })
  assert.equal(await readFile(path, 'utf8'), '{"n":0}\n{"n":1}\n')
})

test('a journal begun anew after a failed write is not cut to where the old one ended', async t => {
  const { path, disk, journals } = await aJournal(t)
  const journal = await journals.open('s')
  await journal.append([line(1)], 1)
  disk.fail('write', /s\.jsonl$/, 'EIO', 1, true)
  disk.fail('truncate', /s\.jsonl$/)
  disk.fail('open', /s\.jsonl$/, 'EIO', 3)
  await assert.rejects(journal.append([line(2), line(3)], 2))
  await journal.abandon(3)
  const now = performance.now.bind(performance)
  t.mock.method(performance, 'now', () => now() + 1_000)
  await journal.append([line(4, long), line(5, long)], 4)
  await journal.close()
  await journal.append([line(6)], 6)
  assert.deepEqual(await seqs(path), [4, 5, 6])
})

test('a half-written group that could not be cut off at once is cut off before it is written again', async t => {
  const { path, disk, journals } = await aJournal(t)
  const journal = await journals.open('s')
  await journal.append([line(1)], 1)
  disk.fail('write', /s\.jsonl$/, 'EIO', 1, true)
  let found: number | undefined
  disk.before('truncate', /s\.jsonl$/, async () => {
    found = (await journals.find('s'))?.seq
  })
  disk.fail('truncate', /s\.jsonl$/)
  await journal.append([line(2), line(3)], 2)
  assert.equal(found, 1, 'readers see only what is acknowledged')
  assert.deepEqual(await seqs(path), [1, 2, 3])
})

test('after a torn tail a first write that fails is repeated', async t => {
  const { path, disk, journals } = await aJournal(t)
  const first = await journals.open('s')
  await first.append([line(1)], 1)
  await first.close()
  await appendFile(path, '{"type":"note.added","se')
  const second = await journals.open('s')
  disk.fail('write', /s\.jsonl$/)
  await second.append([line(2)], 2)
  assert.deepEqual(await seqs(path), [1, 2])
})

test('a journal that another process makes at the same moment is taken as it is', async t => {
  const { path, disk, journals } = await aJournal(t)
  const other = `{"kind":"journal_header","version":1,"epoch":"ep_other","created_at":1}\n${line(1)}`
  disk.before('open', /s\.jsonl$/, async () => disk.before('open', /s\.jsonl$/, () => writeFile(path, other)))
  const journal = await journals.open('s')
  assert.deepEqual([journal.epoch, journal.seq], ['ep_other', 1])
})

test('a file that somebody has shortened is not written to, and is not left open', async t => {
  const { path, journals } = await aJournal(t)
  const journal = await journals.open('s')
  await journal.append([line(1), line(2)], 1)
  await truncate(path, 100)
  await assert.rejects(journal.append([line(3)], 3), /somebody else/)
  assert.equal(await openFiles(dirname(path)), 0)
})

test('lines that come during a flush are flushed a second later; a flush that fails is told, and the journal goes on', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { disk, journals, log } = await aJournal(t)
  const journal = await journals.open('s')
  const passed = async (happened: () => boolean) => {
    for (const end = performance.now() + 5_000; !happened(); await turn()) {
      assert.ok(performance.now() < end)
      t.mock.timers.tick(1_000)
    }
  }
  const synced = () => disk.done.filter(step => step === 'sync s.jsonl').length
  await journal.append([line(1)], 1)
  let during: Promise<void> = Promise.resolve()
  disk.before('sync', /s\.jsonl$/, () => {
    during = journal.append([line(2)], 2)
    return during
  })
  await passed(() => synced() === 2)
  await during
  disk.fail('sync', /s\.jsonl$/)
  await journal.append([line(3)], 3)
  await passed(() => log.texts.some(text => text.includes('could not be flushed')))
  await journal.append([line(4)], 4)
  await passed(() => synced() === 3)
})

test('a file that cannot be closed while others are in use is told', async t => {
  const { disk, journals, log } = await aJournal(t, 1)
  const [one, two] = [await journals.open('s'), await journals.open('t')]
  disk.fail('close', /s\.jsonl$/)
  await one.append([line(1)], 1)
  await two.append([line(1)], 1)
  await one.append([line(2)], 2)
  while (log.texts.length === 0) await turn()
  assert.match(log.texts.join(), /could not be closed properly/)
})

test('who asks where a log ends leaves no file open', async t => {
  const { path, store } = await aLog(t)
  await store.append('a', { n: 0 })
  await store.release('a')
  assert.deepEqual(await store.append('a'), { at: [], end: 8 })
  assert.equal(await openFiles(dirname(path)), 0)
})

test('what waited for one disk goes on in shares of the loop', async t => {
  const { store } = await aLog(t)
  const files = Array.from({ length: 30 }, (_, n) => `f${n}`)
  for (const file of files) await store.append(file, { n: 0 })
  const passes: string[][] = [[]]
  let open = true
  const count = () => {
    passes.push([])
    if (open) setImmediate(count)
  }
  setImmediate(count)
  const goOn = async (file: string, n: number) => {
    await store.append(file, { n })
    passes.at(-1)?.push(file)
    for (const until = performance.now() + 1; performance.now() < until; );
  }
  await Promise.all(files.map(file => goOn(file, 1)))
  open = false
  const most = Math.max(...passes.map(pass => pass.length))
  assert.ok(most <= 10, `30 ms of work were done as ${passes.map(pass => pass.length).join(', ')}`)
})
