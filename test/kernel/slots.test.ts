import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { KernelOptions } from '../../kernel/environment.ts'
import { type Connection, defineFrame, definePack, defineSlot, type Slot, SlotHost, Type } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike, testEnvironment } from '../../kernel/testing.ts'
import { latch } from '../helpers/latch.ts'

const touch = defineFrame({ type: 'touch', payload: Type.Object({}), ack: Type.Object({ value: Type.String() }) })

/** A kernel whose pack `keeper` owns these slots, and a connection that has filled them. */
async function filled(
  t: TestContextLike,
  slots: readonly Slot<{ readonly name: string }, Connection>[],
  options: Partial<KernelOptions> = {}
) {
  const keeper = definePack({
    name: 'keeper',
    setup: ctx => {
      for (const slot of slots) ctx.slot(slot)
    }
  })
  const toucher = definePack({
    name: 'toucher',
    setup: ctx => void ctx.frame(touch, ({ connection }) => ({ value: slots.map(slot => connection.get(slot).name).join(' ') }))
  })
  const started = await startTestKernel(t, { ...options, packs: [keeper, toucher] })
  const socket = await started.connect()
  return { ...started, ask: async () => (await socket.request('touch', {})) as { code: number; payload?: { value: string } } }
}

test('a slot that two kernels of one process know is closed in the one whose pack goes, and lives on in the other', async t => {
  const closed: string[] = []
  const kernels = ['one', 'two']
  let at = 0
  const shared = defineSlot<{ name: string; close(): void }, Connection>('shared', () => {
    const name = kernels[at++] ?? 'again'
    return { name, close: () => void closed.push(name) }
  })
  const one = await filled(t, [shared])
  const two = await filled(t, [shared])
  assert.equal((await one.ask()).payload?.value, 'one')
  assert.equal((await two.ask()).payload?.value, 'two')

  await one.kernel.unload('keeper')

  assert.deepEqual(closed, ['one'])
  assert.equal((await two.ask()).payload?.value, 'two')
  const later = await two.connect()
  assert.deepEqual((await later.request('touch', {})).payload, { value: 'again' })
})

test('two slots of one name keep values of their own', async t => {
  const slots = ['left', 'right'].map(name => defineSlot<{ name: string }, Connection>('twin', () => ({ name })))
  const { ask } = await filled(t, slots)
  assert.equal((await ask()).payload?.value, 'left right')
})

test('a pack is gone when the values of its slots are closed, and not before', async t => {
  const [asked, closed] = [latch(), latch()]
  const slot = defineSlot<{ name: string; close(): Promise<void> }, Connection>('slow', () => ({
    name: 'value',
    close: () => {
      asked.open()
      return closed.opened
    }
  }))
  const { ask, kernel } = await filled(t, [slot])
  await ask()
  const unloaded = kernel.unload('keeper')
  await asked.opened
  for (let round = 0; round < 5; round++) await new Promise(resolve => setImmediate(resolve))
  assert.equal(kernel.features()[0]?.state, 'Unloading')
  closed.open()
  await unloaded
  assert.deepEqual(
    kernel.features().map(({ name }) => name),
    ['toucher']
  )
})

test('a slot cannot be filled while the pack that owns it is gone', async t => {
  const closed: string[] = []
  const slot = defineSlot<{ name: string; close(): void }, Connection>('mine', () => ({
    name: 'value',
    close: () => void closed.push('value')
  }))
  const { ask, kernel } = await filled(t, [slot])
  await ask()
  await kernel.unload('keeper')
  assert.deepEqual(closed, ['value'])
  assert.notEqual((await ask()).code, 0)
  await kernel.load('keeper')
  assert.equal((await ask()).code, 0)
})

test('nothing of a host that is closed stays in memory', async () => {
  class Host extends SlotHost {
    store(): never {
      throw new Error('no stores')
    }
  }
  const { hosts } = testEnvironment()
  const slot = defineSlot('held', () => ({}))
  const [closed, dropped] = [new Host(hosts), new Host(hosts)]
  for (const host of [closed, dropped]) host.get(slot)
  assert.equal(hosts.of(slot).hosts.size, 2)
  await closed.closeHost()
  await dropped.drop(slot)
  assert.deepEqual([hosts.of(slot).hosts.size, dropped.scope.size], [0, 0])
})

test('a host that is closed opens nothing any more', async () => {
  class Host extends SlotHost {
    store(): never {
      throw new Error('no stores')
    }
  }
  const host = new Host(testEnvironment().hosts)
  let opened = 0
  const slot = defineSlot('late', () => opened++)
  await host.closeHost()
  assert.throws(() => host.get(slot), { code: 'owner_closed' })
  assert.equal(opened, 0)
})

test('a value that fails or hangs when it is closed is put down to the pack of its slot, and the rest of the host is closed', async t => {
  const closed: string[] = []
  const value = (name: string, close: () => unknown) =>
    defineSlot<{ name: string; close(): unknown }, Connection>(name, () => ({ name, close }))
  const slots = [
    value('fine', () => closed.push('fine')),
    value('stuck', () => new Promise(() => undefined)),
    value('clumsy', () => {
      throw new Error('no')
    })
  ]
  const lines: { msg: string; pack?: string; err?: { message: string } }[] = []
  const log = { level: 'error', to: { write: (line: string) => void lines.push(JSON.parse(line)) } } as const
  const { ask, stop } = await filled(t, slots, { setupTimeoutMs: 30, log })
  await ask()
  await stop()
  assert.deepEqual(closed, ['fine'])
  assert.deepEqual(
    lines.map(line => `${line.pack}: ${line.msg}: ${line.err?.message}`),
    ['keeper: close of slot clumsy failed: no', 'keeper: close of slot stuck failed: took longer than 30 ms and was given up']
  )
})

test('what a slot has opened is handed over at once from then on, and anew after it was dropped', async () => {
  class Host extends SlotHost {
    store(): never {
      throw new Error('no stores')
    }
  }
  const host = new Host(testEnvironment().hosts)
  let count = 0
  const slot = defineSlot('counted', async () => ({ number: ++count }))

  assert.equal(host.opened(slot), undefined)
  const first = host.whenOpen(slot, ({ number }) => number)
  assert.ok(first instanceof Promise)
  assert.equal(await first, 1)
  assert.deepEqual([host.opened(slot), host.whenOpen(slot, ({ number }) => number)], [{ number: 1 }, 1])

  await host.drop(slot)
  assert.equal(host.opened(slot), undefined)
  assert.equal(await host.whenOpen(slot, ({ number }) => number), 2)
})

test('a slot whose promise rejects is opened anew by whoever asks next', async () => {
  class Host extends SlotHost {
    store(): never {
      throw new Error('no stores')
    }
  }
  const host = new Host(testEnvironment().hosts)
  let fails = true
  const slot = defineSlot('failing', async () => {
    if (fails) throw new Error('not today')
    return 'open'
  })
  await assert.rejects(async () => host.whenOpen(slot, () => 0), /not today/)
  assert.deepEqual([host.opened(slot), host.peek(slot)], [undefined, undefined])
  fails = false
  assert.equal(await host.get(slot), 'open')
})

test('a value that was made of something that has been replaced is closed, and the next look opens one that is made of what is there', async () => {
  class Host extends SlotHost {
    store(): never {
      throw new Error('no stores')
    }
  }
  const host = new Host(testEnvironment().hosts)
  const closed: string[] = []
  let basis: { readonly name: string } | undefined = { name: 'old' }
  const open = async () => {
    const name = basis?.name ?? 'none'
    return { name, close: () => closed.push(name) }
  }
  const slot = defineSlot('based', open, () => basis)
  const name = async () => await host.whenOpen(slot, value => value.name)
  assert.deepEqual([await name(), await name()], ['old', 'old'])

  basis = { name: 'new' }
  assert.deepEqual([host.opened(slot), host.peek(slot)], [undefined, undefined])
  assert.equal(await name(), 'new')
  basis = undefined
  assert.equal((await host.get(slot)).name, 'none')
  await host.closeHost()
  assert.deepEqual(closed, ['old', 'new', 'none'])
})
