/** Edges of the kv store: what its parts do when one of them fails, who is believed, what is kept and what is not. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { connect, createServer, Server } from 'node:net'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Level } from 'level'
import { defineStore } from '../../kernel/contract.ts'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { KvEngine } from '../../kernel/storage/kv-engine.ts'
import { KvGuest, KvOwner } from '../../kernel/storage/kv-link.ts'
import { SharedKv } from '../../kernel/storage/kv-shared.ts'
import { acquireLock, lockHolder } from '../../kernel/storage/lock.ts'
import { Item, kvSpec } from '../../kernel/testing/storage-suite.ts'
import { startChild } from '../helpers/child.ts'
import { freshDir, warnings } from '../helpers/temp.ts'

const place = { namespace: 'test', dir: 'unused' }
const notSaved = (error: unknown) => AppError.is(error) && error.spec === PersistenceFailed
const write = (key: string, value: string) => ({ op: 'write', ns: 'n', sync: 'write', ops: [{ type: 'put', key, value }] }) as const
const turn = () => new Promise(resolve => setImmediate(resolve))

async function opened(t: TestContext) {
  const home = await freshDir()
  const log = warnings()
  const storage = createStorage({ home, log })
  t.after(() => storage.close().catch(() => undefined)) // a test may have made its end fail
  return { home, server: join(home, 'server'), log, storage, store: storage.open(kvSpec, place) }
}

async function anEngine(t: TestContext) {
  const dir = join(await freshDir(), 'kv')
  const log = warnings()
  const engine = await KvEngine.open(dir, log)
  t.after(() => engine.close())
  return { dir, log, engine }
}

test('a database that refuses a write refuses all that share it, in the words of the store', async t => {
  const { store } = await opened(t)
  await store.put('a', { n: 1 })
  const full = Object.assign(new Error('full'), { code: 'LEVEL_WRITE_FAILED' })
  const batch = t.mock.method(Level.prototype, 'batch', () => Promise.reject(full))
  const refused = await Promise.allSettled([store.put('a', { n: 2 }), store.put('b', { n: 2 })])
  batch.mock.restore()
  for (const end of refused) assert.ok(end.status === 'rejected' && notSaved(end.reason) && (end.reason as Error).cause === full)
  assert.deepEqual(await store.entries(), [['a', { n: 1 }]])
})

test('a write that asks for the medium gets it, whoever shares it', async t => {
  const { engine } = await anEngine(t)
  const batch = t.mock.method(Level.prototype, 'batch')
  await Promise.all([engine.run(write('a', '1')), engine.run({ ...write('b', '1'), sync: 'fsync' })])
  assert.deepEqual(
    batch.mock.calls.map(call => call.arguments.at(-1)),
    [{ sync: true }]
  )
})

test('a text is moved away by what is stored then, not by what was stored when the write before it began', async t => {
  const { engine } = await anEngine(t)
  await engine.run(write('a', 'damaged'))
  await Promise.all([engine.run(write('a', 'good')), engine.run({ op: 'aside', ns: 'n', key: 'a', text: 'damaged' })])
  assert.equal((await engine.run({ op: 'get', ns: 'n', key: 'a' })).text, 'good')
  await engine.run({ op: 'aside', ns: 'n', key: 'a', text: 'good' })
  assert.deepEqual(await engine.run({ op: 'get', ns: 'n', key: 'a' }), {})
  assert.equal((await engine.run({ op: 'get', ns: 'n~damaged', key: 'a' })).text, 'good')
})

test('a page has a thousand entries at most', async t => {
  const { engine } = await anEngine(t)
  const ops = Array.from({ length: 1001 }, (_, n) => ({ type: 'put', key: String(n).padStart(5, '0'), value: 'x' }) as const)
  await engine.run({ op: 'write', ns: 'n', sync: 'write', ops })
  const { page } = await engine.run({ op: 'page', ns: 'n', range: {}, values: true })
  assert.deepEqual([page?.entries.length, page?.more], [1000, true])
})

test('a database that cannot be opened for another reason than damage is left as it is', async t => {
  const { dir, log } = await anEngine(t)
  await assert.rejects(KvEngine.open(dir, log))
  assert.deepEqual([log.texts, await readdir(join(dir, '..'))], [[], ['kv']])
})

test('a database that cannot be repaired is set aside whole, and a new one begins', async t => {
  const { dir, engine, log } = await anEngine(t)
  await engine.run(write('a', '1'))
  await engine.close()
  for (const name of await readdir(dir)) if (name.startsWith('MANIFEST')) await writeFile(join(dir, name), 'rubbish')
  t.mock.method(Level as unknown as { repair(): Promise<void> }, 'repair', () => Promise.reject(new Error('no')))
  const fresh = await KvEngine.open(dir, log)
  t.after(() => fresh.close())
  assert.deepEqual(await fresh.run({ op: 'get', ns: 'n', key: 'a' }), {})
  const aside = (await readdir(join(dir, '..'))).find(name => name.startsWith('kv.damaged-'))
  assert.ok((await readdir(join(dir, '..', aside ?? ''))).some(name => name.startsWith('MANIFEST')))
  assert.equal(log.texts.length, 2)
})

test('a failed start of the database keeps neither its lock nor the end of the storage', async t => {
  const { server, store, storage } = await opened(t)
  await mkdir(server)
  await writeFile(join(server, 'kv'), 'in the way')
  await assert.rejects(store.put('a', { n: 1 }), notSaved)
  assert.equal(await lockHolder(join(server, 'kv.lock')), undefined)
  await rm(join(server, 'kv'))
  await store.put('a', { n: 2 })
  await storage.close()

  const other = await opened(t)
  await writeFile(other.server, 'in the way')
  await assert.rejects(other.store.put('a', { n: 1 }), notSaved)
  await other.storage.close()
})

test('a storage that is closed twice gives its share back once; one that is opened meanwhile waits for the end', async t => {
  const { home, server, storage, store } = await opened(t)
  const second = createStorage({ home, log: warnings() })
  await Promise.all([store.put('a', { n: 1 }), second.open(kvSpec, place).get('a')])
  await storage.close()
  await storage.close()
  assert.deepEqual(await second.open(kvSpec, place).get('a'), { n: 1 })
  const third = createStorage({ home, log: warnings() })
  t.after(() => third.close())
  const closing = second.close()
  assert.deepEqual(await third.open(kvSpec, place).get('a'), { n: 1 })
  await closing
  assert.equal((await lockHolder(join(server, 'kv.lock')))?.pid, process.pid)
})

test('a database that does not close cleanly is told, and its lock is given back', async t => {
  const { server, storage, store } = await opened(t)
  await store.put('a', { n: 1 })
  const close = Level.prototype.close
  t.mock.method(Level.prototype, 'close', async function (this: Level) {
    await close.call(this)
    throw new Error('no')
  })
  await assert.rejects(storage.close(), AggregateError)
  assert.equal(await lockHolder(join(server, 'kv.lock')), undefined)
})

test('a server without a loopback port keeps the database to itself, with a warning', async t => {
  const { store, log } = await opened(t)
  const listen = t.mock.method(Server.prototype, 'listen', () => {
    throw new Error('no port')
  })
  await store.put('a', { n: 1 })
  listen.mock.restore()
  assert.deepEqual(log.texts, ['the kv database cannot be shared with other servers of this home'])
  assert.deepEqual(await store.get('a'), { n: 1 })
})

test('a record of a newer version is refused when it is asked for, passed over in a range, and kept', async t => {
  const { storage, store, log } = await opened(t)
  const newer = storage.open(defineStore({ name: 'items', value: Item, version: 2 }), place)
  await Promise.all([store.put('a', { n: 1 }), newer.put('b', { n: 2 })])
  await assert.rejects(store.get('b'), notSaved)
  assert.deepEqual(await store.entries(), [['a', { n: 1 }]])
  assert.deepEqual(log.texts, ['kv record of a newer version skipped'])
  assert.deepEqual(await newer.get('b'), { n: 2 })
})

test('names that could meet those of another store are refused, and keys by their bytes', async t => {
  const { storage, store } = await opened(t)
  assert.throws(() => storage.open(kvSpec, { namespace: 'a!b', dir: '' }))
  await assert.rejects(store.put('é'.repeat(2049), { n: 1 }), (error: Error) => !AppError.is(error))
  await store.put('é'.repeat(2048), { n: 1 })
  assert.deepEqual(await store.keys({ gt: 'é', gte: 'é'.repeat(2048), lt: 'ê', lte: 'ê' }), ['é'.repeat(2048)])
  assert.deepEqual(await store.keys({ gte: 'é'.repeat(2048), gt: 'é'.repeat(2048) }), [])
  assert.deepEqual(await store.keys({ lte: 'é'.repeat(2048), lt: 'é'.repeat(2048) }), [])
})

/** Sends texts to a port and answers with what came back, once the other side has hung up. */
async function said(port: number, ...texts: string[]): Promise<string> {
  const socket = connect(port, '127.0.0.1')
  let answer = ''
  socket.on('error', () => undefined)
  socket.on('data', data => {
    answer += String(data)
  })
  for (const text of texts) socket.write(text)
  await once(socket, 'close')
  return answer
}

async function anOwner(t: TestContext) {
  const { server, store } = await opened(t)
  await store.put('a', { n: 1 })
  return JSON.parse(await readFile(join(server, 'kv-owner.json'), 'utf8')) as { port: number; id: string }
}

test('the owner hangs up on what is no frame, on a line without end, and on silence', async t => {
  const { port } = await anOwner(t)
  assert.equal(await said(port, 'not json\n'), '')
  assert.equal(await said(port, 'x'.repeat(2000)), '')
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let over = false
  const silent = said(port).then(answer => {
    over = true
    return answer
  })
  for (let turns = 0; !over && turns < 10_000; turns++) {
    t.mock.timers.tick(100)
    await turn()
  }
  assert.ok(over)
  assert.equal(await silent, '')
})

test('the owner answers on its loopback address alone', async t => {
  const { port } = await anOwner(t)
  const [error] = (await once(connect(port, '127.0.0.2'), 'error')) as [Error]
  assert.ok(error)
})

test("the owner's own proof does not pass for a guest's", { timeout: 10_000 }, async t => {
  const { port } = await anOwner(t)
  const victim = connect(port, '127.0.0.1')
  victim.on('error', () => undefined)
  victim.write('{"hello":"x","purpose":"kv"}\n')
  const [data] = (await once(victim, 'data')) as [Buffer]
  const { nonce } = JSON.parse(String(data)) as { nonce: string }
  const helper = connect(port, '127.0.0.1')
  helper.write(`${JSON.stringify({ hello: nonce, purpose: 'kv' })}\n`)
  const [mirrored] = (await once(helper, 'data')) as [Buffer]
  helper.destroy()
  const { proof } = JSON.parse(String(mirrored)) as { proof: string }
  let answer = ''
  victim.on('data', more => {
    answer += String(more)
    victim.destroy()
  })
  victim.write(`${JSON.stringify({ proof })}\n`)
  await once(victim, 'close')
  assert.equal(answer, '')
})

test('a stranger that welcomes a guest without a proof is not believed', async t => {
  const server = join(await freshDir(), 'server')
  const stranger = createServer(socket => {
    socket.on('error', () => undefined)
    socket.on('data', () => socket.write('{"id":0,"reply":{}}\n'))
    socket.write('{"welcome":true}\n')
  }).listen(0, '127.0.0.1')
  await once(stranger, 'listening')
  t.after(() => stranger.close())
  await mkdir(server)
  const { port } = stranger.address() as { port: number }
  await writeFile(join(server, 'kv-owner.json'), JSON.stringify({ pid: process.pid, port, id: 'i' }))
  assert.equal(await KvGuest.join(join(server, 'kv-owner.json')), undefined)
})

test('what the owner cannot write the guest hears as a failure', async t => {
  const dir = await freshDir()
  const file = join(dir, 'kv-owner.json')
  const { engine } = await anEngine(t)
  const lock = await acquireLock(join(dir, 'kv.lock'))
  const owner = await KvOwner.start(engine, lock!, file, warnings())
  const guest = await KvGuest.join(file)
  t.mock.method(Level.prototype, 'batch', () => Promise.reject(new Error('full')))
  await assert.rejects(guest!.run(write('a', '1')), error => notSaved(error) && (error as Error).message.includes('full'))
  await guest!.close()
  await owner.close()
})

test('a request to an owner that stands still ends within its time', async t => {
  const home = await freshDir()
  const owner = startChild(t, 'storage', 'own', home)
  await owner.atLeast(1)
  const kv = new SharedKv(join(home, 'server'), warnings(), 300)
  t.after(() => kv.close())
  await kv.run(write('a', '1'))
  process.kill(owner.pid, 'SIGSTOP')
  await assert.rejects(kv.run(write('a', '2')), error => notSaved(error) && /300 ms/.test((error as Error).message))
  process.kill(owner.pid, 'SIGCONT')
})

test('of the writes of a guest whose answers have come no numbers are kept', async t => {
  const home = await freshDir()
  const owner = startChild(t, 'storage', 'own', home)
  await owner.atLeast(1)
  const kv = new SharedKv(join(home, 'server'), warnings())
  t.after(() => kv.close())
  for (let n = 0; n < 20; n++) await kv.run(write('a', String(n)))
  const { page } = await kv.run({ op: 'page', ns: '~made', range: {}, values: false })
  assert.equal(page?.entries.length, 1)
})
