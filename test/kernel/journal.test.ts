import assert from 'node:assert/strict'
import { appendFile, mkdir, readdir, readFile, rename, stat, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { pino } from 'pino'
import { ulid } from 'ulid'
import type { Logger } from '../../kernel/log/log.ts'
import { createJournals, type FileJournalsOptions } from '../../kernel/realtime/file-journals.ts'
import type { JournalView } from '../../kernel/realtime/journal.ts'
import { journalSuite } from '../../kernel/testing.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir } from '../helpers/temp.ts'

interface Logged {
  readonly texts: string[]
  readonly log: Logger
}

function logged(): Logged {
  const texts: string[] = []
  const log = pino({}, { write: (text: string) => void texts.push((JSON.parse(text) as { msg: string }).msg) })
  return { texts, log }
}

/** The journals of a home; their files lie in `dir`. */
async function opened(t: TestContext, options: FileJournalsOptions & { home?: string } = {}) {
  const home = options.home ?? (await freshDir())
  const { texts, log } = logged()
  const journals = createJournals({ home, server_id: ulid(), log, now: () => new Date(7), newId: () => ulid() }, options)
  t.after(() => journals.close())
  const dir = join(home, 'server', 'events')
  return { home, dir, path: join(dir, 's.jsonl'), journals, texts }
}

/** Other journals on the same files, as after a restart. */
const again = async (t: TestContext, home: string) => (await opened(t, { home })).journals.open('s')

const line = (seq: number, text = 'x') => Buffer.from(`${JSON.stringify({ type: 'note.added', seq, payload: { text } })}\n`)
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => line(from + i))

async function seqs(path: string): Promise<unknown[]> {
  const text = await readFile(path, 'utf8')
  const rows = text.trimEnd().split('\n').slice(1)
  return rows.map(row => (JSON.parse(row) as { seq: number }).seq)
}

async function readSeqs(journal: JournalView, from: number, to: number): Promise<number[]> {
  const found: number[] = []
  for await (const group of journal.lines(from, to))
    for (const row of group) found.push((JSON.parse(row.toString()) as { seq: number }).seq)
  return found
}

journalSuite('files', async t => {
  const { home, journals } = await opened(t)
  const reopen = async () => {
    await journals.close()
    return (await opened(t, { home })).journals
  }
  return { journals, reopen }
})

test('a torn tail is cut at the first append, not at opening', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 2), 1)
  await first.close()
  await appendFile(path, '{"type":"note.added","seq":3,"pay')
  const torn = (await stat(path)).size

  const second = await again(t, home)
  assert.deepEqual([second.seq, second.epoch], [2, first.epoch])
  assert.equal((await stat(path)).size, torn)
  await second.append([line(3)], 3)
  assert.deepEqual(await seqs(path), [1, 2, 3])
  assert.deepEqual(await readSeqs(second, 2, 3), [2, 3])
})

test('a last line that lacks only its newline was not acknowledged: its number is given out again', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append([line(1)], 1)
  await first.close()
  await appendFile(path, line(2).toString().trimEnd())
  const second = await again(t, home)
  assert.equal(second.seq, 1)
  await second.append([line(2, 'other')], 2)
  assert.deepEqual(await seqs(path), [1, 2])
  assert.match(await readFile(path, 'utf8'), /other/)
})

test('a damaged inner line is skipped, and nothing is replayed across the hole', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 4), 1)
  await first.close()
  const text = await readFile(path, 'utf8')
  await writeFile(path, text.replace('"seq":2', '"seq"!2'))

  const second = await again(t, home)
  assert.deepEqual([second.seq, second.first], [4, 3])
  await assert.rejects(readSeqs(second, 2, 4), 'not even by those who ask for it')
  assert.equal((await readFile(path, 'utf8')).length, text.length, 'another process may still own the file')
  await second.append([line(5)], 5)
  assert.deepEqual(await seqs(path), [3, 4, 5])
  assert.deepEqual(await readSeqs(second, 3, 5), [3, 4, 5])
  const third = await again(t, home)
  assert.deepEqual([third.seq, third.first, third.epoch], [5, 3, first.epoch])
})

test('a missing line is a hole, too: only what comes after it can be replayed', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 4), 1)
  await first.close()
  await writeFile(path, (await readFile(path, 'utf8')).replace(line(2).toString(), ''))
  const second = await again(t, home)
  assert.deepEqual([second.seq, second.first], [4, 3])
})

test('the number of a damaged last line is not given out again', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 3), 1)
  await first.close()
  await writeFile(path, (await readFile(path, 'utf8')).replace('"seq":3', '"seq"!3'))
  const second = await again(t, home)
  assert.deepEqual([second.seq, second.first], [3, 4])
  await second.append([line(4)], 4)
  const third = await again(t, home)
  assert.deepEqual([third.seq, third.first, third.epoch], [4, 4, first.epoch])
})

test('an unreadable header begins a new epoch and keeps the old file', async t => {
  const { home, path, journals, dir, texts } = await opened(t)
  await mkdir(dir, { recursive: true })
  await writeFile(path, `garbage\n${line(1)}`)
  assert.equal(await journals.find('s'), undefined)
  const journal = await journals.open('s')
  assert.equal(journal.seq, 0)
  assert.match(journal.epoch, /^ep_[0-9A-Z]{26}$/)
  await journal.append([line(1)], 1)
  const aside = (await readdir(dir)).filter(name => name.startsWith('s.jsonl.damaged-'))
  assert.match(await readFile(join(dir, aside[0]!), 'utf8'), /^garbage/)
  assert.ok(texts.some(text => text.includes('moved out of the way')))
  const second = await again(t, home)
  assert.deepEqual([second.epoch, second.seq], [journal.epoch, 1])
})

test('an empty file, as a kill between creation and header leaves it, is a new journal', async t => {
  const { home, path, journals, dir } = await opened(t)
  await mkdir(dir, { recursive: true })
  await writeFile(path, '')
  const journal = await journals.open('s')
  await journal.append([line(1)], 1)
  const second = await again(t, home)
  assert.deepEqual([second.epoch, second.seq], [journal.epoch, 1])
  assert.deepEqual(await readdir(dir), ['s.jsonl'])
})

test('a long journal is shortened to the newest 1000 events and goes on', async t => {
  const { home, path, journals, dir } = await opened(t)
  const journal = await journals.open('s')
  for (let seq = 1; seq <= 4000; seq += 100) await journal.append(lines(seq, seq + 99), seq)
  const found = await journals.find('s')
  for (const index of [journal, found!]) assert.ok(index.first > 1000, 'only offsets of the newest lines are kept in memory')
  await journal.append([line(4001)], 4001)
  assert.deepEqual(await readSeqs(found!, 4000, 4001), [4000, 4001], 'a view follows the file')
  assert.deepEqual([journal.first, journal.seq], [3002, 4001])
  await journal.append([line(4002)], 4002)
  const onDisk = await seqs(path)
  assert.deepEqual([onDisk.length, onDisk[0], onDisk.at(-1)], [1001, 3002, 4002])
  assert.deepEqual(await readSeqs(journal, 4000, 4002), [4000, 4001, 4002])
  await journal.close()
  assert.deepEqual(await readdir(dir), ['s.jsonl'])
  const second = await again(t, home)
  assert.deepEqual([second.first, second.seq, second.epoch], [3002, 4002, journal.epoch])
})

test('a journal of large events is shortened by its bytes', async t => {
  const { path, journals } = await opened(t)
  const journal = await journals.open('s')
  const text = 'x'.repeat(25_000)
  for (let seq = 1; seq <= 1400; seq += 100) {
    await journal.append(
      Array.from({ length: 100 }, (_, i) => line(seq + i, text)),
      seq
    )
  }
  assert.ok((await stat(path)).size < 30 * 1024 * 1024)
  assert.deepEqual(await readSeqs(journal, 1400, 1400), [1400])
})

test('a journal that cannot be shortened goes on, and does not try again at every event', async t => {
  const disk = new WatchedDisk()
  const { path, journals, texts } = await opened(t, { files: disk.files })
  const journal = await journals.open('s')
  await journal.append(lines(1, 4000), 1)
  disk.fail('rename', /s\.jsonl$/, 'ENOSPC', 5)
  await journal.append([line(4001)], 4001)
  assert.ok(texts.some(text => text.includes('could not be shortened')))
  disk.done.length = 0
  await journal.append([line(4002)], 4002)
  assert.deepEqual(disk.done, ['write s.jsonl'])
  assert.equal((await seqs(path)).length, 4002)
  assert.deepEqual(await readSeqs(journal, 4000, 4002), [4000, 4001, 4002])
})

test('a journal of large events that cannot be shortened does not try again at every event either', async t => {
  const disk = new WatchedDisk()
  const { journals } = await opened(t, { files: disk.files })
  const journal = await journals.open('s')
  const text = 'x'.repeat(1024 * 1024)
  disk.fail('rename', /s\.jsonl$/, 'ENOSPC', 5)
  for (let seq = 1; seq <= 33; seq++) await journal.append([line(seq, text)], seq)
  disk.done.length = 0
  await journal.append([line(34, text)], 34)
  assert.deepEqual(disk.done, ['write s.jsonl'])
})

test('a number that came before is damage, and nothing is replayed across it', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 3), 1)
  await first.close()
  await appendFile(path, Buffer.concat([line(2), line(4)]))
  const second = await again(t, home)
  assert.deepEqual([second.seq, second.first], [4, 4])
})

test('a journal of a later version is left alone and the stream starts a new epoch', async t => {
  const { path, journals, dir } = await opened(t)
  await mkdir(dir, { recursive: true })
  const header = JSON.stringify({ kind: 'journal_header', version: 2, epoch: 'ep_later', created_at: 1 })
  await writeFile(path, `${header}\n${line(1)}`)
  assert.equal(await journals.find('s'), undefined)
  const journal = await journals.open('s')
  assert.notEqual(journal.epoch, 'ep_later')
  await journal.append([line(1)], 1)
  const aside = (await readdir(dir)).find(name => name.includes('.damaged-'))
  assert.match(await readFile(join(dir, aside ?? ''), 'utf8'), /ep_later/)
})

test('files of idle journals are closed and opened again when needed', async t => {
  const { dir, journals } = await opened(t, { handles: 2 })
  const all = await Promise.all(Array.from({ length: 20 }, (_, i) => journals.open(`${i}`)))
  for (let seq = 1; seq <= 3; seq++) for (const journal of all) await journal.append([line(seq)], seq)
  const held = await openFiles(dir)
  assert.ok(held <= 5, `${held} files are open: two in use, two being closed and the newest are the bound`)
  for (const journal of all) assert.deepEqual(await seqs(join(dir, `${all.indexOf(journal)}.jsonl`)), [1, 2, 3])
  await Promise.all(all.map(journal => journal.close()))
  assert.equal(await openFiles(dir), 0)
})

test('the files used last stay open', { skip: process.platform !== 'linux' }, async t => {
  const { dir, journals } = await opened(t, { handles: 2 })
  const [a, b, c] = [await journals.open('a'), await journals.open('b'), await journals.open('c')]
  await a.append([line(1)], 1)
  await b.append([line(1)], 1)
  await a.append([line(2)], 2)
  await c.append([line(1)], 1)
  await b.close()
  assert.equal(await openFiles(join(dir, 'b.jsonl')), 0)
  assert.equal(await openFiles(dir), 2)
  for (const journal of [a, b, c]) await journal.close()
})

test('a file that somebody else has written to is not written to: the epoch ends, and the numbers go on in a new file', async t => {
  const { path, journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append([line(1)], 1)
  const { epoch } = journal
  await appendFile(path, line(2))
  await assert.rejects(journal.append([line(2)], 2))
  assert.deepEqual(await seqs(path), [1, 2])
  await journal.abandon(2)
  assert.notEqual(journal.epoch, epoch)
  await assert.rejects(journal.append([line(3)], 3), /next try/)
})

test('a journal whose file somebody else has replaced is not read by numbers that mean other lines there', async t => {
  const { path, journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 3), 1)
  await writeFile(`${path}.other`, `${await readFile(path, 'utf8')}${line(4)}`)
  await rename(`${path}.other`, path)
  await assert.rejects(readSeqs(journal, 1, 3), /somebody else/)
  assert.equal(journal.seq, 3)
})

test('a stream whose directory cannot be made lives on without a journal', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'server'), '')
  const { journals } = await opened(t, { home })
  const journal = await journals.open('s')
  assert.equal(journal.seq, 0)
  await assert.rejects(journal.append([line(1)], 1))
})

test('a shortage of descriptors while a journal is opened costs it neither epoch nor events', async t => {
  const { home, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 2), 1)
  await first.close()
  const disk = new WatchedDisk()
  disk.fail('open', /s\.jsonl$/, 'EMFILE', 2)
  const second = await (await opened(t, { home, files: disk.files })).journals.open('s')
  assert.deepEqual([second.epoch, second.seq, second.first], [first.epoch, 2, 1])
})

test('a write that fails half-way is repeated, and what it left is cut off first', async t => {
  const disk = new WatchedDisk()
  const { path, journals } = await opened(t, { files: disk.files })
  const journal = await journals.open('s')
  disk.fail('write', /s\.jsonl$/, 'ENOSPC', 2, true)
  await journal.append(lines(1, 3), 1)
  assert.deepEqual(await seqs(path), [1, 2, 3])
  disk.fail('write', /s\.jsonl$/, 'EIO', 4)
  disk.fail('truncate', /s\.jsonl$/, 'EIO', 4)
  await assert.rejects(journal.append([line(4)], 4), /EIO/)
  await journal.append([line(4, 'again')], 4)
  assert.deepEqual(await seqs(path), [1, 2, 3, 4])
  assert.deepEqual([journal.seq, await readSeqs(journal, 1, 4)], [4, [1, 2, 3, 4]])
})

test('lines reach the medium within a second, and at closing; the name of a new file with them', async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const disk = new WatchedDisk()
  const { journals } = await opened(t, { files: disk.files })
  const journal = await journals.open('s')
  await journal.append([line(1)], 1)
  assert.ok(!disk.done.includes('sync s.jsonl'))
  t.mock.timers.tick(1_000)
  while (!disk.done.includes('sync s.jsonl') || disk.done.at(-1) !== 'sync events') await new Promise(resolve => setImmediate(resolve))
  disk.done.length = 0
  await journal.append([line(2)], 2)
  await journal.close()
  assert.deepEqual(disk.done, ['write s.jsonl', 'sync s.jsonl'])
})

test('a shortened journal is on the medium before it takes the place of the long one', async t => {
  const disk = new WatchedDisk()
  const { journals } = await opened(t, { files: disk.files })
  const journal = await journals.open('s')
  await journal.append(lines(1, 4000), 1)
  disk.done.length = 0
  await journal.append([line(4001)], 4001)
  const steps = disk.done.filter(step => !step.startsWith('write s.jsonl~'))
  assert.deepEqual(steps, ['write s.jsonl', 'sync s.jsonl', 'sync events', 'sync s.jsonl~', 'rename s.jsonl', 'sync events'])
})

test('journals are for their owner alone', async t => {
  const { dir, path, journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 4001), 1)
  assert.equal((await stat(path)).mode & 0o777, 0o600)
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
})

test('two processes of one home keep global events apart; the file of the second one goes with it', async t => {
  const one = await opened(t)
  const two = await opened(t, { home: one.home })
  const [first, second] = [await one.journals.open('__global__'), await two.journals.open('__global__')]
  await Promise.all([first.append([line(1)], 1), second.append([line(1)], 1)])
  const names = (await readdir(one.dir)).sort()
  assert.deepEqual([names.length, names.includes('__global__.jsonl'), names.includes('__global__.lock')], [3, true, true])
  await two.journals.close()
  assert.deepEqual((await readdir(one.dir)).sort(), ['__global__.jsonl', '__global__.lock'])
  await writeFile(join(one.dir, '__global__.OLD.jsonl'), '')
  await utimes(join(one.dir, '__global__.OLD.jsonl'), 0, 0)
  await writeFile(join(one.dir, '__global__.NEW.jsonl'), '')
  await one.journals.close()
  assert.ok(!(await readdir(one.dir)).includes('__global__.lock'))
  const third = await (await opened(t, { home: one.home })).journals.open('__global__')
  assert.deepEqual([third.epoch, third.seq], [first.epoch, 1])
  assert.deepEqual((await readdir(one.dir)).sort(), ['__global__.NEW.jsonl', '__global__.jsonl', '__global__.lock'])
})
