import assert from 'node:assert/strict'
import { cp, readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as pass } from 'node:timers/promises'
import { Directory } from '../../../features/peers/directory.ts'
import { Mesh } from '../../../features/peers/mesh.ts'
import { ownerHook } from '../../../features/peers/owner.ts'
import type { Relays } from '../../../kernel/index.ts'
import { testEnvironment } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

const { log } = testEnvironment()
const alone: Relays = {
  serve: () => undefined,
  connect: () => assert.fail('nobody else is there'),
  setElsewhere: () => undefined,
  onShared: () => () => undefined,
  deliver: () => undefined
}

test('a server that stops while it announces itself leaves no entry behind', async () => {
  const home = await freshDir()
  for (let passes = 0; passes < 40; passes++) {
    const server_id = `01J${String(passes).padStart(23, '0')}`
    const mesh = new Mesh({ home, server_id, log, relays: alone, topics: () => [], owner: ownerHook() })
    const opening = mesh.open()
    for (let n = 0; n < passes; n++) await pass()
    await mesh.close()
    await opening
    const left = await readdir(join(home, 'server', 'peers')).catch(() => []) // none was made yet
    assert.deepEqual(left, [], `closed after ${passes} passes of the loop`)
  }
})

test('an entry in a copy of the home is of nobody there', async t => {
  const home = await freshDir()
  const first = new Directory(home, '01J00000000000000000000001')
  await first.announce(1, () => undefined)
  t.after(() => first.withdraw())
  const copy = join(await freshDir(), 'copy')
  await cp(home, copy, { recursive: true })

  const [here, there] = [new Directory(home, '01J00000000000000000000002'), new Directory(copy, '01J00000000000000000000002')]
  assert.deepEqual(
    (await here.others()).map(one => one.server_id),
    ['01J00000000000000000000001']
  )
  assert.deepEqual(await there.others(), [])
})
