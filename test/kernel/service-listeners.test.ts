/** Listeners that packs hand to services: guarded, bounded in time, put down to whoever handed them in, and gone with it. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, type PackContext, serviceToken } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

interface Bells {
  readonly count: number
  onRing(listener: (tune: string) => unknown): () => void
  onTune(listener: (tune: string) => unknown): () => void
  watch(tune: string, listener: { rang(tune: string): void; readonly name?: string }): Promise<() => void>
}
const Bells = serviceToken<Bells>('bells', { onRing: 'notify', onTune: 'promise', watch: 'notify' })

/** The service as a class with state of its own; it guards nothing itself. */
class Tower implements Bells {
  readonly ringing = new Set<(tune: string) => unknown>()
  readonly tuning = new Set<(tune: string) => unknown>()
  readonly watching = new Set<{ rang(tune: string): void }>()
  #count = 0

  get count(): number {
    return this.#count
  }

  onRing(listener: (tune: string) => unknown): () => void {
    this.ringing.add(listener)
    return () => this.ringing.delete(listener)
  }

  onTune(listener: (tune: string) => unknown): () => void {
    this.tuning.add(listener)
    return () => this.tuning.delete(listener)
  }

  async watch(_tune: string, listener: { rang(tune: string): void }): Promise<() => void> {
    this.watching.add(listener)
    return () => this.watching.delete(listener)
  }

  ring(tune: string): void {
    this.#count++
    for (const listener of this.ringing) listener(tune)
    for (const listener of this.watching) listener.rang(tune)
  }

  async tune(tune: string): Promise<void> {
    for (const listener of this.tuning) await listener(tune)
  }

  get size(): number {
    return this.ringing.size + this.tuning.size + this.watching.size
  }
}

const provider = (tower: Tower) => definePack({ name: 'tower', provides: [Bells], setup: ctx => void ctx.provide(Bells, tower) })
const boom = () => {
  throw new Error('boom')
}

test('a listener of a service that throws or rejects is a fault of the pack that handed it in, and the others hear all the same', async t => {
  const tower = new Tower()
  const heard: string[] = []
  const clumsy = definePack({
    name: 'clumsy',
    needs: { bells: Bells },
    async setup(_ctx, { bells }) {
      bells.onRing(boom)
      bells.onRing(async () => boom())
      await bells.watch('all', { rang: boom })
      bells.onTune(async () => boom())
    }
  })
  const careful = definePack({
    name: 'careful',
    optional: { bells: Bells },
    async setup(_ctx, { bells }) {
      assert.equal(bells(), bells(), 'one service is the same object at every question')
      bells()?.onRing(tune => heard.push(`ring ${tune}`))
      await bells()?.watch('all', {
        name: 'mine',
        rang(tune) {
          heard.push(`${this.name} ${tune}`)
        }
      })
      bells()?.onTune(async tune => heard.push(`tune ${tune} ${bells()?.count}`))
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [provider(tower), clumsy, careful] })

  tower.ring('a')
  await tower.tune('b')

  assert.deepEqual(heard, ['ring a', 'mine a', 'tune b 1'])
  const faults = (name: string) => kernel.features().find(one => one.name === name)?.meta.faults
  assert.deepEqual(faults('clumsy'), { count: 4, last: 'listener of bells.onTune: boom' })
  assert.equal(faults('tower'), undefined)
  assert.equal(faults('careful'), undefined)
})

test('an awaited listener that never answers is given up after the time limit, and is a fault of its pack', async t => {
  const tower = new Tower()
  const hanging = definePack({
    name: 'hanging',
    needs: { bells: Bells },
    setup: (_ctx, { bells }) => void bells.onTune(() => new Promise(() => undefined))
  })
  const { kernel } = await startTestKernel(t, { packs: [provider(tower), hanging], frameTimeoutMs: 20 })

  await tower.tune('a')

  assert.match(kernel.features().find(one => one.name === 'hanging')?.meta.faults?.last ?? '', /^listener of bells\.onTune: /)
})

test('listeners of a service leave with the pack that handed them in, or by their undo, and a pack that is gone can add none', async t => {
  const tower = new Tower()
  const undos: (() => void)[] = []
  let kept: { readonly ctx: PackContext; readonly bells: Bells } | undefined
  const guest = definePack({
    name: 'guest',
    needs: { bells: Bells },
    async setup(ctx, { bells }) {
      kept = { ctx: ctx as unknown as PackContext, bells }
      undos.push(
        bells.onRing(() => undefined),
        await bells.watch('all', { rang: () => undefined })
      )
      bells.onRing(() => undefined)
      bells.onTune(() => undefined)
      await bells.watch('all', { rang: () => undefined })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [provider(tower), guest] })
  assert.equal(tower.size, 5)
  for (const undo of undos) undo()
  assert.equal(tower.size, 3)

  await kernel.unload('guest')

  assert.equal(tower.size, 0)
  assert.throws(() => kept?.bells.onRing(() => undefined), { code: 'pack_inactive' })
  await assert.rejects(async () => kept?.bells.watch('all', { rang: () => undefined }), { code: 'pack_inactive' })
  assert.equal(tower.size, 0)
  assert.equal(kept?.bells.count, 0)
})

test('an undo of a listener that fails is put down to the pack that called it, and ends nothing else', async t => {
  class Stuck extends Tower {
    override onRing = () => boom
  }
  const undos: (() => void)[] = []
  const guest = definePack({
    name: 'guest',
    needs: { bells: Bells },
    setup: (_ctx, { bells }) => void undos.push(bells.onRing(() => undefined))
  })
  const { kernel } = await startTestKernel(t, { packs: [provider(new Stuck()), guest] })
  for (const undo of undos) undo()
  assert.equal(kernel.features().find(({ name }) => name === 'guest')?.meta.faults?.last, 'undo of the listener of bells.onRing: boom')
})

test('what is no listener is refused where it is handed in', async t => {
  const odd = definePack({
    name: 'odd',
    needs: { bells: Bells },
    setup: (_ctx, { bells }) => void bells.onRing('loud' as never)
  })
  const { kernel } = await startTestKernel(t, { packs: [provider(new Tower()), odd] })
  assert.match(kernel.features().find(one => one.name === 'odd')?.meta.error ?? '', /the listener of bells\.onRing/)
})
