/** What ignore files leave of a tree: the same for searches by name, by content with both engines, and for listings. */
import assert from 'node:assert/strict'
import { mkdir, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import fileSearch from '../../../features/file-search/pack.ts'
import { createRipgrep, findRipgrep } from '../../../features/file-search/ripgrep.ts'
import { walker } from '../../../features/file-search/walker.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { openFiles } from '../../helpers/open-files.ts'
import { fileScene } from '../fs/scene.ts'

const program = await findRipgrep(process.env)
const signal = new AbortController().signal

/** Paths of all files with `.x` in their name, by whoever is asked; all say the same. */
async function scene(t: TestContextLike) {
  const { put, cwd, dir, rest } = await fileScene(t, [fileSearch])
  const sessions = new Map<string, string>()
  const ask = async (at: string, action: string, body: object) => {
    const known = sessions.get(at) ?? ((await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: at } })).data as { id: string }).id
    sessions.set(at, known)
    // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
    return (await rest.json('POST', `/api/v1/sessions/${known}/fs:${action}`, body)).data as any
  }
  const shown = async (at = cwd) => {
    const named = await ask(at, 'search', { query: '.x', limit: 200 })
    const paths: string[] = named.items.flatMap((item: { kind: string; path: string }) => (item.kind === 'file' ? [item.path] : []))
    const all = paths.sort()
    const listed = await ask(at, 'list', { depth: 10, show_hidden: true, limit: 1000 })
    const entries = [listed.items, ...Object.values(listed.children_by_path)].flat() as { kind: string; path: string }[]
    const files = entries.flatMap(({ kind, path }) => (kind === 'file' && path.endsWith('.x') ? [path] : []))
    assert.deepEqual(files.sort(), all, 'listings')
    for (const [name, engine] of Object.entries({ walker, ...(program === undefined ? {} : { ripgrep: createRipgrep(program) }) })) {
      const found: string[] = []
      await engine.list({ root: at, include_ignored: false }, path => (path.endsWith('.x') ? found.push(path) > 0 : true), signal)
      assert.deepEqual(found.sort(), all, name)
    }
    return all
  }
  return { put, cwd, dir, ask, shown }
}

test('ignore files above count up to the root of the repository, and without one all the way up', async t => {
  const { put, cwd, dir, shown } = await scene(t)
  await writeFile(join(dir, '.gitignore'), 'above.x\n')
  for (const path of ['above.x', 'a.x', 'top.x', 'excluded.x', 'sub/above.x', 'sub/b.x', 'sub/top.x', 'sub/excluded.x']) await put(path)
  await put('.gitignore', 'top.x\n')
  assert.deepEqual(await shown(), ['a.x', 'excluded.x', 'sub/b.x', 'sub/excluded.x'])
  await put('.git/HEAD', 'ref: refs/heads/main\n')
  await put('.git/info/exclude', 'excluded.x\n')
  assert.deepEqual(await shown(), ['a.x', 'above.x', 'sub/above.x', 'sub/b.x'])
  assert.deepEqual(await shown(join(cwd, 'sub')), ['above.x', 'b.x'])
})

test('a nearer file overrules one above it, and of one directory the more special one', async t => {
  const { put, shown } = await scene(t)
  for (const path of ['one.x', 'two.x', 'in/one.x', 'in/two.x', 'in/deep/one.x']) await put(path)
  await put('.gitignore', '*.x\n')
  await put('.ignore', '!two.x\n!in/two.x\n')
  assert.deepEqual(await shown(), ['in/two.x', 'two.x'])
  await put('.rgignore', 'two.x\n')
  assert.deepEqual(await shown(), [])
  await put('in/.rgignore', '!one.x\n')
  assert.deepEqual(await shown(), ['in/deep/one.x', 'in/one.x'])
})

test('who works in an ignored directory sees what is in it, and the other rules count there', async t => {
  const { put, cwd, shown } = await scene(t)
  for (const path of ['a.x', 'out/my [dir] #1/b.x', 'out/my [dir] #1/log.x', 'out/my [dir] #1/out/c.x']) await put(path)
  await put('.git/HEAD', 'ref: refs/heads/main\n')
  await put('.git/info/exclude', 'my*\n')
  await put('.gitignore', 'out/\nlog.x\n')
  assert.deepEqual(await shown(), ['a.x'])
  assert.deepEqual(await shown(join(cwd, 'out/my [dir] #1')), ['b.x'])
})

test('ignore files mean names as they are spelled', async t => {
  const { put, shown } = await scene(t)
  for (const path of ['build/a.x', 'Build/a.x', 'one.x', 'One.x']) await put(path)
  await put('.gitignore', 'build\nOne.x\n')
  assert.deepEqual(await shown(), ['Build/a.x', 'one.x'])
})

test('an ignore file that comes, changes or goes counts in all directories below it, also one that is ignored itself', async t => {
  const { put, cwd, shown } = await scene(t)
  await put('in/deep/er/one.x')
  await put('in/deep/er/two.x')
  assert.deepEqual(await shown(), ['in/deep/er/one.x', 'in/deep/er/two.x'])
  await put('in/.gitignore', 'one.x\n.*\n')
  assert.deepEqual(await shown(), ['in/deep/er/two.x'])
  await put('in/.gitignore', 'two.x\n.*\n')
  assert.deepEqual(await shown(), ['in/deep/er/one.x'])
  await rm(join(cwd, 'in/.gitignore'))
  assert.deepEqual(await shown(), ['in/deep/er/one.x', 'in/deep/er/two.x'])
})

test('names behind a link that took the place of a directory are not found, also where no time tells of it', async t => {
  const { put, cwd, dir, ask } = await scene(t)
  await put('sub/deep/kept.x')
  await put('other/a.x')
  for (const at of ['sub/deep', 'sub', 'other', '.']) await utimes(join(cwd, at), 1000, 1000)
  const names = async () => (await ask(cwd, 'search', { query: '.x' })).items.map((item: { path: string }) => item.path).sort()
  assert.deepEqual(await names(), ['other/a.x', 'sub/deep/kept.x'])
  await rename(join(cwd, 'sub'), join(dir, 'moved'))
  await symlink(join(dir, 'moved'), join(cwd, 'sub'))
  assert.deepEqual(await names(), ['other/a.x'], 'what is in it is as it was')
  await mkdir(join(dir, 'elsewhere'))
  await writeFile(join(dir, 'elsewhere', 'secret.x'), '')
  await utimes(cwd, 1000, 1000)
  await names()
  await rename(join(cwd, 'other'), join(dir, 'gone'))
  await symlink(join(dir, 'elsewhere'), join(cwd, 'other'))
  await utimes(cwd, 1000, 1000)
  assert.deepEqual(await names(), [])
  assert.equal(await openFiles(cwd), 0)
})

test('a directory whose time does not tell of a change is read again as long as it may change', async t => {
  const { put, cwd, ask } = await scene(t)
  const later = Math.ceil(Date.now() / 1000) + 1000
  await put('a.x')
  await utimes(cwd, later, later)
  const names = async () => (await ask(cwd, 'search', { query: '.x' })).items.map((item: { path: string }) => item.path).sort()
  assert.deepEqual(await names(), ['a.x'])
  await put('b.x')
  await utimes(cwd, later, later)
  assert.deepEqual(await names(), ['a.x', 'b.x'])
})
