/** What collectors get of items that packs contributed: functions that fail are put down to the pack of the item. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { asContributed, type Collection, type Contribution, definePack, extensionPoint, type PackContext } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'

interface Guest {
  readonly name: string
  readonly cost?: number
  greet(whom: string): string
  wait?(): Promise<string>
  count?(): number
}
const Guests = extensionPoint<Guest>(
  'guests',
  undefined,
  { name: 'string', greet: 'function' },
  {
    greet(whom) {
      return `${this.name} has no word for ${whom}`
    },
    wait: async () => 'nothing'
  }
)

async function scene(t: TestContextLike, item: Guest, frameTimeoutMs = 30_000) {
  let guests: Collection<Guest> | undefined
  const host = definePack({
    name: 'host',
    setup: ctx => {
      guests = ctx.collect(Guests)
    }
  })
  const held: PackContext[] = []
  const guest = definePack({
    name: 'guest',
    setup: ctx => {
      held.push(ctx as PackContext)
      ctx.contribute(Guests, item)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [host, guest], frameTimeoutMs })
  const list = guests as Collection<Guest>
  const entry = list.entries()[0] as Contribution<Guest>
  const faults = () => Object.fromEntries(kernel.features().map(({ name, meta }) => [name, meta.faults]))
  return { list, entry, faults, kernel, ctx: held[0] as PackContext }
}

/** With a field that only its own methods see. */
class Shy implements Guest {
  readonly name = 'shy'
  cost = 1
  readonly #words = 'well, '
  greet(whom: string): string {
    if (whom === 'ghost') throw new Error('boo')
    return this.#words + whom
  }
  count(): number {
    return this.#words.length
  }
}

test('a function that fails answers what the point says instead, and is the fault of its pack alone', async t => {
  const item: Guest = {
    name: 'rude',
    greet: () => {
      throw new Error('no')
    },
    wait: async () => {
      throw new Error('never')
    }
  }
  const { entry, faults } = await scene(t, Object.freeze(item))
  assert.equal(entry.item.greet('you'), 'rude has no word for you')
  assert.deepEqual(faults(), { host: undefined, guest: { count: 1, last: 'greet of guests rude: no' } })
  assert.equal(await entry.item.wait?.(), 'nothing')
  assert.deepEqual(faults().guest, { count: 2, last: 'wait of guests rude: never' })
})

test('a function whose promise never settles is answered instead after the time limit, and is the fault of its pack', async t => {
  const { entry, faults } = await scene(t, { name: 'slow', greet: String, wait: () => new Promise(() => undefined) }, 20)
  assert.equal(await entry.item.wait?.(), 'nothing')
  assert.match(faults().guest?.last ?? '', /^wait of guests slow: /)
})

test('an object of a class stays what it is for its own methods, and its fields are those of the moment', async t => {
  const item = new Shy()
  const { entry, faults } = await scene(t, item)
  assert.deepEqual([entry.item.greet('all'), entry.item.count?.(), entry.item.cost], ['well, all', 6, 1])
  assert.equal(entry.item.greet('ghost'), 'shy has no word for ghost')
  item.cost = 2
  assert.equal(entry.item.cost, 2)
  assert.equal(faults().guest?.count, 1)
  assert.equal(asContributed(entry.item), item)
})

test('the lists are the same until an item comes or goes', async t => {
  const { list, entry, ctx, kernel } = await scene(t, new Shy())
  assert.equal(list.items(), list.items())
  assert.equal(list.items()[0], entry.item)
  const before = list.entries()
  assert.equal(list.entries(), before)
  ctx.contribute(Guests, { name: 'late', greet: () => 'hello' })
  assert.deepEqual(
    list.items().map(({ name }) => name),
    ['shy', 'late']
  )
  assert.equal(list.items()[0], entry.item, 'who stays is the same')
  assert.equal(entry.signal.aborted, false)
  await kernel.unload('guest')
  assert.deepEqual([list.items(), entry.signal.aborted], [[], true])
  await kernel.load('guest')
  assert.deepEqual(
    list.entries().map(({ item, signal }) => [item.name, signal.aborted]),
    [['shy', false]]
  )
})

test('of an item of a class collectors get what its own class says, not what that overrides', async t => {
  class Polite implements Guest {
    readonly name: string = 'polite'
    greet(whom: string): string {
      return `good day, ${whom}`
    }
    count(): number {
      return 1
    }
  }
  class Loud extends Polite {
    override greet(whom: string): string {
      return super.greet(whom).toUpperCase()
    }
  }
  const { list } = await scene(t, new Loud())
  const [item] = list.items()
  assert.deepEqual([item?.greet('Ann'), item?.count?.(), item?.name], ['GOOD DAY, ANN', 1, 'polite'])
})
