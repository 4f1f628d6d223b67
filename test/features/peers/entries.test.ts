/** The files by which the servers of a home find each other. */
import assert from 'node:assert/strict'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { Directory, hasEntries } from '../../../features/peers/directory.ts'
import { ownProcess } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'

const [own, other, third] = ['01ARZ3NDEKTSV4RRFFQ69G5FA0', '01ARZ3NDEKTSV4RRFFQ69G5FA1', '01ARZ3NDEKTSV4RRFFQ69G5FA2']
const timeout = 20_000

async function scene(t: TestContext) {
  const home = await freshDir()
  const dir = join(home, 'server', 'peers')
  await mkdir(dir, { recursive: true })
  const directory = new Directory(home, own)
  t.after(() => directory.withdraw())
  const put = async (name: string, entry: unknown) =>
    await writeFile(join(dir, name), typeof entry === 'string' ? entry : JSON.stringify(entry))
  return { home, dir, directory, put, process: await ownProcess() }
}

test('a server is found by the others from when it announces itself until it withdraws', { timeout }, async t => {
  const { home, directory, process } = await scene(t)
  assert.equal(await hasEntries(home), false)
  const there = new Directory(home, other)
  await directory.announce(4711, () => undefined)
  assert.equal(await hasEntries(home), true)
  const [found, ...more] = await there.others()
  assert.deepEqual([found?.server_id, found?.port, found?.process, more], [own, 4711, process, []])
  assert.deepEqual(await directory.others(), [])
  await directory.withdraw()
  assert.deepEqual(await there.others(), [])
})

test('a server hears when another one comes or goes', { timeout }, async t => {
  const { home, directory } = await scene(t)
  let hear: () => void = () => undefined
  await directory.announce(1, () => hear())
  const heard = () =>
    new Promise<void>(resolve => {
      hear = resolve
    })
  const there = new Directory(home, other)
  const came = heard()
  await there.announce(2, () => undefined)
  await came
  while ((await directory.others()).length === 0) await heard()
  const went = heard()
  await there.withdraw()
  await went
})

test('what a dead server left behind is removed, and what is no entry is passed over', { timeout }, async t => {
  const { directory, dir, put, process } = await scene(t)
  const { pid, ...rest } = process
  await put(`${other}.json`, { server_id: other, port: 1, process: { ...rest, pid, start: '1' } }) // its process id is another process by now
  await put(`${third}.json`, { server_id: third, port: 2, process })
  const passed = {
    '01ARZ3NDEKTSV4RRFFQ69G5FA3.json': { server_id: own, port: 1, process },
    '01ARZ3NDEKTSV4RRFFQ69G5FA4.json': { server_id: '01ARZ3NDEKTSV4RRFFQ69G5FA4', process },
    '01ARZ3NDEKTSV4RRFFQ69G5FA5.json': { server_id: '01ARZ3NDEKTSV4RRFFQ69G5FA5', port: 1 },
    '01ARZ3NDEKTSV4RRFFQ69G5FA6.json': '{"server_id":',
    'notes.json': { server_id: 'notes', port: 1, process },
    [third]: { server_id: third, port: 2, process }
  }
  for (const [name, entry] of Object.entries(passed)) await put(name, entry)
  assert.deepEqual(await directory.others(), [{ server_id: third, port: 2, process }])
  assert.deepEqual((await readdir(dir)).sort(), [...Object.keys(passed), `${third}.json`].sort())
})

test('a server has ended when its process has, or when it has withdrawn', { timeout }, async t => {
  const { directory, put, process } = await scene(t)
  const entry = { server_id: other, port: 1, process }
  assert.equal(await directory.isGone(entry), true)
  await put(`${other}.json`, entry)
  assert.equal(await directory.isGone(entry), false)
  assert.equal(await directory.isGone({ ...entry, process: { ...process, start: '1' } }), true)
})
