/** The kv store on level: alone, as owner beside others, as guest of another process, through changes of the owner. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Level } from 'level'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { Type } from '../../kernel/schema.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { KvEngine } from '../../kernel/storage/kv-engine.ts'
import { SharedKv } from '../../kernel/storage/kv-shared.ts'
import { acquireLock, lockHolder } from '../../kernel/storage/lock.ts'
import { kvSpec, storageSuite } from '../../kernel/testing/storage-suite.ts'
import { type Child, startChild } from '../helpers/child.ts'
import { latch } from '../helpers/latch.ts'
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

/** A home whose database belongs to another process. */
async function ownedElsewhere(t: TestContext): Promise<{ home: string; owner: Child }> {
  const home = await freshDir()
  const owner = startChild(t, 'storage', 'own', home)
  await owner.atLeast(1)
  return { home, owner }
}

storageSuite('level as owner', t => openedStorage(t), ['kv'])
storageSuite('level as guest', async t => openedStorage(t, (await ownedElsewhere(t)).home), ['kv'])

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
  assert.equal((await lockHolder(join(home, 'server', 'kv.lock')))?.pid, process.pid)
  await second.close()
  assert.deepEqual((await readdir(join(home, 'server'))).sort(), ['channel.secret', 'kv'])
})

test('a storage that never uses kv opens no database', async t => {
  const { home, storage } = await opened(t)
  await storage.close()
  assert.deepEqual(await readdir(home), [])
})

test('the owner file is for its owner only', async t => {
  const { home, store } = await opened(t)
  await store.put('a', { n: 1 })
  assert.equal((await stat(join(home, 'server', 'kv-owner.json'))).mode & 0o777, 0o600)
})

test('a stranger on the port gets nothing: no request is served without the secret', async t => {
  const { home, store } = await opened(t)
  await store.put('a', { n: 1 })
  const { port } = JSON.parse(await readFile(join(home, 'server', 'kv-owner.json'), 'utf8'))
  const frames = [
    { id: 1, request: { op: 'get', ns: 'test/items', key: 'a' } },
    { proof: 'a'.repeat(64) },
    { proof: 'x' },
    { filler: 'x'.repeat(5000) }
  ]
  for (const frame of frames) {
    const socket = connect(port, '127.0.0.1')
    const answers: Buffer[] = []
    socket.on('data', data => answers.push(data))
    socket.on('error', () => undefined)
    socket.write(`${JSON.stringify(frame)}\n`)
    await once(socket, 'close')
    assert.equal(Buffer.concat(answers).length, 0)
  }
})

test('a stranger that took the port of a dead owner is not believed', async t => {
  const home = await freshDir()
  const stranger = createServer(socket => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('{"nonce":"n","proof":"p"}\n{"welcome":true}\n{"id":0,"reply":{}}\n'))
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  t.after(() => stranger.close())
  await mkdir(join(home, 'server'), { recursive: true })
  const { port } = stranger.address() as { port: number }
  await writeFile(join(home, 'server', 'kv-owner.json'), JSON.stringify({ pid: process.pid, port, secret: 's' }))
  const lock = await acquireLock(join(home, 'server', 'kv.lock'))
  const kv = new SharedKv(join(home, 'server'), warnings(), 200)
  const refused = kv.run({ op: 'write', ns: 'n', ops: [{ type: 'put', key: 'a', value: '1' }], sync: 'write' })
  await assert.rejects(refused, error => AppError.is(error) && error.spec === PersistenceFailed)
  await lock?.release()
  await kv.close()
})

test('records acknowledged before kill -9 are there after it', async t => {
  const { home, storage } = await opened(t)
  const child = startChild(t, 'storage', 'write', home, 'kv')
  await child.atLeast(200)
  await child.kill()
  const keys = new Set((await storage.open(recordSpec, place).keys()).map(Number))
  for (const line of child.lines) assert.ok(keys.has(Number(line)), `record ${line}`)
})

test('a guest goes on through kill -9 of the owner: it takes over, no acknowledged record is lost', async t => {
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

test('an owner that closes answers what it was asked, and a guest takes over', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { store } = await opened(t, home)
  await store.put('a', { n: 1 })
  const during = Promise.all(Array.from({ length: 100 }, (_, n) => store.put(`k${n}`, { n })))
  owner.say('close')
  assert.equal(await owner.end(), 0)
  await during
  assert.equal((await store.keys()).length, 101)
  assert.equal((await lockHolder(join(home, 'server', 'kv.lock')))?.pid, process.pid)
})

/** Stands between a guest and the owner and passes everything on; from `loseAnswers` on what the owner answers is kept, until `cut`. */
async function losingAnswers(t: TestContext, port: number) {
  let losing = false
  const lost = latch()
  const cut = latch()
  const server = createServer(guest => {
    const owner = connect(port, '127.0.0.1')
    guest.on('error', () => undefined).pipe(owner)
    owner.on('error', () => undefined)
    owner.on('data', data => {
      if (losing) lost.open()
      else guest.write(data)
    })
    void cut.opened.then(() => guest.destroy())
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const loseAnswers = () => {
    losing = true
  }
  return { port: (server.address() as { port: number }).port, lost: lost.opened, cut: cut.open, loseAnswers }
}

for (const next of ['the same owner', 'the guest itself'] as const) {
  test(`a write whose answer got lost does not overwrite a newer one when it is sent again, to ${next}`, async t => {
    const { home, owner } = await ownedElsewhere(t)
    const file = join(home, 'server', 'kv-owner.json')
    const published = JSON.parse(await readFile(file, 'utf8'))
    const between = await losingAnswers(t, published.port)
    await writeFile(file, JSON.stringify({ ...published, port: between.port }))
    const { storage } = await opened(t, home)
    const mine = storage.open(recordSpec, place)
    await mine.put('before', { n: 0 })
    // The owner writes after us, and before we hear of our own write.
    between.loseAnswers()
    const put = mine.put('a', { n: 1 })
    await writeFile(file, JSON.stringify(published))
    await between.lost
    const later = mine.put('b', { n: 1 })
    owner.say('put a 2')
    await owner.atLeast(2)
    if (next === 'the guest itself') await owner.kill()
    between.cut()
    await Promise.all([put, later])
    assert.deepEqual(await mine.get('a'), { n: 2 })
    await mine.put('a', { n: 3 })
    assert.deepEqual(await mine.get('a'), { n: 3 })
  })
}

test('a write is known as made to the next owner, too; numbers of answered writes are not kept', async t => {
  const dir = join(await freshDir(), 'kv')
  const put = (n: number, value: string, low: number, again = false) =>
    ({ op: 'write', ns: 'n', sync: 'write', ops: [{ type: 'put', key: 'a', value }], id: { client: 'c', n, low, again } }) as const
  let engine = await KvEngine.open(dir, warnings())
  for (let n = 0; n < 100; n++) await engine.run(put(n, String(n), n))
  await engine.run({ op: 'write', ns: 'n', sync: 'write', ops: [{ type: 'put', key: 'a', value: 'newer' }] })
  await engine.close()
  engine = await KvEngine.open(dir, warnings())
  t.after(() => engine.close())
  await engine.run(put(99, '99', 99, true))
  assert.equal((await engine.run({ op: 'get', ns: 'n', key: 'a' })).text, 'newer')
  const kept = await engine.run({ op: 'page', ns: '~made', range: {}, values: false })
  assert.deepEqual(kept.page?.entries, [['c!99', '']])
  // One that never arrived is made.
  await engine.run(put(100, '100', 100, true))
  assert.equal((await engine.run({ op: 'get', ns: 'n', key: 'a' })).text, '100')
})

test('a write that failed was not made: sent again, it is', async t => {
  const engine = await KvEngine.open(join(await freshDir(), 'kv'), warnings())
  t.after(() => engine.close())
  const put = (again: boolean) =>
    ({
      op: 'write',
      ns: 'n',
      sync: 'write',
      ops: [{ type: 'put', key: 'a', value: '1' }],
      id: { client: 'c', n: 0, low: 0, again }
    }) as const
  const batch = t.mock.method(Level.prototype, 'batch', () => Promise.reject(new Error('full')))
  await assert.rejects(engine.run(put(false)), /full/)
  batch.mock.restore()
  await engine.run(put(true))
  assert.equal((await engine.run({ op: 'get', ns: 'n', key: 'a' })).text, '1')
})

test('numbers are kept of the newest 1024 processes', async t => {
  const engine = await KvEngine.open(join(await freshDir(), 'kv'), warnings())
  t.after(() => engine.close())
  const write = (client: string) => engine.run({ op: 'write', ns: 'n', sync: 'write', ops: [], id: { client, n: 0, low: 0, again: false } })
  await Promise.all(Array.from({ length: 1100 }, (_, n) => write(`c${n}`)))
  const rest = await engine.run({ op: 'page', ns: '~made', range: { limit: 1000, reverse: true }, values: false })
  const first = rest.page?.entries.at(-1)?.[0] ?? ''
  const more = await engine.run({ op: 'page', ns: '~made', range: { lt: first }, values: false })
  assert.equal((rest.page?.entries.length ?? 0) + (more.page?.entries.length ?? 0), 1024)
})

test('a page of a range is about a MiB at most, and a text is moved away only while it is what was found', async t => {
  const engine = await KvEngine.open(join(await freshDir(), 'kv'), warnings())
  t.after(() => engine.close())
  const value = 'x'.repeat(700_000)
  for (const key of ['a', 'b', 'c', 'd']) await engine.run({ op: 'write', ns: 'n', sync: 'write', ops: [{ type: 'put', key, value }] })
  const { page } = await engine.run({ op: 'page', ns: 'n', range: {}, values: true })
  assert.deepEqual([page?.entries.length, page?.more], [2, true])
  await engine.run({ op: 'aside', ns: 'n', key: 'a', text: 'what was there before' })
  assert.equal((await engine.run({ op: 'get', ns: 'n', key: 'a' })).text, value)
})

test('a database that could not be reached is tried again at the next request', async t => {
  const { home, store } = await opened(t)
  await writeFile(join(home, 'server'), 'in the way')
  await assert.rejects(store.put('a', { n: 1 }), error => AppError.is(error) && error.spec === PersistenceFailed)
  await rm(join(home, 'server'))
  await store.put('a', { n: 2 })
  assert.deepEqual(await store.get('a'), { n: 2 })
})

test('what waits for an owner that stands still is bounded', async t => {
  const { home, owner } = await ownedElsewhere(t)
  const { store } = await opened(t, home)
  await store.put('a', { n: 1 })
  process.kill(owner.pid, 'SIGSTOP')
  const note = 'x'.repeat(1_000_000)
  const puts = Array.from({ length: 80 }, (_, n) => store.put('a', { n, note }))
  const last = await Promise.race([puts[79], new Promise(resolve => setTimeout(resolve, 5_000, 'waits'))]).catch((error: unknown) => error)
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

test('a damaged record is set aside with a warning and counts as absent', async t => {
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

test('a database whose files were damaged is repaired or set aside with a warning, and works', async t => {
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
