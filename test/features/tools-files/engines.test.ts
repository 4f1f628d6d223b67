/** Edges of Glob and Grep, the same with both search engines; then what only the built-in one has. */
import assert from 'node:assert/strict'
import { chmod, mkdir, symlink } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { test } from 'node:test'
import { Worker } from 'node:worker_threads'
import { cutAround, type SearchEngine } from '../../../features/file-search/index.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { walker } from '../../../features/file-search/walker.ts'
import { nodeFileOps } from '../../../features/tools-files/file-ops.ts'
import { newestFirst } from '../../../features/tools-files/newest.ts'
import { files } from './scene.ts'

const program = await findRipgrep(process.env)
const engines: readonly (readonly [string, SearchEngine])[] = [
  ['walker', walker],
  ...(program === undefined ? [] : [['ripgrep', createRipgrep(program)] as const])
]
const signal = new AbortController().signal
const sorted = (output: string) => output.split('\n').sort()

for (const [name, engine] of engines) {
  test(`${name}: ignore files of every kind and directory count, also without a repository; links are not followed`, async t => {
    const { call, put, cwd } = await files(t, engine)
    const texts = {
      '.gitignore': '*.log\n',
      'a/.ignore': '/x.ts\n',
      'b/.rgignore': 'y.ts\n',
      'a/x.ts': 'one',
      'a/in/x.ts': 'one',
      'b/y.ts': 'one',
      'x.log': 'one',
      'z.ts': 'one'
    }
    for (const [path, text] of Object.entries(texts)) await put(path, text)
    for (const dir of ['.git', '.hg', '.svn', '.jj', '.bzr']) await put(`b/${dir}/config.ts`, 'one')
    await symlink(join(cwd, 'z.ts'), join(cwd, 'link.ts'))
    assert.deepEqual(sorted((await call('Glob', { pattern: '*.{ts,log}' })).output), ['a/in/x.ts', 'z.ts'])
    assert.deepEqual(sorted((await call('Grep', { pattern: 'one' })).output), ['a/in/x.ts', 'z.ts'])
  })

  test(`${name}: patterns and names that look like options are none, and those of a line end match only line ends`, async t => {
    const { call, put } = await files(t, engine)
    await put('-v', 'a -e b\n')
    await put('empty.txt', 'x\n\ny\n')
    assert.equal((await call('Grep', { pattern: '-e', path: '-v', output_mode: 'content' })).output, '-v:1:a -e b')
    assert.match((await call('Grep', { pattern: '^$', output_mode: 'count_matches' })).output, /^empty\.txt:1\n/)
  })

  test(`${name}: a pattern that names carriage returns finds them, others need not know of them`, async t => {
    const { call, put } = await files(t, engine)
    await put('dos.txt', 'one\r\ntwo\r\n')
    await put('unix.txt', 'one\ntwo\n')
    const grep = async (pattern: string) => sorted((await call('Grep', { pattern })).output)
    assert.deepEqual(await grep('\\r$'), ['dos.txt'])
    assert.deepEqual(await grep('one\\r?$'), ['dos.txt', 'unix.txt'])
    assert.deepEqual(await grep('one$'), ['dos.txt', 'unix.txt'])
    assert.equal((await call('Grep', { pattern: 'one\\r', output_mode: 'content' })).output, 'dos.txt:1:one')
  })

  test(`${name}: behind the last result there is none to go on with`, async t => {
    const { call, put } = await files(t, engine)
    await put('a.txt', 'one\none\n')
    const { output } = await call('Grep', { pattern: 'one', output_mode: 'content', offset: 2 })
    assert.equal(output, 'There are only 2 lines: none from 2 on.')
  })

  test(`${name}: a match over several lines shows them all, and lines that are no neighbours only have a gap between them with context`, async t => {
    const { call, put } = await files(t, engine)
    await put('a.txt', 'one\ntwo\nthree\nfour\nfive\n')
    const grep = async (args: object) => (await call('Grep', { output_mode: 'content', path: 'a.txt', ...args })).output.split('\n')
    assert.deepEqual(await grep({ pattern: 'two.three', multiline: true }), ['a.txt:2:two', 'a.txt:3:three'])
    assert.deepEqual(await grep({ pattern: 'one|five' }), ['a.txt:1:one', 'a.txt:5:five'])
    assert.deepEqual(await grep({ pattern: 'three', '-A': 0, '-B': 0, '-C': 1 }), ['a.txt-2-two', 'a.txt:3:three', 'a.txt-4-four'])
  })

  test(`${name}: of many results 250 are shown, all when asked, and no more than fits an answer`, async t => {
    const { call, put } = await files(t, engine)
    await put('a.txt', 'line\n'.repeat(300))
    const grep = (args: object) => call('Grep', { pattern: 'line', output_mode: 'content', ...args })
    assert.match((await grep({})).output, /\n\(showing 250 of 300 lines from 0; go on with offset 250\)$/)
    assert.match((await grep({ offset: 250 })).output, /\n\(showing 50 of 300 lines from 250\)$/)
    assert.equal((await grep({ head_limit: 0 })).output.split('\n').length, 300)
    await put('a.txt', `${'line'.repeat(400)}\n`.repeat(100))
    const long = await grep({})
    assert.ok(long.output.length < 50_000)
    assert.equal(long.truncated, true)
    const fit = long.output.split('\n').length - 1
    assert.match(long.output, new RegExp(`\\n\\(showing ${fit} of 100 lines from 0; go on with offset ${fit}\\)$`))
  })

  test(`${name}: results that would take more than 10 MiB are a part, and say so`, async t => {
    const { call, put } = await files(t, engine)
    for (const file of ['a', 'b']) await put(file, `${'line'.repeat(250)}\n`.repeat(6_000))
    assert.match(
      (await call('Grep', { pattern: 'line', output_mode: 'content', head_limit: 1 })).output,
      /too many results; there are more\)$/
    )
  })

  test(`${name}: a hundred files are all, one more is told`, async t => {
    const { call, put, cwd } = await files(t, engine)
    for (let n = 0; n < 100; n++) await put(`f${n}`, '')
    assert.equal((await call('Glob', { pattern: 'f*' })).output.split('\n').length, 100)
    await put('f100', '')
    const { output } = await call('Glob', { pattern: 'f*' })
    assert.equal(output.split('\n').length, 101)
    assert.match(output, /\(showing the newest 100 of 101 files\)$/)
    const elsewhere = await files(t)
    await elsewhere.put('sub/x', '')
    assert.equal((await call('Glob', { pattern: 'x', path: elsewhere.cwd })).output, join(elsewhere.cwd, 'sub/x'))
    assert.notEqual(elsewhere.cwd, cwd)
  })

  test(`${name}: a type that nobody knows is refused`, async t => {
    const { call, put } = await files(t, engine)
    await put('a.txt', 'x')
    assert.match((await call('Grep', { pattern: 'x', type: 'nosuch' })).output, /The (search failed|file type)/)
  })
}

test('files of one moment come in the order of their names, those that vanished last, thirty-two looks at a time', async () => {
  let looking = 0
  let most = 0
  const stat = async (path: string) => {
    most = Math.max(most, ++looking)
    await new Promise(setImmediate)
    looking--
    if (path === 'gone') throw new Error('gone')
    return { kind: 'file', size: 1, mtimeMs: path === 'new' ? 2 : 1, links: 1 } as const
  }
  const names = ['gone', ...Array.from({ length: 100 }, (_, n) => `f${999 - n}`), 'new']
  const found = await newestFirst(names, name => name, { ...nodeFileOps, stat }, signal)
  assert.deepEqual([found[0], found[1], found[100], found.at(-1)], ['new', 'f900', 'f999', 'gone'])
  assert.equal(most, 32)
})

test('a long line is cut between characters, and at its end shows as much as elsewhere', () => {
  const line = `${'a'.repeat(4_000)}needle`
  assert.equal(cutAround(line, 4_000), `[...]${line.slice(-2_000)}`)
  const smileys = '\u{1f600}'.repeat(3_000)
  assert.doesNotMatch(cutAround(smileys, 2_001), /\p{Surrogate}/u)
})

test('ripgrep is the one that came with us, else one of the programs that may be run', async t => {
  const { put, cwd } = await files(t)
  await put('text/rg', '')
  await chmod(await put('bin/rg', ''), 0o755)
  const PATH = ['', join(cwd, 'text'), join(cwd, 'bin')].join(delimiter)
  const missing = () => Promise.reject(new Error('not installed'))
  assert.equal(await findRipgrep({ PATH }, missing), join(cwd, 'bin', 'rg'))
  assert.equal(await findRipgrep({ PATH: ['', join(cwd, 'text')].join(delimiter) }, missing), undefined)
  assert.equal(await findRipgrep({}, missing), undefined)
  assert.equal(await findRipgrep({ PATH: '' }, async () => ({ rgPath: join(cwd, 'bin', 'rg') })), join(cwd, 'bin', 'rg'))
  for (const rgPath of [join(cwd, 'gone'), join(cwd, 'text', 'rg')])
    assert.equal(await findRipgrep({ PATH: '' }, async () => ({ rgPath })), undefined)
})

test('the built-in search stops after 20 s while it lists, and when enough has come', async t => {
  const { cwd, put } = await files(t)
  for (const path of ['a', 'b', 'c']) await put(path, '')
  let taken = 0
  const list = () =>
    walker.list(
      { root: cwd, include_ignored: true },
      () => {
        taken++
        return false
      },
      signal
    )
  assert.deepEqual([await list(), taken], ['size', 1])
  const now = Date.now.bind(Date)
  let asked = 0
  t.mock.method(Date, 'now', () => now() + (asked++ > 0 ? 20_001 : 0))
  assert.equal(await list(), 'time')
})

test('a pattern that never ends is given up after 20 s, or at the abort, with the thread that it keeps busy', {
  timeout: 15_000
}, async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const ended = t.mock.method(Worker.prototype, 'terminate')
  const { cwd, put } = await files(t)
  await put('a', 'first\n')
  await put('b', `${'a'.repeat(40)}!\n`)
  const request = {
    root: cwd,
    include_ignored: true,
    pattern: '(first)|(a+)+$',
    mode: 'files_with_matches',
    ignore_case: false,
    before: 0,
    after: 0,
    multiline: false
  } as const
  const control = new AbortController()
  const grep = () => {
    let begun: () => void = () => undefined
    const first = new Promise<void>(resolve => {
      begun = resolve
    })
    const onFile = () => {
      begun()
      return true
    }
    return { first, result: walker.grep(request, onFile, control.signal) }
  }
  const late = grep()
  await late.first
  t.mock.timers.tick(20_000)
  assert.equal((await late.result).partial, 'time')
  const aborted = grep()
  await aborted.first
  control.abort(new Error('stop'))
  await assert.rejects(aborted.result, /stop/)
  assert.equal(ended.mock.callCount(), 2)
})

test('the built-in search passes over what is no text, or larger than 10 MiB', async t => {
  const { call, put, cwd } = await files(t)
  await put('binary', 'needle\0')
  await put('large', `needle\n${'x'.repeat(10 * 1024 * 1024)}`)
  await put('text', 'needle')
  await mkdir(join(cwd, 'dir'))
  assert.equal((await call('Grep', { pattern: 'needle' })).output, 'text')
})
