import assert from 'node:assert/strict'
import { test } from 'node:test'
import { definePack, derived, extensionPoint } from '../../kernel/index.ts'
import { startTestKernel } from '../../kernel/testing.ts'

test('what follows from contributed items is made anew when one comes or goes, and only then', async t => {
  const words = extensionPoint<string>('words')
  let made = 0
  let joined = () => ''
  const reader = definePack({
    name: 'reader',
    setup(ctx) {
      const list = ctx.collect(words)
      joined = derived(
        () => [list.entries()],
        () => {
          made++
          return list.items().join(' ')
        }
      )
    }
  })
  const writer = definePack({
    name: 'writer',
    setup(ctx) {
      ctx.contribute(words, 'two')
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [reader, writer] })

  assert.deepEqual([joined(), joined(), made], ['two', 'two', 1])
  await kernel.unload('writer')
  assert.deepEqual([joined(), joined(), made], ['', '', 2])
  await kernel.load('writer')
  assert.deepEqual([joined(), made], ['two', 3])
})

test('a list that readers share cannot be changed by one of them', async t => {
  const words = extensionPoint<string>('words')
  let refused = 0
  const reader = definePack({
    name: 'reader',
    setup(ctx) {
      const list = ctx.collect(words)
      ctx.contribute(words, 'one')
      ctx.tap(ctx.hooks.started, () => {
        for (const shared of [list.items(), list.entries()] as unknown[][]) {
          try {
            shared.reverse()
            shared.push('another')
          } catch {
            refused++
          }
        }
      })
    }
  })
  await startTestKernel(t, { packs: [reader] })

  assert.equal(refused, 2)
})

test('a source that stays undefined is no change, and one that becomes undefined is', () => {
  let source: string | undefined
  let made = 0
  const value = derived(
    () => [source],
    () => ++made
  )

  assert.deepEqual([value(), value()], [1, 1])
  source = 'a'
  assert.equal(value(), 2)
  source = undefined
  assert.equal(value(), 3)
})
