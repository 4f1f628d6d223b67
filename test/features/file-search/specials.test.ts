/** Pipes, devices and endless files in the place of ignore files: they hold no rules, and nobody up. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import threads from 'node:worker_threads'
import { searchEngine } from '../../../features/file-search/index.ts'
import fileSearch from '../../../features/file-search/pack.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { lookBehind } from '../../../features/file-search/special-files.ts'
import { walker } from '../../../features/file-search/walker.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { freshDir } from '../../helpers/temp.ts'
import { fileScene } from '../fs/scene.ts'

const program = await findRipgrep(process.env)
const signal = new AbortController().signal
/** The time limits of searches are above this. */
const soon = { timeout: 15_000 }

const pipe = (at: string) => execFileSync('mkfifo', [at])

/** Two files of which the second is ignored, beside whatever `spoil` puts somewhere in the tree; answers of everybody who searches and lists. */
async function answers(t: TestContextLike, spoil: (cwd: string) => unknown) {
  const { put, cwd, ask } = await fileScene(t, [fileSearch])
  await put('in/seen.x', 'hello\n')
  await put('in/hidden.x', 'hello\n')
  await put('in/deep/seen.x', 'hello\n')
  await put('in/.rgignore', 'hidden.x\n')
  await mkdir(join(cwd, '.git/info'), { recursive: true })
  await spoil(cwd)
  const sorted = (paths: string[]) => paths.filter(path => path.endsWith('.x')).sort()
  const engines = program === undefined ? [walker] : [walker, createRipgrep(program)]
  const said: Record<string, string[]> = {}
  for (const [at, engine] of engines.entries()) {
    const found: string[] = []
    await engine.list({ root: cwd, include_ignored: false }, path => found.push(path) > 0, signal)
    said[`list of engine ${at}`] = sorted(found)
  }
  const grep = await ask('grep', { pattern: 'hello' })
  said.grep = sorted(grep.data.files.map(({ path }: { path: string }) => path))
  said.search = sorted((await ask('search', { query: '.x' })).data.items.map(({ path }: { path: string }) => path))
  const { items, children_by_path } = (await ask('list', { depth: 5 })).data
  said.listing = sorted([items, ...Object.values(children_by_path)].flat().map(({ path }) => path))
  return said
}

const all = (paths: string[], said: Record<string, string[]>) =>
  assert.deepEqual(said, Object.fromEntries(Object.keys(said).map(who => [who, paths])))

// Most of it is waiting for what is held up.
describe('searches at what is no ignore file', { concurrency: 6 }, () => {
  for (const name of ['.gitignore', '.ignore', 'in/.gitignore', 'in/deep/.ignore', '.git/info/exclude'])
    test(`a pipe in the place of ${name} holds no search up, and the other rules count`, soon, async t => {
      all(['in/deep/seen.x', 'in/seen.x'], await answers(t, cwd => pipe(join(cwd, name))))
    })

  test('a pipe in the place of an ignore file above the workspace holds no search up', soon, async t => {
    const spoil = async (cwd: string) => {
      await rm(join(cwd, '.git'), { recursive: true })
      pipe(join(cwd, '../.gitignore'))
    }
    all(['in/deep/seen.x', 'in/seen.x'], await answers(t, spoil))
  })

  test('what has no end, in the place of an ignore file, is not read', soon, async t => {
    const link = (cwd: string) => symlink('/dev/zero', join(cwd, 'in/deep/.ignore'))
    if (process.platform === 'linux') all(['in/deep/seen.x', 'in/seen.x'], await answers(t, link))
  })

  test('an ignore file behind a link counts for everybody', soon, async t => {
    const link = async (cwd: string) => {
      await writeFile(join(cwd, 'rules'), 'seen.x\n')
      await symlink('../../rules', join(cwd, 'in/deep/.ignore'))
      await symlink('/dev/null', join(cwd, 'in/.gitignore'))
    }
    all(['in/seen.x'], await answers(t, link))
  })

  test('a search by content that a pipe holds up ends with the request', soon, async t => {
    const { put, cwd } = await fileScene(t, [fileSearch])
    await put('a', 'hello\n')
    pipe(join(cwd, '.ignore'))
    const over = new AbortController()
    const { engine } = await searchEngine()
    const request = {
      root: cwd,
      include_ignored: false,
      pattern: 'hello',
      mode: 'content',
      ignore_case: false,
      before: 0,
      after: 0
    } as const
    const search = engine.grep({ ...request, multiline: false }, () => true, over.signal)
    over.abort(new Error('gone'))
    await assert.rejects(search, /gone/)
  })
})

test('where no thread can be had nobody looks behind a search, which goes on', async t => {
  const asked = new Promise<void>(resolve => {
    class Refused {
      constructor() {
        resolve()
        throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' })
      }
    }
    t.mock.method(threads, 'Worker', Refused as never)
  })
  mockedBuiltins(t)
  const end = lookBehind({ root: await freshDir(), above: [], reader: 'git' }, () => assert.fail('nothing was found'))
  await asked // what is thrown to nobody fails this test
  end()
})
