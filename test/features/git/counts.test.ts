/** Statuses and lines of unusual changes, and diffs of unusual files. */
import assert from 'node:assert/strict'
import programs, { type SpawnOptions } from 'node:child_process'
import { chmod, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { namesChars } from '../../../features/git/names.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { type Json, repository } from './scene.ts'

test('a workspace below the root of its repository has its own paths and lines, and nothing of what is beside it', async t => {
  const { put, commit, cwd, askIn } = await repository(t)
  await put('below/x', 'x\n')
  await put('below/sub/y', 'y\n')
  await put('beside', 'x\n')
  commit()
  await put('below/x', 'x\nmore\n')
  await put('below/sub/y', '')
  await put('beside', 'x\n1\n2\n3\n')
  const { data } = await askIn(join(cwd, 'below'), 'git_status')
  assert.deepEqual([data.entries, data.additions, data.deletions, data.branch], [{ x: 'modified', 'sub/y': 'modified' }, 1, 1, 'main'])
})

test('a branch may be ahead and behind at once', async t => {
  const { ask, put, commit, run } = await repository(t)
  await put('a', '')
  commit()
  run('checkout', '-qb', 'up')
  for (const name of ['b', 'c']) {
    await put(name, '')
    commit()
  }
  run('checkout', '-q', 'main')
  run('branch', '--set-upstream-to=up')
  await put('d', '')
  commit()
  const { data } = await ask('git_status')
  assert.deepEqual([data.ahead, data.behind], [1, 2])
})

const isRoot = process.getuid?.() === 0
test('a changed file that this user may not read has its status, and no lines', { skip: isRoot }, async t => {
  const { ask, put, commit } = await repository(t)
  const closed = await put('closed', 'one\n')
  await put('open', 'one\n')
  await put('removed', 'one\n')
  commit()
  await put('closed', 'one\ntwo\n')
  await put('open', 'one\ntwo\n')
  await rm(await put('removed'))
  await chmod(closed, 0)
  const { data } = await ask('git_status')
  assert.deepEqual(data.entries, { closed: 'modified', open: 'modified', removed: 'deleted' })
  assert.deepEqual([data.additions, data.deletions], [1, 1])
})

test('a path that is staged as deleted and there again is modified', async t => {
  const { ask, put, commit, run } = await repository(t)
  await put('a', 'one\n')
  commit()
  run('rm', '-q', '--cached', 'a')
  assert.deepEqual((await ask('git_status')).data.entries, { a: 'modified' })
})

test('lines are counted whole, however many files changed', async t => {
  const { ask, put, commit } = await repository(t)
  for (let n = 0; n < 501; n++) await put(`many/${n}`, 'one\n')
  commit()
  for (let n = 0; n < 501; n++) await put(`many/${n}`, 'two\nthree\n')
  const { data } = await ask('git_status')
  assert.deepEqual([data.additions, data.deletions], [1002, 501])
})

test('what is ignored changes no directory', async t => {
  const { ask, put, commit } = await repository(t)
  await put('sub/a', 'x')
  await put('.gitignore', '*.log\n')
  commit()
  await put('sub/a.log')
  const { items } = (await ask('list', { include_git_status: true, follow_gitignore: false })).data
  assert.deepEqual(
    items.map((item: Json) => [item.name, item.git_status]),
    [['sub', 'clean']]
  )
})

test('a path means itself and no pattern', async t => {
  const { ask, put, commit } = await repository(t)
  await put('a.ts', 'one\n')
  commit()
  await put('a.ts', 'two\n')
  for (const path of ['*.ts', ':(glob)*.ts', ':/a.ts', 'a.[t]s']) assert.equal((await ask('diff', { path })).code, 40409, path)
})

test('a new file is shown as git shows it: mode, quoted name, no line, one line', async t => {
  const { ask, put, commit, run, cwd } = await repository(t)
  await put('first')
  commit()
  const names = ['run', 'empty', 'two words', 'tab\tand "quotes"\\', 'line\nbreak', 'one']
  for (const name of names) await put(name, name === 'empty' ? '' : name === 'one' ? 'x' : 'a\nb\n')
  await chmod(join(cwd, 'run'), 0o755)
  for (const name of names) {
    const shown = (await ask('diff', { path: name })).data.diff
    run('add', '-N', '--', name)
    assert.equal(shown, run('diff', '--', name), name)
    run('reset', '-q', '--', name)
  }
})

test('a diff of a directory that git does not know is empty, and a file that is too long is cut and says so', async t => {
  const { ask, put, commit } = await repository(t)
  await put('first')
  commit()
  await put('fresh/a', 'x\n')
  assert.deepEqual((await ask('diff', { path: 'fresh' })).data, { path: 'fresh', diff: '', truncated: false })
  const line = `${'x'.repeat(1023)}\n`
  await put('exact', line.repeat(4096))
  await put('long', `${line.repeat(4096)}x`)
  for (const path of ['exact', 'long']) {
    const { diff, truncated } = (await ask('diff', { path })).data
    assert.deepEqual([truncated, diff.length <= 1_048_576, diff.endsWith(`+${line}`)], [true, true, true], path)
  }
  assert.equal(/^index/m.test((await ask('diff', { path: 'long' })).data.diff), false, 'of a part there is no id')
})

test('changed files are named to git as far as a program takes their names, and their lines are counted whole', async t => {
  const { ask, put, commit } = await repository(t)
  const dir = Array.from({ length: 4 }, () => 'd'.repeat(250)).join('/')
  for (let n = 0; n < 300; n++) await put(`${dir}/${n}`, 'one\n')
  commit()
  for (let n = 0; n < 300; n++) await put(`${dir}/${n}`, 'two\nthree\n')
  const { spawn } = programs
  const most: number[] = []
  t.mock.method(programs, 'spawn', (command: string, args: readonly string[], options: SpawnOptions) => {
    most.push(args.join(' ').length)
    return spawn(command, args, options)
  })
  mockedBuiltins(t)
  const { data } = await ask('git_status')
  assert.deepEqual([data.additions, data.deletions], [600, 300])
  assert.ok(most.length > 0 && Math.max(...most) < namesChars(process.platform))
})
