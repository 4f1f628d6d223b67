/** Storage and journals are ports: another engine passes the published suites, and a kernel runs on it. */
import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { defineEvent, definePack, defineRoute, defineStore, Type } from '../../kernel/index.ts'
import { journalSuite, startTestKernel, storageSuite } from '../../kernel/testing.ts'
import { type MemoryOfJournals, memoryJournals } from '../helpers/memory-journals.ts'
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

journalSuite('memory', async () => {
  const memory: MemoryOfJournals = new Map()
  return { journals: memoryJournals(memory), reopen: async () => memoryJournals(memory) }
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

const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: note })
const emitter = definePack({
  name: 'emitter',
  setup(ctx) {
    const emit = ctx.event(noted)
    ctx.tap(ctx.hooks.attachStream, () => 'live' as const)
    ctx.route(addNote, async ({ body }) => {
      emit(body, 's1')
      await ctx.streams.flushed('s1')
      return body
    })
  }
})

test('events are journaled in the engine that the kernel was given, and replayed from it', async t => {
  const memory: MemoryOfJournals = new Map()
  const { call, connect, home } = await startTestKernel(t, { packs: [emitter], journal: () => memoryJournals(memory) })
  for (const text of ['a', 'b', 'c']) await call(addNote, { body: { text } })
  const { epoch, seq } = memory.get('s1') ?? {}
  assert.equal(seq, 3)
  const socket = await connect()
  await socket.request('subscribe', { session_ids: ['s1'], cursors: { s1: { seq: 1, epoch } } })
  assert.deepEqual(
    socket.frames.filter(frame => frame.type === noted.type).map(frame => frame.seq),
    [2, 3]
  )
  assert.ok(!(await readdir(home, { recursive: true })).some(name => name.endsWith('.jsonl')))
})
