/** Order, bounds and ends of searches by name; searches by content that end early. */
import assert from 'node:assert/strict'
import { mkdirSync, rmdirSync } from 'node:fs'
import { symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import threads, { Worker } from 'node:worker_threads'
import { grep } from '../../../features/file-search/grep.ts'
import type { SearchEngine } from '../../../features/file-search/index.ts'
import { NameTree } from '../../../features/file-search/name-tree.ts'
import { Names } from '../../../features/file-search/names.ts'
import fileSearch from '../../../features/file-search/pack.ts'
import { SecondLook } from '../../../features/file-search/second-look.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { latch } from '../../helpers/latch.ts'
import { freshDir } from '../../helpers/temp.ts'
import { fileScene } from '../fs/scene.ts'

async function scene(t: TestContextLike, paths: readonly string[], config: object = {}) {
  const files = await fileScene(t, [fileSearch], { config: { 'file-search': config } })
  for (const path of paths) await files.put(path)
  const answer = (data: unknown) => {
    const { items, truncated } = data as { items: { path: string }[]; truncated: boolean }
    return { paths: items.map(({ path }) => path), truncated }
  }
  return {
    ...files,
    search: async (body: object) => answer((await files.ask('search', body)).data),
    suggest: async (body: object) =>
      answer((await files.rest.json('POST', '/api/v1/workspace/fs:suggest', { workspace: files.cwd, ...body })).data)
  }
}

test('hits of equal score come in the order of their paths, also where the limit cuts between them', async t => {
  const names = Array.from({ length: 30 }, (_, n) => `d${String(29 - n).padStart(2, '0')}/same.ts`)
  const { search } = await scene(t, names)
  const sorted = [...names].sort()
  assert.deepEqual(await search({ query: 'same' }), { paths: sorted, truncated: false })
  assert.deepEqual(await search({ query: 'same', limit: 7 }), { paths: sorted.slice(0, 7), truncated: true })
})

test('as many hits as the limit says are all, one more is cut', async t => {
  const { search, suggest } = await scene(t, ['a1', 'a2', 'a3'])
  for (const ask of [search, suggest])
    for (const query of ['a', ''])
      assert.deepEqual(
        [(await ask({ query, limit: 3 })).truncated, (await ask({ query, limit: 2 })).truncated],
        [false, true],
        JSON.stringify(query)
      )
})

test('what is suggested is nearer first, then shorter; globs hold for the top level, too', async t => {
  const { search, suggest } = await scene(t, ['sub/ab', 'abcd', 'abc', 'z.ts'])
  assert.deepEqual((await suggest({ query: 'ab' })).paths, ['sub/ab', 'abc', 'abcd'])
  assert.deepEqual((await suggest({ query: 'b' })).paths, ['abc', 'sub', 'abcd', 'sub/ab'])
  for (const ask of [search, suggest]) {
    assert.deepEqual((await ask({ query: '', include_globs: ['*.ts'] })).paths, ['z.ts'])
    assert.deepEqual((await ask({ query: '', exclude_globs: ['ab*', 'sub'] })).paths, ['z.ts'])
  }
})

test('a tree that is too deep is searched as far as it goes, which is said; a query too long for any name finds nothing', async t => {
  const deep = `${'d/'.repeat(70)}deepest`
  const { search } = await scene(t, ['shallow', deep])
  assert.deepEqual(await search({ query: 'shallow' }), { paths: ['shallow'], truncated: true })
  assert.deepEqual(await search({ query: 'deepest' }), { paths: [], truncated: true })
  assert.deepEqual(await search({ query: 'd'.repeat(513) }), { paths: [], truncated: false })
})

test('a workspace that is reached through a link is searched where it is', async t => {
  const { cwd, dir, put, rest } = await scene(t, [])
  await put('here.txt', 'needle\n')
  await symlink(cwd, join(dir, 'link'))
  const { data } = await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: join(dir, 'link') } })
  const at = `/api/v1/sessions/${(data as { id: string }).id}`
  const found = async (action: string, body: object) =>
    JSON.stringify((await rest.json('POST', `${at}/fs:${action}`, body)).data).includes('"here.txt"')
  assert.deepEqual(
    [await found('search', { query: 'here' }), await found('grep', { pattern: 'needle' }), await found('list', {})],
    [true, true, true]
  )
})

test('the thread that keeps the names ends when nobody has asked for a while, and the next search starts another', async t => {
  const { opened, open } = latch()
  const { terminate } = Worker.prototype
  t.mock.method(Worker.prototype, 'terminate', function (this: Worker) {
    open()
    return terminate.call(this)
  })
  const { search } = await scene(t, ['a'], { names_idle_ms: 1 })
  assert.deepEqual((await search({ query: 'a' })).paths, ['a'])
  await opened
  assert.deepEqual((await search({ query: 'a' })).paths, ['a'])
})

const asked = {
  pattern: 'x',
  regex: false,
  case_sensitive: true,
  follow_gitignore: true,
  max_files: 100,
  max_matches_per_file: 2,
  max_total_matches: 2,
  context_lines: 1,
  runtime_id: 'local'
}
const row = (line: number) => ({ line, text: 'x', col: 1 })

/** An engine that hands over these files, as long as more is wanted, and ends. */
const engineOf = (files: readonly string[], end: Awaited<ReturnType<SearchEngine['grep']>>): SearchEngine => ({
  list: async () => undefined,
  grep: async (_request, onFile) => {
    files.every(path => onFile({ path, rows: [row(1)] }))
    return end
  }
})

test('what was found before a search ran out of time is answered as a part', async () => {
  const { signal } = new AbortController()
  const { files, truncated, files_scanned } = await grep('/', asked, 20, signal, engineOf(['a'], { partial: 'time', scanned: 7 }))
  assert.deepEqual([files.map(({ path }) => path), truncated, files_scanned], [['a'], true, 7])
  await assert.rejects(grep('/', asked, 20, signal, engineOf([], { partial: 'time' })), { code: 41305 })
  const whole = await grep('/', asked, 20, signal, engineOf(['b', 'a'], {}))
  assert.deepEqual([whole.files.map(({ path }) => path), whole.truncated], [['a', 'b'], false], 'exactly as many matches as are wanted')
  assert.equal((await grep('/', asked, 20, signal, engineOf(['a', 'b', 'c'], {}))).truncated, true)
})

test('a search that is cut in some files is told as a part, however it ends in those that were looked into beside them', async t => {
  const { cwd, put } = await fileScene(t)
  const names = Array.from({ length: 257 }, (_, at) => `f${at}`)
  for (const name of names) await put(name)
  const cut = latch()
  const second = new SecondLook(cwd, async ({ length }) => {
    if (length === 1) return await cut.opened.then(() => undefined)
    setImmediate(cut.open)
    return 'size'
  })
  for (const name of names) second.add(name)
  assert.equal(await second.end(), 'size')
})

test('searches beside each other hold few files each', async t => {
  const { cwd, put } = await fileScene(t)
  const names = Array.from({ length: 300 }, (_, at) => `f${at}`)
  for (const name of names) await put(name)
  const all = latch()
  let [begun, held, most] = [0, 0, 0]
  const looks = Array.from({ length: 10 }, () => {
    return new SecondLook(cwd, async ({ length }) => {
      held += length
      most = Math.max(most, held)
      if (++begun === 20) all.open()
      await all.opened
      held -= length
      return undefined
    })
  })
  for (const look of looks) for (const name of names) look.add(name)
  await Promise.all(looks.map(look => look.end()))
  assert.ok(most >= 512 && most < 1000, `${most} of ${looks.length * names.length}`)
})

test('names of many directories that went together are forgotten in less time than it took to read them', async () => {
  const root = await freshDir()
  const dirs = Array.from({ length: 12_000 }, (_, n) => join(root, `d${n}`))
  for (const dir of dirs) mkdirSync(dir)
  const tree = new NameTree(root, true)
  const looked = async () => {
    const began = performance.now()
    const { length } = await tree.names()
    return { length, ms: performance.now() - began }
  }
  const read = await looked()
  for (const dir of dirs) rmdirSync(dir)
  const gone = await looked()
  assert.deepEqual([read.length, gone.length, tree.size], [12_000, 0, 0])
  assert.ok(gone.ms < read.ms, `${gone.ms} ms, not ${read.ms}`)
})

test('the thread of the names ends when nobody asks any more, also after one that could not be had', { timeout: 10_000 }, async t => {
  const names = new Names(1)
  t.after(() => names.close())
  const query = { mode: 'fuzzy', root: await freshDir(), follow_gitignore: true, show_hidden: false, query: 'a', limit: 1 } as const
  const find = () => names.find({ ...query, include: [], exclude: [] }, t.signal)
  t.mock.method(threads, 'Worker', (() => {
    throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
  }) as never)
  const restore = mockedBuiltins(t)
  await assert.rejects(find(), /EAGAIN/)
  restore()
  const ended = latch()
  const { terminate } = Worker.prototype
  t.mock.method(Worker.prototype, 'terminate', function (this: Worker) {
    ended.open()
    return terminate.call(this)
  })
  assert.deepEqual((await find()).items, [])
  await ended.opened
})
