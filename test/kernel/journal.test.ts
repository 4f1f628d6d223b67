import assert from 'node:assert/strict'
import { appendFile, readdir, readFile, readlink, stat, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { ulid } from 'ulid'
import { Journal } from '../../kernel/realtime/journal.ts'
import { JournalPool } from '../../kernel/realtime/journal-pool.ts'
import { freshDir } from '../helpers/temp.ts'

const log = pino({ level: 'silent' })

function options(path: string, pool = new JournalPool(log)) {
  return { path, pool, log, now: () => new Date(7), newId: () => ulid() }
}

const line = (seq: number, text = 'x') => Buffer.from(`${JSON.stringify({ type: 'note.added', seq, payload: { text } })}\n`)

async function seqs(path: string): Promise<unknown[]> {
  const text = await readFile(path, 'utf8')
  return text
    .trimEnd()
    .split('\n')
    .slice(1)
    .map(row => (JSON.parse(row) as { seq: number }).seq)
}

async function readSeqs(journal: Journal, from: number, to: number): Promise<number[]> {
  const { handle } = await journal.reader()
  const offsets = journal.offsets(from, to)
  const buffer = Buffer.alloc(offsets.at(-1)! - offsets[0]!)
  await handle.read(buffer, 0, buffer.length, offsets[0]!)
  await handle.close()
  return buffer
    .toString()
    .trimEnd()
    .split('\n')
    .map(row => (JSON.parse(row) as { seq: number }).seq)
}

/** Files below a directory that this process has open (Linux); 0 where the system does not tell. */
async function openFiles(dir: string): Promise<number> {
  const descriptors = await readdir('/proc/self/fd').catch(() => [])
  const targets = await Promise.all(descriptors.map(name => readlink(`/proc/self/fd/${name}`).catch(() => '')))
  return targets.filter(target => target.startsWith(dir)).length
}

test('a torn tail is cut at the first append, not at opening', async t => {
  const path = join(await freshDir(), 's.jsonl')
  const first = await Journal.open(options(path))
  await first.append([line(1), line(2)], 1)
  await first.close()
  await appendFile(path, '{"type":"note.added","seq":3,"pay')
  const torn = (await stat(path)).size

  const second = await Journal.open(options(path))
  t.after(() => second.close())
  assert.equal(second.seq, 2)
  assert.equal(second.epoch, first.epoch)
  assert.equal((await stat(path)).size, torn)
  await second.append([line(3)], 3)
  assert.deepEqual(await seqs(path), [1, 2, 3])
  assert.deepEqual(await readSeqs(second, 2, 3), [2, 3])
})

test('a damaged inner line is skipped, set aside, and nothing is replayed across the hole', async t => {
  const dir = await freshDir()
  const path = join(dir, 's.jsonl')
  const first = await Journal.open(options(path))
  await first.append([line(1), line(2), line(3), line(4)], 1)
  await first.close()
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('"seq":2', '"seq"!2'))

  const second = await Journal.open(options(path))
  t.after(() => second.close())
  assert.deepEqual([second.seq, second.first], [4, 3])
  await second.append([line(5)], 5)
  assert.deepEqual(await seqs(path), [3, 4, 5])
  assert.deepEqual(await readSeqs(second, 3, 5), [3, 4, 5])
  const aside = (await readdir(dir)).filter(name => name.includes('.damaged-'))
  assert.equal(aside.length, 1)
  assert.match(await readFile(join(dir, aside[0]!), 'utf8'), /"seq"!2/)
  const third = await Journal.open(options(path))
  assert.deepEqual([third.seq, third.epoch], [5, first.epoch])
})

test('the number of a damaged last line is not given out again', async t => {
  const path = join(await freshDir(), 's.jsonl')
  const first = await Journal.open(options(path))
  await first.append([line(1), line(2), line(3)], 1)
  await first.close()
  await writeFile(path, (await readFile(path, 'utf8')).replace('"seq":3', '"seq"!3'))
  const second = await Journal.open(options(path))
  t.after(() => second.close())
  assert.deepEqual([second.seq, second.first], [3, 4])
  await second.append([line(4)], 4)
  const third = await Journal.open(options(path))
  assert.deepEqual([third.seq, third.first, third.epoch], [4, 4, first.epoch])
})

test('an unreadable header begins a new epoch and keeps the old file', async t => {
  const dir = await freshDir()
  const path = join(dir, 's.jsonl')
  await writeFile(path, `garbage\n${line(1)}`)
  const journal = await Journal.open(options(path))
  t.after(() => journal.close())
  assert.equal(journal.seq, 0)
  assert.match(journal.epoch, /^ep_[0-9A-Z]{26}$/)
  await journal.append([line(1)], 1)
  assert.equal((await readdir(dir)).length, 2)
  const again = await Journal.open(options(path))
  assert.deepEqual([again.epoch, again.seq], [journal.epoch, 1])
})

test('an empty file, as a kill between creation and header leaves it, is a new journal', async () => {
  const path = join(await freshDir(), 's.jsonl')
  await writeFile(path, '')
  const journal = await Journal.open(options(path))
  await journal.append([line(1)], 1)
  await journal.close()
  const again = await Journal.open(options(path))
  assert.deepEqual([again.epoch, again.seq], [journal.epoch, 1])
})

test('a long journal is shortened to the newest 1000 events and goes on', async () => {
  const dir = await freshDir()
  const path = join(dir, 's.jsonl')
  const journal = await Journal.open(options(path))
  for (let seq = 1; seq <= 4000; seq += 100)
    await journal.append(
      Array.from({ length: 100 }, (_, i) => line(seq + i)),
      seq
    )
  const { generation } = journal
  await journal.append([line(4001)], 4001)
  assert.equal(journal.generation, generation + 1)
  assert.deepEqual([journal.first, journal.seq], [3002, 4001])
  await journal.append([line(4002)], 4002)
  const onDisk = await seqs(path)
  assert.deepEqual([onDisk.length, onDisk[0], onDisk.at(-1)], [1001, 3002, 4002])
  assert.deepEqual(await readSeqs(journal, 4000, 4002), [4000, 4001, 4002])
  await journal.close()
  assert.deepEqual(await readdir(dir), ['s.jsonl'])
  const again = await Journal.open(options(path))
  assert.deepEqual([again.first, again.seq, again.epoch], [3002, 4002, journal.epoch])
})

test('a reader keeps the file it opened when the journal is shortened meanwhile', async t => {
  const path = join(await freshDir(), 's.jsonl')
  const journal = await Journal.open(options(path))
  t.after(() => journal.close())
  await journal.append(
    Array.from({ length: 4000 }, (_, i) => line(i + 1)),
    1
  )
  const { handle, generation } = await journal.reader()
  t.after(() => handle.close())
  const offsets = journal.offsets(3500, 3500)
  await journal.append([line(4001)], 4001)
  assert.notEqual(journal.generation, generation)
  const buffer = Buffer.alloc(offsets[1]! - offsets[0]!)
  await handle.read(buffer, 0, buffer.length, offsets[0]!)
  assert.equal((JSON.parse(buffer.toString()) as { seq: number }).seq, 3500)
})

test('files of idle journals are closed and opened again when needed', async () => {
  const dir = await freshDir()
  const pool = new JournalPool(log, 2)
  const journals = await Promise.all(Array.from({ length: 20 }, (_, i) => Journal.open(options(join(dir, `${i}.jsonl`), pool))))
  for (let seq = 1; seq <= 3; seq++) for (const journal of journals) await journal.append([line(seq)], seq)
  const held = await openFiles(dir)
  assert.ok(held <= 5, `${held} files are open: two in use, two being closed and the newest are the bound`)
  for (const journal of journals) assert.deepEqual(await seqs(join(dir, `${journals.indexOf(journal)}.jsonl`)), [1, 2, 3])
  await Promise.all(journals.map(journal => journal.close()))
  assert.equal(await openFiles(dir), 0)
  pool.close()
})

test('a write that fails for good ends the epoch; the numbers go on in a new file', async t => {
  const dir = await freshDir()
  const path = join(dir, 's.jsonl')
  const journal = await Journal.open(options(path))
  t.after(() => journal.close())
  await journal.append([line(1)], 1)
  const { epoch } = journal
  await journal.close()
  // Somebody else writes to our file: what we know of it is no longer true.
  await truncate(path, 10)
  await assert.rejects(journal.append([line(2)], 2))
  await journal.abandon(2)
  assert.notEqual(journal.epoch, epoch)
  await assert.rejects(journal.append([line(2)], 2), /next try/)
})

test('a stream whose directory cannot be made lives on without a journal', async () => {
  const dir = await freshDir()
  await writeFile(join(dir, 'file'), '')
  const journal = await Journal.open(options(join(dir, 'file', 's.jsonl')))
  assert.equal(journal.seq, 0)
  await assert.rejects(journal.append([line(1)], 1))
})
