/** Diffs of directories and of unusual places: what git says of them, and nothing from outside of the workspace. */
import assert from 'node:assert/strict'
import { lstatSync, mkdirSync, unlinkSync, writeFileSync } from 'node:fs'
import { chmod, mkdir, readdir, rename, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { repositoryAt } from '../../../features/git/command.ts'
import { withCopies } from '../../../features/git/copies.ts'
import { temporaryName } from '../../../kernel/index.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { repository, run, setEnv } from './scene.ts'

const told = ['-c', 'core.quotePath=false', 'diff', '--ignore-submodules=dirty', '--src-prefix=a/', '--dst-prefix=b/']

test('a directory that becomes a link to elsewhere while git reads it shows nothing from there', async t => {
  const { ask, put, commit, cwd, dir } = await repository(t)
  await put('swap/a', 'one\n')
  await put('swap/b', 'harmless\n')
  await put('.gitattributes', 'swap/a filter=swap\n')
  commit()
  const secret = join(dir, 'secret')
  await mkdir(secret)
  for (const name of ['a', 'b']) await writeFile(join(secret, name), 'a secret text\n')
  // A filter of the user's own runs in the midst of git's work.
  const swap = join(dir, 'swap')
  await writeFile(swap, `#!/bin/sh\ncd ${cwd}\n[ -L swap ] || { mv swap ${dir}/kept; ln -s ${secret} swap; }\ncat\n`, { mode: 0o755 })
  const home = join(dir, 'home')
  await mkdir(home)
  await writeFile(join(home, '.gitconfig'), `[filter "swap"]\n\tclean = ${swap}\n`)
  setEnv(t, 'HOME', home)
  await put('swap/a', 'two\n')
  await put('swap/b', 'changed\n')
  const { code, data } = await ask('diff', { path: 'swap' })
  assert.equal(lstatSync(join(cwd, 'swap')).isSymbolicLink(), true, 'it was swapped')
  assert.equal(code, 0)
  assert.doesNotMatch(data.diff, /secret/)
})

test('a directory is shown as git shows it, whatever changed in it', async t => {
  const { ask, put, commit, cwd, dir } = await repository(t)
  const other = join(dir, 'other')
  await mkdir(other)
  run(other, 'init', '-q')
  await writeFile(join(other, 'a'), 'one\n')
  run(other, 'add', '-A')
  run(other, 'commit', '-qm', 'x')
  const long = Array.from({ length: 40 }, (_, line) => `line ${line}\n`).join('')
  for (const path of ['text', 'gone', 'run', 'to-link', 'to-dir', 'deep/er/x', 'Größe 1', 'linked/x', 'aside/x'])
    await put(`d/${path}`, 'one\n')
  await put('d/moved', long)
  await put('d/bytes', Buffer.from([0, 1, 2]))
  await put('d/lines', 'one\n')
  await put('.gitattributes', 'd/lines text\n')
  await symlink('text', join(cwd, 'd/link'))
  for (const name of ['d/mod', 'd/left']) run(cwd, 'submodule', '--quiet', 'add', other, name)
  commit()
  for (const path of ['text', 'deep/er/x', 'Größe 1']) await put(`d/${path}`, 'one\ntwo\n')
  await put('d/lines', 'one\r\ntwo\r\n')
  await put('d/bytes', Buffer.from([0, 2]))
  await put('d/fresh', 'new\n')
  await chmod(join(cwd, 'd/run'), 0o755)
  for (const path of ['gone', 'link', 'to-link', 'to-dir', 'left']) await rm(join(cwd, 'd', path), { recursive: true })
  await symlink('run', join(cwd, 'd/link'))
  await symlink('text', join(cwd, 'd/to-link'))
  await put('d/to-dir/x', 'x\n')
  await rename(join(cwd, 'd/linked'), join(cwd, 'd/elsewhere'))
  await symlink('elsewhere', join(cwd, 'd/linked'))
  await rename(join(cwd, 'd/moved'), join(cwd, 'd/moved-here'))
  run(cwd, 'add', '-A', 'd/moved', 'd/moved-here', 'd/fresh')
  run(join(cwd, 'd/mod'), 'commit', '-q', '--allow-empty', '-m', 'y')
  run(cwd, 'config', 'diff.submodule', 'diff')
  for (const path of ['d', '.', 'd/mod', 'd/link', 'd/deep', 'd/lines'])
    assert.equal((await ask('diff', { path })).data.diff, run(cwd, ...told, '--submodule=short', 'HEAD', '--', path), path)
})

test('a conflict is shown as git shows it', async t => {
  const { ask, put, commit, run } = await repository(t)
  await put('a', 'one\n')
  commit()
  run('checkout', '-qb', 'other')
  await put('a', 'two\n')
  commit()
  run('checkout', '-q', 'main')
  await put('a', 'three\n')
  commit()
  assert.throws(() => run('merge', 'other'))
  assert.equal((await ask('diff', { path: 'a' })).data.diff, run(...told, 'HEAD', '--', 'a'))
})

test('names count from the workspace below the root of a repository, and are written as they are', async t => {
  const { put, commit, cwd, askIn } = await repository(t)
  await put('a/dir/grün', 'one\n')
  commit()
  await put('a/dir/grün', 'two\n')
  await put('a/dir/neu ö', 'one\n')
  const names = async (path: string) => ((await askIn(join(cwd, 'a'), 'diff', { path })).data.diff as string).match(/^(?:diff|\+\+\+) .*/gm)
  assert.deepEqual(await names('dir/grün'), ['diff --git a/dir/grün b/dir/grün', '+++ b/dir/grün'])
  assert.deepEqual(await names('dir/neu ö'), ['diff --git a/dir/neu ö b/dir/neu ö', '+++ b/dir/neu ö\t'])
})

test('a path through a link inside of the workspace is what it leads to', async t => {
  const { ask, put, commit, cwd } = await repository(t)
  await put('real/a', 'one\n')
  await symlink('real', join(cwd, 'link'))
  commit()
  await put('real/a', 'two\n')
  await put('real/new', 'x\n')
  const { path, diff } = (await ask('diff', { path: 'link/a' })).data
  assert.deepEqual([path, diff], ['link/a', (await ask('diff', { path: 'real/a' })).data.diff])
  assert.match(diff, /^-one\n\+two$/m)
  assert.match((await ask('diff', { path: 'link/new' })).data.diff, /^\+\+\+ b\/real\/new$/m)
})

test('a file that is too large to be compared is left out, and the answer says so', async t => {
  const { ask, put, commit, cwd } = await repository(t)
  await put('large', 'one\n')
  await put('small', 'one\n')
  commit()
  await truncate(join(cwd, 'large'), 300 * 1024 * 1024)
  await put('small', 'two\n')
  const { diff, truncated } = (await ask('diff', { path: '.' })).data
  assert.deepEqual([diff.match(/^diff .*/gm), truncated], [['diff --git a/small b/small'], true])
  assert.deepEqual((await ask('diff', { path: 'large' })).data, { path: 'large', diff: '', truncated: true })
})

test('a link that becomes a directory while copies are made leads no copy elsewhere', async t => {
  const { put, commit, cwd, dir } = await repository(t)
  const paths = Array.from({ length: 100 }, (_, n) => `f${n}`)
  for (const path of paths) await put(path, 'x\n')
  await mkdir(join(dir, 'elsewhere'))
  await symlink(join(dir, 'elsewhere'), join(cwd, 'swapped'))
  commit()
  const top = await repositoryAt(cwd, new AbortController().signal)
  let looks = 0
  const { signal } = new AbortController()
  signal.throwIfAborted = () => {
    if (++looks !== 80) return
    unlinkSync(join(cwd, 'swapped'))
    mkdirSync(join(cwd, 'swapped'))
    writeFileSync(join(cwd, 'swapped/file'), 'copied\n')
  }
  const root = { path: cwd, real: cwd }
  const all = ['swapped', ...paths, 'swapped/file']
  const copied = await withCopies(
    top,
    root,
    all,
    signal,
    async ({ repository }) => await readdir(join(String(repository.env.GIT_WORK_TREE), 'swapped'))
  )
  assert.deepEqual([copied, await readdir(join(dir, 'elsewhere'))], [['file'], []])
})

test('a diff of many files is not cut, and shows each', async t => {
  const { ask, put, commit } = await repository(t)
  for (let n = 0; n < 300; n++) await put(`d${n % 7}/f${n}`, `${n}\n`)
  commit()
  for (let n = 0; n < 300; n++) await put(`d${n % 7}/f${n}`, `new ${n}\n`)
  const { diff, truncated } = (await ask('diff', { path: '.' })).data
  assert.deepEqual([diff.match(/^\+new \d+$/gm).length, truncated], [300, false])
})

/** A repository with a changed file `a`, and the directory, not there yet, for what is temporary. */
async function changedFile(t: TestContextLike) {
  const { ask, put, commit, dir } = await repository(t)
  await put('a', 'one\n')
  commit()
  await put('a', 'two\n')
  const place = join(dir, 'copies')
  setEnv(t, 'TMPDIR', place)
  return { ask, place }
}

test('a diff leaves no copies behind', async t => {
  const { ask, place } = await changedFile(t)
  assert.equal((await ask('diff', { path: 'a' })).code, 50001, 'they would lie here')
  await mkdir(place)
  assert.match((await ask('diff', { path: 'a' })).data.diff, /^\+two$/m)
  assert.deepEqual(await readdir(place), [])
})

test('copies of a server that died over a diff go with the next one, those of a living server stay', async t => {
  const { ask, place } = await changedFile(t)
  const living = `svc-code-diff-${await temporaryName()}`
  const dead = living.replace(/\d+/, '2147483646')
  for (const name of [living, dead, 'svc-code-other']) await mkdir(join(place, name, 'src'), { recursive: true })
  assert.match((await ask('diff', { path: 'a' })).data.diff, /^\+two$/m)
  assert.deepEqual((await readdir(place)).sort(), [living, 'svc-code-other'].sort())
})
