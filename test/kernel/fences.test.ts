/** Rules of fences that packs hand in: what becomes of writes when one of them fails. */
import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { test } from 'node:test'
import { type DocumentStore, definePack, defineStore, Type } from '../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../kernel/testing.ts'

const notes = defineStore({ name: 'notes', value: Type.Object({ n: Type.Integer() }), kind: 'document' })
type Rule = Parameters<Parameters<Parameters<typeof definePack>[0]['setup']>[0]['fence']>[0]

async function scene(t: TestContextLike, ...rules: Rule[]) {
  let store: DocumentStore<{ n: number }> | undefined
  const writer = definePack({
    name: 'writer',
    setup: ctx => {
      store = ctx.store(notes)
    }
  })
  const keeper = definePack({
    name: 'keeper',
    setup: ctx => {
      for (const rule of rules) ctx.fence(rule)
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [writer, keeper] })
  const faults = () => Object.fromEntries(kernel.features().map(({ name, meta }) => [name, meta.faults]))
  return { store: store as DocumentStore<{ n: number }>, faults, home: kernel.home }
}

test('a rule that only fails has no say: other packs write, and the fault is its own', async t => {
  const { store, faults } = await scene(t, () => {
    throw new Error('no idea')
  })
  await store.put('a', { n: 1 })
  assert.deepEqual(await store.get('a'), { n: 1 })
  const { writer, keeper } = faults()
  assert.equal(writer, undefined)
  assert.equal(keeper?.last, 'rule of fences: no idea')
})

test('a rule that knows a lease and fails later may guard any file: it is not written, and the fault is its own', async t => {
  let fails = false
  const open = async () => undefined
  const { store, faults } = await scene(t, file => {
    if (fails) throw new Error('no idea')
    return { check: () => undefined, look: open, temporary: async () => `${file}~`, overtaken: false }
  })
  await store.put('a', { n: 1 })
  fails = true
  await assert.rejects(store.put('a', { n: 2 }), { code: 50003, message: /whether another server has taken over a\.json cannot be told/ })
  assert.deepEqual(await store.get('a'), { n: 1 })
  assert.equal(faults().writer, undefined)
  assert.equal(faults().keeper?.last, 'rule of fences: no idea')
})

test('what a lease guards is deleted and quarantined by its directory, where nothing of it stays', async t => {
  const { store, home } = await scene(t, file => ({
    check: () => undefined,
    look: async () => undefined,
    temporary: async () => join(dirname(file), 'lease', 'file'),
    overtaken: false
  }))
  const dir = join(home, 'packs', 'writer', 'notes')
  await mkdir(join(dir, 'lease'), { recursive: true })
  await store.put('a', { n: 1 })
  await store.delete('a')
  await writeFile(join(dir, 'b.json'), 'damaged')
  assert.equal(await store.get('b'), undefined)
  const left = await readdir(dir)
  assert.deepEqual([left.length, left.find(name => name !== 'lease')?.replace(/-.*/, '')], [2, 'b.json.damaged'])
  assert.deepEqual(await readdir(join(dir, 'lease')), [])
})

test('of several rules the first that knows a lease of a file counts; one that knows none has no say, also when it fails later', async t => {
  let fails = false
  const asked: string[] = []
  const { store, faults } = await scene(
    t,
    () => {
      if (fails) throw new Error('no idea')
      return undefined
    },
    file => ({
      check: () => undefined,
      look: async () => undefined,
      temporary: async () => {
        asked.push(basename(file))
        return `${file}~`
      },
      overtaken: false
    })
  )
  await store.put('a', { n: 1 })
  fails = true
  await store.put('b', { n: 2 })
  assert.deepEqual(asked, ['a.json', 'b.json'])
  assert.equal(faults().keeper?.last, 'rule of fences: no idea')
})
