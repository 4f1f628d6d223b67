/** Status and diffs of repositories, also of those that would have git run programs. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { chmod, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import git from '../../../features/git/pack.ts'
import { fileScene } from '../fs/scene.ts'
import { type Json, repository, setEnv } from './scene.ts'

test('a status has branch, changes, lines, and distance to its upstream', async t => {
  const { ask, put, cwd, commit, run } = await repository(t)
  for (const path of ['keep', 'change', 'gone', 'old name', 'sub/x']) await put(path, `${path}\n1\n2\n3\n`)
  commit()
  run('branch', 'up')
  run('branch', '--set-upstream-to=up')
  await put('second', 'x\n')
  commit()
  await put('change', 'change\n1\n2\nthree\nfour\n')
  await rm(join(cwd, 'gone'))
  await rename(join(cwd, 'old name'), join(cwd, 'grüß neu'))
  await put('fresh', 'x\n')
  run('add', '-A', 'old name', 'grüß neu', 'fresh')
  await put('new/a', '')
  await put('untracked', '')
  const { code, data } = await ask('git_status')
  assert.equal(code, 0)
  assert.deepEqual(data, {
    branch: 'main',
    ahead: 1,
    behind: 0,
    additions: 3,
    deletions: 5,
    pullRequest: null,
    entries: { change: 'modified', gone: 'deleted', 'grüß neu': 'renamed', fresh: 'added', 'new/': 'untracked', untracked: 'untracked' }
  })
  assert.deepEqual((await ask('git_status', { paths: ['gone', 'keep', 'new/a', 'new/'] })).data.entries, {
    gone: 'deleted',
    'new/': 'untracked'
  })
  const at = async (...paths: string[]) => Object.keys((await ask('git_status', { paths })).data.entries)
  const all = Object.keys(data.entries)
  assert.deepEqual([await at('./new', 'ne'), await at('.'), await at()], [['new/'], all, all])
  await put('deep/a/b', '')
  run('add', 'deep')
  assert.deepEqual(
    [await at('deep'), await at('deep/a/'), await at('deep/a/b/c'), await at('deep/b')],
    [['deep/a/b'], ['deep/a/b'], [], []]
  )
  for (const path of ['../x', '/etc', 'a/../..', '']) assert.equal((await ask('git_status', { paths: ['gone', path] })).code, 41304, path)
  run('checkout', '-q', '--detach')
  assert.equal((await ask('git_status')).data.branch, '')
  assert.equal((await ask('git_status', { runtime_id: 'r' })).code, 40420)
})

test('a conflict, a repository without a commit, a workspace below the root, and no repository', async t => {
  const { ask, put, commit, run, cwd, rest } = await repository(t)
  await put('a', 'one\n')
  run('add', 'a')
  const unborn = (await ask('git_status')).data
  assert.deepEqual([unborn.branch, unborn.entries, unborn.additions], ['main', { a: 'added' }, 1])
  assert.match((await ask('diff', { path: 'a' })).data.diff, /^\+one$/m)
  commit()
  run('checkout', '-qb', 'other')
  await put('a', 'two\n')
  commit()
  run('checkout', '-q', 'main')
  await put('a', 'three\n')
  commit()
  assert.throws(() => run('merge', 'other'))
  assert.deepEqual((await ask('git_status')).data.entries, { a: 'conflicted' })
  await put('below/x', 'x\n')
  await put('beside', 'x\n')
  const session = async (dir: string): Promise<string> =>
    ((await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: dir } })).data as Json).id
  const below: Json = await rest.json('POST', `/api/v1/sessions/${await session(join(cwd, 'below'))}/fs:git_status`)
  assert.deepEqual(below.data.entries, { './': 'untracked' })
  const plain = await fileScene(t, [git])
  for (const [action, body] of [
    ['git_status', {}],
    ['diff', { path: 'x' }]
  ] as const)
    assert.equal((await plain.ask(action, body)).code, 40908)
  await mkdir(join(plain.cwd, '.git'))
  assert.equal((await plain.ask('git_status')).code, 40908, 'a directory that only looks like one')
})

test('a diff shows what changed since the last commit, a new file whole, and nothing for the rest', async t => {
  const { ask, put, commit, run, cwd, dir } = await repository(t)
  await put('a b', 'one\ntwo\n')
  await put('same', 'x\n')
  await put('gone', 'x\n')
  await put('.gitignore', 'ignored\n')
  commit()
  await put('a b', 'one\nTWO\n')
  await put('new', 'n1\nn2')
  await put('sub/new', 'x\n')
  await put('bytes', Buffer.from([1, 0, 2]))
  await put('ignored', 'i\n')
  await rm(join(cwd, 'gone'))
  const diff = async (path: string) => (await ask('diff', { path })).data
  assert.match(
    (await diff('a b')).diff,
    /^diff --git a\/a b b\/a b\nindex \w+\.\.\w+ 100644\n--- a\/a b\t?\n\+\+\+ b\/a b\t?\n@@ -1,2 \+1,2 @@\n one\n-two\n\+TWO\n$/
  )
  assert.deepEqual(await diff('same'), { path: 'same', diff: '', truncated: false })
  assert.match((await diff('gone')).diff, /^deleted file mode/m)
  const added = (await diff('./new')).diff
  run('add', '-N', 'new')
  assert.equal(added, run('diff', 'new'), 'as git says it')
  assert.match((await diff('ignored')).diff, /^\+i$/m)
  assert.match((await diff('bytes')).diff, /^Binary files \/dev\/null and b\/bytes differ$/m)
  assert.equal((await ask('diff', { path: 'none' })).code, 40409)
  await symlink(dir, join(cwd, 'out'))
  for (const path of ['../x', '/etc/passwd', 'out/x', 'out']) assert.equal((await ask('diff', { path })).code, 41304, path)
  await put('long', 'line\n'.repeat(400_000))
  const long = await diff('long')
  assert.deepEqual([long.truncated, long.diff.length <= 1_048_576, long.diff.endsWith('+line\n')], [true, true, true])
  // Wherever the lines end, also with the first character that is too many.
  for (const first of ['', 'x', 'xx', 'xxx']) {
    await put('long', `${first}\n${'xx\n'.repeat(400_000)}`)
    assert.ok((await diff('long')).diff.length <= 1_048_576, first)
  }
})

test('listings show the status of each entry', async t => {
  const { ask, put, commit } = await repository(t)
  for (const path of ['clean', 'changed', 'sub/changed', 'quiet/x']) await put(path, 'x')
  await put('.gitignore', '*.log\n')
  commit()
  for (const path of ['changed', 'sub/changed', 'new/x', 'fresh']) await put(path, 'y')
  await put('a.log')
  const shown = async (body: object) =>
    Object.fromEntries(
      (await ask('list', { include_git_status: true, ...body })).data.items.map((item: Json) => [item.name, item.git_status])
    )
  assert.deepEqual(await shown({}), {
    clean: 'clean',
    changed: 'modified',
    sub: 'modified',
    quiet: 'clean',
    new: 'untracked',
    fresh: 'untracked'
  })
  assert.deepEqual(await shown({ path: 'new' }), { x: 'untracked' })
  assert.equal((await shown({ follow_gitignore: false }))['a.log'], 'ignored')
  const plain = await fileScene(t, [git])
  await plain.put('x')
  assert.equal('git_status' in (await plain.ask('list', { include_git_status: true })).data.items[0], false)
})

test('listings show what only the settings of the user ignore, what is in an ignored workspace, and what links lead to', async t => {
  const { ask, put, commit, cwd, dir, askIn } = await repository(t)
  await put('real/a', 'one\n')
  await put('.gitignore', 'out/\n')
  await symlink('real', join(cwd, 'link'))
  commit()
  await put('real/a', 'two\n')
  await put('x.own', '')
  await put('out/b', '')
  const home = join(dir, 'home')
  await mkdir(join(home, '.config/git'), { recursive: true })
  await writeFile(join(home, '.config/git/ignore'), '*.own\n')
  setEnv(t, 'HOME', home)
  const shown = (answer: Json) => answer.data.items.map((item: Json) => [item.path, item.git_status])
  assert.deepEqual(shown(await ask('list', { include_git_status: true })), [
    ['real', 'modified'],
    ['link', 'clean'],
    ['x.own', 'ignored']
  ])
  assert.deepEqual(shown(await ask('list', { include_git_status: true, path: 'link' })), [['link/a', 'modified']])
  assert.deepEqual(shown(await askIn(join(cwd, 'out'), 'list', { include_git_status: true })), [['b', 'ignored']])
})

test('a hostile repository runs no program and shows nothing from elsewhere', async t => {
  const { ask, put, cwd, dir, commit, run } = await repository(t)
  await put('a', 'one\n')
  await put('passwd', 'one\n')
  commit()
  const ran = join(dir, 'ran')
  const evil = join(dir, 'evil')
  await writeFile(evil, `#!/bin/sh\necho "$0 $*" >> ${ran}\ncat\n`)
  await chmod(evil, 0o755)
  for (const name of ['fsmonitor-watchman', 'post-index-change', 'pre-commit', 'reference-transaction']) {
    await writeFile(join(cwd, '.git/hooks', name), `#!/bin/sh\n${evil}\n`)
    await chmod(join(cwd, '.git/hooks', name), 0o755)
  }
  const keys = [
    'core.fsmonitor',
    'core.pager',
    'core.sshCommand',
    'core.editor',
    'core.askPass',
    'diff.external',
    'credential.helper',
    'interactive.diffFilter',
    'gpg.program',
    'filter.e.clean',
    'filter.e.smudge',
    'filter.e.process',
    'filter.a=b.clean',
    'diff.e.command',
    'diff.e.textconv',
    'merge.e.driver',
    'remote.origin.uploadpack',
    'pager.status',
    'pager.diff',
    'alias.status'
  ]
  for (const key of keys) run('config', key, key.startsWith('alias') ? `!${evil}` : evil)
  run('config', 'filter.e.required', 'true')
  run('config', 'core.hooksPath', join(cwd, '.git/hooks'))
  run('config', 'status.submoduleSummary', 'true')
  await put('.git/info/attributes', '* filter=e diff=e merge=e\nb filter=a=b\n')
  await put('.gitattributes', '* filter=e diff=e\n')
  await put('.git/more', `[filter "inc"]\n\tclean = ${evil}\n`)
  run('config', 'include.path', 'more')
  await put('a', 'two\n')
  await put('c', 'x\n')
  const status = await ask('git_status')
  assert.deepEqual([status.code, status.data.entries.a], [0, 'modified'])
  assert.match((await ask('diff', { path: 'a' })).data.diff, /^\+two$/m)
  assert.match((await ask('diff', { path: 'c' })).data.diff, /^\+x$/m)
  assert.equal((await ask('list', { include_git_status: true })).code, 0)
  assert.equal(existsSync(ran), false, 'nothing ran')
  assert.throws(() => run('diff', '--stat', 'HEAD'))
  assert.equal(existsSync(ran), true, 'git by itself runs what it is told')
  run('config', 'core.worktree', '/etc')
  assert.doesNotMatch((await ask('diff', { path: 'passwd' })).data.diff ?? '', /root:/)
  assert.equal((await ask('diff', { path: 'passwd' })).data.diff, '')
})

test('the pull request comes from the program that knows it, a draft as a draft', async t => {
  const place = await fileScene(t)
  const gh = join(place.dir, 'gh')
  await writeFile(gh, `#!/bin/sh\necho '{"number":7,"state":"OPEN","isDraft":true,"url":"https://x.example/7"}'\n`)
  await chmod(gh, 0o755)
  const { ask, put, commit } = await repository(t, { pull_request_program: gh })
  await put('a', 'x')
  commit()
  assert.deepEqual((await ask('git_status')).data.pullRequest, { number: 7, state: 'draft', url: 'https://x.example/7' })
})

test('a working directory that is gone is in no repository', async t => {
  const { ask, cwd } = await repository(t)
  await rm(cwd, { recursive: true })
  assert.equal((await ask('git_status')).code, 40908)
  assert.equal((await ask('diff', { path: 'a' })).code, 40908)
})
