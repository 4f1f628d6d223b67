/**
 * What every engine of event journals must do. An implementor calls `journalSuite` with a name and a function that opens fresh journals;
 * `reopen` closes them and opens the same place again, as after a restart.
 */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { type Journal, type Journals, type JournalView, replayLimit } from '../realtime/journal.ts'
import { readBackwards } from '../realtime/subscriptions.ts'

/** Journals under test. They are closed by the one who opens them. */
export interface OpenedJournals {
  readonly journals: Journals
  /** Closes the journals and opens the same place again. */
  reopen(): Promise<Journals>
}

const line = (seq: number, text = 'x') => Buffer.from(`${JSON.stringify({ type: 'note.added', seq, payload: { text } })}\n`)
const lines = (from: number, to: number, text?: string) => Array.from({ length: to - from + 1 }, (_, i) => line(from + i, text))

async function read(journal: JournalView, from = journal.first, to = journal.seq): Promise<string[]> {
  const found: string[] = []
  for await (const group of journal.lines(from, to)) {
    const bytes = group.reduce((sum, part) => sum + part.length, 0)
    assert.ok(group.length === 1 || bytes <= 256 * 1024, `a group of ${bytes} bytes`)
    found.push(...group.map(part => part.toString('utf8')))
  }
  return found
}

const texts = (all: readonly Buffer[]) => all.map(one => one.toString('utf8').trimEnd())
const stateOf = ({ epoch, seq, first }: JournalView) => ({ epoch, seq, first })

export function journalSuite(name: string, open: (t: TestContext) => Promise<OpenedJournals>): void {
  const it = (what: string, run: (opened: OpenedJournals) => Promise<void>) => test(`${name}: ${what}`, async t => run(await open(t)))

  it('a new journal begins before number 1, in an epoch of its own', async ({ journals }) => {
    const [one, two] = await Promise.all([journals.open('s1'), journals.open('s2')])
    assert.deepEqual([one.seq, one.first], [0, 1])
    assert.match(one.epoch, /^[\w-]{1,64}$/)
    assert.notEqual(one.epoch, two.epoch)
    await Promise.all([one.close(), two.close()])
  })

  it('lines come back byte for byte, after a restart too, in the same epoch', async ({ journals, reopen }) => {
    const all = [...lines(1, 3), line(4, 'é"\n\u2028'), ...lines(5, 9, 'y'.repeat(200_000))]
    const journal = await journals.open('s1')
    await journal.append(all.slice(0, 2), 1)
    await journal.append(all.slice(2), 3)
    assert.deepEqual([journal.first, journal.seq], [1, 9])
    assert.deepEqual(await read(journal), texts(all))
    assert.deepEqual(await read(journal, 4, 4), texts([all[3] as Buffer]))
    const before = stateOf(journal)
    await journal.close()
    const again = await (await reopen()).open('s1')
    assert.deepEqual(stateOf(again), before)
    await again.append([line(10)], 10)
    assert.deepEqual(await read(again), texts([...all, line(10)]))
    await again.close()
  })

  it('lines of which the first have come stay readable, and those that the journal does not have are refused', async ({ journals }) => {
    const journal = await journals.open('s1')
    const all = lines(1, 4, 'y'.repeat(200_000))
    await journal.append(all, 1)
    await assert.rejects(read(journal, 4, 5), 'a number that did not come yet')
    const found: Buffer[] = []
    for await (const group of journal.lines(2, 4)) {
      if (found.length === 0) for (let seq = 5; seq <= 6005; seq += 500) await journal.append(lines(seq, seq + 499), seq)
      found.push(...group)
    }
    assert.deepEqual(texts(found), texts(all.slice(1)))
    await assert.rejects(read(journal, 1, 4), 'numbers that are gone')
    await journal.close()
  })

  it('a journal that was removed is gone, after a restart too, and the next one of its name begins a new epoch', async opened => {
    const { journals, reopen } = opened
    const journal = await journals.open('s1')
    await journal.append(lines(1, 2), 1)
    await journal.close()
    await journals.remove('s1')
    await journals.remove('never')
    assert.equal(await journals.find('s1'), undefined)
    const later = await reopen()
    assert.equal(await later.find('s1'), undefined)
    const again = await later.open('s1')
    assert.equal(again.seq, 0)
    assert.notEqual(again.epoch, journal.epoch)
    await again.close()
  })

  it('the newest events stay at hand, however many there are', async ({ journals, reopen }) => {
    const journal = await journals.open('s1')
    for (let seq = 1; seq <= 5000; seq += 250) {
      await journal.append(lines(seq, seq + 249), seq)
      assert.ok(journal.first <= Math.max(1, journal.seq - replayLimit + 1))
    }
    const check = async (one: Journal) => {
      assert.equal(one.seq, 5000)
      assert.ok(one.first <= 5000 - replayLimit + 1)
      assert.deepEqual(await read(one, 5000 - replayLimit + 1), texts(lines(5000 - replayLimit + 1, 5000)))
    }
    await check(journal)
    const { epoch } = journal
    await journal.close()
    const again = await (await reopen()).open('s1')
    await check(again)
    assert.equal(again.epoch, epoch)
    await again.close()
  })

  it('an abandoned epoch never comes back, and its numbers neither', async ({ journals, reopen }) => {
    const journal = await journals.open('s1')
    await journal.append(lines(1, 3), 1)
    const { epoch } = journal
    await journal.abandon(5)
    assert.deepEqual([journal.first, journal.seq], [6, 5])
    assert.notEqual(journal.epoch, epoch)
    await journal.append(lines(6, 7), 6)
    const before = stateOf(journal)
    await journal.close()
    const again = await (await reopen()).open('s1')
    assert.deepEqual(stateOf(again), before)
    assert.deepEqual([again.first, again.seq], [6, 7])
    assert.deepEqual(await read(again), texts(lines(6, 7)))
    await again.abandon(8)
    await again.abandon(9)
    assert.equal(again.seq, 9)
    await again.close()
  })

  it('an epoch that ended without another event is over after a restart, too', async ({ journals, reopen }) => {
    const journal = await journals.open('s1')
    await journal.append(lines(1, 3), 1)
    const { epoch } = journal
    await journal.abandon(5)
    await journal.close()
    const again = await (await reopen()).open('s1')
    assert.notEqual(again.epoch, epoch)
    await again.close()
  })

  it('skipped numbers stay given up, in the same epoch', async ({ journals, reopen }) => {
    const journal = await journals.open('s1')
    await journal.append(lines(1, 3), 1)
    const { epoch } = journal
    await journal.skip(10)
    assert.deepEqual(stateOf(journal), { epoch, seq: 10, first: 11 })
    await journal.close()
    const again = await (await reopen()).open('s1')
    assert.deepEqual(stateOf(again), { epoch, seq: 10, first: 11 })
    await again.append([line(11)], 11)
    assert.deepEqual(await read(again), texts([line(11)]))
    await again.close()
  })

  it('a journal is found whether it is open or not, and looking for one makes none', async ({ journals, reopen }) => {
    assert.equal(await journals.find('s1'), undefined)
    assert.equal(await journals.find('s1'), undefined)
    const journal = await journals.open('s1')
    await journal.append(lines(1, 4), 1)
    const found = await journals.find('s1')
    assert.ok(found)
    assert.deepEqual(stateOf(found), stateOf(journal))
    assert.deepEqual(await read(found, 2, 3), texts(lines(2, 3)))
    await journal.append([line(5)], 5)
    assert.equal((await journals.find('s1'))?.seq, 5)
    await journal.close()
    const later = await (await reopen()).find('s1')
    assert.ok(later)
    assert.deepEqual(await read(later), texts(lines(1, 5)))
  })

  it('events are read backwards from the newest one', async ({ journals }) => {
    const journal = await journals.open('s1')
    await journal.append(lines(1, 129), 1)
    const seqs: number[] = []
    for await (const event of readBackwards(journal)) seqs.push(event.seq)
    assert.deepEqual(
      seqs,
      Array.from({ length: 129 }, (_, i) => 129 - i)
    )
    await journal.close()
  })

  it('the global stream has a journal, too, and journals do not see each other', async ({ journals }) => {
    const [one, global] = await Promise.all([journals.open('s1'), journals.open('__global__')])
    await Promise.all([one.append([line(1, 'one')], 1), global.append([line(1, 'global')], 1)])
    assert.deepEqual(await read(one), texts([line(1, 'one')]))
    assert.deepEqual(await read(global), texts([line(1, 'global')]))
    await Promise.all([one.close(), global.close()])
  })
}
