/** Every pack of the full server, and the example packs, pass the hygiene suite; the suite finds what it looks for. */
import assert from 'node:assert/strict'
import { watch } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import bookmarks from '../../examples/bookmarks/pack.ts'
import checksum from '../../examples/checksum/pack.ts'
import demoModel from '../../examples/demo-model/pack.ts'
import houseRules from '../../examples/house-rules/pack.ts'
import lineModel from '../../examples/line-model/pack.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack, defineRoute, Type } from '../../kernel/index.ts'
import { assertNothingMore, openResources } from '../../kernel/testing.ts'
import { recorded } from '../helpers/declared.ts'
import { missingIn } from '../helpers/pack-facts.ts'
import { projectRoot } from '../helpers/project-root.ts'
import { packHygiene } from './pack-hygiene.ts'

const packs = await loadDefaultPacks()
for (const pack of packs) {
  packHygiene(pack, { others: packs.filter(other => other !== pack), readme: new URL(`features/${pack.name}/README.md`, projectRoot) })
}
for (const pack of [bookmarks, checksum, demoModel, houseRules, lineModel]) packHygiene(pack, { others: packs })

test('a timer, a watcher or a listening socket that nobody closes is found', async t => {
  const leaks: Record<string, () => () => void> = {
    timer: () => {
      const timer = setInterval(() => undefined, 60_000)
      return () => clearInterval(timer)
    },
    watcher: () => {
      const watcher = watch(tmpdir())
      return () => watcher.close()
    },
    socket: () => {
      const server = createServer().listen(0)
      return () => server.close()
    }
  }
  for (const [name, open] of Object.entries(leaks)) {
    const before = await openResources()
    const close = open()
    t.after(close)
    await assert.rejects(assertNothingMore(before, 20), { name: 'AssertionError' }, name)
    close()
    await assertNothingMore(before)
  }
})

test('a README that leaves out a route, an event or an option is found', () => {
  const { packs, declared } = recorded([
    definePack({ name: 'chatty', config: Type.Object({ loud: Type.Boolean({ default: false }) }), setup: () => undefined })
  ])
  const pack = packs[0]
  assert.ok(pack)
  declared.routes.push(defineRoute({ method: 'GET', path: '/api/v1/x/{+path}:get', summary: 'Get', data: Type.Null() }))
  declared.events.push({ type: 'event.x.seen', scope: 'global', durable: true, payload: Type.Object({}) })

  assert.deepEqual(missingIn('nothing', pack, declared), ['GET /api/v1/x/{path}:get', 'event.x.seen', 'loud'])
  assert.deepEqual(missingIn('`GET /api/v1/x/{path}:get`, `event.x.seen` and `loud`', pack, declared), [])
})
