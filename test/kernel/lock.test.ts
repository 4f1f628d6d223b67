import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { AppError, PersistenceFailed } from '../../kernel/errors.ts'
import { acquireLock, lockHolder, withLock } from '../../kernel/storage/lock.ts'
import { startChild } from '../helpers/child.ts'
import { freshDir } from '../helpers/temp.ts'

test('a lock is held once per machine: the same process asking again is refused until it is released', async () => {
  const path = join(await freshDir(), 'deep', 'lock')
  const lock = await acquireLock(path)
  assert.ok(lock)
  assert.equal(await acquireLock(path), undefined)
  await lock.release()
  await lock.release()
  const again = await acquireLock(path)
  assert.ok(again)
})

test('the file tells who holds the lock, readable by its owner only', async () => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const lock = await acquireLock(path, { info: { port: 4 } })
  const holder = await lockHolder(path)
  assert.equal(holder?.pid, process.pid)
  assert.deepEqual(holder?.info, { port: 4 })
  assert.deepEqual(await readdir(dir), ['lock'])
  await lock?.release()
  assert.equal(await lockHolder(path), undefined)
})

test('a living process keeps its lock, and gives it back when asked', async t => {
  const path = join(await freshDir(), 'lock')
  const child = startChild(t, 'lock-child', 'hold', path)
  await child.atLeast(1)
  assert.equal(await acquireLock(path), undefined)
  assert.equal((await lockHolder(path))?.pid, child.pid)
  child.say('release')
  await child.atLeast(2)
  assert.ok(await acquireLock(path))
})

test('a lock ends with kill -9 of its holder, and of many takers exactly one wins', async t => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const child = startChild(t, 'lock-child', 'hold', path)
  await child.atLeast(1)
  await child.kill()
  assert.equal(await lockHolder(path), undefined)
  const taken = await Promise.all(Array.from({ length: 20 }, () => acquireLock(path)))
  assert.equal(taken.filter(lock => lock !== undefined).length, 1)
  assert.deepEqual(await readdir(dir), ['lock'])
})

test('a taker that died in the middle of taking over does not block the next one', async t => {
  const dir = await freshDir()
  const path = join(dir, 'lock')
  const child = startChild(t, 'lock-child', 'hold', path)
  await child.atLeast(1)
  await child.kill()
  const dead = await readFile(path, 'utf8')
  await writeFile(`${path}~take`, dead.replace('nonce":"', 'nonce":"x'))
  await writeFile(`${path}~left-behind`, dead)
  assert.ok(await acquireLock(path))
  assert.deepEqual(await readdir(dir), ['lock'])
})

test('a process id that was given out again does not keep a dead lock alive', { skip: process.platform !== 'linux' }, async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, JSON.stringify({ pid: process.pid, start: 'another boot:1', nonce: 'n' }))
  assert.ok(await acquireLock(path))
})

test('a lock file that a power loss left unreadable is free', async () => {
  const path = join(await freshDir(), 'lock')
  await writeFile(path, '\0\0\0')
  assert.ok(await acquireLock(path))
})

test('three processes counting under one lock lose no count', async t => {
  const file = join(await freshDir(), 'count')
  await writeFile(file, '0')
  const children = [1, 2, 3].map(() => startChild(t, 'lock-child', 'add', file, '40'))
  const ends = await Promise.all(children.map(child => child.end()))
  assert.deepEqual(ends, [0, 0, 0])
  assert.equal(await readFile(file, 'utf8'), '120')
})

test('takers in several processes killed at random never hold the lock together', async t => {
  const file = join(await freshDir(), 'count')
  await writeFile(file, '0')
  const steady = startChild(t, 'lock-child', 'add', file, '40')
  for (let i = 0; i < 4; i++) {
    const victim = startChild(t, 'lock-child', 'hold', `${file}.lock`)
    await victim.atLeast(1)
    await victim.kill()
  }
  assert.equal(await steady.end(), 0)
  assert.equal(await readFile(file, 'utf8'), '40')
})

test('waiting for a lock is bounded and ends with a clear error', async () => {
  const path = join(await freshDir(), 'lock')
  await acquireLock(path)
  await assert.rejects(
    withLock(path, async () => undefined, { timeoutMs: 30 }),
    error => AppError.is(error) && error.spec === PersistenceFailed
  )
})
