import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, readdir, readFile, symlink, watch, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { listInstances, registerInstance } from '../../../features/instances/instances.ts'
import { tempHome } from '../../kernel/http-fixture.ts'

const entry = (server_id: string, started_at: number) => ({ server_id, host: '127.0.0.1', port: 58627, started_at, host_version: '1.2.3' })

/** Id of a process that has ended. */
async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', ''])
  await once(child, 'exit')
  return child.pid!
}

test('a server registers itself and leaves no trace when it closes', async () => {
  const home = await tempHome()
  const unregister = await registerInstance(home, entry('01A', 5))
  const [found] = await listInstances(home)
  assert.deepEqual(
    { ...found, heartbeat_at: 0, process_start: '', process_where: '', directory: '' },
    { ...entry('01A', 5), pid: process.pid, heartbeat_at: 0, process_start: '', process_where: '', directory: '' }
  )
  await unregister()
  assert.deepEqual(await listInstances(home), [])
  assert.deepEqual(await readdir(join(home, 'server', 'instances')), [])
})

test('instances are listed oldest first', async () => {
  const home = await tempHome()
  const undo = [
    await registerInstance(home, entry('01B', 20)),
    await registerInstance(home, entry('01A', 30)),
    await registerInstance(home, entry('01C', 10))
  ]
  assert.deepEqual(
    (await listInstances(home)).map(found => found.server_id),
    ['01C', '01B', '01A']
  )
  await Promise.all(undo.map(run => run()))
})

test('entries of dead processes are swept, foreign files stay', async () => {
  const home = await tempHome()
  const dir = join(home, 'server', 'instances')
  await mkdir(dir, { recursive: true })
  const pid = await deadPid()
  await writeFile(join(dir, '01D.json'), JSON.stringify({ ...entry('01D', 1), pid, heartbeat_at: 1 }))
  await writeFile(join(dir, 'notes.txt'), 'mine')
  await writeFile(join(dir, 'broken.json'), '{')
  assert.deepEqual(await listInstances(home), [])
  assert.deepEqual((await readdir(dir)).sort(), ['broken.json', 'notes.txt'])
})

test('a server in another container is listed while its heartbeat is fresh', async () => {
  const home = await tempHome()
  const dir = join(home, 'server', 'instances')
  await mkdir(dir, { recursive: true })
  const elsewhere = { pid: await deadPid(), process_start: 'x', process_where: 'another container' }
  await writeFile(join(dir, '01E.json'), JSON.stringify({ ...entry('01E', 1), ...elsewhere, heartbeat_at: Date.now() - 20_000 }))
  await writeFile(join(dir, '01F.json'), JSON.stringify({ ...entry('01F', 2), ...elsewhere, heartbeat_at: Date.now() - 90_000 }))
  assert.deepEqual(
    (await listInstances(home)).map(found => found.server_id),
    ['01E']
  )
  assert.deepEqual(await readdir(dir), ['01E.json'])
})

test('a reused process id does not pass for the old server', { skip: process.platform !== 'linux' }, async () => {
  const home = await tempHome()
  const dir = join(home, 'server', 'instances')
  await mkdir(dir, { recursive: true })
  await writeFile(join(dir, '01D.json'), JSON.stringify({ ...entry('01D', 1), pid: process.pid, heartbeat_at: 1, process_start: 'boot:1' }))
  assert.deepEqual(await listInstances(home), [])
})

test('the heartbeat rewrites the entry', async () => {
  const home = await tempHome()
  const dir = join(home, 'server', 'instances')
  const unregister = await registerInstance(home, { ...entry('01A', 5), heartbeatMs: 5 })
  const path = join(dir, '01A.json')
  const first = JSON.parse(await readFile(path, 'utf8')).heartbeat_at
  for await (const _change of watch(dir)) {
    if (JSON.parse(await readFile(path, 'utf8')).heartbeat_at > first) break
  }
  await unregister()
})

test('a home without servers lists none', async () => {
  assert.deepEqual(await listInstances(await tempHome()), [])
})

test('in a copy of a home nobody of the first one runs, and its entries stay there', async t => {
  const home = await tempHome()
  const end = await registerInstance(home, entry('01A', 5))
  t.after(end)
  const copy = join(await tempHome(), 'copy')
  await cp(home, copy, { recursive: true })

  assert.deepEqual(await listInstances(copy), [])

  const moved = join(await tempHome(), 'moved')
  await symlink(home, moved)
  assert.equal((await listInstances(home)).length, 1)
  assert.equal((await listInstances(moved)).length, 1, 'by another path it is the same home')
})
