/** Who is to blame after setup: faults, time and policy per pack. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { escaped } from '../../features/cli/faults.ts'
import { type Accounts, definePack, defineRoute, extensionPoint, KernelInfo, Type } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

const Guests = extensionPoint<() => string>('guests')
const busy = (ms: number) => {
  for (const end = performance.now() + ms; performance.now() < end; );
}
const route = (path: string) => defineRoute({ method: 'GET', path: `/api/v1/${path}`, summary: path, data: Type.Null() })
const failing = route('failing')
const slow = route('slow')
const clumsy = definePack({
  name: 'clumsy',
  setup: ctx => {
    ctx.route(failing, () => {
      throw new Error('boom')
    })
    ctx.route(slow, () => {
      busy(30)
      return null
    })
  }
})
const metaOf = (kernel: { features(): readonly { name: string; state: string; meta: object }[] }, name = 'clumsy') =>
  kernel.features().find(one => one.name === name)

let seen: KernelInfo | undefined
const watcher = definePack({
  name: 'watcher',
  needs: { kernel: KernelInfo },
  setup: (_ctx, { kernel }) => {
    seen = kernel
  }
})
const info = () => seen as KernelInfo

test('a pack that keeps failing becomes Failed by the limit that the operator sets, with what needed it waiting; reload brings it back', async t => {
  const told: string[] = []
  const onOperatorLine = ({ text }: { text: string }) => void told.push(text)
  const { kernel, call } = await startTestKernel(t, { packs: [clumsy], faultLimit: { count: 3, within_ms: 60_000 }, onOperatorLine })
  for (let n = 0; n < 2; n++) assert.equal((await call(failing)).code, 50001)
  assert.equal(metaOf(kernel)?.state, 'Active')
  await call(failing)
  while ((await call(slow)).code !== 40400);
  assert.deepEqual(metaOf(kernel), {
    name: 'clumsy',
    state: 'Failed',
    meta: {
      error: 'failed 3 times within 60 s, which is the limit; last: route GET /api/v1/failing: boom',
      faults: { count: 3, last: 'route GET /api/v1/failing: boom' }
    }
  })
  assert.deepEqual(told, [
    'pack clumsy is taken out until it is reloaded: failed 3 times within 60 s, which is the limit; last: route GET /api/v1/failing: boom'
  ])
  await kernel.reload('clumsy')
  assert.deepEqual(metaOf(kernel), { name: 'clumsy', state: 'Active', meta: {} })
})

test('without a limit a pack may fail as often as it likes', async t => {
  const { kernel, call } = await startTestKernel(t, { packs: [clumsy] })
  for (let n = 0; n < 100; n++) await call(failing)
  assert.deepEqual(metaOf(kernel), {
    name: 'clumsy',
    state: 'Active',
    meta: { faults: { count: 100, last: 'route GET /api/v1/failing: boom' } }
  })
})

test('who holds the event loop is named with the call and how long, and counted', async t => {
  const lines: { pack?: string; msg: string }[] = []
  const log = { level: 'info', to: { write: (line: string) => void lines.push(JSON.parse(line)) } } as const
  const { call } = await startTestKernel(t, { packs: [clumsy, watcher], loopLimitMs: 20, log })
  await call(slow)
  const time = info().time('clumsy')
  assert.ok(time && time.ms >= 30 && time.calls === 2)
  assert.deepEqual([time.slow?.count, time.slow?.last.replace(/\d+ ms/, '')], [1, 'route GET /api/v1/slow: '])
  assert.deepEqual(
    lines.filter(line => line.pack === 'clumsy').map(line => line.msg),
    ['route GET /api/v1/slow held the event loop: nothing else could run']
  )
})

test('what a pack contributed runs on its account, not on that of the pack that calls it', async t => {
  const host: { run?: () => void } = {}
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      const guests = ctx.collect(Guests)
      host.run = () => runAll(ctx, guests.entries())
    }
  })
  const guest = definePack({
    name: 'guest',
    setup: ctx => {
      ctx.contribute(Guests, () => {
        busy(50)
        return 'done'
      })
      ctx.contribute(Guests, () => {
        throw new Error('not today')
      })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [owner, guest, watcher] })
  host.run?.()
  assert.deepEqual(metaOf(kernel, 'guest')?.meta, { faults: { count: 1, last: 'guest: not today' } })
  assert.deepEqual(metaOf(kernel, 'owner')?.meta, {})
  const { time } = info()
  assert.ok((time('guest')?.ms ?? 0) >= 50)
  assert.ok((time('owner')?.ms ?? 0) < 50)
})

test('what escaped from a pack is put down to it by the files of its stack; an exception takes it out when nothing else is in the stack', async t => {
  const at = (name: string, source: string) => Object.assign(definePack({ name, setup: () => undefined }), { source })
  const packs = [at('one', '/packs/one.mjs'), at('two', '/packs/two.mjs'), at('built', '/node_modules/built/dist/index.js')]
  const { kernel } = await startTestKernel(t, { packs })
  const thrown = (...frames: string[]) =>
    Object.assign(new Error('lost'), { stack: `Error: lost\n${frames.map(one => `    at ${one}`).join('\n')}` })
  const timer = 'listOnTimeout (node:internal/timers:581:17)'
  const ours = `run (${pathToFileURL(import.meta.filename).href}:1:1)`

  assert.deepEqual(escaped(kernel, thrown(`f (${pathToFileURL('/packs/two.mjs').href}:3:4)`, timer), false), {
    pack: 'two',
    contained: true
  })
  assert.deepEqual(escaped(kernel, thrown('/packs/shared.mjs:1:2', timer), false), { pack: undefined, contained: true })
  assert.deepEqual(escaped(kernel, thrown('async Timeout.f [as x] (/node_modules/built/lib/a.js:1:2)'), false), {
    pack: 'built',
    contained: true
  })
  assert.deepEqual(escaped(kernel, 'no error', true), { pack: undefined, contained: false })
  assert.deepEqual(escaped(kernel, thrown(ours, '/packs/one.mjs:1:2', timer), true), { pack: 'one', contained: false })
  assert.deepEqual(
    kernel.features().map(one => one.state),
    ['Active', 'Active', 'Active']
  )
  assert.deepEqual(escaped(kernel, thrown('/packs/one.mjs:1:2', timer), true), { pack: 'one', contained: true })
  await kernel.load('two') // after the change before it
  assert.deepEqual(metaOf(kernel, 'one')?.state, 'Failed')
  assert.deepEqual(metaOf(kernel, 'two'), {
    name: 'two',
    state: 'Active',
    meta: { faults: { count: 1, last: 'a promise that nobody waited for: lost' } }
  })
})

function runAll(accounts: Accounts, entries: readonly { pack: string; item: () => string }[]): void {
  for (const { pack, item } of entries) {
    try {
      accounts.onAccountOf(pack, 'guest', item)
    } catch (error) {
      accounts.blame(pack, 'guest', error)
    }
  }
}

test('as many as like listen for the end of what a pack contributed', async t => {
  const signals: AbortSignal[] = []
  const guest = definePack({ name: 'guest', setup: ctx => void ctx.contribute(Guests, () => 'hello') })
  const host = definePack({
    name: 'host',
    setup(ctx) {
      const guests = ctx.collect(Guests)
      guests.onChange(() => signals.push(...guests.entries().map(({ signal }) => signal)))
    }
  })
  await startTestKernel(t, { packs: [host, guest] })
  const warned: string[] = []
  const hear = (warning: Error) => void warned.push(warning.message)
  process.on('warning', hear)
  for (let n = 0; n < 20; n++) signals[0]?.addEventListener('abort', () => undefined)
  await new Promise(resolve => setImmediate(resolve))
  process.off('warning', hear)
  assert.deepEqual([signals.length, warned], [1, []])
})
