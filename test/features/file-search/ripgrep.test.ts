/** The search engine on ripgrep, with a stand-in for the program: what it is given, how its output is taken, how it ends. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, readFile, symlink, writeFile } from 'node:fs/promises'
import { getPriority } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { canHold, type FileMatches, type GrepRequest } from '../../../features/file-search/index.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { walker } from '../../../features/file-search/walker.ts'
import { noDescriptors } from '../../helpers/no-descriptors.ts'
import { files } from '../tools-files/scene.ts'

const signal = new AbortController().signal

/** A program of its own below a fresh directory, which is also searched. `say` answers a `read _ < ask` of it. */
async function standIn(t: TestContext, script: string) {
  const { cwd, put } = await files(t)
  const program = await put('rg.sh', `#!/bin/sh\necho $$ > pid.tmp; mv pid.tmp pid\n${script}\n`)
  await chmod(program, 0o755)
  assert.equal(spawnSync('mkfifo', [join(cwd, 'ask')]).status, 0)
  const list = { root: cwd, include_ignored: false }
  const grep: GrepRequest = {
    ...list,
    pattern: 'x',
    mode: 'files_with_matches',
    ignore_case: false,
    before: 0,
    after: 0,
    multiline: false
  }
  const pid = async () => {
    for (;;) {
      const text = await readFile(join(cwd, 'pid'), 'utf8').catch(() => '')
      if (text !== '') return Number(text)
      await new Promise(setImmediate)
    }
  }
  return { cwd, put, engine: createRipgrep(program), list, grep, pid, say: () => writeFile(join(cwd, 'ask'), 'go\n') }
}

/** What the program does in the tree, and with the files that were found there, which it gets open: from descriptor 3 on. */
const looks = (tree: string, files: string) => `case "$*" in *--no-mmap*) ${files};; *) ${tree};; esac`

const isGone = (pid: number) => {
  try {
    process.kill(pid, 0)
    return false
  } catch {
    return true
  }
}
const timers = () => process.getActiveResourcesInfo().filter(name => name === 'Timeout').length

test('where no descriptor is left for the program, the search fails alone', async t => {
  const { engine, list } = await standIn(t, "printf 'file\\000'")
  const again = noDescriptors(t)
  await assert.rejects(
    engine.list(list, () => true, signal),
    /EMFILE/
  )
  again()
  assert.equal(await engine.list(list, () => true, signal), undefined)
})

test('a path that comes in parts, and a character cut in two, are put together', { timeout: 15_000 }, async t => {
  const script = looks("printf 'first\\000h\\303'; read _ < ask; printf '\\251lf\\000'", "printf '/proc/self/fd/3\\000'")
  const { engine, list, grep, say, put } = await standIn(t, script)
  await put('first', '')
  await put('hélf', '')
  const listed: string[] = []
  const take = (path: string) => {
    listed.push(path)
    if (path === 'first') void say()
    return true
  }
  assert.equal(await engine.list(list, take, signal), undefined)
  await engine.grep(grep, ({ path }) => take(path), signal)
  assert.deepEqual(listed, ['first', 'hélf', 'first', 'hélf'])
})

test('what the program had still to say when it ended is taken', { timeout: 15_000 }, async t => {
  const { engine, list, pid, say } = await standIn(t, "( printf 'first\\000'; read _ < ask; printf 'late\\000' ) &")
  const listed: string[] = []
  const ended = engine.list(list, path => listed.push(path) > 0, signal).then(() => [...listed])
  const started = await pid()
  while (!isGone(started)) await new Promise(setImmediate)
  await new Promise(setImmediate)
  await say()
  assert.deepEqual(await ended, ['first', 'late'])
})

test('nothing more is taken once enough has come', { timeout: 15_000 }, async t => {
  const { engine, list } = await standIn(t, "yes a | tr '\\n' '\\000' | head -c 400000")
  let taken = 0
  const partial = await engine.list(
    list,
    () => {
      taken++
      return false
    },
    signal
  )
  assert.deepEqual([taken, partial], [1, 'size'])
})

test('results of more than 10 MiB are cut off and told to be a part', { timeout: 15_000 }, async t => {
  const { engine, grep, list } = await standIn(t, "yes /proc/self/fd/3 | tr '\\n' '\\000' | head -c 11000000")
  assert.equal((await engine.grep({ ...grep, file: 'rg.sh' }, () => true, signal)).partial, 'size')
  assert.equal(await engine.list(list, () => true, signal), undefined, 'a list has bounds of its own')
})

test('a program that takes long is ended after 20 s, also one that ignores the polite signal', { timeout: 15_000 }, async t => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const { engine, list, pid } = await standIn(t, "trap '' TERM; exec sleep 60")
  const ended = engine.list(list, () => true, signal)
  const started = await pid()
  t.mock.timers.tick(20_000)
  assert.equal(await ended, 'time')
  assert.ok(isGone(started))
})

test('a search that is over, or never began, leaves no timer and no listener', async t => {
  const { engine, list, cwd } = await standIn(t, '')
  const before = timers()
  const control = new AbortController()
  const removed = t.mock.method(control.signal, 'removeEventListener')
  await engine.list(list, () => true, control.signal)
  await assert.rejects(
    createRipgrep(join(cwd, 'missing')).list(list, () => true, control.signal),
    { code: 50001, message: 'the search failed: its program cannot be started (ENOENT)' }
  )
  assert.deepEqual([timers(), removed.mock.callCount()], [before, 2])
})

test('a search that was aborted before starts no program', { timeout: 15_000 }, async t => {
  const { engine, list, cwd } = await standIn(t, 'exec sleep 60')
  await assert.rejects(
    engine.list(list, () => true, AbortSignal.abort(new Error('stop'))),
    /stop/
  )
  await assert.rejects(readFile(join(cwd, 'pid')))
})

test('where no more threads can be had, the search goes on with one', async t => {
  const enough = looks("printf './found\\000'", "printf '/proc/self/fd/3\\000'")
  const { engine, grep, put } = await standIn(t, `case "$*" in *--threads*) ${enough};; *) echo 'rg: os error 11' >&2; exit 2;; esac`)
  await put('found', '')
  const found: string[] = []
  await engine.grep(grep, ({ path }) => found.push(path) > 0, signal)
  await engine.grep({ ...grep, file: 'found' }, ({ path }) => found.push(path) > 0, signal)
  assert.deepEqual(found, ['found', 'found'])
})

test('a list, too, is made with one thread where no more can be had', async t => {
  const one = `case "$*" in *--threads*) printf './found\\000';; *) echo 'failed to spawn thread: Resource temporarily unavailable' >&2; exit 101;; esac`
  const { engine, list } = await standIn(t, one)
  const found: string[] = []
  await engine.list(list, path => found.push(path) > 0, signal)
  assert.deepEqual(found, ['found'])
})

test("a program that is killed, or breaks down, has not found nothing: the search failed, which is nobody's pattern", async t => {
  for (const [script, why] of [
    ['kill -9 $$', 'the system ended its program (SIGKILL)'],
    ['echo oh dear >&2; exit 101', 'oh dear'],
    ['exit 3', 'its program ended with 3']
  ] as const) {
    const { engine, list, grep } = await standIn(t, script)
    const failed = { code: 50001, message: `the search failed: ${why}` }
    await assert.rejects(
      engine.list(list, () => true, signal),
      failed
    )
    await assert.rejects(
      engine.grep(grep, () => true, signal),
      failed
    )
  }
})

test('what was found counts, also where a part could not be searched', async t => {
  const both = looks("printf './found\\000'", "printf '/proc/self/fd/3\\000'")
  const { engine, grep, put } = await standIn(t, `${both}; echo 'rg: gone: os error 11' >&2; exit 2`)
  await put('found', '')
  const found: string[] = []
  await engine.grep(grep, ({ path }) => found.push(path) > 0, signal)
  assert.deepEqual(found, ['found'])
})

test('a gap of one file is none of the next', async t => {
  const rows = ['3\\0001:1:x', '3\\0009:1:x', '--', '4\\0001:1:x', '4\\0002:1:x'].map(row => (row === '--' ? row : `/proc/self/fd/${row}`))
  const { engine, grep, put } = await standIn(t, looks("printf './a\\000./b\\000'", `printf -- '${rows.join('\\n')}\\n'`))
  await put('a', '')
  await put('b', '')
  const found: FileMatches[] = []
  await engine.grep({ ...grep, mode: 'content', after: 1 }, matches => found.push(matches) > 0, signal)
  assert.deepEqual(found, [
    {
      path: 'a',
      rows: [
        { line: 1, text: 'x', col: 1 },
        { line: 9, text: 'x', col: 1 }
      ]
    },
    {
      path: 'b',
      rows: [
        { line: 1, text: 'x', col: 1 },
        { line: 2, text: 'x', col: 1 }
      ]
    }
  ])
})

test('the program runs behind the server, which it would hold up on all processors', { timeout: 15_000 }, async t => {
  const { engine, list } = await standIn(t, `until [ "$(nice)" -gt ${getPriority()} ]; do :; done; printf 'found\\000'`)
  const paths: string[] = []
  await engine.list(list, path => paths.push(path) > 0, signal)
  assert.deepEqual(paths, ['found'])
})

test('the program gets nothing of the environment but what it needs', async t => {
  const { engine, list, cwd } = await standIn(t, 'env > said')
  await mkdir(join(cwd, 'in'))
  await engine.list(list, () => true, signal)
  const names = (await readFile(join(cwd, 'said'), 'utf8')).split('\n').map(line => line.split('=')[0])
  const known = ['', 'PATH', 'LD_LIBRARY_PATH', 'PWD', 'OLDPWD', 'SHLVL', '_']
  assert.deepEqual(
    names.filter(name => !known.includes(name ?? '')),
    []
  )
})

const swap = 'mv d away; mv link d'
for (const [when, tree, found] of [
  ['while the tree is searched', `${swap}; printf './d/f\\000'`, 0],
  ['while its file is looked into', 'exec $rg "$@"', 1]
] as const)
  test(`what a link leads to that takes the place of a directory ${when} is not answered`, { timeout: 15_000 }, async t => {
    const rg = await findRipgrep(process.env)
    if (rg === undefined || !canHold) return t.skip('no ripgrep here, or a system that holds nothing')
    for (const mode of ['files_with_matches', 'count_matches', 'content'] as const) {
      const { engine, grep, put, cwd } = await standIn(t, `rg=${rg}; ${looks(tree, `${found ? swap : ':'}; exec $rg "$@"`)}`)
      await put('work/d/f', 'harmless x\n')
      await put('outside/f', 'secret xx\n')
      await symlink('../outside', join(cwd, 'work/link'))
      const answers: FileMatches[] = []
      await engine.grep({ ...grep, mode, root: join(cwd, 'work') }, matches => answers.push(matches) > 0, signal)
      assert.equal(await readFile(join(cwd, 'work/d/f'), 'utf8'), 'secret xx\n', 'they were swapped')
      const rows = mode === 'content' ? [{ line: 1, col: 10, text: 'harmless x' }] : []
      assert.deepEqual(answers, found ? [{ path: 'd/f', rows, ...(mode === 'count_matches' ? { count: 1 } : {}) }] : [], mode)
    }
  })

test('a file that is reached through a link is not looked into', async t => {
  const rg = await findRipgrep(process.env)
  if (rg === undefined) return t.skip('no ripgrep here')
  const { grep, put, cwd } = await standIn(t, '')
  await put('outside/f', 'x\n')
  await symlink('outside', join(cwd, 'link'))
  await symlink('outside/f', join(cwd, 'f'))
  for (const [root, file] of [
    [join(cwd, 'link'), 'f'],
    [cwd, 'f']
  ] as const) {
    const request: GrepRequest = { ...grep, root, file }
    assert.deepEqual(await createRipgrep(rg).grep(request, () => assert.fail('found'), signal), { partial: undefined, scanned: 0 })
    assert.deepEqual(await walker.grep(request, () => assert.fail('found'), signal), { scanned: 0 })
  }
})
