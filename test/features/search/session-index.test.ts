/** The index of a home that is written by hand: what it keeps on disk, takes over and builds anew. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { SessionIndex } from '../../../features/search/session-index.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { freshDir } from '../../helpers/temp.ts'

const message = (text: string) => `${JSON.stringify({ type: 'message', role: 'user', content: [{ type: 'text', text }], time: 5 })}\n`

async function home() {
  const root = await freshDir()
  const dir = join(root, 'sessions', 'w', 's1')
  const journal = join(dir, 'agents/main/wire.jsonl')
  await mkdir(join(dir, 'agents/main'), { recursive: true })
  await writeFile(journal, message('one'))
  const state = (more: object) => writeFile(join(dir, 'state.json'), JSON.stringify({ title: 'Figs', updated_at: '2026-01-01', ...more }))
  await state({})
  const open = async (writes = true) => {
    const index = new SessionIndex(root)
    index.writes = writes
    await index.look()
    return index
  }
  const texts = (index: SessionIndex) =>
    Array.from({ length: index.corpus.end }, (_, id) => index.corpus.at(id))
      .flatMap(document => (document && document.role !== 'title' ? [index.textOf(document)] : []))
      .sort()
  return { snapshots: join(root, 'search'), journal, state, open, texts }
}

test('who takes the snapshots over writes what it read before, and the next one reads no journal for it', async () => {
  const { journal, open, texts } = await home()
  await open()
  const reader = await open(false)
  await appendFile(journal, message('two'))
  await reader.look()
  reader.writes = true
  await appendFile(journal, message('three'))
  await reader.look()
  const lines = await readFile(journal)
  await writeFile(journal, Buffer.alloc(lines.length, ' '))
  assert.deepEqual(texts(await open()), ['one', 'three', 'two'])
})

test('snapshots of sessions that are archived or gone are removed by the process that keeps them', async () => {
  const { snapshots, state, open } = await home()
  await open()
  await writeFile(join(snapshots, 's2.jsonl'), '{}')
  await writeFile(join(snapshots, 's1.jsonl~'), '{}')
  await open(false)
  assert.equal((await readdir(snapshots)).length, 3)
  await open()
  assert.deepEqual(await readdir(snapshots), ['s1.jsonl'])
  await state({ archived: true })
  await open()
  assert.deepEqual(await readdir(snapshots), [])
})

test('an index of which most is gone is built anew without it, and tokens of pages before are void; another one stays', async () => {
  const { journal, open, texts } = await home()
  const index = await open()
  const { generation } = index
  await index.look()
  assert.equal(index.generation, generation)
  const many = Array.from({ length: 20_010 }, (_, n) => message(`many ${n}`))
  await appendFile(journal, `${many.join('')}{"type":"context.undone","from":1}\n${message('two')}${message('three')}`)
  await index.look()
  assert.deepEqual([index.corpus.end, index.corpus.size, index.generation === generation], [4, 4, false])
  assert.deepEqual(texts(index), ['one', 'three', 'two'])
  await appendFile(journal, '{"type":"context.undone","from":20012}\n')
  await index.look()
  assert.deepEqual(texts(index), ['one', 'two'])
})

for (const call of ['readdirSync', 'statSync'] as const)
  test(`what the disk does not tell of (${call}) is not gone from the index, which says so`, async t => {
    const { open, texts } = await home()
    const index = await open()
    const { generation } = index
    t.mock.method(fs, call, () => {
      throw Object.assign(new Error('i/o error'), { code: 'EIO' })
    })
    const restore = mockedBuiltins(t)
    await index.look()
    assert.match(index.degraded ?? '', /could not be (looked for|read): EIO$/)
    assert.deepEqual(texts(index), ['one'])
    restore()
    await index.look()
    assert.deepEqual([texts(index), index.degraded, index.generation], [['one'], undefined, generation])
  })
