import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  defineEvent,
  defineFrame,
  definePack,
  defineRoute,
  errorSpec,
  extensionPoint,
  named,
  type Pack,
  PackAway,
  type PackContext,
  serviceToken,
  type TSchema,
  Type
} from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

interface Clock {
  tick(): number
}
const Clock = serviceToken<Clock>('clock')
const Other = serviceToken<object>('other')

const clock = definePack({ name: 'clock', version: '2.0.0', provides: [Clock], setup: ctx => ctx.provide(Clock, { tick: () => 1 }) })
const ping = defineRoute({ method: 'GET', path: '/api/v1/ping', summary: 'Ping', data: Type.Object({ tick: Type.Integer() }) })
const reader = definePack({
  name: 'reader',
  needs: { clock: Clock },
  setup: (ctx, { clock: c }) => ctx.route(ping, () => ({ tick: c.tick() }))
})
const failing = (name: string, message: string) =>
  definePack({
    name,
    setup: () => {
      throw new Error(message)
    }
  })
const states = (features: readonly { name: string; state: string }[]) => Object.fromEntries(features.map(one => [one.name, one.state]))

test('packs activate in the order of their needs, whatever the order of the list', async t => {
  const { kernel, call } = await startTestKernel(t, { packs: [reader, clock] })
  assert.deepEqual(kernel.features(), [
    { name: 'reader', state: 'Active', meta: {} },
    { name: 'clock', state: 'Active', meta: { version: '2.0.0' } }
  ])
  assert.equal((await call(ping)).data.tick, 1)
})

test('a failing pack is Failed with its reason and stops nobody else', async t => {
  const { kernel, call } = await startTestKernel(t, { packs: [failing('bad', 'no compiler'), clock, reader] })
  assert.equal((await call(ping)).code, 0)
  assert.deepEqual(kernel.features()[0], { name: 'bad', state: 'Failed', meta: { error: 'no compiler' } })
})

test('required packs that are not active end the start with one error that names every one and its cause', async t => {
  await assert.rejects(
    startTestKernel(t, {
      packs: [failing('bad', 'no compiler'), failing('worse', 'no disk'), reader],
      required: ['bad', 'worse', 'reader', 'absent']
    }),
    (error: Error) =>
      ['bad: no compiler', 'worse: no disk', 'reader: waiting for clock', 'absent: no such pack'].every(part =>
        error.message.includes(part)
      )
  )
})

test('a cycle of needs fails its members with the cycle named, and leaves others alone', async t => {
  const a = definePack({ name: 'a', needs: { other: Other }, provides: [Clock], setup: () => undefined })
  const b = definePack({ name: 'b', needs: { clock: Clock }, provides: [Other], setup: () => undefined })
  const { kernel } = await startTestKernel(t, { packs: [a, b, reader] })
  const features = kernel.features()
  assert.equal(features[0]?.state, 'Failed')
  assert.equal(features[1]?.state, 'Failed')
  assert.match(features[0]?.meta.error ?? '', /needs form a cycle: (a -> b -> a|b -> a -> b)/)
  assert.deepEqual(features[2], { name: 'reader', state: 'Pending', meta: { waiting_for: ['clock'] } })
})

test('a setup that throws half-way is undone completely, in reverse order', async t => {
  const undone: string[] = []
  const half = definePack({
    name: 'half',
    provides: [Clock],
    setup: ctx => {
      ctx.own(() => undone.push('first'))
      ctx.own(() => undone.push('second'))
      ctx.route(ping, () => ({ tick: 0 }))
      ctx.provide(Clock, { tick: () => 0 })
      throw new Error('half-way')
    }
  })
  const { kernel, call } = await startTestKernel(t, { packs: [half, reader] })
  assert.deepEqual(undone, ['second', 'first'])
  assert.deepEqual(states(kernel.features()), { half: 'Failed', reader: 'Pending' })
  assert.equal((await call(ping)).code, 40400)
})

test('a setup that hangs fails after its time limit and can do nothing afterwards', async t => {
  let late: (() => void) | undefined
  const hanging = definePack({
    name: 'hanging',
    setup: ctx =>
      new Promise<void>(() => {
        late = () => ctx.route(ping, () => ({ tick: 0 }))
      })
  })
  const { kernel } = await startTestKernel(t, { packs: [hanging], setupTimeoutMs: 20 })
  assert.match(kernel.features()[0]?.meta.error ?? '', /longer than 20 ms/)
  assert.throws(() => late?.(), /not active/)
})

test('a failure is sticky: load does not retry it, reload does', async t => {
  let broken = true
  const moody = definePack({
    name: 'moody',
    setup: () => {
      if (broken) throw new Error('not today')
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [moody] })
  broken = false
  await kernel.load('moody')
  assert.equal(kernel.features()[0]?.state, 'Failed')
  await kernel.reload('moody')
  assert.equal(kernel.features()[0]?.state, 'Active')
})

test('unloading takes dependents down first, and loading brings them back', async t => {
  const order: string[] = []
  const noisy = (pack: Pack): Pack => ({
    ...pack,
    setup: async (ctx, services) => {
      await pack.setup(ctx, services)
      ctx.own(() => order.push(pack.name))
    }
  })
  const { kernel, call } = await startTestKernel(t, { packs: [noisy(clock), noisy(reader)] })
  await kernel.unload('clock')
  assert.deepEqual(order, ['reader', 'clock'])
  assert.deepEqual(kernel.features(), [{ name: 'reader', state: 'Pending', meta: { waiting_for: ['clock'] } }])
  await kernel.load('clock')
  assert.equal((await call(ping)).data.tick, 1)
})

test('reload can bring a new version while requests go on', async t => {
  const { kernel, call } = await startTestKernel(t, { packs: [clock, reader] })
  const answers = Promise.all(Array.from({ length: 20 }, () => call(ping)))
  await kernel.reload(definePack({ name: 'clock', provides: [Clock], setup: ctx => ctx.provide(Clock, { tick: () => 2 }) }))
  for (const answer of await answers) assert.ok(answer.code === 0 || answer.code === PackAway.code)
  assert.equal((await call(ping)).data.tick, 2)
})

test('a running request is left alone during the grace time of its pack, while new ones are told that the route is gone', async t => {
  let add: () => unknown = () => undefined
  let entered: () => void = () => undefined
  let finish: () => void = () => undefined
  const inside = new Promise<void>(resolve => {
    entered = resolve
  })
  const pack = definePack({
    name: 'patient',
    setup: ctx => {
      add = () => ctx.route({ ...ping, path: '/api/v1/more' }, () => ({ tick: 1 }))
      ctx.route(ping, async ({ signal }) => {
        entered()
        await new Promise<void>(resolve => {
          finish = resolve
        })
        return { tick: signal.aborted ? 0 : 1 }
      })
    }
  })
  const { kernel, call } = await startTestKernel(t, { packs: [pack], graceMs: 60_000 })
  const answer = call(ping)
  await inside
  const unloading = kernel.unload('patient')
  assert.equal((await call(ping)).code, 40400)
  assert.throws(add, { code: 'pack_inactive' })
  assert.deepEqual(states(kernel.features()), { patient: 'Unloading' })
  finish()
  assert.deepEqual((await answer).data, { tick: 1 })
  await unloading
})

test('a neighbour that begins to leave is not there any more for packs that can do without it', async t => {
  let entered: () => void = () => undefined
  let finish: () => void = () => undefined
  const inside = new Promise<void>(resolve => {
    entered = resolve
  })
  let neighbour: () => Clock | undefined = () => undefined
  const leaving = definePack({
    name: 'leaving',
    provides: [Clock],
    setup: ctx => {
      ctx.provide(Clock, { tick: () => 1 })
      ctx.route(ping, async () => {
        entered()
        await new Promise<void>(resolve => {
          finish = resolve
        })
        return { tick: 1 }
      })
    }
  })
  const staying = definePack({
    name: 'staying',
    optional: { clock: Clock },
    setup: (_ctx, services) => {
      neighbour = services.clock
    }
  })
  const { kernel, call } = await startTestKernel(t, { packs: [leaving, staying], graceMs: 60_000 })
  assert.equal(neighbour()?.tick(), 1)
  const answer = call(ping)
  await inside
  const unloading = kernel.unload('leaving')
  await call({ ...ping, path: '/api/v1/nothing' }) // its turn comes after the first steps of the unloading
  assert.equal(neighbour(), undefined)
  finish()
  assert.equal((await answer).code, 0)
  await unloading
})

test('another pack under the name of an unloaded one is loaded in its place; under the name of one that is there it is refused', async t => {
  const other = definePack({ name: 'clock', provides: [Clock], setup: ctx => ctx.provide(Clock, { tick: () => 2 }) })
  const { kernel, call } = await startTestKernel(t, { packs: [clock, reader] })
  await assert.rejects(kernel.load(other), { code: 'pack_there' })
  assert.equal((await call(ping)).data.tick, 1)
  await kernel.load(clock) // the one that is there
  await kernel.unload('clock')
  await kernel.load(other)
  assert.equal((await call(ping)).data.tick, 2)
})

test('contributions are collected in the order in which their packs were activated', async t => {
  const Words = extensionPoint<string>('words')
  let read: () => readonly string[] = () => []
  let whose: () => readonly string[] = () => []
  const more = new Map<string, () => () => void>()
  const word = (name: string, needs: Record<string, typeof Clock> = {}) =>
    definePack({
      name,
      needs,
      setup: ctx => {
        ctx.contribute(Words, name)
        ctx.contribute(Words, `${name}, too`)
        more.set(name, () => ctx.contribute(Words, `${name}, later`))
      }
    })
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      const words = ctx.collect(Words)
      read = () => words.items()
      whose = () => words.entries().map(({ pack, item }) => `${item} of ${pack}`)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [word('late', { clock: Clock }), word('early'), owner, clock] })
  assert.deepEqual(read(), ['early', 'early, too', 'late', 'late, too'])
  assert.deepEqual(whose(), ['early of early', 'early, too of early', 'late of late', 'late, too of late'])
  const take = more.get('early')?.()
  assert.deepEqual(read(), ['early', 'early, too', 'early, later', 'late', 'late, too'])
  take?.()
  await kernel.reload('early')
  assert.deepEqual(read(), ['late', 'late, too', 'early', 'early, too'])
})

test('a running request finishes within the grace time of its pack; afterwards it is aborted', async t => {
  let entered: () => void = () => undefined
  const inside = new Promise<void>(resolve => {
    entered = resolve
  })
  const slow = defineRoute({ method: 'GET', path: '/api/v1/slow', summary: 'Slow', data: Type.Object({ aborted: Type.Boolean() }) })
  const pack = definePack({
    name: 'slow',
    setup: ctx =>
      ctx.route(slow, async ({ signal }) => {
        entered()
        await new Promise(resolve => signal.addEventListener('abort', resolve, { once: true }))
        return { aborted: true }
      })
  })
  const { kernel, call } = await startTestKernel(t, { packs: [pack], graceMs: 10 })
  const answer = call(slow)
  await inside
  const unloading = kernel.unload('slow')
  assert.equal((await answer).data.aborted, true)
  await unloading
})

test('a stop gives running requests one grace time in all, not one at each pack', async t => {
  const graceMs = 200
  const names = ['one', 'two', 'three', 'four', 'five', 'six']
  const tokens = names.map(name => serviceToken<object>(name))
  const routes = names.map(name => defineRoute({ method: 'GET', path: `/api/v1/${name}`, summary: 'Slow', data: Type.Null() }))
  let entered: () => void = () => undefined
  const inside = new Promise<void>(resolve => {
    let left = names.length
    entered = () => {
      if (--left === 0) resolve()
    }
  })
  const packs = names.map((name, at) =>
    definePack({
      name,
      needs: at === 0 ? {} : { last: tokens[at - 1]! },
      provides: [tokens[at]!],
      setup(ctx) {
        ctx.provide(tokens[at]!, {})
        ctx.route(routes[at]!, async () => {
          entered()
          await new Promise(resolve => ctx.signal.addEventListener('abort', resolve, { once: true })) // whatever becomes of the client
          return null
        })
      }
    })
  )
  const { kernel, call } = await startTestKernel(t, { packs, graceMs })
  const answers = routes.map(route => call(route).catch(() => undefined))
  await inside

  const begun = performance.now()
  await kernel.stop()

  assert.ok(performance.now() - begun < names.length * graceMs)
  await Promise.all(answers)
})

test('clashes fail the later pack and name both', async t => {
  const route = definePack({ name: 'route-twin', setup: ctx => ctx.route({ ...ping }, () => ({ tick: 0 })) })
  const service = definePack({ name: 'service-twin', provides: [Clock], setup: ctx => ctx.provide(Clock, { tick: () => 0 }) })
  const happened = defineEvent({ type: 'event.happened', scope: 'global', durable: true, payload: Type.Object({}) })
  const events = (name: string) => definePack({ name, setup: ctx => void ctx.event(happened) })
  const codes = (name: string) => definePack({ name, errors: [errorSpec(`${name}_missing`, 40999, 'missing')], setup: () => undefined })
  const { kernel } = await startTestKernel(t, {
    packs: [clock, reader, route, service, events('events-a'), events('events-b'), codes('codes_a'), codes('codes_b')]
  })
  const errors = Object.fromEntries(kernel.features().map(one => [one.name, one.meta.error]))
  assert.match(errors['route-twin'] ?? '', /GET \/api\/v1\/ping of route-twin clashes with reader/)
  assert.match(errors['service-twin'] ?? '', /'clock' of service-twin clashes with clock/)
  assert.match(errors['events-b'] ?? '', /event\.happened of events-b clashes with events-a/)
  assert.match(errors.codes_b ?? '', /40999 is 'codes_a_missing' of codes_a and 'codes_b_missing' of codes_b/)
})

test('a name stands for one shape: a pack that brings another one under it fails, one that says the same does not', async t => {
  const speaking = (name: string, ...shapes: TSchema[]) =>
    definePack({
      name,
      setup(ctx) {
        const routes = shapes.map((data, index) =>
          defineRoute({ method: 'GET', path: `/api/v1/${name}/${index}`, summary: 'A shape', data })
        )
        for (const route of routes) ctx.route(route, () => ({}) as never)
      }
    })
  const note = (text: TSchema = Type.String()) => named('Note', Type.Object({ text }))
  const frame = defineFrame({ type: 'note', payload: Type.Object({}), ack: Type.Array(note(Type.Integer())) })
  const { kernel } = await startTestKernel(t, {
    packs: [
      speaking('first', Type.Array(note())),
      speaking('copy', note(), { ...note(), description: 'said otherwise' }, Type.Partial(note())),
      speaking('other', Type.Object({ notes: Type.Array(note(Type.Null())) })),
      definePack({ name: 'framed', setup: ctx => void ctx.frame(frame, () => []) }),
      speaking('torn', named('Torn', Type.Null()), named('Torn', Type.String()))
    ]
  })
  const errors = Object.fromEntries(kernel.features().map(one => [one.name, one.meta.error]))
  assert.deepEqual([errors.first, errors.copy], [undefined, undefined])
  assert.equal(errors.other, 'shape Note of other differs from that of first')
  assert.equal(errors.framed, 'shape Note of framed differs from that of first')
  assert.equal(errors.torn, 'shape Torn of torn differs from that of torn')
  await kernel.unload('first')
  await kernel.unload('copy')
  await kernel.reload('other')
  assert.equal(kernel.features().find(one => one.name === 'other')?.state, 'Active', 'the name is free again')
})

test('deployment config is checked against the schema, and defaults are filled in', async t => {
  const seen: unknown[] = []
  const configured = (name: string) =>
    definePack({ name, config: Type.Object({ size: Type.Integer({ minimum: 1, default: 7 }) }), setup: ctx => void seen.push(ctx.config) })
  const { kernel } = await startTestKernel(t, { packs: [configured('fine'), configured('odd')], config: { odd: { size: 0 } } })
  assert.deepEqual(seen, [{ size: 7 }])
  assert.match(kernel.features()[1]?.meta.error ?? '', /bad deployment config for pack odd: size/)
})

test('what a pack contributes, taps and listens to leaves with it', async t => {
  const Words = extensionPoint<string>('words')
  const said = defineEvent({ type: 'event.said', scope: 'global', durable: false, payload: Type.Object({}) })
  let read: () => readonly string[] = () => []
  let speak: () => void = () => undefined
  let heard = 0
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      const words = ctx.collect(Words)
      read = () => words.items()
      const emit = ctx.event(said)
      speak = () => emit({})
    }
  })
  const guest = definePack({
    name: 'guest',
    setup: ctx => {
      ctx.contribute(Words, 'hello')
      ctx.on(said, () => heard++)
      ctx.tap(ctx.hooks.packState, () => undefined)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [owner] })
  const before = kernel.inspect()
  await kernel.load(guest)
  assert.deepEqual(read(), ['hello'])
  speak()
  await kernel.unload('guest')
  speak()
  assert.equal(heard, 1)
  assert.deepEqual(read(), [])
  assert.deepEqual(kernel.inspect(), before)
})

test('what a setup registers becomes visible together, when it is through', async t => {
  const Words = extensionPoint<string>('words')
  const said = defineEvent({ type: 'event.said', scope: 'global', durable: false, payload: Type.Object({}) })
  const seen: unknown[] = []
  let read: () => readonly string[] = () => []
  let speak: () => void = () => undefined
  const owner = definePack({
    name: 'owner',
    setup: ctx => {
      const words = ctx.collect(Words)
      read = () => words.items()
      speak = () => ctx.event(said)({})
    }
  })
  const slow = definePack({
    name: 'slow',
    provides: [Clock],
    setup: async ctx => {
      ctx.contribute(Words, 'hello')
      ctx.on(said, () => seen.push('heard'))
      ctx.tap(ctx.hooks.event, () => void seen.push('tapped'))
      ctx.provide(Clock, { tick: () => 1 })
      ctx.route(ping, () => ({ tick: 1 }))
      speak()
      seen.push(read(), kernel.inspect().services, kernel.inspect().routes, kernel.inspect().taps)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [owner] })
  await kernel.load(slow)
  assert.deepEqual(seen.splice(0), [[], ['kernel-info', 'pack-control', 'relays'], [], 0])
  assert.deepEqual([read(), kernel.inspect().taps, kernel.inspect().routes.length], [['hello'], 1, 1])
})

test('packs go after those that need them, also through others, and begin to in the reverse order of their activation', async t => {
  const A = serviceToken<object>('a')
  const B = serviceToken<object>('b')
  const order: string[] = []
  const part = (name: string, needs: Record<string, typeof A>, provides: (typeof A)[]) =>
    definePack({
      name,
      needs,
      provides,
      setup: ctx => {
        for (const token of provides) ctx.provide(token, {})
        ctx.own(() => order.push(name))
      }
    })
  const packs = [
    part('base', {}, [A]),
    part('alone', {}, []),
    part('middle', { a: A }, [B]),
    part('top', { b: B }, []),
    part('side', { a: A }, [])
  ]
  const { kernel, stop } = await startTestKernel(t, { packs })
  await kernel.unload('base')
  assert.deepEqual(order.splice(0), ['side', 'top', 'middle', 'base'])
  await kernel.load('base')
  await stop()
  assert.deepEqual(order, ['side', 'top', 'alone', 'middle', 'base'])
})

test('a setup that does not provide what it promised, or provides what it should not, fails', async t => {
  const late: (() => unknown)[] = []
  const provider = (name: string, setup: (ctx: PackContext<Record<string, never>>) => unknown) =>
    definePack({ name, provides: [Clock], setup })
  const { kernel } = await startTestKernel(t, {
    packs: [
      provider('forgetful', () => undefined),
      provider('fickle', async ctx => {
        await ctx.provide(Clock, { tick: () => 1 })()
      }),
      provider('eager', ctx => {
        ctx.provide(Clock, { tick: () => 1 })
        ctx.provide(Clock, { tick: () => 2 })
      }),
      provider('strange', ctx => ctx.provide(Other, {})),
      provider('slow', ctx => {
        late.push(() => ctx.provide(Clock, { tick: () => 2 }))
        ctx.provide(Clock, { tick: () => 1 })
      })
    ]
  })
  assert.deepEqual(
    kernel.features().map(one => one.meta.error),
    [
      "setup did not provide 'clock'",
      "setup did not provide 'clock'",
      "pack eager provides 'clock' twice",
      "pack strange provides 'other' without declaring it",
      undefined
    ]
  )
  assert.throws(() => late[0]?.(), { code: 'service_twice' })
})

test('transitions never overlap, whoever asks for them', async t => {
  const steps: string[] = []
  const slow = definePack({
    name: 'slow',
    setup: async ctx => {
      steps.push('begin')
      await new Promise(setImmediate)
      steps.push('end')
      ctx.own(async () => {
        steps.push('leave')
        await new Promise(setImmediate)
        steps.push('gone')
      })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [slow] })
  await Promise.all([kernel.reload('slow'), kernel.unload('slow'), kernel.load('slow'), kernel.reload('slow')])
  const once = ['begin', 'end', 'leave', 'gone']
  assert.deepEqual(steps, [...once, ...once, ...once, 'begin', 'end'])
})

test('a failed pack that is unloaded is tried again when it is loaded, and one that is reloaded waits without its old error', async t => {
  let broken = true
  const moody = definePack({
    name: 'moody',
    needs: { clock: Clock },
    setup: () => {
      if (broken) throw new Error('not today')
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [clock, moody] })
  await kernel.unload('clock')
  assert.equal(kernel.features()[0]?.state, 'Failed')
  await kernel.reload('moody')
  assert.deepEqual(kernel.features(), [{ name: 'moody', state: 'Pending', meta: { waiting_for: ['clock'] } }])
  await kernel.load('clock')
  assert.deepEqual(states(kernel.features()), { clock: 'Active', moody: 'Failed' })
  broken = false
  await kernel.unload('moody')
  await kernel.load('moody')
  assert.deepEqual(states(kernel.features()), { clock: 'Active', moody: 'Active' })
})

test('a stop closes the storage last, when no pack can write any more', async t => {
  const order: string[] = []
  const pack = definePack({ name: 'writer', setup: ctx => void ctx.own(() => order.push('pack')) })
  const { stop } = await startTestKernel(t, {
    packs: [pack],
    storage: place => ({
      ...createStorage(place),
      close: async () => void order.push('storage')
    })
  })
  await stop()
  assert.deepEqual(order, ['pack', 'storage'])
})

test('a start that fails leaves nothing running', async () => {
  const ended: string[] = []
  const packs = [definePack({ name: 'fine', setup: ctx => void ctx.own(() => ended.push('fine')) }), failing('bad', 'no compiler')]
  const kernel = await createKernel({ home: await freshDir(), packs, required: ['bad'], port: 0, log: { level: 'silent' } })
  await assert.rejects(kernel.start(), { code: 'packs_required' })
  assert.deepEqual(ended, ['fine'])
  assert.throws(() => kernel.address, { code: 'not_listening' })
})

test('a throwing tap or clean-up is reported and stops nobody', async t => {
  const clumsy = definePack({
    name: 'clumsy',
    setup: ctx => {
      ctx.tap(ctx.hooks.packState, () => {
        throw new Error('tap')
      })
      ctx.own(() => {
        throw new Error('clean-up')
      })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [clumsy, clock] })
  await kernel.unload('clumsy')
  assert.deepEqual(states(kernel.features()), { clock: 'Active' })
})

test('a server that was stopped is not started any more: nobody could stop it again', async t => {
  const { kernel, stop } = await startTestKernel(t, { packs: [] })
  await stop()
  await assert.rejects(kernel.start(), { code: 'server_stopping' })
})

test('two packs of one name are refused before anything starts', async t => {
  const { home } = await startTestKernel(t, { packs: [] })
  await assert.rejects(createKernel({ home, packs: [clock, clock] }), /two packs named 'clock'/)
})
