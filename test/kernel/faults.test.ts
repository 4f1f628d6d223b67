import assert from 'node:assert/strict'
import { constants } from 'node:os'
import { test } from 'node:test'
import { runInNewContext } from 'node:vm'
import { defineEvent, defineFrame, definePack, defineRoute, extensionPoint, Type } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

const happened = defineEvent({ type: 'event.happened', scope: 'global', durable: false, payload: Type.Object({}) })
const Words = extensionPoint<string>('words')
const never = () => new Promise<never>(() => undefined)
const fail = (text: string) => () => {
  throw new Error(text)
}

/** Lines of a log that the test reads. */
function recordedLog() {
  const lines: { msg: string; pack?: string; err?: { message: string } }[] = []
  return { lines, log: { level: 'info', to: { write: (line: string) => void lines.push(JSON.parse(line)) } } as const }
}

test('a failing listener, tap or change listener is logged under its pack, counted in its features, and stops nobody', async t => {
  const heard: string[] = []
  const speaker: { say: () => void } = { say: () => undefined }
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      const emit = ctx.event(happened)
      speaker.say = () => emit({})
    }
  })
  const clumsy = definePack({
    name: 'clumsy',
    setup: ctx => {
      ctx.on(happened, fail('listener'))
      ctx.tap(ctx.hooks.event, fail('tap'))
      ctx.collect(Words).onChange(fail('change'))
    }
  })
  const careful = definePack({
    name: 'careful',
    setup: ctx => {
      ctx.on(happened, () => heard.push('event'))
      ctx.tap(ctx.hooks.event, () => void heard.push('tap'))
      ctx.collect(Words).onChange(() => heard.push('change'))
    }
  })
  const { lines, log } = recordedLog()
  const { kernel } = await startTestKernel(t, { packs: [owner, clumsy, careful], log })

  speaker.say()
  await kernel.load(definePack({ name: 'guest', setup: ctx => void ctx.contribute(Words, 'hello') }))

  assert.deepEqual(heard.sort(), ['change', 'event', 'tap'])
  const faults = kernel.features().find(one => one.name === 'clumsy')?.meta.faults
  assert.equal(faults?.count, 3)
  assert.match(faults?.last ?? '', /words.*change/)
  const told = lines.filter(line => line.pack === 'clumsy').map(line => `${line.msg}: ${line.err?.message}`)
  assert.deepEqual(told, [
    'listener of event.happened failed: listener',
    'tap of event failed: tap',
    'change listener of words failed: change'
  ])
  assert.ok(kernel.features().every(one => one.name === 'clumsy' || one.meta.faults === undefined))
})

test('the promise of an asynchronous listener or tap that is refused is put down to its pack', async t => {
  let say: () => void = () => undefined
  const clumsy = definePack({
    name: 'clumsy',
    setup: ctx => {
      const emit = ctx.event(happened)
      say = () => emit({})
      ctx.on(happened, async () => fail('later')())
      ctx.tap(ctx.hooks.started, async () => fail('start')())
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [clumsy] })
  say()
  await new Promise(setImmediate)
  assert.deepEqual(kernel.features()[0]?.meta.faults, { count: 2, last: 'listener of event.happened: later' })
})

test('promises of other libraries and realms are waited for, and their rejections heard', async t => {
  const asked = defineRoute({ method: 'GET', path: '/api/v1/asked', summary: 'Ask', data: Type.Object({ ok: Type.Boolean() }) })
  const rung = defineEvent({ type: 'event.rung', scope: 'global', durable: false, payload: Type.Object({}) })
  // biome-ignore lint/suspicious/noThenProperty: a promise of another library
  const thenable = { then: (resolve: (value: unknown) => void) => void setImmediate(resolve, { ok: true }) }
  const refused = () => runInNewContext("Promise.reject(new Error('boom'))") as unknown
  const foreign = definePack({
    name: 'foreign',
    setup(ctx) {
      const ring = ctx.event(rung)
      ctx.on(rung, refused as () => void)
      ctx.route(asked, () => {
        ring({})
        return thenable as never
      })
    }
  })
  const { call, kernel } = await startTestKernel(t, { packs: [foreign] })
  assert.deepEqual((await call(asked)).data, { ok: true })
  assert.match(kernel.features().find(({ name }) => name === 'foreign')?.meta.faults?.last ?? '', /^listener of event\.rung: .*boom/)
})

test('what the disk refuses answers 50003 with the reason, and is no fault of the pack that met it', async t => {
  const { EDQUOT, EMFILE, ENOSPC } = constants.errno
  const refusals = [
    { errno: ENOSPC, syscall: 'write', told: 'no space left on device' },
    { errno: EDQUOT, syscall: 'write', told: 'disk quota exceeded' },
    { errno: EMFILE, syscall: 'open', told: 'too many open files' },
    { errno: EMFILE, syscall: 'spawn git', told: undefined }
  ]
  let at = 0
  const refused = () => {
    const { errno, syscall } = refusals[at] ?? {}
    throw Object.assign(new Error('of the system'), { errno: -(errno ?? 0), syscall })
  }
  const route = defineRoute({ method: 'POST', path: '/api/v1/words', summary: 'Save', data: Type.Null() })
  const frame = defineFrame({ type: 'save', payload: Type.Object({}), ack: Type.Object({}) })
  const pack = definePack({
    name: 'writer',
    setup(ctx) {
      ctx.route(route, refused)
      ctx.frame(frame, refused)
    }
  })
  const { kernel, call, connect } = await startTestKernel(t, { packs: [pack] })
  const socket = await connect()
  const faults = () => kernel.features().find(one => one.name === 'writer')?.meta.faults
  for (; at < refusals.length; at++) {
    const { told } = refusals[at] ?? {}
    const { code, msg } = await call(route, {})
    const ack = await socket.request('save', {})
    const wanted = told === undefined ? [50001, 'internal error'] : [50003, `could not be saved or read: ${told}`]
    assert.deepEqual([code, msg, ack.code, ack.msg], [...wanted, ...wanted])
    assert.equal(faults()?.count, told === undefined ? 2 : undefined)
  }
})

test('faults are forgotten when the pack is activated anew', async t => {
  const fails = [fail('start'), () => undefined]
  const clumsy = definePack({ name: 'clumsy', setup: ctx => void ctx.tap(ctx.hooks.started, () => fails.shift()?.()) })
  const { kernel } = await startTestKernel(t, { packs: [clumsy] })
  assert.equal(kernel.features()[0]?.meta.faults?.count, 1)
  await kernel.reload('clumsy')
  assert.equal(kernel.features()[0]?.meta.faults, undefined)
})

test('a clean-up that hangs after a failed setup is given up: the others start, and the rest of it is undone', async t => {
  const undone: string[] = []
  const stuck = definePack({
    name: 'stuck',
    setup: ctx => {
      ctx.own(() => undone.push('first'))
      ctx.own(never)
      throw new Error('no')
    }
  })
  const { lines, log } = recordedLog()
  const { kernel } = await startTestKernel(t, {
    packs: [stuck, definePack({ name: 'fine', setup: () => undefined })],
    setupTimeoutMs: 30,
    log
  })
  assert.deepEqual(
    kernel.features().map(one => one.state),
    ['Failed', 'Active']
  )
  assert.deepEqual(undone, ['first'])
  assert.equal(kernel.features()[0]?.meta.error, 'no')
  assert.ok(lines.some(line => line.pack === 'stuck' && /took longer than 30 ms/.test(line.err?.message ?? '')))
})

test('a started or stopping tap that hangs is given up and named: the server starts and stops', async () => {
  const order: string[] = []
  const stuck = definePack({
    name: 'stuck',
    setup: ctx => {
      ctx.tap(ctx.hooks.started, never)
      ctx.tap(ctx.hooks.stopping, never)
    }
  })
  const fine = definePack({
    name: 'fine',
    setup: ctx => {
      ctx.tap(ctx.hooks.started, () => void order.push('started'))
      ctx.tap(ctx.hooks.stopping, async () => void order.push('stopping'))
    }
  })
  const { lines, log } = recordedLog()
  const kernel = await createKernel({ home: await freshDir(), packs: [stuck, fine], port: 0, setupTimeoutMs: 30, log })
  await kernel.start()
  assert.match(kernel.features()[0]?.meta.faults?.last ?? '', /tap of started: took longer than 30 ms/)
  await kernel.stop()
  assert.deepEqual(order, ['started', 'stopping'])
  assert.deepEqual(
    lines.filter(line => line.pack === 'stuck').map(line => line.msg),
    ['tap of started failed', 'tap of stopping failed']
  )
})

test('a clean-up that hangs or fails at unload is logged under its pack, and everything before it is undone all the same', async t => {
  const undone: string[] = []
  const stuck = definePack({
    name: 'stuck',
    setup: ctx => {
      ctx.own(() => undone.push('first'))
      ctx.own(fail('clumsy'))
      ctx.own(never)
    }
  })
  const { lines, log } = recordedLog()
  const { kernel } = await startTestKernel(t, { packs: [stuck], setupTimeoutMs: 30, log })
  await kernel.unload('stuck')
  assert.deepEqual(undone, ['first'])
  const told = lines.filter(line => line.pack === 'stuck').map(line => line.err?.message)
  assert.deepEqual(told, ['took longer than 30 ms and was given up', 'clumsy'])
})
