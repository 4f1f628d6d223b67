import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Catalog } from '../../../features/sessions/catalog.ts'
import { firstState } from '../../../features/sessions/create.ts'
import { SessionTable, type TablePorts } from '../../../features/sessions/table.ts'
import { silent } from '../tools/fakes.ts'

const state = firstState('session_a', 'wd_a_000000000000', '/nowhere', {}, new Date(0))

/** Neither the journal of a session can be read nor its state be saved. */
function broken(told: string[]): SessionTable {
  return new SessionTable({
    catalog: {
      find: async () => state,
      dir: () => '/nowhere',
      refresh: async () => state,
      change: async () => {
        throw new Error('the state cannot be saved')
      },
      pin: () => told.push('pinned'),
      unpin: () => told.push('unpinned')
    } as unknown as Catalog, // what loading asks of it
    streams: {
      takeOver: async () => {
        throw new Error('the journal cannot be read')
      }
    } as unknown as TablePorts['streams'], // as above
    log: silent,
    lock: async () => ({
      release: async () => void told.push('released'),
      onLost: () => undefined,
      check: async () => undefined,
      look: async () => undefined,
      temporary: async () => '/nowhere/~',
      overtaken: false
    }),
    isElsewhere: async () => false,
    isFree: async () => true,
    live: {} as TablePorts['live'], // nothing changes
    maxIdle: 1,
    idleMs: 1,
    hibernateMs: 1,
    foreignMs: 1
  })
}

test('a session that could not be loaded leaves its lock to others', async () => {
  const told: string[] = []
  const table = broken(told)

  await assert.rejects(table.load('session_a'), /the journal cannot be read/)

  assert.deepEqual(told, ['pinned', 'unpinned', 'released'])
  assert.equal(table.loaded('session_a'), undefined)
})

test('a session that could not be made leaves its lock to others', async () => {
  const told: string[] = []
  await assert.rejects(broken(told).create(state), /the state cannot be saved/)
  assert.deepEqual(told, ['released'])
})
