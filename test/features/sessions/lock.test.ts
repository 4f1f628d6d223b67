import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Place } from '../../../features/peers/index.ts'
import type { Catalog } from '../../../features/sessions/catalog.ts'
import { firstState } from '../../../features/sessions/create.ts'
import { SessionTable, type TablePorts } from '../../../features/sessions/table.ts'
import { LeaseLost, SessionMoved } from '../../../kernel/index.ts'
import { freshDir } from '../../helpers/temp.ts'
import { silent } from '../tools/fakes.ts'

const state = firstState('session_a', 'wd_a_000000000000', '/nowhere', {}, new Date(0))

interface Parts {
  readonly dir?: string
  readonly catalog?: Partial<Catalog>
  readonly streams?: Partial<TablePorts['streams']>
  readonly live?: Partial<TablePorts['live']>
  readonly lock?: Partial<NonNullable<Awaited<ReturnType<TablePorts['lock']>>>>
  /** Who has the lock, by attempt: another process, or (undefined) nobody. */
  readonly holders?: ('a server' | 'a container' | undefined)[]
  readonly more?: Partial<TablePorts>
}

/** A table that says what it does, with these parts of what it works with. */
function tableWith(
  told: string[],
  { dir = '/nowhere', catalog = {}, streams = {}, live = {}, lock = {}, holders = [], more = {} }: Parts
): SessionTable {
  let holder: (typeof holders)[number]
  return new SessionTable({
    catalog: {
      find: async () => state,
      dir: () => dir,
      refresh: async () => state,
      pin: () => told.push('pinned'),
      unpin: () => told.push('unpinned'),
      ...catalog
    } as unknown as Catalog, // what is asked of it
    streams: { subscribers: () => 0, close: async () => undefined, backwards: async function* () {}, ...streams } as TablePorts['streams'], // as above
    log: silent,
    lock: async () => {
      holder = holders.shift()
      if (holder) {
        // It may let go of it right behind that.
        holder = holders.shift()
        return undefined
      }
      return {
        fence: 1,
        release: async () => void told.push(existsSync(dir) ? 'released' : 'released, gone'),
        onLost: () => undefined,
        check: async () => undefined,
        look: async () => undefined,
        temporary: async () => '/nowhere/~',
        overtaken: false,
        ...lock
      }
    },
    owners: {
      of: async () => (holder === 'a server' ? ({} as Place) : undefined),
      isFree: async () => holder === undefined,
      wasLeft: async () => false
    },
    live: live as TablePorts['live'], // as above
    maxIdle: 1,
    idleMs: 100_000,
    hibernateMs: 100_000,
    foreignMs: 1,
    ...more
  })
}

const fails = (why: string) => async () => {
  throw new Error(why)
}

test('a session that could not be loaded leaves its lock to others', async () => {
  const told: string[] = []
  const table = tableWith(told, { dir: '/', streams: { takeOver: fails('the journal cannot be read') } })

  await assert.rejects(table.load('session_a'), /the journal cannot be read/)

  assert.ok(told.indexOf('pinned') < told.indexOf('released'))
  assert.equal(told.at(-1), 'released')
  assert.equal(table.loaded('session_a'), undefined)
})

test('a session that another server takes while it is being loaded is asked for there; what was begun with it here ends', async () => {
  const told: string[] = []
  let lose = () => {}
  const streams: Parts['streams'] = {
    takeOver: async () => ({ seq: 0, epoch: 'e' }),
    lost: async () => void told.push('lost'),
    close: async () => void told.push('closed')
  }
  const lock: Parts['lock'] = {
    onLost: listener => {
      lose = listener
    },
    check: async () => {
      lose()
      throw new Error('the lease is lost')
    }
  }
  const table = tableWith(told, { dir: await freshDir(), streams, lock })
  table.loading.add(session => session.own(() => void told.push('ended')))
  await assert.rejects(table.load('session_a'), SessionMoved)
  assert.deepEqual(
    ['lost', 'closed', 'ended'].map(what => told.includes(what)),
    [true, true, true]
  )
  assert.equal(table.loaded('session_a'), undefined)
})

for (const { holders, outcome } of [
  { holders: ['a server', undefined], outcome: 'ours' },
  { holders: ['a server', undefined, 'a container', 'a container'], outcome: 'read' },
  { holders: ['a server', undefined, 'a server', 'a server'], outcome: 'moved' }
] as const)
  test(`a session that its server lets go of while it is being loaded is not only read here: ${outcome} in the end`, async () => {
    const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }), openForeign: async () => ({ seq: 0, epoch: 'e' }) }
    const table = tableWith([], { dir: await freshDir(), streams, holders: [...holders] })
    const loading = table.load('session_a')
    if (outcome === 'moved') await assert.rejects(loading, SessionMoved)
    else assert.equal((await loading).writable, outcome === 'ours')
    await table.closeAll()
  })

test('a session that is asked for while the others are closed is not opened any more', async () => {
  const told: string[] = []
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }) }
  const table = tableWith(told, { dir: await freshDir(), streams })
  const session = await table.load('session_a')
  const late: Promise<unknown>[] = []
  session.own(() => void late.push(table.load('session_a').catch(error => error)))
  await table.closeAll()
  assert.match(String(await late[0]), /closing/)
  assert.deepEqual(
    told.filter(what => what !== 'unpinned'),
    ['pinned', 'released']
  )
})

test('what holds a session that is closed changes nothing in it: it may be of another server by then', async () => {
  const told: string[] = []
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }) }
  const catalog = { show: () => undefined, put: async ({ title }: { title: string }) => void told.push(`saved ${title}`) }
  const table = tableWith(told, { dir: await freshDir(), streams, catalog, live: { now: () => new Date(1) } })
  const session = await table.load('session_a')
  session.own(() => session.update(state => ({ ...state, title: 'as it goes' })).then(() => undefined))
  await table.unload('session_a')
  await assert.rejects(
    session.update(state => ({ ...state, title: 'late' })),
    { code: 40901 }
  )
  assert.deepEqual(told, ['pinned', 'saved as it goes', 'unpinned', 'released'])
})

test('a session whose journal cannot be closed leaves its lock to others', async () => {
  const told: string[] = []
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }), close: fails('the journal cannot be written') }
  const table = tableWith(told, { dir: await freshDir(), streams })
  await table.load('session_a')
  await table.unload('session_a')
  assert.deepEqual(told, ['pinned', 'unpinned', 'released'])
})

test('a session that is closed while it is asked whose it is, is loaded anew', async () => {
  const streams = { openForeign: async () => ({ seq: 0, epoch: 'e' }), takeOver: async () => ({ seq: 0, epoch: 'e' }) }
  const owners = { of: async () => undefined, isFree: async () => false, wasLeft: async () => false }
  const table = tableWith([], {
    dir: await freshDir(),
    streams,
    holders: ['a container', 'a container'],
    more: { foreignMs: 100_000, owners }
  })
  const before = await table.load('session_a')
  assert.equal(before.writable, false)

  owners.isFree = async () => {
    await table.unload('session_a')
    return false
  }
  const after = await table.load('session_a')
  assert.notEqual(after, before)
  assert.equal(table.loaded('session_a'), after)
  await table.closeAll()
})

test('a session that is closed while its deletion ends its work is deleted', async () => {
  const dir = join(await freshDir(), 'session_a')
  await mkdir(dir)
  const told: string[] = []
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }), remove: async () => undefined }
  const table = tableWith(told, { dir, streams, catalog: { forget: () => told.push('forgotten') } })
  const closed: string[] = []
  table.archiving.add(async ({ id }) => {
    if (closed.push(id) === 1) await table.unload(id)
  })
  await table.remove('session_a')
  assert.deepEqual(told, ['pinned', 'unpinned', 'released', 'pinned', 'forgotten', 'unpinned', 'released, gone'])
})

test('a session that is closed while its archiving ends its work is changed', async () => {
  const told: string[] = []
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }) }
  const note = async ({ title }: { title: string }) => void told.push(`saved ${title}`)
  const catalog = { show: () => undefined, refresh: async (state: object) => state, put: note, change: note } as Parts['catalog']
  const table = tableWith(told, { dir: await freshDir(), streams, catalog, live: { now: () => new Date(1) } })
  await table.load('session_a')
  const change = <S extends object>(state: S) => ({ ...state, title: 'changed' })
  await table.patch('session_a', change, async session => {
    await table.unload('session_a')
    await session.update(change)
  })
  assert.deepEqual(told, ['pinned', 'unpinned', 'released', 'saved changed', 'released'])
})

test('a session that could not be made leaves its lock to others', async () => {
  const told: string[] = []
  const table = tableWith(told, { dir: join(await freshDir(), 'new'), catalog: { change: fails('the state cannot be saved') } })
  await assert.rejects(table.create(state), /the state cannot be saved/)
  assert.deepEqual(told, ['released, gone'])
})

test('a session that another server takes while it is being made stays there', async () => {
  const dir = join(await freshDir(), 'session_a')
  await mkdir(dir)
  const takeOver = async () => {
    throw new LeaseLost(dir)
  }
  const table = tableWith([], { dir, catalog: { change: async () => undefined }, streams: { takeOver } })
  await assert.rejects(table.create(state), LeaseLost)
  assert.ok(existsSync(dir))
})

test('an agent is there once the state that names it is on disk; a deleted session is gone before its lock is', async () => {
  const dir = join(await freshDir(), 'session_a')
  await mkdir(dir)
  const told: string[] = []
  const table = tableWith(told, {
    dir,
    catalog: {
      show: () => undefined,
      forget: () => undefined,
      put: async ({ agents }) => {
        await new Promise(setImmediate)
        told.push(`saved ${Object.keys(agents)}`)
      }
    },
    streams: {
      takeOver: async () => ({ seq: 0, epoch: 'e' }),
      remove: async () => undefined
    },
    live: { now: () => new Date(1), agentCreated: (_session, agent) => told.push(`created ${agent}`) }
  })
  const session = await table.load('session_a')
  await session.createAgent({ type: 'sub' })
  assert.deepEqual(told.splice(0), ['pinned', 'saved agent-0', 'created agent-0'])

  await table.remove('session_a')
  assert.equal(
    told.find(line => line.startsWith('released')),
    'released, gone'
  )
  await table.closeAll()
})

test('a change that waits for the write before it is refused when the session is lost or deleted meanwhile, and closed', async () => {
  const catalog = { show: () => undefined, forget: () => undefined }
  const streams = { takeOver: async () => ({ seq: 0, epoch: 'e' }), lost: async () => undefined, remove: async () => undefined }
  for (const { moved, code } of [
    { moved: true, code: 40901 },
    { moved: false, code: 40401 }
  ]) {
    let free: () => void = () => undefined
    const writing = new Promise<void>(resolve => {
      free = resolve
    })
    let saved = 0
    const put = async () => {
      saved++
      await writing
    }
    const live = { now: () => new Date(1), flushed: async () => undefined }
    const table = tableWith([], { dir: await freshDir(), catalog: { ...catalog, put }, streams, live })
    const session = await table.load('session_a')
    const first = session.update(state => ({ ...state, title: 'one' }))
    session.tellTitle(true)
    await new Promise(setImmediate)
    const later = ['two', 'three'].map(title => session.update(state => ({ ...state, title })))
    session.gone({ moved })
    const closed = table.unload('session_a')
    free()
    await first
    for (const change of later) await assert.rejects(change, { code })
    assert.deepEqual([saved, session.state.title], [1, 'one'])
    await closed
    await table.closeAll()
  }
})
