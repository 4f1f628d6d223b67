/** Repositories inside of repositories: submodules, and those that nobody added. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import git from '../../../features/git/pack.ts'
import { fileScene } from '../fs/scene.ts'
import { type Json, repository, run } from './scene.ts'

/** A repository with a submodule `mod` that has the files `a` and `sub/b`. */
async function withSubmodule(t: Parameters<typeof repository>[0]) {
  const scene = await repository(t)
  const other = join(scene.dir, 'other')
  await mkdir(join(other, 'sub'), { recursive: true })
  run(other, 'init', '-q')
  for (const name of ['a', 'sub/b']) await writeFile(join(other, name), 'one\n')
  run(other, 'add', '-A')
  run(other, 'commit', '-qm', 'x')
  run(scene.cwd, 'submodule', '--quiet', 'add', other, 'mod')
  await scene.put('plain', 'one\n')
  scene.commit()
  return {
    ...scene,
    entries: async () => (await scene.ask('git_status')).data.entries,
    shown: async (body: object) =>
      Object.fromEntries(
        (await scene.ask('list', { include_git_status: true, ...body })).data.items.map((item: Json) => [item.path, item.git_status])
      )
  }
}

test('a submodule is modified when its commit or a file in it is another, as git has it', async t => {
  const { ask, put, cwd, entries, run: own } = await withSubmodule(t)
  assert.deepEqual(await entries(), {})
  await put('mod/new', 'x\n')
  assert.deepEqual(await entries(), { mod: 'modified' })
  own('config', '--file', '.gitmodules', 'submodule.mod.ignore', 'untracked')
  own('commit', '-qam', 'ignore')
  assert.deepEqual(await entries(), {})
  await put('mod/a', 'two\n')
  assert.deepEqual(await entries(), { mod: 'modified' })
  assert.equal((await ask('diff', { path: 'mod' })).data.diff, '', 'a commit of its own is what the repository around it has')
  run(join(cwd, 'mod'), 'commit', '-qam', 'y')
  assert.deepEqual(await entries(), { mod: 'modified' })
  const { additions, deletions } = (await ask('git_status')).data
  assert.deepEqual([additions, deletions], [1, 1], 'the line with its commit')
})

test('files of a submodule have the statuses and diffs of its repository, with names that count from the workspace', async t => {
  const { ask, put, shown } = await withSubmodule(t)
  await put('mod/a', 'two\n')
  await put('mod/new', 'x\n')
  assert.deepEqual(await shown({}), { mod: 'modified', plain: 'clean' })
  assert.deepEqual(await shown({ path: 'mod' }), { 'mod/sub': 'clean', 'mod/a': 'modified', 'mod/new': 'untracked' })
  const deep = (await ask('list', { include_git_status: true, depth: 3 })).data.children_by_path
  assert.deepEqual(
    [...deep.mod, ...deep['mod/sub']].map(({ path, git_status }: Json) => [path, git_status]),
    [
      ['mod/sub', 'clean'],
      ['mod/a', 'modified'],
      ['mod/new', 'untracked'],
      ['mod/sub/b', 'clean']
    ]
  )
  const diff = async (path: string) => (await ask('diff', { path })).data.diff
  assert.match(await diff('mod/a'), /^diff --git a\/mod\/a b\/mod\/a\n.*\n--- a\/mod\/a\n\+\+\+ b\/mod\/a\n@@ -1 \+1 @@\n-one\n\+two\n$/)
  assert.match(await diff('mod/new'), /^\+\+\+ b\/mod\/new\n@@ -0,0 \+1 @@\n\+x\n$/m)
  assert.equal(await diff('mod/sub/b'), '')
})

test('what a submodule configures does not run', async t => {
  const { put, cwd, dir, entries } = await withSubmodule(t)
  const program = join(dir, 'evil')
  const ran = () => existsSync(join(dir, 'ran'))
  await writeFile(program, `#!/bin/sh\ntouch ${dir}/ran\ncat\n`, { mode: 0o755 })
  const mod = join(cwd, 'mod')
  run(mod, 'config', 'filter.e.clean', program)
  run(mod, 'config', 'core.fsmonitor', program)
  await put('mod/.gitattributes', '* filter=e\n')
  await put('mod/a', 'two\n')
  assert.deepEqual(await entries(), { mod: 'modified' })
  assert.equal(ran(), false)
  run(cwd, 'status')
  assert.equal(ran(), true, 'git by itself runs it')
})

test('a list of submodules that names other places names none', async t => {
  const { put, cwd, dir, commit, entries } = await withSubmodule(t)
  await symlink(join(dir, 'other'), join(cwd, 'link'))
  await put('sub/x', 'x\n')
  const named = ['../other', join(dir, 'other'), 'link', 'sub', '.', 'none']
  await put('.gitmodules', named.map((path, at) => `[submodule "${at}"]\n\tpath = ${path}\n`).join(''))
  commit()
  await writeFile(join(dir, 'other/a'), 'two\n')
  assert.deepEqual(await entries(), {})
})

test('in a workspace that is no repository, files of one inside of it have its statuses and diffs', async t => {
  const { ask, put, cwd } = await fileScene(t, [git], { config: { git: { pull_request_program: '' } } })
  await put('one/a', 'one\n')
  run(join(cwd, 'one'), 'init', '-q')
  run(join(cwd, 'one'), 'add', '-A')
  run(join(cwd, 'one'), 'commit', '-qm', 'x')
  await put('one/a', 'two\n')
  const { results } = (await ask('list_many', { paths: ['.', 'one'], include_git_status: true })).data
  assert.deepEqual(
    [...results['.'], ...results.one].map(({ path, git_status }: Json) => [path, git_status]),
    [
      ['one', undefined],
      ['one/a', 'modified']
    ]
  )
  assert.match((await ask('diff', { path: 'one/a' })).data.diff, /^\+\+\+ b\/one\/a$/m)
  assert.equal((await ask('git_status')).code, 40908)
})
