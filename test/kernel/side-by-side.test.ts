/** Setups that take their time run side by side; what follows from their order stays as if they had run one after another. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, defineRoute, extensionPoint, type Pack, type PackChange, serviceToken, Type } from '../../kernel/index.ts'
import { createKernel } from '../../kernel/kernel.ts'
import { startTestKernel } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'
import { freshDir } from '../helpers/temp.ts'

const Words = extensionPoint<string>('words')
const Voice = serviceToken<string>('voice')
const ping = defineRoute({ method: 'GET', path: '/api/v1/ping', summary: 'Ping', data: Type.String() })
const never = () => new Promise<never>(() => undefined)
const states = (features: readonly { name: string; state: string }[]) => Object.fromEntries(features.map(one => [one.name, one.state]))

/** Contributes its name, and is through with its setup when it is told. */
function word(name: string, until?: Promise<void>): Pack {
  return definePack({
    name,
    setup: ctx => {
      ctx.contribute(Words, name)
      return until
    }
  })
}

test('three packs whose setup hangs cost the time limit once, and are each named', async t => {
  const begun: string[] = []
  let begunBefore: readonly string[] | undefined
  const hang = (name: string) => () => {
    begun.push(name)
    return never()
  }
  const stuck = ['a', 'b', 'c'].map(name => definePack({ name, setup: hang(name) }))
  const fine = definePack({
    name: 'fine',
    setup: ctx =>
      ctx.tap(ctx.hooks.packState, (_name, state) => {
        if (state === 'Failed') begunBefore ??= [...begun]
      })
  })
  const { kernel } = await startTestKernel(t, { packs: [fine, ...stuck], setupTimeoutMs: 300 })
  assert.deepEqual(begunBefore, ['a', 'b', 'c'], 'all wait when the first has waited long enough')
  assert.deepEqual(states(kernel.features()), { fine: 'Active', a: 'Failed', b: 'Failed', c: 'Failed' })
  for (const one of kernel.features().slice(1)) assert.match(one.meta.error ?? '', /longer than 300 ms/)
})

test('what packs contribute has the order of the list, whoever is through first', async t => {
  const first = latch()
  const second = latch()
  const seen: (readonly string[])[] = []
  const reader = definePack({
    name: 'reader',
    setup: ctx => {
      const words = ctx.collect(Words)
      ctx.tap(ctx.hooks.started, () => void seen.push(words.items()))
    }
  })
  const packs = [word('one', first.opened), word('two'), word('three', second.opened), word('four'), reader]
  setImmediate(() => {
    second.open()
    setImmediate(first.open)
  })
  await startTestKernel(t, { packs })
  assert.deepEqual(seen, [['one', 'two', 'three', 'four']])
})

test('of two packs that clash the later one in the list fails, though it was through first', async t => {
  const slow = latch()
  const taker = (name: string, until?: Promise<void>) =>
    definePack({
      name,
      setup: ctx => {
        ctx.route(ping, () => name)
        return until
      }
    })
  setImmediate(slow.open)
  const { kernel, call } = await startTestKernel(t, { packs: [taker('one', slow.opened), taker('two')] })
  assert.deepEqual(states(kernel.features()), { one: 'Active', two: 'Failed' })
  assert.match(kernel.features()[1]?.meta.error ?? '', /of two clashes with one/)
  assert.equal((await call(ping)).data, 'one')
})

test('a pack that can use a service waits for one before it that may yet bring it, and for no other', async t => {
  const slow = latch()
  const other = latch()
  const order: string[] = []
  const provider = definePack({
    name: 'provider',
    provides: [Voice],
    setup: async ctx => {
      await slow.opened
      ctx.provide(Voice, 'alto')
    }
  })
  const user = (name: string) =>
    definePack({ name, optional: { voice: Voice }, setup: (_ctx, { voice }) => void order.push(`${name} ${voice()}`) })
  const alone = definePack({
    name: 'alone',
    setup: () => {
      order.push('alone')
      slow.open()
      return other.opened
    }
  })
  setImmediate(other.open)
  await startTestKernel(t, { packs: [user('early'), provider, user('late'), alone] })
  assert.deepEqual(order, ['early undefined', 'alone', 'late alto'])
})

test('packs that need one that fails wait, and those beside it run', async t => {
  const broken = definePack({
    name: 'broken',
    provides: [Voice],
    setup: async () => {
      await new Promise(setImmediate)
      throw new Error('no voice')
    }
  })
  const singer = definePack({ name: 'singer', needs: { voice: Voice }, setup: () => undefined })
  const { kernel } = await startTestKernel(t, { packs: [broken, singer, word('fine')] })
  assert.deepEqual(states(kernel.features()), { broken: 'Failed', singer: 'Pending', fine: 'Active' })
})

test('packs that one change swaps go and come side by side', async t => {
  const begun: string[] = []
  const names = ['a', 'b', 'c']
  /** Resolves when all of them have begun. */
  const meeting = (what: string) => {
    const all = latch()
    return (name: string) => {
      if (begun.push(`${what} ${name}`) % names.length === 0) all.open()
      return all.opened
    }
  }
  const leave = meeting('-')
  const come = meeting('+')
  const before = names.map(name => definePack({ name, setup: ctx => void ctx.own(() => leave(name)) }))
  const { kernel } = await startTestKernel(t, { packs: before })
  await kernel.change({ reload: names.map(name => definePack({ name, setup: () => come(name) })) })
  assert.deepEqual(begun, ['- c', '- b', '- a', '+ a', '+ b', '+ c'])
  assert.deepEqual(states(kernel.features()), { a: 'Active', b: 'Active', c: 'Active' })
})

test('of packs that one change swaps, who needs another goes before it and comes after it', async t => {
  const told: string[] = []
  const alto = latch()
  const pack = (name: string, needs: Record<string, typeof Voice>, provides: (typeof Voice)[], until?: Promise<void>) =>
    definePack({
      name,
      needs,
      provides,
      setup: async ctx => {
        told.push(`+ ${name}`)
        await until
        for (const token of provides) ctx.provide(token, name)
        ctx.own(async () => {
          await new Promise(setImmediate)
          told.push(`- ${name}`)
        })
      }
    })
  const singer = pack('singer', { voice: Voice }, [])
  const { kernel } = await startTestKernel(t, { packs: [singer, pack('voice', {}, [Voice]), pack('alone', {}, [])] })
  told.length = 0
  setImmediate(alto.open)
  await kernel.change({ reload: ['alone', pack('voice', {}, [Voice], alto.opened), 'singer'] })
  assert.ok(told.indexOf('- singer') < told.indexOf('- voice'), told.join())
  assert.deepEqual(told.slice(3), ['+ voice', '+ alone', '+ singer'])
})

test('a change of which a part is refused changes nothing', async t => {
  const told: string[] = []
  const { kernel } = await startTestKernel(t, { packs: [word('one'), word('two')] })
  await kernel.unload('two')
  const before = states(kernel.features())
  kernel.hooks.packState.tap('test', (name, state) => void told.push(`${name} ${state}`))
  const refused: [PackChange, string][] = [
    [{ load: [word('three'), 'two', word('one')] }, 'pack_there'],
    [{ load: [word('three'), word('three')] }, 'pack_there'],
    [{ load: [word('two'), word('two')] }, 'pack_there'],
    [{ load: ['two', 'nobody'] }, 'pack_unknown'],
    [{ reload: ['one', word('three')] }, 'pack_unknown'],
    [{ remove: ['one', 'nobody'] }, 'pack_unknown'],
    [{ remove: ['one'], reload: ['nobody'], load: ['two'] }, 'pack_unknown'],
    [{ remove: ['one'], load: ['nobody'] }, 'pack_unknown'],
    [{ remove: ['one'], load: [word('three'), word('three')] }, 'pack_there'],
    [{ reload: ['one'], load: ['nobody'] }, 'pack_unknown']
  ]
  for (const [change, code] of refused) {
    await assert.rejects(kernel.change(change), { code })
    assert.deepEqual(states(kernel.features()), before)
  }
  assert.deepEqual(told, [], 'no pack went, not even for a moment')
  await assert.rejects(kernel.load(word('three'), word('one')), { code: 'pack_there' })
  await kernel.load(word('four'))
  assert.deepEqual(states(kernel.features()), { one: 'Active', four: 'Active' }, 'nor with the next change')
})

test('a pack that a change removes is forgotten: its routes are gone, and another one of its name begins anew', async t => {
  const pinger = definePack({
    name: 'pinger',
    setup: ctx => {
      ctx.route(ping, () => 'pong')
      ctx.background(() => Promise.reject(new Error('tired')))
    }
  })
  const { kernel, call } = await startTestKernel(t, { packs: [pinger] })
  assert.equal((await call(ping)).data, 'pong')
  assert.equal(kernel.features()[0]?.meta.faults?.count, 1)
  await kernel.change({ remove: ['pinger'] })
  assert.equal((await call(ping)).code, 40400)
  await kernel.load(definePack({ name: 'pinger', needs: { voice: Voice }, setup: () => undefined }))
  assert.deepEqual(kernel.features(), [{ name: 'pinger', state: 'Pending', meta: { waiting_for: ['voice'] } }])
})

test('a pack that one change removes twice takes no other one with it', async t => {
  const { kernel } = await startTestKernel(t, { packs: [word('one'), word('two')] })
  await kernel.change({ remove: ['one', 'one'] })
  assert.deepEqual(states(kernel.features()), { two: 'Active' })
})

test('a stop goes in the reverse order of the list, whoever was through first', async () => {
  const gone: string[] = []
  const slow = latch()
  const leaving = (name: string, until?: Promise<void>) =>
    definePack({
      name,
      setup: ctx => {
        ctx.own(() => gone.push(name))
        return until
      }
    })
  setImmediate(slow.open)
  const packs = [leaving('one', slow.opened), leaving('two'), leaving('three')]
  const kernel = await createKernel({ home: await freshDir(), packs, port: 0, log: { level: 'silent' } })
  await kernel.start()
  await kernel.stop()
  assert.deepEqual(gone, ['three', 'two', 'one'])
})

test('at a stop packs clean up side by side, but none before those that use it, also where they could do without', async () => {
  const order: string[] = []
  const [one, other] = [latch(), latch()]
  const meets = (name: string, mine: { open: () => void }, theirs: { opened: Promise<void> }) =>
    definePack({
      name,
      optional: { voice: Voice },
      setup: ctx =>
        ctx.own(async () => {
          mine.open()
          await theirs.opened
          order.push(name)
        })
    })
  const voice = definePack({
    name: 'voice',
    provides: [Voice],
    setup: ctx => {
      ctx.provide(Voice, 'hello')
      ctx.own(() => order.push('voice'))
    }
  })
  const packs = [voice, meets('one', one, other), meets('other', other, one)]
  const lines: { msg: string; pack?: string }[] = []
  const log = { level: 'info', to: { write: (line: string) => void lines.push(JSON.parse(line)) } } as const
  const kernel = await createKernel({ home: await freshDir(), packs, port: 0, setupTimeoutMs: 1000, log })
  await kernel.start()
  await kernel.stop()
  assert.deepEqual(
    lines.filter(line => line.pack !== undefined).map(line => line.msg),
    [],
    'none waited for the other in vain'
  )
  assert.deepEqual([order.length, order.at(-1)], [3, 'voice'])
})

test('a hundred packs with routes, events of others and contributions add at most 150 ms to a start', async t => {
  const dummies = Array.from({ length: 100 }, (_, n) =>
    definePack({
      name: `dummy-${n}`,
      config: Type.Object({ limit: Type.Integer({ default: n }) }),
      setup: ctx => {
        ctx.route(defineRoute({ method: 'GET', path: `/api/v1/dummy-${n}`, summary: 'x', data: Type.Integer() }), () => ctx.config.limit)
        ctx.contribute(Words, ctx.name)
        ctx.tap(ctx.hooks.started, () => undefined)
      }
    })
  )
  const start = async (packs: readonly Pack[]) => {
    const began = process.cpuUsage()
    const { kernel, stop } = await startTestKernel(t, { packs })
    const { user, system } = process.cpuUsage(began) // whatever else the machine does
    assert.ok(kernel.features().every(one => one.state === 'Active'))
    await stop()
    return (user + system) / 1_000
  }
  const added: number[] = []
  for (let n = 0; n < 3; n++) {
    const alone = await start([word('alone')])
    added.push((await start([word('alone'), ...dummies])) - alone)
  }
  assert.ok(Math.min(...added) <= 150, `${added.map(Math.round).join(', ')} ms`)
})
