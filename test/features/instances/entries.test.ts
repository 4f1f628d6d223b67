/** Entries of the registry of running servers: what stays, what goes, and the end of a heartbeat. */
import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { listInstances, registerInstance } from '../../../features/instances/instances.ts'
import { freshDir } from '../../helpers/temp.ts'

const entry = (server_id: string, started_at = 5) => ({ server_id, host: '127.0.0.1', port: 58_627, started_at })
const gone = { pid: 2 ** 31 - 2, heartbeat_at: 1 }
const turns = async (count: number) => {
  for (let n = 0; n < count; n++) await new Promise(setImmediate)
}

async function aHome() {
  const home = await freshDir()
  return { home, dir: join(home, 'server', 'instances') }
}

test('a server that registers itself clears away dead ones; its directory is for its owner, its entry tells reused process ids apart', async () => {
  const { home, dir } = await aHome()
  await mkdir(join(home, 'server'))
  const unregister = await registerInstance(home, entry('01A'))
  assert.equal((await stat(dir)).mode & 0o777, 0o700)
  assert.equal((await stat(join(dir, '01A.json'))).mode & 0o777, 0o600)
  await writeFile(join(dir, '01D.json'), JSON.stringify({ ...entry('01D'), ...gone }))
  const second = await registerInstance(home, entry('01B'))
  assert.deepEqual((await readdir(dir)).sort(), ['01A.json', '01B.json'])
  const [found, other] = await listInstances(home)
  assert.deepEqual([found?.server_id, other?.server_id], ['01A', '01B'], 'those of one moment by their ids')
  assert.equal(typeof found?.process_start, process.platform === 'linux' ? 'string' : 'undefined')
  assert.equal(typeof found?.process_where, 'string')
  await Promise.all([unregister(), second()])
})

test('what is no entry is neither listed nor removed', async () => {
  const { home, dir } = await aHome()
  await mkdir(join(dir, 'dir.json'), { recursive: true })
  const dead = { ...entry('01D'), ...gone }
  await writeFile(join(dir, 'notes.txt'), JSON.stringify(dead))
  for (const key of ['server_id', 'pid', 'port', 'host', 'started_at']) {
    await writeFile(join(dir, `${key}.json`), JSON.stringify({ ...dead, pid: process.pid, [key]: undefined }))
  }
  assert.deepEqual(await listInstances(home), [])
  assert.equal((await readdir(dir)).length, 7)
})

test('a registry that cannot be read is a failure, not an empty one', async () => {
  const { home, dir } = await aHome()
  await mkdir(join(home, 'server'))
  await writeFile(dir, '')
  await assert.rejects(listInstances(home), { code: 'ENOTDIR' })
})

test('a heartbeat that fails harms nobody, and the next one is made', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { home, dir } = await aHome()
  const unregister = await registerInstance(home, entry('01A'))
  const path = join(dir, '01A.json')
  await rm(path)
  await mkdir(join(path, 'in the way'), { recursive: true })
  t.mock.timers.tick(15_000)
  await turns(100)
  await rm(path, { recursive: true })
  t.mock.timers.tick(15_000)
  while (!(await readFile(path, 'utf8').catch(() => ''))) await turns(1)
  await unregister()
})

test('a heartbeat on its way when a server ends does not bring its entry back', async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const { home, dir } = await aHome()
  const unregister = await registerInstance(home, entry('01A'))
  t.mock.timers.tick(15_000)
  t.mock.timers.tick(15_000)
  await unregister()
  t.mock.timers.tick(15_000)
  await turns(100)
  assert.deepEqual(await readdir(dir), [])
})
