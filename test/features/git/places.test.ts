/** Which repository counts, what of its settings does, and what git is given. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rename, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { repository, run, setEnv } from './scene.ts'

/** A program that writes down that it ran, and passes its input on. */
async function told(dir: string, name: string) {
  const place = join(dir, `${name}-ran`)
  const program = join(dir, name)
  await writeFile(program, `#!/bin/sh\ntouch ${place}\ncat\n`, { mode: 0o755 })
  return { program, ran: () => existsSync(place) }
}

test('a program that a repository names in another file than its configuration does not run', async t => {
  const kinds = {
    included: async (cwd: string, text: string) => {
      await writeFile(join(cwd, '.git/more'), text)
      run(cwd, 'config', 'include.path', 'more')
    },
    'of the work tree': async (cwd: string, text: string) => {
      run(cwd, 'config', 'extensions.worktreeConfig', 'true')
      await writeFile(join(cwd, '.git/config.worktree'), text)
    },
    'in a common directory': async (cwd: string, text: string) => {
      const common = `${cwd}-common`
      await rename(join(cwd, '.git'), common)
      await mkdir(join(cwd, '.git'))
      await writeFile(join(cwd, '.git/HEAD'), await readFile(join(common, 'HEAD')))
      await writeFile(join(cwd, '.git/index'), await readFile(join(common, 'index')))
      await writeFile(join(cwd, '.git/config'), '')
      await writeFile(join(cwd, '.git/commondir'), `${common}\n`)
      await writeFile(join(common, 'config'), `${await readFile(join(common, 'config'), 'utf8')}${text}`)
    }
  }
  for (const [kind, tell] of Object.entries(kinds)) {
    const { ask, put, commit, cwd, dir } = await repository(t)
    await put('.gitattributes', '* filter=e\n')
    await put('a', 'one\n')
    commit()
    const { program, ran } = await told(dir, 'filter')
    await tell(cwd, `[filter "e"]\n\tclean = ${program}\n`)
    await put('a', 'two\n')
    const status = await ask('git_status')
    assert.deepEqual([status.code, status.data?.entries], [0, { a: 'modified' }], kind)
    assert.equal(ran(), false, kind)
    run(cwd, 'diff', 'HEAD')
    assert.equal(ran(), true, `${kind}: git by itself reads it`)
  }
})

test('a filter that the user configured counts, and the repository does not overrule it', async t => {
  const { ask, put, commit, dir, run } = await repository(t)
  await put('a', 'x\n')
  await put('.gitattributes', 'a filter=up\n')
  commit()
  const own = await told(dir, 'evil')
  run('config', 'filter.up.clean', own.program)
  const home = join(dir, 'home')
  await mkdir(home)
  await writeFile(join(home, '.gitconfig'), '[filter "up"]\n\tclean = tr a-z A-Z\n')
  setEnv(t, 'HOME', home)
  await put('a', 'y\n')
  assert.match((await ask('diff', { path: 'a' })).data.diff, /^\+Y$/m)
  assert.equal(own.ran(), false)
})

test('a directory that only looks like a repository is none, whatever is above it or in its place', async t => {
  const { put, commit, cwd, askIn } = await repository(t)
  await put('a', 'one\n')
  commit()
  await put('broken/.git/HEAD', 'ref: refs/heads/main\n')
  assert.equal((await askIn(join(cwd, 'broken'), 'git_status')).code, 40908, 'the repository above is another one')
  const bare = join(cwd, 'bare')
  run(cwd, 'init', '-q', '--bare', bare)
  await mkdir(join(bare, '.git'))
  assert.equal((await askIn(bare, 'git_status')).code, 40908, 'a work tree with the files of a repository in it')
})

test('what the server was started with does not lead git elsewhere', async t => {
  const other = await repository(t)
  await other.put('elsewhere', 'x\n')
  const { ask, put, commit } = await repository(t)
  await put('a', 'one\n')
  commit()
  await put('here', '')
  setEnv(t, 'GIT_DIR', join(other.cwd, '.git'))
  setEnv(t, 'GIT_INDEX_FILE', join(other.cwd, '.git/index'))
  assert.deepEqual((await ask('git_status')).data.entries, { here: 'untracked' })
})

test('a status writes nothing, also where git would renew what it knows of a file', async t => {
  const { ask, put, commit, cwd } = await repository(t)
  await put('a', 'one\n')
  commit()
  await utimes(join(cwd, 'a'), 1000, 1000)
  const index = () => readFile(join(cwd, '.git/index'))
  const before = await index()
  assert.deepEqual((await ask('git_status')).data.entries, {})
  assert.deepEqual(await index(), before)
  run(cwd, 'status')
  assert.notDeepEqual(await index(), before, 'git by itself writes')
})
