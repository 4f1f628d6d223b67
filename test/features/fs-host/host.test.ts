/** The file system of the machine: browsing, the home, contents, directories. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, realpath, symlink, writeFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import host from '../../../features/fs-host/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

// biome-ignore lint/suspicious/noExplicitAny: answers of many routes
type Json = any

async function start(t: TestContextLike) {
  const dir = await realpath(await freshDir())
  const { rest } = await startTestKernel(t, { packs: [workspaces, host] })
  const get = async (action: string, path?: string): Promise<Json> =>
    await rest.json('GET', `/api/v1/fs:${action}${path === undefined ? '' : `?path=${encodeURIComponent(path)}`}`)
  return { dir, rest, get, post: async (path: string): Promise<Json> => await rest.json('POST', '/api/v1/fs:mkdir', { path }) }
}

test('browsing shows the directories of a directory, hidden ones last, and where it is', async t => {
  const { dir, get } = await start(t)
  for (const name of ['b', 'A', '.hidden', 'c']) await mkdir(join(dir, name))
  await writeFile(join(dir, 'file'), '')
  await symlink(join(dir, 'b'), join(dir, 'link'))
  const { data } = await get('browse', `${dir}/b/../`)
  assert.deepEqual([data.path, data.parent], [dir, dirname(dir)])
  assert.deepEqual(
    data.entries,
    ['A', 'b', 'c', '.hidden'].map(name => ({ name, path: join(dir, name), is_dir: true }))
  )
  assert.equal((await get('browse', join(dir, 'link'))).data.path, join(dir, 'b'))
  assert.equal((await get('browse', '/')).data.parent, null)
  assert.equal((await get('browse')).data.path, await realpath(homedir()))
  assert.deepEqual([(await get('browse', join(dir, 'file'))).code, (await get('browse', join(dir, 'no'))).code], [40409, 40409])
  for (const path of ['relative', '~', '']) assert.deepEqual((await get('browse', path)).details?.[0]?.path, 'query.path', path)
})

test('the home comes with the roots of workspaces, opened last first', async t => {
  const { dir, get, rest } = await start(t)
  for (const name of ['one', 'two']) {
    await mkdir(join(dir, name))
    await rest.json('POST', '/api/v1/workspaces', { root: join(dir, name) })
  }
  const { data } = await get('home')
  assert.equal(data.home, homedir())
  assert.deepEqual(new Set(data.recent_roots), new Set([join(dir, 'one'), join(dir, 'two')]))
})

test('the home comes with eight roots at most', async t => {
  const { dir, get, rest } = await start(t)
  for (let n = 0; n < 9; n++) {
    await mkdir(join(dir, String(n)))
    await rest.json('POST', '/api/v1/workspaces', { root: join(dir, String(n)) })
  }
  assert.equal((await get('home')).data.recent_roots.length, 8)
})

test('contents are bytes with ranges and an ETag; only regular files are opened', async t => {
  const { dir, rest, get } = await start(t)
  const file = join(dir, 'a % b.html')
  await writeFile(file, '0123456789')
  const raw = (path: string, headers: Record<string, string> = {}) =>
    rest.raw('GET', `/api/v1/fs:content?path=${encodeURIComponent(path)}`, { headers })
  const all = await raw(file)
  assert.deepEqual(
    [all.status, all.body.toString(), all.headers['content-type'], all.headers['content-disposition']],
    [200, '0123456789', 'text/html', undefined]
  )
  const part = await raw(file, { range: 'bytes=-3' })
  assert.deepEqual([part.status, part.body.toString(), part.headers['content-range']], [206, '789', 'bytes 7-9/10'])
  assert.equal((await raw(file, { 'if-none-match': String(all.headers.etag) })).status, 304)
  execFileSync('mkfifo', [join(dir, 'pipe')])
  for (const path of ['relative', '/dev/zero', join(dir, 'pipe')])
    assert.deepEqual((await get('content', path)).details[0].path, 'query.path', path)
  assert.deepEqual(
    [(await get('content', dir)).code, (await get('content', join(dir, 'no'))).code, (await get('content')).code],
    [40906, 40409, 40001]
  )
})

test('a file that nobody may read is named as the request names it', async t => {
  const path = '/proc/sys/vm/compact_memory'
  if (!existsSync(path)) return t.skip('this system has no file that its superuser may not read')
  const { get } = await start(t)
  const { code, msg } = await get('content', path)
  assert.deepEqual([code, msg], [40411, `no permission for ${path}`])
})

test('a file whose bytes the system does not give is 40411 with the reason', async t => {
  if (!existsSync('/proc/self/mem')) return t.skip('this system has no such file')
  const { get } = await start(t)
  const write_only = '/proc/self/clear_refs' // to root alone it can be opened
  for (const [path, why] of [
    ['/proc/self/mem', '/proc/self/mem cannot be read: EIO'],
    [write_only, process.getuid?.() === 0 ? `${write_only} cannot be read: EINVAL` : `no permission for ${write_only}`]
  ] as const) {
    const { code, msg } = await get('content', path)
    assert.deepEqual([code, msg], [40411, why])
  }
})

test('where a file system makes nothing it is not said to be missing', async t => {
  if (!existsSync('/proc/self')) return t.skip('this system has no such place')
  const { post } = await start(t)
  const { code, msg } = await post('/proc/new')
  assert.deepEqual([code, msg], [40411, 'nothing can be made in /proc'])
})

test('one directory is made', async t => {
  const { dir, post } = await start(t)
  assert.deepEqual((await post(join(dir, 'new'))).data, { path: join(dir, 'new') })
  assert.deepEqual(
    [(await post(join(dir, 'new'))).code, (await post(join(dir, 'no/new'))).code, (await post('new')).code],
    [40919, 40409, 40001]
  )
})
