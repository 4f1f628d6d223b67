/** A pack finds the same door in a process of its own as in the server's: the same file, the same test, both ways. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { addBookmark, BookmarkLimit, bookmarkAdded, listBookmarks } from '../../../../examples/bookmarks/pack.ts'
import { isolatedPacks } from '../../../../features/cli/isolation/isolated-pack.ts'
import { isolationDefaults } from '../../../../features/cli/isolation/options.ts'
import { createSession, SessionMissing, Sessions, updateProfile } from '../../../../features/sessions/index.ts'
import realSessions from '../../../../features/sessions/pack.ts'
import realWorkspaces from '../../../../features/workspaces/pack.ts'
import { defineEvent, definePack, defineRoute, serviceToken, Type } from '../../../../kernel/index.ts'
import { startTestKernel, stub } from '../../../../kernel/testing.ts'
import { bothWays, exampleFile, isolatedText, packFile } from '../../../helpers/isolated.ts'
import { latch } from '../../../helpers/latch.ts'

const sessions = stub(Sessions, { exists: async id => id === 'session_a' })
const params = { session_id: 'session_a' }

bothWays(exampleFile('bookmarks'), 'bookmarks are stored, listed, announced, limited and refused', async (t, bookmarks) => {
  const { call, events, kernel } = await startTestKernel(t, {
    packs: [sessions, bookmarks],
    config: { bookmarks: { max_per_session: 1 } },
    now: () => new Date(0)
  })
  assert.equal((await call(addBookmark, { params: { session_id: 'nope' }, body: { label: 'x' } })).code, SessionMissing.code)
  assert.equal((await call(addBookmark, { params, body: { label: '' } })).details?.[0]?.path, 'body.label')
  const added = await call(addBookmark, { params, body: { label: 'start' } })
  assert.equal(added.data.created_at, '1970-01-01T00:00:00.000Z')
  assert.equal((await call(addBookmark, { params, body: { label: 'two' } })).code, BookmarkLimit.code)
  assert.deepEqual(events, [{ type: bookmarkAdded.type, payload: added.data }])

  await kernel.reload('bookmarks')

  assert.deepEqual((await call(listBookmarks, { params })).data.items, [added.data])
  await kernel.unload('sessions')
  assert.equal((await call(listBookmarks, { params })).code, 40400)
})

bothWays(exampleFile('bookmarks'), 'options that do not fit fail the pack by name', async (t, bookmarks) => {
  const { kernel } = await startTestKernel(t, { packs: [sessions, bookmarks], config: { bookmarks: { max_per_session: 'many' } } })
  assert.match(kernel.features()[1]?.meta.error ?? '', /max_per_session/)
})

const stores = packFile(`
const Any = Type.Object({ n: Type.Integer() })
const specs = ['kv', 'document', 'log', 'blob'].map(kind => defineStore({ name: 's-' + kind, value: Any, kind }))
const act = defineRoute({ method: 'POST', path: '/api/v1/act', summary: 'Act', data: Type.Array(Type.Unknown()) })
export default definePack({
  name: 'keeper',
  setup(ctx) {
    const [kv, doc, log, blob] = specs.map(spec => ctx.store(spec))
    ctx.route(act, async () => {
      await kv.batch([{ type: 'put', key: 'a', value: { n: 1 } }, { type: 'put', key: 'b', value: { n: 2 } }])
      await kv.delete('a')
      const updates = await Promise.all([1, 2, 3].map(() => doc.update('d', now => ({ n: (now?.n ?? 0) + 1 }))))
      const gone = await doc.update('e', () => undefined)
      await log.append('l', { n: 5 }, { n: 6 })
      const scanned = []
      for await (const { value } of log.scan('l', { reverse: true })) scanned.push(value.n)
      await blob.put('x', Buffer.from('hello'))
      const large = await blob.put('y', Buffer.alloc(10), { maxBytes: 5 }).catch(error => error.constructor.name)
      const parts = []
      for await (const part of await blob.open('x', { start: 1, end: 3 })) parts.push(part)
      const missing = await blob.open('none').catch(error => error.constructor.name)
      return [await kv.entries(), Math.max(...updates.map(one => one.n)), gone === undefined, await doc.get('d'), scanned, Buffer.concat(parts).toString(), large, missing, (await blob.stat('x')).modified_at instanceof Date]
    })
  }
})`)

bothWays(stores, 'all four kinds of stores keep, change and refuse', async (t, pack) => {
  const { rest, home } = await startTestKernel(t, { packs: [pack] })
  assert.deepEqual((await rest.json('POST', '/api/v1/act')).data, [
    [['b', { n: 2 }]],
    3,
    true,
    { n: 3 },
    [6, 5],
    'ell',
    'BlobTooLarge',
    'BlobMissing',
    true
  ])
  assert.equal(await readFile(join(home, 'packs/keeper/s-blob/x'), 'utf8'), 'hello')
})

const bytes = packFile(`
import { Readable } from 'node:stream'
const upload = defineRoute({ method: 'POST', path: '/api/v1/upload', summary: 'Up', bodyType: 'stream', bodyLimit: 4_000_000, data: Type.Object({ size: Type.Integer() }) })
const down = defineRoute({ method: 'GET', path: '/api/v1/down/{kind}', summary: 'Down', params: Type.Object({ kind: Type.String() }), data: Type.Unknown(), binary: { types: ['text/plain'] } })
export default definePack({
  name: 'bytes',
  setup(ctx) {
    ctx.route(upload, async ({ request }) => {
      let size = 0
      for await (const part of request.stream) size += part.length
      return { size }
    })
    ctx.route(down, ({ params }) => params.kind === 'file'
      ? binary({ file: import.meta.filename ?? process.argv[1], type: 'text/plain' })
      : binary({ stream: Readable.from((async function* () { for (let n = 0; n < 40; n++) yield Buffer.alloc(50_000, 65) })()), type: 'text/plain', filename: 'a.txt' }))
  }
})`)

const echo = defineRoute({ method: 'POST', path: '/api/v1/echo', summary: 'Echo', body: Type.Unknown(), data: Type.Unknown() })
const echoing = packFile(`
const echo = defineRoute({ method: 'POST', path: '/api/v1/echo', summary: 'Echo', body: Type.Unknown(), data: Type.Unknown() })
export default definePack({ name: 'echo', setup(ctx) { ctx.route(echo, ({ body }) => body) } })`)

bothWays(echoing, 'a body may be as deep as any, and comes back whole', async (t, pack) => {
  const { call } = await startTestKernel(t, { packs: [pack] })
  let body: unknown = 'inside'
  for (let level = 0; level < 256; level++) body = level % 2 === 0 ? [body] : { $: body }

  const { code, data } = await call(echo, { body })

  assert.equal(code, 0)
  assert.deepEqual(data, body)
})

bothWays(bytes, 'bytes go in and out as streams and files', async (t, pack) => {
  const { rest } = await startTestKernel(t, { packs: [pack] })
  const sent = await rest.raw('POST', '/api/v1/upload', { body: Buffer.alloc(3_000_000) })
  assert.deepEqual((JSON.parse(String(sent.body)) as { data: unknown }).data, { size: 3_000_000 })
  const streamed = await rest.raw('GET', '/api/v1/down/stream')
  assert.equal(streamed.body.length, 2_000_000)
  assert.match(String(streamed.headers['content-disposition']), /a\.txt/)
  assert.match(String((await rest.raw('GET', '/api/v1/down/file')).body), /definePack/)
})

const Numbers = serviceToken<{ double(n: number): Promise<number>; now(): number; readonly base: number }>('numbers')
const numbers = definePack({
  name: 'numbers',
  provides: [Numbers],
  setup: ctx => void ctx.provide(Numbers, { double: async n => n * 2, now: () => 7, base: 3 })
})
const Texts = serviceToken<{ shout(text: string): Promise<string> }>('texts')
const askedEvent = defineEvent({ type: 'event.asked', scope: 'global', durable: false, payload: Type.Object({ n: Type.Integer() }) })
const neighbours = packFile(`
const ask = defineRoute({ method: 'GET', path: '/api/v1/ask', summary: 'Ask', data: Type.Array(Type.Unknown()) })
const told = defineEvent({ type: 'event.told', scope: 'global', durable: false, payload: Type.Object({ text: Type.String() }) })
export default definePack({
  name: 'neighbour',
  needs: { numbers: { kind: 'service', id: 'numbers' } },
  optional: { absent: { kind: 'service', id: 'absent' }, texts: { kind: 'service', id: 'other' } },
  provides: [{ kind: 'service', id: 'texts' }],
  setup(ctx, { numbers, absent }) {
    const emit = ctx.event(told)
    ctx.provide({ kind: 'service', id: 'texts' }, { shout: async text => text.toUpperCase() })
    ctx.on({ type: 'event.asked' }, ({ payload }) => emit({ text: 'heard ' + payload.n }))
    ctx.tap(ctx.hooks.beforeRequest, async request => request.url.endsWith('?no') ? { data: ['refused'] } : undefined)
    ctx.background(async () => { emit({ text: 'background' }) })
    ctx.own(() => ctx.log.info('owned'))
    ctx.log.info({ n: 1 }, 'set up')
    console.log('printed')
    ctx.route(ask, async () => [await numbers.double(4), numbers.now(), numbers.base, absent() === undefined])
  }
})`)

bothWays(neighbours, 'services, listeners, taps, background work, logs and clean-ups', async (t, pack) => {
  const logged: string[] = []
  const asked = definePack({
    name: 'asker',
    needs: { texts: Texts },
    setup(ctx, { texts }) {
      const emit = ctx.event(askedEvent)
      ctx.background(async () => emit({ n: (await texts.shout('x')) === 'X' ? 1 : 0 }))
    }
  })
  const { rest, waitFor, kernel } = await startTestKernel(t, {
    packs: [numbers, pack, asked],
    allowViolations: true,
    log: { level: 'info', to: { write: line => void logged.push(line) } }
  })
  await waitFor(({ payload }) => (payload as { text?: string }).text === 'heard 1')
  await waitFor(({ payload }) => (payload as { text?: string }).text === 'background')
  assert.deepEqual((await rest.json('GET', '/api/v1/ask')).data, [8, 7, 3, true])
  assert.deepEqual((await rest.json('GET', '/api/v1/ask?no')).data, ['refused'])
  await kernel.unload('neighbour')
  const line = logged.map(text => JSON.parse(text) as Record<string, unknown>).find(one => one.msg === 'set up')
  assert.deepEqual([line?.pack, line?.n, line?.level], ['neighbour', 1, 30])
  assert.ok(logged.some(text => text.includes('"owned"')))
})

test('a process that prints without end fills neither the log nor the time of the server', async t => {
  const logged: string[] = []
  const leftOut = latch()
  const pack = await isolatedText(`export default definePack({
    name: 'loud',
    setup: () => new Promise(done => process.stdout.write('a line of it\\n'.repeat(20000), done))
  })`)
  await startTestKernel(t, {
    packs: [pack],
    log: {
      level: 'info',
      to: {
        write(line) {
          if (line.includes('a line of it')) logged.push(line)
          if (line.includes('more than 500 lines in a second')) leftOut.open()
        }
      }
    }
  })
  await leftOut.opened
  assert.ok(logged.length >= 500 && logged.length <= 2500, String(logged.length))
})

const frames = packFile(`
import { defineFrame, defineOutFrame } from 'svc-code/kernel'
const Refused = errorSpec('test_refused', 40977, 'refused')
const echo = defineFrame({ type: 'echo', payload: Type.Object({ text: Type.String() }), ack: Type.Object({ bytes: Type.Integer() }), binary: true, errors: [Refused] })
const said = defineOutFrame({ type: 'said', payload: Type.Object({ text: Type.String(), scopes: Type.Unknown() }) })
export default definePack({
  name: 'frames',
  setup(ctx) {
    ctx.outFrame(said)
    ctx.frame(echo, ({ payload, bytes, connection }) => {
      connection.send({ type: 'said', payload: { text: payload.text, scopes: connection.principal.scopes } })
      return { bytes: bytes.length }
    }, ({ payload }) => { if (payload.text === 'no') throw new AppError(Refused) })
    ctx.collect({ kind: 'point', id: 'words' }).onChange(() => undefined)
    ctx.contribute({ kind: 'point', id: 'words' }, { word: 'tea' })
    ctx.timer(1_000_000, () => undefined)
    ctx.streams.watermark('none')
  }
})`)

bothWays(frames, 'frames with bytes are answered and refused, and the connection is at hand', async (t, pack) => {
  const { connect } = await startTestKernel(t, { packs: [pack] })
  const socket = await connect()
  const told = socket.next('said')
  const { code, payload } = await socket.request('echo', { text: 'yes' }, Buffer.alloc(5))
  assert.deepEqual([code, payload], [0, { bytes: 5 }])
  assert.deepEqual((await told).payload, { text: 'yes', scopes: 'all' })
  assert.equal((await socket.request('echo', { text: 'no' })).code, 40977)
})

const hears = packFile(`
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
export default definePack({
  name: 'hears',
  setup(ctx) {
    const heard = []
    ctx.on({ type: 'event.asked' }, ({ payload }) => heard.push(payload.n))
    ctx.own(() => writeFileSync(join(ctx.home, 'heard.json'), JSON.stringify(heard)))
  }
})`)

bothWays(hears, 'what was emitted before a pack is unloaded is heard, all of it and in order', async (t, pack) => {
  let emit: (n: number) => void = () => undefined
  const asker = definePack({
    name: 'asker',
    setup(ctx) {
      const asked = ctx.event(askedEvent)
      emit = n => void asked({ n })
    }
  })
  const { kernel } = await startTestKernel(t, { packs: [pack, asker], allowViolations: true })
  const all = Array.from({ length: 2_000 }, (_, n) => n)
  for (const n of all) emit(n)
  await kernel.unload('hears')
  assert.deepEqual(JSON.parse(await readFile(join(kernel.home, 'heard.json'), 'utf8')), all)
})

// Plain functions, which a pack in a process of its own can contribute where a point says that they are awaited, or that nobody looks at their answer.
const keeper = packFile(`
import { invalid } from 'svc-code/kernel'
import { AgentConfigHandlers, SessionChecks, Sessions } from 'svc-code/features/sessions'
import { CompactionNotes } from 'svc-code/features/compaction'
import { OutboundHosts } from 'svc-code/features/llm'
import { UndoFollowers } from 'svc-code/features/history'
import { AgentRepairs } from 'svc-code/features/agent'
import { StoppedSubagents } from 'svc-code/features/subagents'
let open = true
export default definePack({
  name: 'keeper',
  setup(ctx) {
    ctx.contribute(SessionChecks, { name: 'hours', check() { if (!open) throw invalid([{ path: 'body', message: 'not now' }]) } })
    ctx.contribute(AgentConfigHandlers, { field: 'system_prompt', order: 99, apply(session, value) { open = value !== 'close' } })
    ctx.contribute(CompactionNotes, { name: 'n', note: agent => 'keep ' + agent.id })
    ctx.contribute(OutboundHosts, { pack: 'keeper', hosts: () => [] })
    ctx.contribute(UndoFollowers, { name: 'u', undone() {} })
    ctx.contribute(AgentRepairs, { name: 'r', records: () => [] })
    ctx.contribute(StoppedSubagents, { name: 's', stopped() {} })
  }
})`)

bothWays(keeper, 'plain functions look at new sessions and take settings of agents', async (t, pack) => {
  const { call, home, kernel } = await startTestKernel(t, { packs: [realWorkspaces, realSessions, pack] })
  assert.equal(kernel.features().at(-1)?.meta.error, undefined)
  const body = { metadata: { cwd: home } }
  const { data } = await call(createSession, { body })
  await call(updateProfile, { params: { session_id: data.id }, body: { agent_config: { system_prompt: 'close' } } })
  assert.deepEqual((await call(createSession, { body })).details, [{ path: 'body', message: 'not now' }])
})

test('of a module that is read again and again the last version and the one before are known, and no earlier one', async () => {
  const origin = { spec: await packFile(`export default definePack({ name: 'again', setup() {} })`), from: '/' }
  const packsOf = (version: number) => isolatedPacks(origin, { url: origin.spec, version }, isolationDefaults)
  const [first] = await packsOf(1)
  const [second] = await packsOf(2)
  assert.equal((await packsOf(1))[0], first, 'a reload that failed goes back to it')
  assert.equal((await packsOf(2))[0], second)
  const [third] = await packsOf(3)
  assert.deepEqual([(await packsOf(2))[0] === second, (await packsOf(3))[0] === third], [true, true])
  assert.notEqual((await packsOf(1))[0], first)
})
