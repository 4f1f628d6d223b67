/** Every pack of the full server, and the example packs, pass what `svc-code pack test` checks of any pack; the checks find what they look for. */
import assert from 'node:assert/strict'
import { watch } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { test } from 'node:test'
import bookmarks from '../../examples/bookmarks/pack.ts'
import checksum from '../../examples/checksum/pack.ts'
import demoModel from '../../examples/demo-model/pack.ts'
import houseRules from '../../examples/house-rules/pack.ts'
import lineModel from '../../examples/line-model/pack.ts'
import { loadDefaultPacks } from '../../features/default-packs.ts'
import { definePack, defineRoute, longestMs, type TObject, Type } from '../../kernel/index.ts'
import { assertNothingMore, openResources, packChecks, startTestKernel } from '../../kernel/testing.ts'
import { recorded } from '../helpers/declared.ts'
import { missingIn } from '../helpers/pack-facts.ts'
import { projectRoot } from '../helpers/project-root.ts'

const packs = await loadDefaultPacks()
for (const pack of [...packs, bookmarks, checksum, demoModel, houseRules, lineModel]) {
  const others = packs.filter(other => other !== pack)
  // Bounds and reloads under load are the author's: packs of ours have benches, and swaps in the tests of the agent.
  const checks = packChecks(pack, { others }).filter(({ name }) => !/^setup and answers|reloads under/.test(name))
  for (const check of checks) test(`${pack.name}: ${check.name}`, () => check.run())
}

test('beside all others each pack says what it does', async t => {
  const written = packs.map(pack => ({ pack, ...recorded([pack]) }))
  const { kernel } = await startTestKernel(t, { packs: written.flatMap(({ packs }) => packs) })
  for (const { pack, declared } of written) {
    await t.test(`${pack.name}: one line, and its README names every route, event, frame and option`, async () => {
      assert.equal(kernel.features().find(one => one.name === pack.name)?.state, 'Active')
      assert.match(pack.description ?? '', /^\S.{9,110}$/)
      const readme = await readFile(new URL(`features/${pack.name}/README.md`, projectRoot), 'utf8')
      assert.deepEqual(missingIn(readme, pack, declared), [])
    })
  }
})

test('no option of a pack is a time that its timers cannot wait: with more they would fire at once', () => {
  const unbounded = packs.flatMap(pack => {
    const options = Object.entries((pack.config as TObject | undefined)?.properties ?? {})
    return options
      .filter(([name, { type, maximum }]) => name.endsWith('_ms') && type === 'integer' && !(maximum <= longestMs))
      .map(([name]) => `${pack.name}.${name}`)
  })
  assert.deepEqual(unbounded, [])
})

test('a pack that answers no requests passes every check, reloads among them', async () => {
  for (const check of packChecks(definePack({ name: 'silent', setup: () => undefined }), { others: [], reloads: 2 })) await check.run()
})

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
