/**
 * What every engine of storage must do. An implementor calls `storageSuite` with a name and a function that opens a fresh storage;
 * `reopen` closes it and opens the same place again, as after a restart. The specs may be used for further tests of an engine.
 */
import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { defineStore, type StoreKind, type StoreSpec } from '../contract.ts'
import { AppError, PersistenceFailed } from '../errors.ts'
import { Type } from '../shapes.ts'
import {
  BlobMissing,
  type BlobStore,
  BlobTooLarge,
  type DocumentStore,
  type KvStore,
  type LogEntry,
  type LogRange,
  type LogStore,
  type Storage,
  type StoreOf
} from '../storage/ports.ts'

/** A storage under test. */
export interface OpenedStorage {
  readonly storage: Storage
  /** Closes the storage and opens the same place again. */
  reopen(): Promise<Storage>
}

interface Opened<S> {
  readonly store: S
  reopen(): Promise<S>
}
type Open<S> = (t: TestContext) => Promise<Opened<S>>

export const Item = Type.Object({ n: Type.Integer(), note: Type.Optional(Type.String()) })
export interface Item {
  n: number
  note?: string
}
export const kvSpec = defineStore({ name: 'items', value: Item })
export const documentSpec = defineStore({ name: 'items', kind: 'document', value: Item })
export const logSpec = defineStore({ name: 'items', kind: 'log', value: Item })
export const blobSpec = defineStore({ name: 'items', kind: 'blob', value: Type.Any() })

const place = { namespace: 'test', dir: 'test' }

/** Tests of all four ports, or of the kinds that are named. Storages are closed by the one who opens them. */
export function storageSuite(
  name: string,
  open: (t: TestContext) => Promise<OpenedStorage>,
  kinds: readonly StoreKind[] = ['kv', 'document', 'log', 'blob']
): void {
  const opener =
    <S extends StoreSpec>(spec: S): Open<StoreOf<S>> =>
    async t => {
      const { storage, reopen } = await open(t)
      return { store: storage.open(spec, place), reopen: async () => (await reopen()).open(spec, place) }
    }
  if (kinds.includes('kv')) kvSuite(`${name}, kv`, opener(kvSpec))
  if (kinds.includes('document')) documentSuite(`${name}, documents`, opener(documentSpec))
  if (kinds.includes('log')) logSuite(`${name}, logs`, opener(logSpec))
  if (kinds.includes('blob')) blobSuite(`${name}, blobs`, opener(blobSpec))
}

/** A bad id or value is a bug of the caller, not an expected failure. */
const isBug = (error: unknown) => error instanceof Error && !AppError.is(error)

const isNotSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed

const badIds = [
  '',
  '.',
  '..',
  '../a',
  'a/../b',
  '/a',
  'a/',
  'a//b',
  'a b',
  'a\\b',
  'a~',
  'ä',
  'a\0b',
  'x'.repeat(201),
  `${'a/'.repeat(8)}a`
]

function documentSuite(name: string, open: Open<DocumentStore<Item>>): void {
  const it = (what: string, run: (t: TestContext, opened: Opened<DocumentStore<Item>>) => Promise<void>) =>
    test(`${name}: ${what}`, async t => run(t, await open(t)))

  it('a document is there after a restart and gone after a delete', async (_t, { store, reopen }) => {
    assert.equal(await store.get('a'), undefined)
    await store.put('a', { n: 1, note: 'é\n' })
    await store.put('b/c', { n: 2 })
    const again = await reopen()
    assert.deepEqual(await again.get('a'), { n: 1, note: 'é\n' })
    assert.deepEqual(await again.ids(), ['a', 'b/c'])
    await again.delete('a')
    await again.delete('never')
    assert.equal(await again.get('a'), undefined)
    assert.deepEqual(await again.ids(), ['b/c'])
  })

  it('changes asked for at once are made one after the other', async (_t, { store }) => {
    const results = await Promise.all(Array.from({ length: 20 }, () => store.update('a', now => ({ n: (now?.n ?? 0) + 1 }))))
    assert.deepEqual(
      results.map(result => result?.n),
      Array.from({ length: 20 }, (_, i) => i + 1)
    )
  })

  it('a change that answers undefined deletes, one that throws changes nothing', async (_t, { store }) => {
    await store.put('a', { n: 1 })
    await assert.rejects(
      store.update('a', () => {
        throw new Error('no')
      }),
      /no/
    )
    assert.deepEqual(await store.get('a'), { n: 1 })
    assert.equal(await store.update('a', () => undefined), undefined)
    assert.equal(await store.get('a'), undefined)
  })

  it('the last of several puts stays', async (_t, { store }) => {
    await Promise.all([1, 2, 3].map(n => store.put('a', { n })))
    assert.deepEqual(await store.get('a'), { n: 3 })
    await Promise.all([store.put('b', { n: 1 }), store.delete('b')])
    assert.equal(await store.get('b'), undefined)
  })

  it('a value that misses the schema is refused', async (_t, { store }) => {
    await assert.rejects(store.put('a', { n: 'one' } as never), isBug)
    assert.equal(await store.get('a'), undefined)
  })

  it('ids that could leave the directory are refused', async (_t, { store }) => {
    for (const id of badIds) {
      await assert.rejects(async () => store.put(id, { n: 1 }), isBug)
      await assert.rejects(async () => store.get(id), isBug)
    }
  })
}

function logSuite(name: string, open: Open<LogStore<Item>>): void {
  const it = (what: string, run: (t: TestContext, opened: Opened<LogStore<Item>>) => Promise<void>) =>
    test(`${name}: ${what}`, async t => run(t, await open(t)))
  const numbers = (items: readonly Item[]) => items.map(item => item.n)
  const upTo = (count: number) => Array.from({ length: count }, (_, n) => n)

  it('records come back in the order of the calls, after a restart too', async (_t, { store, reopen }) => {
    await Promise.all(upTo(200).map(n => store.append('a', { n })))
    await store.append('a', { n: 200 }, { n: 201, note: 'two\nlines' })
    assert.deepEqual(numbers(await store.read('a')), upTo(202))
    const again = await reopen()
    await again.append('a', { n: 202 })
    const read = await again.read('a')
    assert.deepEqual(numbers(read), upTo(203))
    assert.equal(read[201]?.note, 'two\nlines')
  })

  it('records are written as they are at the call', async (_t, { store }) => {
    const record = { n: 0 }
    const appended = store.append('a', record)
    record.n = 1
    await appended
    assert.deepEqual(numbers(await store.read('a')), [0])
  })

  it('reading sees everything appended before it, without waiting for the append', async (_t, { store }) => {
    const appended = store.append('a', { n: 0 })
    assert.deepEqual(numbers(await store.read('a')), [0])
    await appended
  })

  it('a missing log is empty, and appending nothing makes none', async (_t, { store }) => {
    await store.append('a')
    assert.deepEqual(await store.read('a'), [])
    assert.deepEqual(await store.ids(), [])
  })

  it('a deleted log starts anew', async (_t, { store }) => {
    await store.append('a/b', { n: 0 })
    assert.deepEqual(await store.ids(), ['a/b'])
    await store.delete('a/b')
    await store.delete('a/b')
    assert.deepEqual(await store.ids(), [])
    await store.append('a/b', { n: 1 })
    assert.deepEqual(numbers(await store.read('a/b')), [1])
  })

  it('a released log can be used again', async (_t, { store }) => {
    const pending = store.append('a', { n: 0 })
    await store.release('a')
    await pending
    await store.append('a', { n: 1 })
    assert.deepEqual(numbers(await store.read('a')), [0, 1])
  })

  it('many logs at once keep their records apart', async (_t, { store }) => {
    const ids = upTo(150).map(n => `log-${n}`)
    for (let round = 0; round < 2; round++) await Promise.all(ids.map((id, n) => store.append(id, { n }, { n: round })))
    for (const [n, id] of ids.entries()) assert.deepEqual(numbers(await store.read(id)), [n, 0, n, 1])
  })

  it('a value that misses the schema and a bad id are refused', async (_t, { store }) => {
    await assert.rejects(store.append('a', { n: 1.5 }), isBug)
    for (const id of badIds) {
      await assert.rejects(async () => store.append(id, { n: 1 }), isBug)
      await assert.rejects(entriesOf(store.scan(id)), isBug)
    }
    assert.deepEqual(await store.read('a'), [])
  })

  it('an append tells where its records are, and a scan finds them there, after a restart too', async (_t, { store, reopen }) => {
    const appended = await Promise.all(upTo(100).map(n => store.append('a', { n: 2 * n, note: 'é'.repeat(n) }, { n: 2 * n + 1 })))
    const at = appended.flatMap(positions => positions.at)
    assert.equal(at[0], 0)
    assert.deepEqual(
      appended.map(({ end }) => end),
      [
        ...upTo(100)
          .slice(1)
          .map(n => at[2 * n]),
        appended.at(-1)?.end
      ]
    )
    const scanned = await entriesOf(store.scan('a'))
    assert.deepEqual(numbers(scanned.map(entry => entry.value)), upTo(200))
    assert.deepEqual(
      scanned.map(entry => entry.at),
      at
    )
    assert.deepEqual(
      scanned.map(entry => entry.next),
      [...at.slice(1), appended.at(-1)?.end]
    )
    const again = await reopen()
    assert.deepEqual(await entriesOf(again.scan('a')), scanned)
    assert.deepEqual(await again.append('a', { n: 200 }), { at: [scanned.at(-1)?.next], end: (await again.append('a')).end })
    assert.ok(at.every((position, index) => index === 0 || position > (at[index - 1] ?? 0)))
  })

  it('a scan takes the records between two positions, in either direction', async (_t, { store }) => {
    const { at, end } = await store.append('a', ...upTo(10).map(n => ({ n })))
    const scanned = async (range: LogRange) => numbers((await entriesOf(store.scan('a', range))).map(entry => entry.value))
    const from = at[3] as number
    const to = at[7] as number
    assert.deepEqual(await scanned({ from, to }), [3, 4, 5, 6])
    assert.deepEqual(await scanned({ from, to, reverse: true }), [6, 5, 4, 3])
    assert.deepEqual(await scanned({ from }), [3, 4, 5, 6, 7, 8, 9])
    assert.deepEqual(await scanned({ to, reverse: true }), [6, 5, 4, 3, 2, 1, 0])
    assert.deepEqual(await scanned({ to: end, reverse: true }), upTo(10).reverse())
    for (const none of [{ from: end }, { to: 0 }, { from: to, to: from }, { from, to: from }]) {
      assert.deepEqual([await scanned(none), await scanned({ ...none, reverse: true })], [[], []])
    }
  })

  it('entries are the same in both directions', async (_t, { store }) => {
    await store.append('a', ...upTo(5000).map(n => ({ n, note: 'é'.repeat(n % 300) })))
    const forwards = await entriesOf(store.scan('a'))
    assert.equal(forwards.length, 5000)
    assert.deepEqual((await entriesOf(store.scan('a', { reverse: true }))).reverse(), forwards)
  })

  it('a scan sees what was appended before it, without waiting for the append, and nothing that comes later', async (_t, { store }) => {
    const appended = store.append('a', { n: 0 }, { n: 1 })
    const seen: number[] = []
    for await (const { value } of store.scan('a')) {
      seen.push(value.n)
      await store.append('a', { n: 2 })
    }
    await appended
    assert.deepEqual(seen, [0, 1])
    const newest: number[] = []
    for await (const { value } of store.scan('a', { reverse: true })) {
      newest.push(value.n)
      if (newest.length === 3) break
    }
    assert.deepEqual(newest, [2, 2, 1])
  })

  it('a missing log has nothing to scan and its end is 0; neither makes it', async (_t, { store }) => {
    assert.deepEqual([await entriesOf(store.scan('a')), await entriesOf(store.scan('a', { from: 0, reverse: true }))], [[], []])
    assert.deepEqual(await store.append('a'), { at: [], end: 0 })
    assert.deepEqual(await store.ids(), [])
  })

  it('a position where no record begins is refused', async (_t, { store }) => {
    const { at, end } = await store.append('a', { n: 0 }, { n: 1 })
    const [first = 0, second = 0] = at
    const inside = second - first > 1 ? [first + 1, second - 1] : []
    for (const position of [end + 1, end + 1000, -1, 0.5, Number.NaN, ...inside]) {
      for (const range of [{ from: position }, { to: position }, { to: position, reverse: true }]) {
        await assert.rejects(entriesOf(store.scan('a', range)), isNotSaved)
      }
    }
    await store.delete('a')
    await assert.rejects(entriesOf(store.scan('a', { from: end })), isNotSaved)
  })
}

async function entriesOf<V>(scan: AsyncIterable<LogEntry<V>>): Promise<LogEntry<V>[]> {
  const entries: LogEntry<V>[] = []
  for await (const entry of scan) entries.push(entry)
  return entries
}

function blobSuite(name: string, open: Open<BlobStore>): void {
  const it = (what: string, run: (t: TestContext, opened: Opened<BlobStore>) => Promise<void>) =>
    test(`${name}: ${what}`, async t => run(t, await open(t)))

  it('bytes and streams are there after a restart', async (_t, { store, reopen }) => {
    const info = await store.put('a', Buffer.from('hello'))
    assert.equal(info.size, 5)
    assert.ok(info.modified_at instanceof Date)
    await store.put('b/c.txt', Readable.from([Buffer.from('one '), 'two']))
    const again = await reopen()
    assert.equal(await text(await again.open('a')), 'hello')
    assert.equal(await text(await again.open('b/c.txt')), 'one two')
    assert.deepEqual(await again.ids(), ['a', 'b/c.txt'])
    assert.equal((await again.stat('b/c.txt'))?.size, 7)
  })

  it('a range has both ends in it', async (_t, { store }) => {
    await store.put('a', Buffer.from('0123456789'))
    assert.equal(await text(await store.open('a', { start: 2, end: 4 })), '234')
  })

  it('a source over the limit is refused and leaves nothing, the old content included', async (_t, { store }) => {
    await store.put('a', Buffer.from('old'))
    const source = Readable.from([Buffer.alloc(600), Buffer.alloc(600)])
    await assert.rejects(store.put('a', source, { maxBytes: 1000 }), BlobTooLarge)
    assert.ok(source.destroyed)
    assert.equal(await text(await store.open('a')), 'old')
    assert.deepEqual(await store.ids(), ['a'])
  })

  it('a source that breaks off leaves nothing', async (_t, { store }) => {
    const broken = new Readable({ read: () => undefined })
    const put = store.put('a', broken)
    broken.push('half')
    broken.destroy()
    await assert.rejects(put)
    assert.equal(await store.stat('a'), undefined)
    assert.deepEqual(await store.ids(), [])
  })

  it('a missing blob is told apart', async (_t, { store }) => {
    await assert.rejects(store.open('a'), BlobMissing)
    await store.delete('a')
    await store.put('a', Buffer.from('x'))
    await store.delete('a')
    assert.equal(await store.stat('a'), undefined)
  })

  it('ids that could leave the directory are refused', async (_t, { store }) => {
    for (const id of badIds) {
      await assert.rejects(store.put(id, Buffer.from('x')), isBug)
      await assert.rejects(async () => store.stat(id), isBug)
    }
  })
}

function kvSuite(name: string, open: Open<KvStore<Item>>): void {
  const it = (what: string, run: (t: TestContext, opened: Opened<KvStore<Item>>) => Promise<void>) =>
    test(`${name}: ${what}`, async t => run(t, await open(t)))
  const fill = (store: KvStore<Item>, keys: readonly string[]) => store.batch(keys.map((key, n) => ({ type: 'put', key, value: { n } })))

  it('records are there after a restart and gone after a delete', async (_t, { store, reopen }) => {
    assert.equal(await store.get('a'), undefined)
    await Promise.all([store.put('a', { n: 1 }), store.put('a', { n: 2, note: 'é"\n' }), store.put('b', { n: 3 })])
    const again = await reopen()
    assert.deepEqual(await again.get('a'), { n: 2, note: 'é"\n' })
    assert.equal(await again.has('b'), true)
    await again.delete('b')
    await again.delete('never')
    assert.equal(await again.has('b'), false)
    assert.deepEqual(await again.entries(), [['a', { n: 2, note: 'é"\n' }]])
  })

  it('what was asked for before the end is done, and nothing after it', async (_t, { store, reopen }) => {
    const asked = Array.from({ length: 20 }, (_, n) => store.put(`k${n}`, { n }))
    const again = await reopen()
    await Promise.all(asked)
    assert.equal((await again.keys()).length, 20)
    await assert.rejects(store.put('late', { n: 0 }), error => AppError.is(error) && error.spec === PersistenceFailed)
  })

  it('a batch is made whole, in its order', async (_t, { store }) => {
    await store.put('a', { n: 1 })
    await store.batch([
      { type: 'delete', key: 'a' },
      { type: 'put', key: 'b', value: { n: 2 } },
      { type: 'put', key: 'b', value: { n: 3 } }
    ])
    assert.deepEqual(await store.entries(), [['b', { n: 3 }]])
    const bad = [
      { type: 'put' as const, key: 'c', value: { n: 4 } },
      { type: 'put' as const, key: 'd', value: { n: 'x' } as never }
    ]
    await assert.rejects(store.batch(bad), isBug)
    assert.deepEqual(await store.keys(), ['b'])
    await store.batch([])
  })

  it('keys are in the order of their UTF-8 bytes', async (_t, { store }) => {
    const keys = ['', 'A', 'Z', 'a', 'a!', 'a/b', 'aa', 'z', 'é', '\u{ff5e}', '\u{1f600}']
    await fill(store, keys.toReversed())
    assert.deepEqual(await store.keys(), keys)
  })

  it('a list of many pages is whole', async (_t, { store }) => {
    const keys = Array.from({ length: 2500 }, (_, n) => String(n).padStart(5, '0'))
    await fill(store, keys)
    assert.deepEqual(await store.keys(), keys)
    assert.equal((await store.values()).length, 2500)
  })

  it('records near the size limit pass, larger ones are refused', async (_t, { store }) => {
    const note = '"'.repeat(500_000)
    await Promise.all([1, 2, 3].map(n => store.put(`k${n}`, { n, note })))
    assert.equal((await store.values()).filter(item => item.note === note).length, 3)
    await assert.rejects(store.put('k', { n: 1, note: 'x'.repeat(1_100_000) }), isBug)
    const five = [1, 2, 3, 4, 5].map(n => ({ type: 'put' as const, key: `b${n}`, value: { n, note: 'x'.repeat(1_000_000) } }))
    await assert.rejects(store.batch(five), isBug)
    assert.deepEqual(await store.keys(), ['k1', 'k2', 'k3'])
    await assert.rejects(store.put('k\ud800', { n: 1 }), isBug)
    await assert.rejects(store.put('k'.repeat(5000), { n: 1 }), isBug)
  })
}
