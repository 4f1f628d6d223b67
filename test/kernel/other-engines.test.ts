/** Storage and journals are ports: another engine passes the published suites, and a kernel runs on it. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { definePack, defineRoute, defineStore, Type } from '../../kernel/index.ts'
import { startTestKernel, storageSuite } from '../../kernel/testing.ts'
import { type Memory, memoryStorage } from '../helpers/memory-storage.ts'

storageSuite('memory', async () => {
  const memory: Memory = new Map()
  const storage = memoryStorage(memory)
  return {
    storage,
    reopen: async () => {
      await storage.close()
      return memoryStorage(memory)
    }
  }
})

const note = Type.Object({ text: Type.String() })
const notes = defineStore({ name: 'notes', value: note })
const addNote = defineRoute({ method: 'POST', path: '/api/v1/notes', summary: 'Add a note', body: note, data: note })
const notebook = definePack({
  name: 'notebook',
  setup(ctx) {
    const store = ctx.store(notes)
    ctx.route(addNote, async ({ body }) => {
      await store.put('last', body)
      return body
    })
  }
})

test('a kernel keeps what its packs store in the engine that it was given, and closes it at the end', async t => {
  const memory: Memory = new Map()
  const ends: string[] = []
  const storage = () => {
    const engine = memoryStorage(memory)
    const close = async () => {
      ends.push('closed')
      await engine.close()
    }
    return { ...engine, close }
  }
  const { call, home, stop } = await startTestKernel(t, { packs: [notebook], storage })
  assert.equal((await call(addNote, { body: { text: 'x' } })).code, 0)
  assert.deepEqual([...(memory.get('kv:notebook/notes') ?? [])], [['last', '{"text":"x"}']])
  assert.ok(!(await readdir(home, { recursive: true })).includes(join('server', 'kv')))
  await stop()
  assert.deepEqual(ends, ['closed'])
})
