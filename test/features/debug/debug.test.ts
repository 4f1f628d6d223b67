import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { test } from 'node:test'
import { AsyncSeriesBailHook } from 'tapable'
import apiDocs from '../../../features/api-docs/pack.ts'
import { listHooks, listJournals, listLoadedSessions, listPacks, listRoutes, readProcess } from '../../../features/debug/index.ts'
import debug from '../../../features/debug/pack.ts'
import { loadDefaultPacks } from '../../../features/default-packs.ts'
import meta from '../../../features/meta/pack.ts'
import { definePack } from '../../../kernel/index.ts'
import { startTestKernel, type TestKernelOptions } from '../../../kernel/testing.ts'
import { projectRoot } from '../../helpers/project-root.ts'
import { freshDir } from '../../helpers/temp.ts'

const all = [listPacks, listRoutes, listHooks, listLoadedSessions, listJournals, readProcess]
const debugged = (options: TestKernelOptions): TestKernelOptions => ({ debugEndpoints: true, ...options })

test('without the flag, and on a bind beyond loopback, the debug routes do not exist', async t => {
  for (const options of [{}, { debugEndpoints: true, host: '0.0.0.0' }]) {
    const { rest, kernel } = await startTestKernel(t, { packs: [apiDocs, debug], ...options })
    for (const { path } of all) assert.equal((await rest.raw('GET', path)).status, 404, path)
    assert.deepEqual(
      kernel.inspect().routes.filter(route => route.includes('debug')),
      []
    )
    assert.equal(kernel.features().find(({ name }) => name === 'debug')?.state, 'Active')
    assert.doesNotMatch((await rest.raw('GET', '/openapi.json')).body.toString(), /\/debug\//)
  }
})

test('the routes are in the documents while they are mounted, read only, in the README, and want the token', async t => {
  const { rest, url, kernel } = await startTestKernel(t, debugged({ packs: [apiDocs, debug] }))
  const { paths } = JSON.parse((await rest.raw('GET', '/openapi.json')).body.toString()) as { paths: Record<string, object> }
  const readme = await readFile(new URL('features/debug/README.md', projectRoot), 'utf8')
  const mounted = kernel.inspect().routes.filter(route => route.includes('/debug/'))
  assert.deepEqual(mounted, all.map(({ path }) => `GET ${path}`).sort())
  for (const { path } of all) {
    assert.deepEqual(Object.keys(paths[path] ?? {}), ['get'])
    assert.ok(readme.includes(`\`GET ${path}\``), path)
    assert.equal((await fetch(`${url}${path}`)).status, 401)
  }
})

test('packs are listed with the time of their setup, those that wait with what they wait for', async t => {
  const slow = definePack({ name: 'slow', setup: () => new Promise(resolve => setTimeout(resolve, 20)) })
  const failing = definePack({
    name: 'failing',
    setup() {
      throw new Error('no')
    }
  })
  const { call, kernel } = await startTestKernel(t, debugged({ packs: [slow, failing, meta, debug] }))
  const { packs, setup_ms } = (await call(listPacks, {})).data
  assert.deepEqual(
    packs.map(({ name, state, error }) => [name, state, error]),
    [
      ['slow', 'Active', undefined],
      ['failing', 'Failed', 'no'],
      ['meta', 'Active', undefined],
      ['debug', 'Active', undefined]
    ]
  )
  const [first, failed, third] = packs
  assert.ok((first?.setup_ms ?? 0) >= 10 && setup_ms >= (first?.setup_ms ?? 0))
  assert.ok((failed?.setup_ms ?? 1000) < 10)
  assert.equal(third?.routes, kernel.inspect().routes.filter(route => !route.includes('/debug/')).length - 1, 'the start page gives way')
  await kernel.unload('slow')
  assert.equal(
    (await call(listPacks, {})).data.packs.some(({ name }) => name === 'slow'),
    false
  )
})

test('routes tell their packs; hooks their taps in order, until the pack of a tap has gone', async t => {
  const own = new AsyncSeriesBailHook<[number], number>(['n'], 'ownHook')
  const tapping = definePack({
    name: 'tapping',
    setup(ctx) {
      ctx.tap(ctx.hooks.afterRequest, () => undefined, { name: 'late', stage: 5 })
      ctx.tap(ctx.hooks.afterRequest, () => undefined, { stage: -5 })
      ctx.tap(own, () => undefined)
    }
  })
  const { call, kernel } = await startTestKernel(t, debugged({ packs: [meta, tapping, debug] }))
  const { routes } = (await call(listRoutes, {})).data
  assert.deepEqual(
    routes.find(({ path }) => path === '/api/v1/healthz'),
    {
      method: 'GET',
      path: '/api/v1/healthz',
      pack: 'meta',
      summary: 'Liveness probe; touches neither configuration nor engine',
      open: true
    }
  )
  assert.equal(routes.find(({ path }) => path === listPacks.path)?.open, false)

  const { hooks } = (await call(listHooks, {})).data
  assert.deepEqual(
    hooks.find(({ name }) => name === 'afterRequest'),
    {
      name: 'afterRequest',
      of: 'kernel',
      kind: 'notify',
      taps: [
        { pack: 'tapping', name: 'tapping', stage: -5 },
        { pack: 'tapping', name: 'late', stage: 5 }
      ]
    }
  )
  assert.deepEqual(hooks.at(-1), { name: 'ownHook', of: 'pack', kind: 'bail', taps: [{ pack: 'tapping', name: 'tapping', stage: 0 }] })
  assert.deepEqual(
    hooks.filter(({ of }) => of === 'kernel').map(({ name }) => name),
    Object.keys(kernel.hooks)
  )

  await kernel.unload('tapping')
  const after = (await call(listHooks, {})).data.hooks
  assert.deepEqual(
    after.flatMap(({ taps }) => taps),
    []
  )
  assert.ok(after.every(({ of }) => of === 'kernel'))
})

test('sessions in memory and journals are shown as they are, and reading them changes nothing', async t => {
  const { call, rest, connect, kernel } = await startTestKernel(t, debugged({ packs: await loadDefaultPacks() }))
  const { id } = (await rest.json('POST', '/api/v1/sessions', { metadata: { cwd: await freshDir() } })).data as { id: string }
  const socket = await connect()
  await socket.request('subscribe', { session_ids: [id] })
  await kernel.hub.flushed()
  const { sessions } = (await call(listLoadedSessions, {})).data
  const [session] = sessions
  assert.deepEqual(
    [sessions.length, session?.id, session?.writable, session?.busy, session?.pending_interaction, session?.running_turns],
    [1, id, true, false, 'none', []]
  )
  const { journals, waiting_bytes } = (await call(listJournals, {})).data
  const position = kernel.hub.watermark(id)
  assert.deepEqual(
    journals.find(({ session_id }) => session_id === id),
    { session_id: id, ...position, written_seq: position?.seq, kept: true, subscribers: 1 }
  )
  assert.equal(journals.find(({ session_id }) => session_id === '__global__')?.written_seq, 1)
  assert.equal(waiting_bytes, 0)
  assert.deepEqual((await call(listJournals, {})).data, { journals, waiting_bytes })
  assert.ok(
    (await call(listHooks, {})).data.hooks.some(({ name, of, taps }) => of === 'pack' && name === 'toolCall.before' && taps.length > 0)
  )
  assert.ok((await call(listHooks, {})).data.hooks.every(({ name }) => name !== ''))
})

test('the process tells memory and how late the event loop was', async t => {
  const { call } = await startTestKernel(t, debugged({ packs: [debug] }))
  const { data } = await call(readProcess, {})
  assert.equal(data.pid, process.pid)
  assert.ok(data.memory.heap_used_bytes > 0 && data.heap.limit_bytes > data.memory.heap_used_bytes)
  assert.ok(data.event_loop.utilization > 0)
  const pause = () => new Promise(resolve => setTimeout(resolve, 25))
  await pause()
  const until = performance.now() + 80
  while (performance.now() < until);
  await pause()
  assert.ok((await call(readProcess, {})).data.event_loop.delay_ms.max >= 40)
})
