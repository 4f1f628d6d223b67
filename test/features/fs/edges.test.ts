/** Edges of files: bounds of listings and reads, times, handles, and how applications are started. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { lstat, mkdir, readdir, readFile, readlink, rename, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Listing } from '../../../features/fs/index.ts'
import { launch, openCommands } from '../../../features/fs/launch.ts'
import { listDirectory } from '../../../features/fs/list.ts'
import { freshDir } from '../../helpers/temp.ts'
import { fileScene } from './scene.ts'

const names = (items: readonly { name: string }[]) => items.map(({ name }) => name)

test('the directory of version control is listed where hidden and ignored entries are wanted, and what is ignored has nothing in it', async t => {
  const { ask, put } = await fileScene(t)
  for (const path of ['.git/HEAD', 'out/a', 'out/sub/b', '.x', 'y']) await put(path)
  await put('.gitignore', 'out/\n')
  const list = async (body: object) => (await ask('list', body)).data
  assert.deepEqual(names((await list({ show_hidden: true })).items), ['.gitignore', '.x', 'y'])
  assert.deepEqual(names((await list({ show_hidden: true, follow_gitignore: false })).items), ['.git', 'out', '.gitignore', '.x', 'y'])
  assert.deepEqual(names((await list({ follow_gitignore: false })).items), ['out', 'y'])
  for (const path of ['out', 'out/sub'])
    assert.deepEqual(await list({ path }).then(({ items, truncated }) => [items, truncated]), [[], false], path)
  assert.deepEqual(names((await list({ path: 'out', follow_gitignore: false })).items), ['sub', 'a'])
})

test('a listing of everything ends after some 20,000 entries, also one of several directories, and says so', async t => {
  const { ask, cwd } = await fileScene(t)
  for (let dir = 10; dir < 31; dir++) {
    await mkdir(join(cwd, String(dir)))
    for (let n = 0; n < 1000; n++) writeFileSync(join(cwd, String(dir), String(n)), '')
  }
  const { items, children_by_path, truncated } = (await ask('list', { depth: 2, limit: 1000 })).data
  const below = Object.values(children_by_path as Record<string, object[]>).map(entries => entries.length)
  assert.deepEqual([items.length, truncated, below], [21, true, [...Array.from({ length: 19 }, () => 1000), 979, 0]])
  for (const half of ['p', 'q']) await mkdir(join(cwd, half))
  for (let dir = 10; dir < 31; dir++) await rename(join(cwd, String(dir)), join(cwd, dir < 21 ? 'p' : 'q', String(dir)))
  const many = async (paths: readonly string[], depth: number) => (await ask('list_many', { paths, depth, limit: 1000 })).data
  const { results, truncated_paths } = await many(['p', 'q', './q'], 2)
  const count = (prefix: string) =>
    Object.entries(results as Record<string, object[]>).flatMap(([at, all]) => (at.startsWith(prefix) ? all : []))
  assert.deepEqual([results.p.length, results.q.length, results['./q'].length, truncated_paths], [11, 10, 10, ['q', './q']])
  assert.deepEqual([count('p/').length, count('q/').length], [11_000, 20_000 - 11_000 - 11 - 10])
  const first = await many(
    [...Array.from({ length: 11 }, (_, at) => `p/${at + 10}`), ...Array.from({ length: 10 }, (_, at) => `q/${at + 21}`)],
    1
  )
  assert.deepEqual([Object.values(first.results).flat().length, first.truncated_paths], [21_000, []])
})

const usual = { depth: 1, show_hidden: false, follow_gitignore: true, include_git_status: false, runtime_id: 'local' }

test('of a directory that is read in parts the first entries of all are shown, in every order', async t => {
  const { cwd, put } = await fileScene(t)
  for (let n = 10; n < 60; n++) await put(`z${n}`)
  await put('.gitignore', 'a2\n')
  for (const [at, name] of ['a1', 'a2', 'a3'].entries()) await put(name, 'x'.repeat(at + 1))
  await utimes(join(cwd, 'a1'), 5e9, 5e9)
  for (let n = 0; n < 20; n++) await put(`zz/${n}`)
  const bounds = { looked_at: 1000, counted: 15, directory_bytes: 0, part: 7 }
  const { signal } = new AbortController()
  const list = async (sort: Listing['sort'], limit: number, more: Partial<typeof bounds> = {}) => {
    return await listDirectory({ path: cwd, real: cwd }, '.', { ...usual, limit, sort }, undefined, signal, undefined, {
      ...bounds,
      ...more
    })
  }
  const shown = async (sort: Listing['sort']) => names((await list(sort, 2)).items)
  assert.deepEqual(await shown('name_asc'), ['a1', 'a3'])
  assert.deepEqual(await shown('name_desc'), ['zz', 'z59'])
  assert.deepEqual(await shown('type_first'), ['zz', 'a1'])
  assert.deepEqual(await shown('size_desc'), ['a3', 'a1'])
  assert.deepEqual((await shown('mtime_desc'))[0], 'a1')
  const all = await list('name_asc', 53)
  assert.deepEqual(
    [all.items.length, all.truncated, all.items.at(-1)?.child_count],
    [53, false, undefined],
    'and large ones are not counted'
  )
  assert.equal((await list('name_asc', 52)).truncated, true)
  assert.equal((await list('type_first', 1, { counted: 20 })).items[0]?.child_count, 20)
  const part = await list('name_asc', 53, { looked_at: 20 })
  assert.deepEqual([part.items.length < 30, part.truncated], [true, true])
})

test('a listing whose client has gone reads no further', async t => {
  const { cwd, put } = await fileScene(t)
  for (let n = 0; n < 5; n++) await put(`f${n}`)
  const gone = new Error('gone')
  const client = new AbortController()
  let asked = 0
  t.mock.method(client.signal, 'throwIfAborted', () => {
    if (++asked === 3) throw gone
  })
  const bounds = { looked_at: 1000, counted: 15, directory_bytes: 0, part: 1 }
  const options: Listing = { ...usual, limit: 10, sort: 'name_asc' }
  await assert.rejects(listDirectory({ path: cwd, real: cwd }, '.', options, undefined, client.signal, undefined, bounds), gone)
})

test('a client that goes while the levels below are listed, or their entries counted, ends that', async t => {
  const { cwd, put } = await fileScene(t)
  await put('a/b/c')
  const options: Listing = { ...usual, depth: 4, limit: 10, sort: 'name_asc' }
  const gone = new Error('gone')
  for (const place of ['a', 'a/b']) {
    const client = new AbortController()
    const seen: string[] = []
    const status = (path: string) => {
      seen.push(path)
      if (path === place) client.abort(gone)
      return undefined
    }
    await assert.rejects(listDirectory({ path: cwd, real: cwd }, '.', options, status, client.signal), gone)
    assert.equal(seen.at(-1), place)
  }
  const client = new AbortController()
  let asked = 0
  t.mock.method(client.signal, 'throwIfAborted', () => {
    if (++asked > 1) throw gone
  })
  await assert.rejects(listDirectory({ path: cwd, real: cwd }, '.', options, undefined, client.signal), gone)
  assert.equal(asked, 2)
})

test('a file of exactly 10 MiB is read, one byte more is too large; parts of bytes say whether more follows', async t => {
  const { ask, put } = await fileScene(t)
  const size = 10 * 1024 * 1024
  const bytes = Buffer.alloc(size + 1, 'x')
  await put('exact', bytes.subarray(1))
  await put('more', bytes)
  const { data } = await ask('read', { path: 'exact', length: size })
  assert.deepEqual([data.size, data.content.length, data.truncated], [size, size, false])
  assert.equal((await ask('read', { path: 'more', length: 1 })).code, 41302)
  await put('zeros', Buffer.from([0, 1, 2, 0, 4]))
  const part = async (offset: number, length: number) => (await ask('read', { path: 'zeros', offset, length })).data
  for (const [offset, length, content, truncated] of [
    [3, 2, [0, 4], false],
    [3, 1, [0], true],
    [5, 1, [], false],
    [0, 5, [0, 1, 2, 0, 4], false]
  ] as const) {
    const got = await part(offset, length)
    assert.deepEqual([Buffer.from(got.content, 'base64'), got.truncated], [Buffer.from(content), truncated], `${offset} ${length}`)
  }
})

test('a part far inside of a text in another encoding is what it is in UTF-8', async t => {
  const { ask, put } = await fileScene(t)
  const text = Array.from({ length: 60_000 }, (_, line) => `Zeile ${line} für Bäume\n`).join('')
  await put('wide.txt', Buffer.from(`\ufeff${text}`, 'utf16le'))
  const utf8 = Buffer.from(text)
  const { data } = await ask('read', { path: 'wide.txt', offset: 1_000_000, length: 300 })
  const content = Buffer.from(data.content)
  const from = utf8.indexOf(content)
  assert.ok(from >= 1_000_000 && from < 1_000_004 && content.length >= 297, `at ${from}, ${content.length} bytes`)
  assert.equal(data.truncated, true)
})

test('whatever is answered, nothing of the workspace stays open', { skip: process.platform !== 'linux' }, async t => {
  const { ask, put, cwd } = await fileScene(t)
  await put('dir/file', 'x')
  await symlink('/', join(cwd, 'out'))
  const held = async () => {
    const fds = await readdir('/proc/self/fd')
    const places = await Promise.all(fds.map(fd => readlink(`/proc/self/fd/${fd}`).catch(() => '')))
    return places.filter(place => place === '/' || place.startsWith(cwd))
  }
  const before = await held()

  for (const path of ['dir/file', 'dir', 'none', 'out', 'out/tmp', 'dir/file/below'])
    for (const [action, body] of [
      ['list', { path, depth: 2 }],
      ['stat', { path }],
      ['read', { path }],
      ['mkdir', { path }],
      ['mkdir', { path: `${path}/new`, recursive: true }]
    ] as const)
      await ask(action, body)

  assert.deepEqual(await held(), before)
})

test('a picture whose bytes are all letters is a picture', async t => {
  const { ask, put } = await fileScene(t)
  await put('a.gif', 'GIF89a and nothing but letters')
  const { data } = await ask('read', { path: 'a.gif' })
  assert.deepEqual([data.encoding, data.is_binary, data.mime], ['base64', true, 'image/gif'])
  assert.equal((await ask('read', { path: 'a.gif', encoding: 'utf-8' })).code, 40907)
})

test('the workspace itself exists already', async t => {
  const { ask } = await fileScene(t)
  for (const path of ['.', './'])
    assert.deepEqual([(await ask('mkdir', { path })).code, (await ask('mkdir', { path, recursive: true })).code], [40919, 0], path)
})

test('a time that no date can show is the first of all', async t => {
  const { ask, put, cwd } = await fileScene(t)
  await put('far')
  await utimes(join(cwd, 'far'), 300_000_000_000, 300_000_000_000)
  if ((await lstat(join(cwd, 'far'))).mtimeMs !== 300_000_000_000_000) return t.skip('this file system holds no such time')
  assert.equal((await ask('stat', { path: 'far' })).data.modified_at, '1970-01-01T00:00:00.000Z')
  assert.equal((await ask('list')).data.items[0].modified_at, '1970-01-01T00:00:00.000Z')
})

test('a file opens with the first editor that is named, a directory and a file without one with what the system has', () => {
  const file = { path: '/w/a', directory: false }
  const programs = (env: NodeJS.ProcessEnv, target: { path: string; directory: boolean } = file) =>
    openCommands(target, env, 'linux').map(([program]) => program)
  assert.deepEqual(programs({ SVC_CODE_EDITOR: 'one', VISUAL: 'two', EDITOR: 'three' }), ['one', 'xdg-open'])
  assert.deepEqual(programs({ SVC_CODE_EDITOR: ' ', VISUAL: 'two', EDITOR: 'three' }), ['two', 'xdg-open'])
  assert.deepEqual(programs({ EDITOR: 'three --wait' }), ['three', 'xdg-open'])
  assert.deepEqual(programs({}), ['xdg-open'])
  assert.deepEqual(programs({ EDITOR: 'three' }, { path: '/w', directory: true }), ['xdg-open'])
})

test('an application that stays has come up; it runs apart from the server, and without what only the server knows', {
  timeout: 20_000
}, async t => {
  const dir = await freshDir()
  const program = join(dir, 'app')
  await writeFile(
    program,
    '#!/bin/sh\n(env; echo "pid=$$"; ps -o pgid= -p $$ | sed "s/ */pgid=/") > "$0.tmp"; mv "$0.tmp" "$0.told"; exec sleep 600\n',
    {
      mode: 0o755
    }
  )
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const env = { PATH: process.env.PATH, SVC_CODE_API_KEY: 'hidden', OWN: 'kept' }
  const launched = launch([[program]], { path: program, directory: false }, env)
  let told = ''
  while (told === '') {
    told = await readFile(`${program}.told`, 'utf8').catch(() => '')
    await new Promise(setImmediate)
  }
  t.mock.timers.tick(1500)
  await launched
  const said = new Map(told.split('\n').map(line => line.split('=') as [string, string]))
  process.kill(Number(said.get('pid')), 'SIGKILL')
  assert.deepEqual([said.get('SVC_CODE_API_KEY'), said.get('OWN')], [undefined, 'kept'])
  assert.equal(said.get('pgid'), said.get('pid'))
})

const apart = ['-Ur', '--pid', '--fork']
const canUnshare = process.platform === 'linux' && spawnSync('unshare', [...apart, 'true']).status === 0

test('a server whose /proc counts processes of another namespace holds its own files, not those of the process with its number there', {
  skip: !canUnshare
}, async t => {
  const { cwd, put } = await fileScene(t)
  await put('here', '')
  const boundary = new URL('../../../features/fs/boundary.js', import.meta.url)
  const code = `const { pin } = await import('${boundary}'), { readdirSync } = await import('node:fs')
    console.log(process.pid, ...readdirSync((await pin({ path: process.argv[1], real: process.argv[1] }, '.')).at))`
  const ran = spawnSync('unshare', [...apart, process.execPath, '--input-type=module', '-e', code, cwd], { encoding: 'utf8' })
  assert.equal(ran.stdout, '1 here\n', ran.stderr)
})
