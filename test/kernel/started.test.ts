/** Timers and child processes that packs start end with them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { setImmediate as tick } from 'node:timers/promises'
import { definePack, type PackContext } from '../../kernel/index.ts'
import { Scope, startChild, startTimer } from '../../kernel/lifecycle/scope.ts'
import { isProcessAlive } from '../../kernel/storage/process-life.ts'
import { startTestKernel, type TestContextLike, testEnvironment } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'

async function contextOf(t: TestContextLike) {
  const held: PackContext[] = []
  const pack = definePack({ name: 'busy', setup: ctx => void held.push(ctx as PackContext) })
  const { kernel } = await startTestKernel(t, { packs: [pack], graceMs: 100 })
  return { kernel, ctx: held[0] as PackContext, faults: () => kernel.features()[0]?.meta.faults }
}

test('a timer runs again when what it started is over, never twice at a time, and not after its pack is gone', async t => {
  const { kernel, ctx } = await contextOf(t)
  let at = 0
  let most = 0
  let runs = 0
  const third = latch()
  ctx.timer(1, async () => {
    most = Math.max(most, ++at)
    for (let passed = 0; passed < 5; passed++) await tick()
    at--
    if (++runs === 3) third.open()
  })
  await third.opened
  await kernel.unload('busy')
  const before = runs
  await new Promise(resolve => setTimeout(resolve, 10))
  assert.deepEqual([most, at, runs], [1, 0, before])
})

test('the undo of a timer stops it, also from within, and a time that nobody can wait is refused', async t => {
  const { ctx, faults } = await contextOf(t)
  const ran: string[] = []
  const done = latch()
  ctx.timer(1, () => ran.push('withdrawn'))()
  const stop = ctx.timer(1, () => {
    ran.push('once')
    stop()
  })
  ctx.timer(20, done.open)
  await done.opened
  assert.deepEqual(ran, ['once'])
  for (const ms of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 31]) assert.throws(() => ctx.timer(ms, () => undefined), RangeError)
  assert.equal(faults(), undefined)
})

test('a timer that fails is a fault of its pack and runs again', async t => {
  const { ctx, faults } = await contextOf(t)
  const twice = latch()
  let runs = 0
  ctx.timer(1, () => {
    if (++runs === 3) twice.open()
    throw new Error(`run ${runs}`)
  })
  await twice.opened
  assert.ok((faults()?.count ?? 0) >= 2)
  assert.match(faults()?.last ?? '', /^timer: run \d$/)
})

test('a child process and what it started end with the pack, also when they do not want to', async t => {
  const { kernel, ctx } = await contextOf(t)
  const child = ctx.spawn('sh', ['-c', "trap '' TERM; sleep 1000 & echo $!; wait; wait"], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  const below = Number(line.toString())
  assert.ok(await isProcessAlive(below))
  await kernel.unload('busy')
  assert.ok(child.exitCode !== null || child.signalCode !== null, 'unloading waits for it')
  assert.throws(() => ctx.spawn('true'), { code: 'pack_inactive' })
  while (await isProcessAlive(below)) await tick()
})

test('what a child process leaves in its group is killed when it ends', async t => {
  const { ctx } = await contextOf(t)
  const child = ctx.spawn('sh', ['-c', 'sleep 1000 >&- 2>&- & echo $!'])
  const [line] = (await once(child.stdout!, 'data')) as [Buffer]
  await once(child, 'exit')
  while (await isProcessAlive(Number(line.toString()))) await tick()
})

test('a program that cannot be started is a fault of the pack, unless the pack listens', async t => {
  const { ctx, faults } = await contextOf(t)
  const [error] = (await once(ctx.spawn('/no/such/program'), 'error')) as [Error]
  assert.match(error.message, /ENOENT/)
  assert.equal(faults(), undefined)
  ctx.spawn('/no/such/program')
  while (!faults()) await tick()
  assert.match(faults()?.last ?? '', /^child process \/no\/such\/program: .*ENOENT/)
})

test('a program that cannot be started holds up nobody who unloads its pack in the same moment', async () => {
  const { guard } = testEnvironment()
  const scope = new Scope()
  const told: unknown[] = []
  const listeners = process.listenerCount('exit')
  startChild({ pack: 'busy', guard, scope }, '/nowhere/at-all', [], {}, 100).on('error', error => told.push(error))
  assert.deepEqual(await scope.close(undefined, 1000), [])
  assert.deepEqual([told.length, process.listenerCount('exit')], [1, listeners])
})

test('what has ended leaves nothing behind: no undo, no listener of the process', async () => {
  const { guard } = testEnvironment()
  const scope = new Scope()
  const starter = { pack: 'busy', guard, scope }
  const listeners = process.listenerCount('exit')
  const ran = latch()
  const stop = startTimer(starter, 1, () => {
    stop()
    ran.open()
  })
  const child = startChild(starter, 'true', [], {}, 100)
  assert.equal(process.listenerCount('exit'), listeners + 1)
  await Promise.all([ran.opened, once(child, 'exit')])
  for (let round = 0; round < 20; round++) await tick()
  assert.deepEqual([scope.size, process.listenerCount('exit')], [0, listeners])
})

test('a child process is asked to end before it is killed', async t => {
  const { kernel, ctx } = await contextOf(t)
  const child = ctx.spawn('sleep', ['600'])
  const ended = once(child, 'exit')
  await kernel.unload('busy')
  assert.deepEqual(await ended, [null, 'SIGTERM'])
})
