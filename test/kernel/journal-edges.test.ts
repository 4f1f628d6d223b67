/** Journals on files at their edges: readers of a file that changes, faults while an epoch ends, odd files beside them. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rename, truncate, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { ulid } from 'ulid'
import { createJournals } from '../../kernel/realtime/file-journals.ts'
import type { JournalView } from '../../kernel/realtime/journal.ts'
import { readBackwards } from '../../kernel/realtime/subscriptions.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { WatchedDisk } from '../helpers/disk.ts'
import { openFiles } from '../helpers/open-files.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

async function opened(t: TestContext, home?: string) {
  const at = home ?? (await freshDir())
  const disk = new WatchedDisk()
  const log = warnings()
  const env = { ...testEnvironment(), home: at, server_id: ulid(), newId: () => ulid() }
  const journals = createJournals({ ...env, log: { ...env.log, warn: log.warn, error: log.warn } as never }, { files: disk.files })
  t.after(() => journals.close())
  const dir = join(at, 'server', 'events')
  return { home: at, dir, path: join(dir, 's.jsonl'), disk, journals, log }
}

const line = (seq: number) => Buffer.from(`${JSON.stringify({ type: 'note.added', seq, payload: {} })}\n`)
const lines = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, i) => line(from + i))

test('reading backwards goes on when the journal is rewritten, to the oldest event that it then has, and leaves no file open', async t => {
  const { dir, journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 4000), 1)
  const seqs: number[] = []
  for await (const event of readBackwards(journal)) {
    seqs.push(event.seq)
    if (event.seq === 4000) await journal.append([line(4001)], 4001)
  }
  assert.deepEqual([seqs.length, seqs[0], seqs.at(-1)], [999, 4000, 3002])
  for await (const event of readBackwards(journal)) if (event.seq === 4000) break
  await journal.close()
  assert.equal(await openFiles(dir), 0)
})

async function read(journal: JournalView, from: number, to: number): Promise<string[]> {
  const texts: string[] = []
  for await (const group of journal.lines(from, to)) texts.push(...group.map(String))
  return texts
}

test('a view that was made before a journal was rewritten reads the same lines', async t => {
  const { journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 4000), 1)
  const view = await journals.find('s')
  assert.ok(view)
  const before = view.lines(4000, 4000)[Symbol.asyncIterator]()
  await before.next()
  await journal.append([line(4001)], 4001)
  assert.deepEqual(
    await read(view, 4000, 4001),
    lines(4000, 4001).map(text => text.toString().trim())
  )
  assert.equal(view.seq, 4001)
  await before.return?.()
})

test('those who read a journal at the same time read one open file, each the lines that it asked for', async t => {
  const { dir, journals } = await opened(t)
  const journal = await journals.open('s')
  const expected = (from: number, to: number) => lines(from, to).map(text => text.toString().trim())
  const begun = async (from: number, to: number) => {
    const groups = journal.lines(from, to)[Symbol.asyncIterator]()
    const { value } = await groups.next()
    return { texts: (value as readonly Buffer[]).map(String), end: () => groups.return?.() }
  }
  await journal.append(lines(1, 10), 1)
  const [first, second] = await Promise.all([begun(3, 10), begun(5, 6)])
  assert.equal(await openFiles(dir), 2) // the writer's and theirs
  await journal.append(lines(11, 12), 11)
  const third = await begun(1, 12)
  assert.deepEqual([first.texts, second.texts, third.texts], [expected(3, 10), expected(5, 6), expected(1, 12)])
  await Promise.all([first.end(), second.end()])
  assert.equal(await openFiles(dir), 2)
  await third.end()
  assert.equal(await openFiles(dir), 1)
  const fourth = await begun(1, 1)
  await journal.append(lines(13, 4100), 13) // rewritten with the newest
  assert.deepEqual(await read(journal, 4099, 4100), expected(4099, 4100))
  await Promise.all([fourth.end(), journal.close()])
  assert.equal(await openFiles(dir), 0)
})

test('a file that somebody has replaced or shortened is not read as if it were ours, nor left open', async t => {
  const { dir, path, journals } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 3), 1)
  await journal.close()
  await truncate(path, (await readFile(path)).length - 10)
  await assert.rejects(read(journal, 1, 3), /shorter than its index/)
  await writeFile(`${path}.other`, await readFile(path))
  await rename(`${path}.other`, path)
  await assert.rejects(read(journal, 1, 3), /somebody else/)
  assert.equal(await openFiles(dir), 0)
})

test('an epoch ends also where its file can be neither moved nor closed', async t => {
  const { disk, journals, log } = await opened(t)
  const journal = await journals.open('s')
  await journal.append(lines(1, 3), 1)
  const { epoch } = journal
  disk.fail('rename', /damaged/)
  await journal.abandon(5)
  assert.deepEqual([journal.seq, journal.first], [5, 6])
  assert.notEqual(journal.epoch, epoch)
  assert.match(log.texts.join(), /could not be moved out of the way/)
  await journal.append([line(6)], 6)
  disk.fail('close', /s\.jsonl$/)
  await journal.close()
  assert.match(log.texts.join(), /could not be closed properly/)
})

test('numbers are given up in a damaged journal, too', async t => {
  const { home, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 3), 1)
  await first.close()
  await writeFile(path, (await readFile(path, 'utf8')).replace('"seq":2', '"seq"!2'))
  const second = await (await opened(t, home)).journals.open('s')
  await second.skip(10)
  const third = await (await opened(t, home)).journals.open('s')
  assert.deepEqual([third.epoch, third.seq, third.first], [first.epoch, 10, 11])
})

test('lines that are no events and headers that would break a frame are damage', async t => {
  const { home, dir, path, journals } = await opened(t)
  const first = await journals.open('s')
  await first.append(lines(1, 2), 1)
  await first.close()
  await writeFile(path, `${await readFile(path, 'utf8')}{"seq":3}\n${line(4)}`)
  const second = await (await opened(t, home)).journals.open('s')
  assert.deepEqual([second.seq, second.first], [4, 4])
  const header = { kind: 'journal_header', version: 1, epoch: 'a"b', created_at: 1 }
  await writeFile(join(dir, 'odd.jsonl'), `${JSON.stringify(header)}\n${line(1)}`)
  const odd = await journals.open('odd')
  assert.match(odd.epoch, /^ep_/)
})

test('a stream without a journal has no events to read backwards', async t => {
  const home = await freshDir()
  await writeFile(join(home, 'server'), '')
  const { journals } = await opened(t, home)
  const journal = await journals.open('s')
  for await (const _ of readBackwards(journal)) assert.fail()
  assert.equal(journal.seq, 0)
})

test('looking for global events takes no place; where the shared one cannot be had, a process has its own', async t => {
  const one = await opened(t)
  assert.equal(await one.journals.find('__global__'), undefined)
  assert.deepEqual(await readdir(one.home), [])
  await mkdir(join(one.dir, '__global__.lock'), { recursive: true })
  const journal = await one.journals.open('__global__')
  await journal.append([line(1)], 1)
  assert.match(one.log.texts.join(), /this process uses its own/)
  assert.ok((await readdir(one.dir)).some(name => /^__global__\.[^.]+\.jsonl$/.test(name)))
  await journal.close()
})

test('clearing away what other processes left touches no session, and a failure of it nobody', async t => {
  const first = await opened(t)
  const session = await first.journals.open('S')
  await session.append([line(1)], 1)
  await session.close()
  await mkdir(join(first.dir, '__global__.DIR.jsonl'))
  for (const name of ['S.jsonl', '__global__.DIR.jsonl']) await utimes(join(first.dir, name), 0, 0)
  const global = await first.journals.open('__global__')
  await global.append([line(1)], 1)
  await global.close()
  assert.deepEqual((await readdir(first.dir)).filter(name => name.endsWith('.jsonl')).sort(), [
    'S.jsonl',
    '__global__.DIR.jsonl',
    '__global__.jsonl'
  ])
  assert.match(first.log.texts.join(), /could not be removed/)
})
