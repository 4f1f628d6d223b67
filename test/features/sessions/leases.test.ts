/** What servers that died leave of their beats. */
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { mkdir, readdir, readFile, rename, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { Leases } from '../../../features/sessions/leases.ts'
import { ownProcess } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'

test('a server that begins to beat removes the beats of servers that are gone, and no others', async () => {
  const home = await freshDir()
  const dir = join(home, 'server', 'beats')
  await mkdir(dir, { recursive: true })
  const { where } = await ownProcess()
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const beat = (name: string, identity?: object) => writeFile(join(dir, name), `000000000007${identity ? JSON.stringify(identity) : ''}`)
  await beat('GONE', { pid, where })
  await writeFile(join(dir, 'GONE.taken'), '5\n')
  await beat('ALIVE', await ownProcess())
  await writeFile(join(dir, 'ALIVE.taken'), '6\n')
  await beat('ELSEWHERE', { pid, where: 'another machine' })
  await beat('LONG_AGO', { pid, where: 'another machine' })
  await beat('OLDER_VERSION')
  await beat('OLDER_VERSION_LONG_AGO')
  const longAgo = new Date(Date.now() - 25 * 60 * 60 * 1000)
  for (const name of ['LONG_AGO', 'OLDER_VERSION_LONG_AGO']) await utimes(join(dir, name), longAgo, longAgo)

  const warned: unknown[] = []
  const leases = new Leases({ home, server_id: 'MINE', log: { warn: (...line: unknown[]) => void warned.push(line) } })
  const lease = await leases.acquire(join(home, 'sessions', 's1'))
  assert.deepEqual((await readdir(dir)).sort(), ['ALIVE', 'ALIVE.taken', 'ELSEWHERE', 'MINE', 'OLDER_VERSION'])
  assert.match(await readFile(join(dir, 'MINE'), 'utf8'), new RegExp(`^\\d{12}\\{"pid":${process.pid},`))

  await lease?.release()
  const again = await leases.acquire(join(home, 'sessions', 's1'))
  assert.match(await readFile(join(dir, 'MINE'), 'utf8'), /^\d{12}\{"pid":/)
  await again?.release()
  await leases.close()
  assert.ok(!(await readdir(dir)).includes('MINE'))
  assert.deepEqual(warned, [])
})

const made = (home: string, server_id: string) => new Leases({ home, server_id, log: { warn: () => undefined } })

test('a server beats as long as it has a lease', { timeout: 20_000 }, async t => {
  t.mock.timers.enable({ apis: ['setInterval'] })
  const home = await freshDir()
  const leases = made(home, 'MINE')
  const [first, second] = await Promise.all(['s1', 's2'].map(name => leases.acquire(join(home, 'sessions', name))))
  const count = async () => Number((await readFile(join(home, 'server', 'beats', 'MINE'), 'utf8')).slice(0, 12))
  const begun = await count()
  for (const more of [1, 2]) {
    t.mock.timers.tick(1000)
    while ((await count()) < begun + more && !t.signal.aborted) await new Promise(setImmediate)
    await first?.release()
  }
  await second?.release()
  await leases.close()

  const swapped = made(home, 'MINE')
  await (await swapped.acquire(join(home, 'sessions', 's1')))?.release()
  assert.ok((await count()) > begun + 2, 'no beat that somebody has seen before')
  await swapped.close()
})

test('what a dead holder was about to put into its place goes with its lease', async () => {
  const home = await freshDir()
  const dir = join(home, 'sessions', 's1')
  const [mine, other] = [made(home, 'MINE'), made(home, 'OTHER')]
  const lost = await other.acquire(dir)
  await writeFile((await lost?.temporary()) as string, 'half')
  const { pid } = spawnSync(process.execPath, ['-e', ''])
  const lock = JSON.parse(await readFile(join(dir, 'lock'), 'utf8')) as Record<string, unknown>
  assert.equal(lock.pid, process.pid)
  await writeFile(join(dir, 'lock'), JSON.stringify({ ...lock, pid }))
  const before = await readdir(dir)

  const taken = await mine.acquire(dir)

  assert.deepEqual([before.length, await readdir(dir), (taken?.fence ?? 0) > (lost?.fence ?? 0)], [2, ['lock'], true])
  await taken?.release()
  await Promise.all([mine, other].map(leases => leases.close()))
})

test('who has an index hears that another server took a lease, as long as that server is there and once after it', async () => {
  const home = await freshDir()
  const [mine, other] = [made(home, 'MINE'), made(home, 'OTHER')]
  const own = await mine.acquire(join(home, 'sessions', 's1'))
  await utimes(join(home, 'server', 'beats'), new Date(0), new Date(0)) // so that it need not wait for the next tick of the file system
  const alone = await mine.elsewhere()
  assert.equal(typeof alone, 'string')
  assert.equal(await mine.elsewhere(), alone)

  const lease = await other.acquire(join(home, 'sessions', 's2'))
  assert.equal(await mine.elsewhere(), undefined)
  await lease?.release()
  assert.equal(await mine.elsewhere(), undefined)
  await other.close()
  const again = await mine.elsewhere()
  assert.equal(typeof again, 'string')
  assert.notEqual(again, alone)
  await rename(join(home, 'server', 'beats'), join(home, 'server', 'kept'))
  await symlink('beats', join(home, 'server', 'beats'))
  assert.equal(await mine.elsewhere(), undefined, 'a place that cannot be read')
  await rm(join(home, 'server', 'beats'))
  await rename(join(home, 'server', 'kept'), join(home, 'server', 'beats'))
  await own?.release()
  await mine.close()
})
