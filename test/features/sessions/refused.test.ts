/** What the disk refuses: nobody is told that it is so, now or later. */
import assert from 'node:assert/strict'
import fs from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, rmdir, writeFile } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import {
  archiveSession,
  createSession,
  deleteSession,
  readSession,
  restoreSession,
  type SessionState,
  Sessions,
  updateProfile
} from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel, type TestContextLike } from '../../../kernel/testing.ts'
import { mockedBuiltins } from '../../helpers/builtins.ts'
import { freshDir } from '../../helpers/temp.ts'

async function start(t: TestContextLike) {
  const services: { sessions?: Sessions } = {}
  const probe = definePack({
    name: 'probe',
    needs: { sessions: Sessions },
    setup: (_ctx, given) => void Object.assign(services, given)
  })
  const { call, kernel } = await startTestKernel(t, { packs: [workspaces, sessions, probe] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await freshDir() }, title: 'old' } })
  const session = await services.sessions!.load(data.id)
  const file = join(session.dir, 'state.json')
  const params = { session_id: data.id }
  return {
    kernel,
    session,
    sessions: services.sessions!,
    profile: async (body: { title?: string; metadata?: Record<string, unknown> }) => (await call(updateProfile, { params, body })).code,
    archive: async () => (await call(archiveSession, { params })).code,
    remove: async () => (await call(deleteSession, { params })).code,
    restore: async () => (await call(restoreSession, { params })).code,
    read: async () => (await call(readSession, { params })).data,
    stored: async () => JSON.parse(await readFile(file, 'utf8')) as SessionState,
    /** As another server leaves it that took the session over. */
    takeOver: async () => {
      const lock = join(session.dir, 'lock')
      await writeFile(lock, `${await readFile(lock, 'utf8')} `)
      for (const name of await readdir(session.dir)) if (name.startsWith('.lease-')) await rm(join(session.dir, name), { recursive: true })
    },
    /** The state cannot be replaced until it is given back. */
    refuse: async () => {
      await rename(file, `${file}.kept`)
      await mkdir(file)
    },
    giveBack: async () => {
      await rmdir(file)
      await rename(`${file}.kept`, file)
    }
  }
}

test('a title and metadata that could not be saved are as they were, also after the next change', async t => {
  const { profile, read, stored, refuse, giveBack } = await start(t)
  await refuse()
  assert.deepEqual(
    await Promise.all([profile({ title: 'one' }), profile({ title: 'two' }), profile({ metadata: { x: 1 } })]),
    [50003, 50003, 50003]
  )
  const { title, metadata } = await read()
  assert.deepEqual([title, metadata.x], ['old', undefined])
  await giveBack()
  assert.equal(await profile({ metadata: { y: 2 } }), 0)
  const { title: saved, metadata: custom } = await stored()
  assert.deepEqual([saved, custom], ['old', { y: 2 }])
})

test('archiving that could not be saved is refused each time, and done when the disk takes it', async t => {
  const { archive, restore, read, stored, refuse, giveBack } = await start(t)
  await refuse()
  assert.deepEqual([await archive(), await archive(), (await read()).archived], [50003, 50003, false])
  await giveBack()
  assert.deepEqual([await archive(), (await stored()).archived], [0, true])
  await refuse()
  assert.deepEqual([...(await Promise.all([restore(), restore()])), (await read()).archived], [50003, 50003, true])
  await giveBack()
  assert.deepEqual([await restore(), (await stored()).archived], [0, false])
})

test('agents that are made at once have ids of their own; one that could not be saved is not there', async t => {
  const { session, stored, refuse, giveBack } = await start(t)
  const record = { type: 'sub', parent_agent_id: 'main' } as const
  const made = await Promise.all([session.createAgent(record), session.createAgent(record)])
  assert.deepEqual(
    made.map(({ id }) => id),
    ['agent-0', 'agent-1']
  )
  await refuse()
  await assert.rejects(session.createAgent(record))
  await giveBack()
  assert.equal((await session.createAgent(record)).id, 'agent-2')
  assert.deepEqual(Object.keys((await stored()).agents).sort(), ['agent-0', 'agent-1', 'agent-2'])
})

test('what need not be on disk at once is there after the close, though the disk refused it before', async t => {
  const { kernel, session, stored, refuse, giveBack, profile } = await start(t)
  session.promptSubmitted('hello')
  await refuse()
  assert.equal(await profile({ title: 'one' }), 50003)
  await giveBack()
  await kernel.stop()
  const { last_prompt, title } = await stored()
  assert.deepEqual([last_prompt, title], ['hello', 'old'])
})

test('a change that is being written when another server takes the session over is refused as one that comes later', async t => {
  const { profile, stored, takeOver } = await start(t)
  assert.equal(await profile({ title: 'mine' }), 0)
  await takeOver()

  assert.deepEqual([await profile({ title: 'lost' }), await profile({ title: 'late' })], [40901, 40901])

  assert.equal((await stored()).title, 'mine')
})

test('a session that another server has taken over is not deleted', async t => {
  const { remove, stored, takeOver } = await start(t)
  await takeOver()

  assert.equal(await remove(), 40901)

  assert.equal((await stored()).title, 'old')
})

test('a session that the disk does not tell of is refused while it is so, and is no missing one', async t => {
  const home = await freshDir()
  const first = await startTestKernel(t, { home, packs: [workspaces, sessions] })
  const { data } = await first.call(createSession, { body: { metadata: { cwd: await freshDir() } } })
  await first.kernel.stop()
  const { call } = await startTestKernel(t, { home, packs: [workspaces, sessions] })
  const asked = async () => (await call(readSession, { params: { session_id: data.id } })).code
  assert.equal(await asked(), 0)
  const fault = Object.assign(new Error('EIO: i/o error, stat'), { code: 'EIO', syscall: 'stat', errno: -constants.errno.EIO })
  const { stat, statSync } = fs
  const fails = (path: unknown) => String(path).endsWith(data.id)
  t.mock.method(fs, 'stat', ((path: string, answered: (...given: unknown[]) => void) =>
    fails(path) ? answered(fault) : stat(path, answered)) as never)
  t.mock.method(fs, 'statSync', ((...args: Parameters<typeof statSync>) => {
    if (fails(args[0])) throw fault
    return statSync(...args)
  }) as never)
  const restore = mockedBuiltins(t)
  assert.deepEqual([await asked(), await asked()], [50003, 50003])
  restore()
  assert.equal(await asked(), 0)
})

test('a copy that cannot be opened is refused, and there is none', async t => {
  const { session, sessions } = await start(t)
  const copied = sessions.copy(session, { title: 'copy' }, async dir => void (await mkdir(join(dir, 'lock', 'x'), { recursive: true })))
  await assert.rejects(copied, { code: 50003 })
  assert.deepEqual(
    (await sessions.list()).map(({ title }) => title),
    ['old']
  )
  assert.deepEqual(await readdir(join(session.dir, '..')), [session.id])
})
