/** Searches for files over HTTP, by name and by content; by content with both engines. */
import assert from 'node:assert/strict'
import { mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { grep } from '../../../features/file-search/grep.ts'
import { canHold } from '../../../features/file-search/index.ts'
import fileSearch from '../../../features/file-search/pack.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { walker } from '../../../features/file-search/walker.ts'
import { fileScene } from '../fs/scene.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any
const paths = (answer: Json) => answer.data.items.map((item: Json) => item.path as string)

test('names are found with a score and the characters that match; ignored and hidden ones as the rules say', async t => {
  const { ask, put, cwd, dir } = await fileScene(t, [fileSearch])
  for (const path of [
    'src/user-controller.ts',
    'src/user.ts',
    'docs/users.md',
    '.config/user.json',
    'node_modules/user/index.js',
    'empty/x'
  ])
    await put(path)
  await put('.gitignore', 'node_modules/\n')
  await symlink(dir, join(cwd, 'user-link'))
  const found = await ask('search', { query: 'user' })
  assert.deepEqual(
    new Set(paths(found)),
    new Set(['src/user.ts', 'docs/users.md', 'src/user-controller.ts', '.config/user.json', 'user-link'])
  )
  const scores = found.data.items.map((item: Json) => item.score as number)
  assert.deepEqual(
    scores,
    [...scores].sort((a: number, b: number) => b - a)
  )
  assert.ok(scores.every((score: number) => score > 0 && score <= 1))
  const [hit] = found.data.items.filter((item: Json) => item.path === 'src/user.ts')
  assert.deepEqual([hit.name, hit.kind, hit.match_positions], ['user.ts', 'file', [4, 5, 6, 7]])
  assert.equal(found.data.items.find((item: Json) => item.path === 'user-link').kind, 'symlink')
  assert.deepEqual(paths(await ask('search', { query: 'usrctl' })), ['src/user-controller.ts'])
  assert.ok(paths(await ask('search', { query: 'user', follow_gitignore: false })).includes('node_modules/user/index.js'))
  assert.deepEqual(paths(await ask('search', { query: 'user', include_globs: ['*.ts'], exclude_globs: ['user.ts'] })), [
    'src/user-controller.ts'
  ])
  const cut = await ask('search', { query: 'user', limit: 1 })
  assert.deepEqual([cut.data.items.length, cut.data.truncated], [1, true])
  const top = await ask('search', { query: '' })
  assert.deepEqual(paths(top), ['docs', 'empty', 'src', 'user-link'])
  assert.deepEqual([top.data.items[0].score, top.data.items[0].match_positions], [1, []])
  assert.equal((await ask('search', {})).details[0].path, 'body.query')
  assert.equal((await ask('search', { query: 'x', limit: 201 })).code, 40001)
  assert.equal((await ask('search', { query: 'x', runtime_id: 'r' })).code, 40420)
})

test('what is made, renamed, removed or ignored since the last search counts in the next one', async t => {
  const { ask, put, cwd } = await fileScene(t, [fileSearch])
  await put('a/one.ts')
  const all = async () => paths(await ask('search', { query: 'ts' })).sort()
  assert.deepEqual(await all(), ['a/one.ts'])
  await put('a/two.ts')
  await put('b/c/three.ts')
  assert.deepEqual(await all(), ['a/one.ts', 'a/two.ts', 'b/c/three.ts'])
  await rename(join(cwd, 'b'), join(cwd, 'd'))
  await rm(join(cwd, 'a/one.ts'))
  assert.deepEqual(await all(), ['a/two.ts', 'd/c/three.ts'])
  await put('.gitignore', 'two.ts\n')
  assert.deepEqual(await all(), ['d/c/three.ts'])
  await put('d/.gitignore', 'c/\n')
  assert.deepEqual(await all(), [])
  await put('d/.gitignore', '')
  assert.deepEqual(await all(), ['d/c/three.ts'])
})

test('a working directory that is gone, or that a file has replaced, is 40409', async t => {
  const { ask, cwd } = await fileScene(t, [fileSearch])
  const asked = { search: { query: 'x' }, grep: { pattern: 'x' } }
  await rm(cwd, { recursive: true })
  for (const [action, body] of Object.entries(asked)) assert.equal((await ask(action, body)).code, 40409, action)
  await writeFile(cwd, 'a file')
  for (const [action, body] of Object.entries(asked)) assert.equal((await ask(action, body)).code, 40409, action)
})

test('a workspace stands in for a session, by its id or its directory; unknown ones have their own codes', async t => {
  const { rest, put, cwd, dir } = await fileScene(t, [fileSearch])
  await put('here.txt')
  const post = async (path: string, body: object): Promise<Json> => await rest.json('POST', `/api/v1/${path}`, body)
  const [{ id }] = ((await rest.json('GET', '/api/v1/workspaces')).data as Json).items
  const query = { query: 'here' }
  for (const slot of [id, encodeURIComponent(cwd)]) assert.deepEqual(paths(await post(`sessions/${slot}/fs:search`, query)), ['here.txt'])
  assert.equal((await post('sessions/session_none/fs:search', query)).code, 40401)
  assert.equal((await post(`sessions/${encodeURIComponent('/no/where')}/fs:search`, query)).code, 40401)
  for (const workspace of [id, cwd]) assert.deepEqual(paths(await post('workspace/fs:search', { ...query, workspace })), ['here.txt'])
  const other = join(dir, 'other')
  await mkdir(other)
  await writeFile(join(other, 'here too'), '')
  assert.deepEqual(paths(await post('workspace/fs:search', { ...query, workspace: other })), ['here too'])
  assert.equal(((await rest.json('GET', '/api/v1/workspaces')).data as Json).items.length, 2)
  for (const workspace of ['wd_x_000000000000', 'relative', '/no/where', join(cwd, 'here.txt')])
    for (const action of ['search', 'suggest'])
      assert.equal((await post(`workspace/fs:${action}`, { ...query, workspace })).code, 40410, workspace)
  assert.equal((await post('workspace/fs:suggest', { workspace: cwd })).details[0].path, 'body.query')
  assert.equal((await post('workspace/fs:suggest', { workspace: cwd, ...query, runtime_id: 'r' })).code, 40420)
})

test('a directory that is registered is searched, not registered again: nobody is told, and its row stays', async t => {
  const { rest, cwd, put, events } = await fileScene(t, [fileSearch])
  await put('here.txt')
  const rows = async () => ((await rest.json('GET', '/api/v1/workspaces')).data as Json).items
  const before = await rows()
  const told = events.length
  for (const workspace of [cwd, `${cwd}/`, `${cwd}/.`])
    for (const action of ['search', 'suggest']) {
      const { data } = await rest.json('POST', `/api/v1/workspace/fs:${action}`, { workspace, query: 'here' })
      assert.deepEqual(paths({ data }), ['here.txt'])
    }
  assert.deepEqual(paths(await rest.json('POST', `/api/v1/sessions/${encodeURIComponent(cwd)}/fs:search`, { query: 'here' })), ['here.txt'])
  assert.deepEqual([await rows(), events.slice(told)], [before, []])
})

test('a path that is being typed is completed: whole names, beginnings, then parts; directories before a slash', async t => {
  const { rest, put, cwd } = await fileScene(t, [fileSearch])
  for (const path of ['sub/b.ts', 'sub/deep/sub.md', 'n/a/b', 'subway.ts', 's-u-b.ts', '.sub/hidden', 'out/sub']) await put(path)
  await put('.gitignore', 'out/\n')
  const suggest = async (query: string, more: object = {}): Promise<Json> =>
    await rest.json('POST', '/api/v1/workspace/fs:suggest', { workspace: cwd, query, ...more })
  const sub = await suggest('sub')
  assert.deepEqual(paths(sub), ['sub', 'subway.ts', 'sub/deep/sub.md', 's-u-b.ts'])
  assert.deepEqual([sub.data.items[0].kind, sub.data.items[0].match_positions], ['directory', [0, 1, 2]])
  assert.deepEqual(paths(await suggest('sub/')), ['sub', 'sub/b.ts', 'sub/deep'])
  assert.deepEqual(paths(await suggest('sub/dee/md')), ['sub/deep/sub.md'])
  assert.deepEqual(paths(await suggest('n/b')), ['n/a/b'])
  assert.equal((await suggest('b')).data.items[0].score, (1 / 4) * (3 + 0.5 / 3 + 0.5))
  assert.equal(Number((await suggest('sb')).data.items[0].score.toFixed(4)), 0.4583)
  assert.deepEqual(paths(await suggest('/')), [])
  assert.deepEqual(paths(await suggest('')), ['n', 'sub', 's-u-b.ts', 'subway.ts'])
  assert.ok(paths(await suggest('sub', { show_hidden: true })).includes('.sub'))
  assert.ok(paths(await suggest('sub', { follow_gitignore: false })).includes('out/sub'))
  assert.deepEqual(paths(await suggest('sub', { include_globs: ['*.md'] })), ['sub/deep/sub.md'])
  await put('İstanbul.txt')
  await put('😀 smile.txt')
  for (const query of ['stan', 'istanbul', 'İstanbul', 'itl', '😀', '😀 s', '😀l']) {
    const [hit] = (await suggest(query)).data.items
    const spelled = hit.match_positions.map((at: number) => hit.name[at]).join('')
    assert.equal(spelled.toLowerCase().replace('\u0307', ''), query.toLowerCase().replace('\u0307', ''), query)
  }
})

test('a name is found whichever way it and the query spell letters with marks, and the positions are those of the name', async t => {
  const { rest, ask, put, cwd } = await fileScene(t, [fileSearch])
  const suggest = (query: string) => rest.json('POST', '/api/v1/workspace/fs:suggest', { workspace: cwd, query })
  const words = ['grün', '한글', 'がく']
  for (const form of ['NFC', 'NFD']) for (const word of words) await put(`${form}-é/${word}.md`.normalize(form))
  for (const spelled of ['NFC', 'NFD'])
    for (const word of words)
      for (const answer of [await ask('search', { query: word.normalize(spelled) }), await suggest(word.normalize(spelled))]) {
        const { items } = (answer as Json).data
        assert.deepEqual(items.map((hit: Json) => hit.path.slice(0, 3)).sort(), ['NFC', 'NFD'], `${word} as ${spelled}`)
        for (const { path, match_positions } of items)
          assert.equal(
            match_positions
              .map((at: number) => path[at])
              .join('')
              .normalize('NFC'),
            word
          )
      }
})

test('lines are found with column, neighbours and budgets', async t => {
  const { ask, put, cwd } = await fileScene(t, [fileSearch])
  await put('a.ts', 'one\ntwo (x)\nthree\nfour\nTWO (x) two (x)\n')
  await put('b/c.md', 'grüße two (x)\n')
  await put('skip.log', 'two (x)\n')
  await put('.hidden', 'two (x)\n')
  await put('.gitignore', '*.log\n')
  const { code, data } = await ask('grep', { pattern: 'two (x)' })
  assert.equal(code, 0)
  assert.deepEqual(data.files, [
    { path: '.hidden', matches: [{ line: 1, col: 1, text: 'two (x)', before: [], after: [] }] },
    {
      path: 'a.ts',
      matches: [
        { line: 2, col: 1, text: 'two (x)', before: ['one'], after: ['three', 'four'] },
        { line: 5, col: 9, text: 'TWO (x) two (x)', before: ['three', 'four'], after: [] }
      ]
    },
    { path: 'b/c.md', matches: [{ line: 1, col: 7, text: 'grüße two (x)', before: [], after: [] }] }
  ])
  assert.deepEqual([data.truncated, data.files_scanned >= 3], [false, true])
  const files = async (body: object) =>
    (await ask('grep', { pattern: 'two', context_lines: 0, ...body })).data.files.map((file: Json) => [
      file.path,
      ...file.matches.map((match: Json) => match.line)
    ])
  assert.deepEqual(await files({ case_sensitive: false, include_globs: ['*.ts'] }), [['a.ts', 2, 5]])
  assert.deepEqual(await files({ pattern: '^t\\w+ \\(', regex: true, exclude_globs: ['.hidden'] }), [['a.ts', 2]])
  assert.deepEqual(await files({ include_globs: ['b'] }), [['b/c.md', 1]])
  assert.deepEqual(await files({ include_globs: ['*.log'] }), [], 'a glob finds nothing that is ignored')
  assert.deepEqual(await files({ include_globs: ['*.log'], follow_gitignore: false }), [['skip.log', 1]])
  for (const budget of [{ max_files: 1 }, { max_matches_per_file: 1 }, { max_total_matches: 2 }]) {
    const cut = (await ask('grep', { pattern: 'two', ...budget })).data
    assert.equal(cut.truncated, true, JSON.stringify(budget))
    const total = cut.files.reduce((sum: number, file: Json) => sum + file.matches.length, 0)
    assert.ok(total <= (budget.max_total_matches ?? 3))
    assert.ok(cut.files.length <= (budget.max_files ?? 3))
  }
  const bad = await ask('grep', { pattern: '(', regex: true })
  assert.deepEqual([bad.code, bad.details[0].path], [40001, 'body.pattern'])
  assert.equal((await ask('grep', { pattern: '' })).code, 40001)
  const field = async (body: object) => (await ask('grep', body)).details[0].path
  assert.equal(await field({ pattern: 'a\0b' }), 'body.pattern')
  assert.equal(await field({ pattern: 'a', exclude_globs: ['x', 'a\0b'] }), 'body.exclude_globs.1')
  assert.equal((await ask('grep', { pattern: '(' })).code, 0)
  assert.deepEqual((await ask('grep', { pattern: 'nowhere to be found' })).data.files, [])
  assert.ok(cwd)
})

const asked = {
  pattern: 'beta',
  regex: false,
  case_sensitive: true,
  follow_gitignore: true,
  max_files: 100,
  max_matches_per_file: 2,
  max_total_matches: 100,
  context_lines: 1,
  runtime_id: 'local'
}
const { signal } = new AbortController()
const program = await findRipgrep(process.env)
const engines = [walker, ...(program === undefined ? [] : [createRipgrep(program)])]

test('both engines answer alike, whatever is asked', async t => {
  if (program === undefined) return t.skip('no ripgrep here')
  const { put, cwd } = await fileScene(t)
  await put('src/a.ts', 'alpha beta\nbeta\n\ngamma beta beta\r\nomega\n')
  await put('src/deep/b.tsx', 'beta'.repeat(3))
  await put('docs/x.md', `${'x'.repeat(5000)} beta ${'y'.repeat(5000)}\n`)
  await put('wide.txt', Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('wide beta\n', 'utf16le')]))
  await put('binary', Buffer.from('beta\0beta'))
  await put('src/.gitignore', 'deep/\n!keep\n')
  await put('src/keep', 'beta')
  await put('.hidden/h', 'beta')
  await put('mark.txt', '\ufeffbeta\n')
  await put('signs.txt', 'ÄÖ straße "b" [] {} a-b 12. ü\n0x\n 😀 beta\n\u2028beta\u2028\nBETA ẞ\n')
  await put('returns.txt', 'a\rbeta\rb beta\n')
  const long = `${'x'.repeat(63)}\n`.repeat(1024)
  await put('late', `beta\n${long}beta\n\0\nbeta\n`)
  const regular = (pattern: string) => ({ pattern, regex: true })
  for (const more of [
    {},
    { follow_gitignore: false },
    { include_globs: ['src/**/*.ts'] },
    { include_globs: ['src', '*.md'] },
    { exclude_globs: ['src/**'] },
    { exclude_globs: ['[', 'docs', '{a,b'] },
    { pattern: 'BETA', case_sensitive: false },
    { max_matches_per_file: 1 },
    { pattern: '"b" [' },
    { pattern: 'ß', case_sensitive: false },
    ...['a$', '^beta', '\\w+ße', '[^a-z]beta', '\\s\\S+$', 'a\\r'].map(regular)
  ]) {
    const body = { ...asked, ...more }
    const one = await grep(cwd, body, 20_000, signal, walker)
    const two = await grep(cwd, body, 20_000, signal, createRipgrep(program))
    assert.deepEqual(one.files, two.files, JSON.stringify(more))
    assert.deepEqual(one.truncated, two.truncated, JSON.stringify(more))
    assert.ok(one.files.length > 0, JSON.stringify(more))
  }
})

test('both engines see a NUL that comes with a line longer than what is read at a time', async t => {
  if (program === undefined) return t.skip('no ripgrep here')
  // Alone: ripgrep reads more at a time of what its thread reads after it.
  const { put, cwd } = await fileScene(t)
  await put('long', `${'x'.repeat(70_000)}\nbeta\n\0\n`)
  for (const engine of engines) assert.deepEqual((await grep(cwd, asked, 20_000, signal, engine)).files, [])
})

test('a pattern with a line break, and one that is no regular expression, are refused', async t => {
  const { cwd } = await fileScene(t)
  for (const engine of engines)
    for (const [pattern, regex] of [
      ['a\nb', false],
      ['a\\nb', true],
      ['(', true],
      ['x(?=x)', true]
    ] as const)
      await assert.rejects(grep(cwd, { ...asked, pattern, regex }, 20_000, signal, engine), { code: 40001 }, pattern)
})

test('the column counts characters of the line that is shown, also where its bytes are no UTF-8', async t => {
  const { put, cwd } = await fileScene(t)
  await put('latin1.txt', Buffer.from('äöü beta ü\n', 'latin1'))
  for (const engine of engines) {
    const [file] = (await grep(cwd, asked, 20_000, signal, engine)).files
    const { col, text } = file!.matches[0]!
    assert.deepEqual([col, text.slice(col - 1, col + 3)], [5, 'beta'])
  }
})

test('a file that is no text further on takes no match from another one, whatever that is called', async t => {
  const { put, cwd } = await fileScene(t)
  await put('aa', `beta\n${'x'.repeat(100_000)}\0\n`)
  await put('line\nbreak', 'beta\n')
  for (let n = 0; n < 10; n++) await put(`z${n}`, 'beta\nbeta\n')
  for (const engine of engines) {
    const { files } = await grep(cwd, asked, 20_000, signal, engine)
    const lines = files.map(({ path, matches }) => [path, ...matches.map(({ line }) => line)])
    assert.deepEqual(lines, [['aa', 1], ...(canHold ? [['line\nbreak', 1]] : []), ...Array.from({ length: 10 }, (_, n) => [`z${n}`, 1, 2])])
  }
})

test('a file whose name is no text is shown by nothing, one with the sign for such a name by all', async t => {
  const { ask, put, cwd } = await fileScene(t, [fileSearch])
  const made = await writeFile(Buffer.concat([Buffer.from(`${cwd}/na`), Buffer.from([0xff]), Buffer.from('me')]), 'needle').catch(
    () => 'none'
  )
  if (made === 'none') return t.skip('this file system takes no such name')
  await put('na\ufffdmore', 'needle')
  const listed = await ask('list', {})
  assert.deepEqual(paths(listed), ['na\ufffdmore'])
  assert.deepEqual(paths(await ask('search', { query: 'na' })), ['na\ufffdmore'])
  for (const engine of engines) {
    const found: string[] = []
    const collect = (path: string) => found.push(path) > 0
    await engine.list({ root: cwd, include_ignored: true }, collect, AbortSignal.timeout(10_000))
    assert.deepEqual(found, ['na\ufffdmore'])
  }
  assert.deepEqual(
    (await ask('grep', { pattern: 'needle' })).data.files.map((file: Json) => file.path),
    ['na\ufffdmore']
  )
})

test('a pattern that never ends is told as a search that took too long', async t => {
  const { put, cwd } = await fileScene(t)
  await put('a', `${'a'.repeat(40)}!\n`)
  const body = { ...asked, pattern: '(a+)+$', regex: true }
  await assert.rejects(grep(cwd, body, 300, signal, walker), { code: 41305 })
})
