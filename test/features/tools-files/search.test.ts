import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { SearchEngine } from '../../../features/file-search/index.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { walker } from '../../../features/file-search/walker.ts'
import { nodeFileOps } from '../../../features/tools-files/file-ops.ts'
import { createGlob } from '../../../features/tools-files/glob.ts'
import { createGrep } from '../../../features/tools-files/grep.ts'
import { fakeAgent, permissive, type TestLike } from '../tools/fakes.ts'
import { files } from './scene.ts'

const program = await findRipgrep(process.env)
const engines: readonly (readonly [string, SearchEngine])[] = [
  ['walker', walker],
  ...(program === undefined ? [] : [['ripgrep', createRipgrep(program)] as const])
]

const isRoot = process.getuid?.() === 0

async function project(t: TestLike, engine: SearchEngine) {
  const scene = await files(t, engine)
  const texts: readonly (readonly [string, string])[] = [
    ['.gitignore', 'ignored/\n*.log\n'],
    ['src/a.ts', 'one\ntwo needle\nthree\nfour\nfive needle needle\n'],
    ['src/deep/b.ts', 'Needle\n'],
    ['src/c.js', 'nothing\n'],
    ['ignored/x.ts', 'needle\n'],
    ['debug.log', 'needle\n'],
    ['.hidden/h.ts', 'quiet\n'],
    ['.git/config.ts', 'needle\n'],
    ['.env', 'needle\n']
  ]
  let time = 1_000
  for (const [path, text] of texts) await utimes(await scene.put(path, text), time, time++)
  return scene
}

for (const [name, engine] of engines) {
  test(`${name}: Glob lists the newest first, with hidden and without ignored and sensitive files`, async t => {
    const { call } = await project(t, engine)
    assert.deepEqual((await call('Glob', { pattern: '*.ts' })).output.split('\n'), ['.hidden/h.ts', 'src/deep/b.ts', 'src/a.ts'])
    assert.deepEqual((await call('Glob', { pattern: 'src/*.{ts,js}' })).output.split('\n'), ['src/c.js', 'src/a.ts'])
    assert.deepEqual((await call('Glob', { pattern: '**/*.ts', path: 'src' })).output.split('\n'), ['deep/b.ts', 'a.ts'])
    assert.match((await call('Glob', { pattern: 'x.ts', include_ignored: true })).output, /^ignored\/x\.ts$/)
    assert.equal((await call('Glob', { pattern: '.env' })).output, 'No files found.')
    assert.match((await call('Glob', { pattern: '*', path: 'gone' })).output, /not a directory/)
  })

  test(`${name}: Grep lists files, shows lines with context, and counts`, async t => {
    const { call, cwd } = await project(t, engine)
    assert.equal((await call('Grep', { pattern: 'needle' })).output, 'src/a.ts\n(1 file that must not be read left out)')
    assert.deepEqual((await call('Grep', { pattern: 'needle', '-i': true, glob: '*.ts' })).output.split('\n'), [
      'src/deep/b.ts',
      'src/a.ts'
    ])
    const content = await call('Grep', { pattern: 'needle', output_mode: 'content', path: 'src/a.ts', '-B': 1 })
    assert.deepEqual(content.output.split('\n'), [
      'src/a.ts-1-one',
      'src/a.ts:2:two needle',
      '--',
      'src/a.ts-4-four',
      'src/a.ts:5:five needle needle'
    ])
    const counted = await call('Grep', { pattern: 'needle', output_mode: 'count_matches', type: 'ts' })
    assert.match(counted.output, /^src\/a\.ts:3\n\(3 matches in 1 files\)/)
    const plain = await call('Grep', { pattern: 'f.*r', output_mode: 'content', '-n': false, path: join(cwd, 'src') })
    assert.equal(plain.output, 'src/a.ts:four')
    assert.equal((await call('Grep', { pattern: 'no such text' })).output, 'No matches found.')
    assert.equal((await call('Grep', { pattern: 'three.four', multiline: true, path: 'src' })).output, 'src/a.ts')
  })

  test(`${name}: line ends with CR count as ends, a glob with ! leaves files out, an absolute pattern is one below the root`, async t => {
    const { call, put, cwd } = await project(t, engine)
    await put('dos.txt', 'needle\r\nmore\r\n')
    assert.equal((await call('Grep', { pattern: 'needle$', path: 'dos.txt', output_mode: 'content' })).output, 'dos.txt:1:needle')
    assert.match((await call('Grep', { pattern: 'needle', glob: '!*.ts' })).output, /^dos\.txt\n\(/)
    assert.equal((await call('Glob', { pattern: join(cwd, 'src/*.ts') })).output, 'src/a.ts')
  })

  test(`${name}: a long line is cut around its match, a surrounding one behind its beginning`, async t => {
    const { call, put } = await files(t, engine)
    await put('wide.txt', `${'\u00e9'.repeat(3_000)}needle${'b'.repeat(3_000)}\nbegin${'c'.repeat(3_000)}\n`)
    const { output } = await call('Grep', { pattern: 'needle', output_mode: 'content', '-A': 1 })
    const [hit, after] = output.split('\n')
    assert.match(hit!, /^wide\.txt:1:\[\.\.\.\]\u00e9{500}needleb+\[\.\.\.\]$/)
    assert.match(after!, /^wide\.txt-2-beginc+\[\.\.\.\]$/)
    assert.ok(hit!.length < 2_100 && after!.length < 2_100)
    const plain = await call('Grep', { pattern: 'needle', output_mode: 'content', '-n': false })
    assert.match(plain.output, /^wide\.txt:\[\.\.\.\]\u00e9{500}needle/)
  })

  test(`${name}: a directory that this user may not read, or not enter, is refused`, { skip: isRoot }, async t => {
    const { call, cwd } = await project(t, engine)
    t.after(() => chmod(join(cwd, 'src'), 0o755))
    for (const mode of [0o300, 0o400]) {
      await chmod(join(cwd, 'src'), mode)
      for (const [tool, args] of Object.entries({ Glob: { pattern: '*' }, Grep: { pattern: 'needle' } }))
        assert.deepEqual(await call(tool, { ...args, path: 'src' }), { output: `No permission for ${join(cwd, 'src')}.`, is_error: true })
    }
  })

  test(`${name}: results page by offset, and a bad pattern is refused with its reason`, async t => {
    const { call } = await project(t, engine)
    const page = await call('Grep', { pattern: 'o|e', output_mode: 'content', path: 'src/a.ts', head_limit: 1, offset: 1 })
    assert.match(page.output, /^src\/a\.ts:2:two needle\n\(showing 1 of 5 lines from 1; go on with offset 2\)$/)
    const bad = await call('Grep', { pattern: '(' })
    assert.equal(bad.is_error, true)
    assert.match(bad.output, /The search failed/)
  })
}

test('Glob looks at a bounded number of files and stops at the abort, also while it puts them in order', async t => {
  const paths = Array.from({ length: 50_000 }, (_, index) => `f${index}.ts`)
  const engine: SearchEngine = { ...walker, list: async (_request, onPath) => (paths.every(onPath) ? undefined : 'size') }
  let looks = 0
  let atLook: (() => void) | undefined
  const ops = {
    ...nodeFileOps,
    async stat(path: string) {
      if (!/f\d+\.ts$/.test(path)) return nodeFileOps.stat(path)
      looks++
      atLook?.()
      return undefined
    }
  }
  const agent = await fakeAgent(t)
  const tool = createGlob({
    ops,
    home: '/srv/home',
    engine: async () => engine,
    readable: permissive.readable
  })
  const env = { agent, cwd: agent.session.cwd, turn_id: 0, tool_call_id: 'c', now: () => new Date(0), earlier: [] }
  const execution = await tool.prepare({ pattern: '*.ts' }, env)

  const { output } = await execution.run(() => undefined, new AbortController().signal, Promise.resolve())
  assert.ok(looks <= 20_000, `${looks} files`)
  assert.match(String(output), /too many files; there are more/)

  looks = 0
  const control = new AbortController()
  atLook = () => control.abort(new Error('stop'))
  await assert.rejects(
    execution.run(() => undefined, control.signal, Promise.resolve()),
    /stop/
  )
  assert.ok(looks < 100, `${looks} files after the abort`)
})

test('Grep stops at the abort', async t => {
  const agent = await fakeAgent(t)
  const control = new AbortController()
  const grep: SearchEngine['grep'] = async (_request, _onFile, signal) => {
    control.abort(new Error('stop'))
    signal.throwIfAborted()
    return {}
  }
  const files = { ops: nodeFileOps, home: '/srv/home', readable: permissive.readable }
  const tool = createGrep({ ...files, engine: async () => ({ ...walker, grep }) })
  const env = { agent, cwd: agent.session.cwd, turn_id: 0, tool_call_id: 'c', now: () => new Date(0), earlier: [] }
  const execution = await tool.prepare({ pattern: 'x' }, env)
  await assert.rejects(async () => execution.run(() => undefined, control.signal, Promise.resolve()), /stop/)
})

test('the built-in search stops at the abort also where it finds no files', async t => {
  const { cwd } = await files(t)
  for (let index = 0; index < 20; index++) await mkdir(join(cwd, `d${index}`))
  const control = new AbortController()
  const search = walker.list({ root: cwd, include_ignored: true }, () => true, control.signal)
  control.abort(new Error('stop'))
  await assert.rejects(search, /stop/)
})

/** A stand-in for the program: notes its process id below the searched directory, says something, and stays. */
async function lasting(t: TestLike, says = '') {
  const scene = await files(t)
  const program = await scene.put('rg.sh', `#!/bin/sh\necho $$ > pid.tmp; mv pid.tmp pid\n${says}\nexec sleep 60\n`)
  await chmod(program, 0o755)
  const pid = async () => {
    for (;;) {
      const text = await readFile(join(scene.cwd, 'pid'), 'utf8').catch(() => '')
      if (text !== '') return Number(text)
      await new Promise(resolve => setTimeout(resolve, 2))
    }
  }
  return { engine: createRipgrep(program), pid, request: { root: scene.cwd, include_ignored: false } }
}

/** A signal to nobody throws. The tests have a bound below the time limit of a search, which would end the program, too. */
const assertGone = (pid: number) => assert.throws(() => process.kill(pid, 0), { code: 'ESRCH' })

test('ripgrep is gone when an aborted search has ended', { timeout: 15_000 }, async t => {
  const { engine, pid, request } = await lasting(t)
  const control = new AbortController()
  const search = engine.list(request, () => true, control.signal)
  const started = await pid()
  control.abort(new Error('stop'))
  await assert.rejects(search, /stop/)
  assertGone(started)
})

test('ripgrep is gone when nobody wants more of its results, or taking them failed', { timeout: 15_000 }, async t => {
  const says = "printf 'a\\000'"
  const ends: unknown[] = []
  for (const onPath of [
    () => false,
    () => {
      throw new Error('broken')
    }
  ]) {
    const { engine, pid, request } = await lasting(t, says)
    ends.push(await engine.list(request, onPath, new AbortController().signal).catch((error: Error) => error.message))
    assertGone(await pid())
  }
  assert.deepEqual(ends, ['size', 'broken'])
})
