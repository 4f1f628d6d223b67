/** Pipes in a repository and its work tree: git, which waits at them, is helped out. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { repository } from './scene.ts'

/** git gets 30 s: less shows that nothing held it up. */
const soon = { timeout: 25_000 }

const pipe = (at: string) => execFileSync('mkfifo', [at])

// Most of it is waiting for what is held up.
describe('git at pipes', { concurrency: 6 }, () => {
  for (const name of ['.gitignore', 'in/.gitignore', '.gitattributes', 'in/.gitattributes', '.git/info/exclude', '.git/info/attributes'])
    test(`with a pipe in the place of ${name} status, diffs and listings say what they say without it`, soon, async t => {
      const { ask, put, cwd, commit } = await repository(t)
      await put('in/a', 'one\n')
      commit()
      await put('in/a', 'two\n')
      await put('in/new', 'new\n')
      await mkdir(join(cwd, '.git/info'), { recursive: true })
      execFileSync('rm', ['-f', join(cwd, name)])
      pipe(join(cwd, name))
      const { code, data } = await ask('git_status')
      assert.equal(code, 0)
      assert.deepEqual([data.entries, data.additions, data.deletions], [{ 'in/a': 'modified', 'in/new': 'untracked' }, 1, 1])
      assert.match((await ask('diff', { path: 'in' })).data.diff, /^-one\n\+two\n/m)
      const { items } = (await ask('list', { path: 'in', include_git_status: true })).data
      const statuses = items.map(({ name, git_status }: Record<string, string>) => [name, git_status])
      assert.deepEqual(statuses, [
        ['a', 'modified'],
        ['new', 'untracked']
      ])
    })

  test('a pipe in a repository that lies elsewhere is found, too', soon, async t => {
    const { ask, put, cwd, dir, commit } = await repository(t)
    await put('a', 'one\n')
    commit()
    await rename(join(cwd, '.git'), join(dir, 'elsewhere'))
    await put('.git', 'gitdir: ../elsewhere\n')
    execFileSync('rm', ['-f', join(dir, 'elsewhere/info/exclude')])
    pipe(join(dir, 'elsewhere/info/exclude'))
    assert.deepEqual((await ask('git_status')).code, 0)
  })

  for (const key of ['core.excludesFile', 'core.attributesFile', 'include.path'])
    test(`a pipe that the configuration of a repository names as its ${key} holds git up no longer`, soon, async t => {
      const { ask, put, dir, commit, run } = await repository(t)
      await put('a', 'one\n')
      commit()
      await put('a', 'two\n')
      run('config', key, join(dir, 'named'))
      pipe(join(dir, 'named'))
      const { code, data } = await ask('git_status')
      assert.deepEqual([code, data?.entries], [0, { a: 'modified' }])
    })

  test('many pipes in the place of ignore files do not use up the time that git has', async t => {
    const { ask, put, cwd, commit } = await repository(t)
    await put('a', 'one\n')
    commit()
    for (let n = 0; n < 200; n++) await put(`d${n}/new`, '')
    execFileSync(
      'mkfifo',
      Array.from({ length: 200 }, (_, n) => join(cwd, `d${n}/.gitignore`))
    )
    assert.equal(Object.keys((await ask('git_status')).data.entries).length, 200)
  })

  test('a repository with a pipe in the place of its head is none', soon, async t => {
    const { ask, put, cwd, commit } = await repository(t)
    await put('a', 'one\n')
    commit()
    execFileSync('rm', [join(cwd, '.git/HEAD')])
    pipe(join(cwd, '.git/HEAD'))
    assert.equal((await ask('git_status')).code, 40908)
  })
})
