import assert from 'node:assert/strict'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { firstState } from '../../../features/sessions/create.ts'
import {
  AgentConfigHandlers,
  archiveSession,
  createSession,
  listSessions,
  readProfile,
  readSession,
  restoreSession,
  type Session,
  SessionChecks,
  SessionDefaults,
  Sessions,
  updateProfile
} from '../../../features/sessions/index.ts'
import sessions from '../../../features/sessions/pack.ts'
import { SessionCounter } from '../../../features/workspaces/index.ts'
import workspaces from '../../../features/workspaces/pack.ts'
import { defineEvent, definePack, defineSlot, type Pack, Type } from '../../../kernel/index.ts'
import { startTestKernel } from '../../../kernel/testing.ts'
import { freshDir } from '../../helpers/temp.ts'

type Context = Parameters<typeof startTestKernel>[0]

async function directory(): Promise<string> {
  const dir = await freshDir()
  return dir
}

/** Hands out the services of the packs under test. */
function probe() {
  const found: { sessions?: Sessions; counter?: SessionCounter } = {}
  const pack = definePack({
    name: 'probe',
    needs: { sessions: Sessions, counter: SessionCounter },
    setup(_ctx, services) {
      Object.assign(found, services)
    }
  })
  return {
    pack,
    get sessions(): Sessions {
      if (!found.sessions) throw new Error('the probe is not active')
      return found.sessions
    },
    get counter(): SessionCounter {
      if (!found.counter) throw new Error('the probe is not active')
      return found.counter
    }
  }
}

/** A clock that moves a second with every look, so that updated_at differs. */
function ticking() {
  let at = Date.parse('2026-01-01T00:00:00Z')
  return () => {
    at += 1000
    return new Date(at)
  }
}

const start = (
  t: Context,
  options: { packs?: Pack[]; home?: string; config?: Record<string, Record<string, unknown>>; now?: () => Date } = {}
) => {
  const { packs = [], ...rest } = options
  return startTestKernel(t, { packs: [workspaces, sessions, ...packs], now: ticking(), ...rest })
}

test('a session is created at a directory, announced after its workspace, and read back', async t => {
  const { call, events } = await start(t)
  const cwd = await directory()

  const created = await call(createSession, { body: { metadata: { cwd, color: 'blue', goal: 'hidden' }, title: 'Mine' } })

  assert.equal(created.code, 0)
  assert.match(created.data.id, /^session_[0-9a-f-]{36}$/)
  assert.deepEqual(created.data.metadata, { cwd, color: 'blue' })
  assert.deepEqual(
    [created.data.title, created.data.busy, created.data.archived, created.data.message_count, created.data.agent_config.model],
    ['Mine', false, false, 0, '']
  )
  assert.deepEqual(
    events.map(event => event.type),
    ['event.workspace.created', 'event.session.created']
  )
  const params = { session_id: created.data.id }
  assert.deepEqual((await call(readSession, { params })).data, created.data)
  assert.deepEqual((await call(readProfile, { params })).data, created.data)
  assert.equal((await call(readSession, { params: { session_id: 'session_nope' } })).code, 40401)
  assert.equal((await call(readSession, { params: { session_id: '../etc' } })).code, 40401)
})

test('where a session may be created', async t => {
  const { call, events } = await start(t)
  const cwd = await directory()
  const first = await call(createSession, { body: { metadata: { cwd } } })
  const { workspace_id } = first.data

  assert.equal((await call(createSession, { body: { workspace_id } })).data.metadata.cwd, cwd)
  assert.deepEqual(
    events.slice(2).map(event => event.type),
    ['event.workspace.updated', 'event.session.created']
  )
  assert.equal((await call(createSession, { body: { workspace_id, metadata: { cwd } } })).code, 0)
  assert.equal((await call(createSession, { body: { workspace_id, metadata: { cwd: `${cwd}/` } } })).code, 0)
  const other = await call(createSession, { body: { workspace_id, metadata: { cwd: `${cwd}/else` } } })
  assert.deepEqual([other.code, other.details?.[0]?.path], [40001, 'body.metadata.cwd'])
  const neither = await call(createSession, { body: {} })
  assert.deepEqual([neither.code, neither.details?.[0]?.path], [40001, 'body.metadata.cwd'])
  assert.equal((await call(createSession, { body: { metadata: { cwd: `${cwd}/missing` } } })).code, 40409)
  assert.equal((await call(createSession, { body: { metadata: { cwd: '.' } } })).code, 40409)
  const empty = await call(createSession, { body: { metadata: { cwd: '' } } })
  assert.deepEqual([empty.code, empty.details?.[0]?.path], [40001, 'body.metadata.cwd'])
  assert.equal((await call(createSession, { body: { workspace_id: 'wd_x_000000000000' } })).code, 40410)
  assert.equal((await call(createSession, { body: { workspace_id: 'other' } })).code, 40001)
  assert.equal((await call(createSession, { body: { metadata: { cwd }, title: '' } })).code, 40001)
})

test('the event of a workspace counts the session that was made in it', async t => {
  const { call, events } = await start(t)
  const cwd = await directory()
  for (let made = 0; made < 2; made++) await call(createSession, { body: { metadata: { cwd } } })
  const counts = events
    .filter(event => event.type.startsWith('event.workspace.'))
    .map(({ type, payload }) => [type, (payload as { session_count: number }).session_count])
  assert.deepEqual(counts, [
    ['event.workspace.created', 1],
    ['event.workspace.updated', 2]
  ])
})

test('lists are newest first, sliced by cursors, and filtered', async t => {
  const { call } = await start(t)
  const cwd = await directory()
  const ids: string[] = []
  for (let n = 0; n < 5; n++) ids.unshift((await call(createSession, { body: { metadata: { cwd } } })).data.id)
  const list = async (query: Parameters<typeof call<typeof listSessions>>[1] extends infer I ? NonNullable<I> : never) => {
    const { data } = await call(listSessions, query)
    return { ids: data.items.map(item => item.id), has_more: data.has_more }
  }

  assert.deepEqual(await list({}), { ids, has_more: false })
  assert.deepEqual(await list({ query: { page_size: 2 } }), { ids: ids.slice(0, 2), has_more: true })
  assert.deepEqual(await list({ query: { page_size: 2, before_id: ids[1] as string } }), { ids: ids.slice(2, 4), has_more: true })
  assert.deepEqual(await list({ query: { after_id: ids[2] as string } }), { ids: ids.slice(0, 2), has_more: false })
  assert.deepEqual(await list({ query: { before_id: 'session_unknown' } }), { ids: [], has_more: false })
  assert.deepEqual(await list({ query: { exclude_empty: true } }), { ids: [], has_more: false })
  assert.deepEqual(await list({ query: { busy: true } }), { ids: [], has_more: false })
  assert.equal((await call(listSessions, { query: { before_id: 'a', after_id: 'b' } })).code, 40001)
  assert.equal((await call(listSessions, { query: { archived_only: true, include_archive: true } })).code, 40001)
  assert.equal((await call(listSessions, { query: { workspace_id: 'wd_x_000000000000' } })).code, 40410)

  const params = { session_id: ids[0] as string }
  assert.deepEqual((await call(archiveSession, { params })).data, { archived: true })
  assert.deepEqual((await list({})).ids, ids.slice(1))
  const archived = await call(listSessions, { query: { archived_only: true } })
  assert.deepEqual(
    archived.data.items.map(({ id }) => id),
    [ids[0]]
  )
  await call(archiveSession, { params })
  assert.deepEqual((await call(listSessions, { query: { archived_only: true } })).data, archived.data, 'archived when it was first')
  assert.equal((await list({ query: { include_archive: true } })).ids.length, 5)
  const restored = await call(restoreSession, { params })
  assert.deepEqual([restored.data.archived, restored.data.archived_at], [false, undefined])
  assert.deepEqual((await list({})).ids, ids)
  const [older = ''] = ids.slice(3)
  await call(updateProfile, { params: { session_id: older }, body: { metadata: { a: 1 } } })
  assert.deepEqual((await list({})).ids, [older, ...ids.filter(id => id !== older)])
})

test('a clock that stands or is set back makes no session older; of equal times the greater id comes first', async t => {
  let now = new Date('2026-01-02T00:00:00Z')
  const { call } = await start(t, { now: () => now })
  const cwd = await directory()
  const made = []
  for (let n = 0; n < 6; n++) made.push((await call(createSession, { body: { metadata: { cwd } } })).data)
  const ids = made.map(({ id }) => id)
  now = new Date('2026-01-01T00:00:00Z')

  const { data } = await call(updateProfile, { params: { session_id: ids[0] as string }, body: { metadata: { a: 1 } } })

  assert.equal(data.updated_at, made[0]?.updated_at)
  const listed = (await call(listSessions)).data.items.map(({ id }) => id)
  assert.deepEqual(listed, ids.toSorted().toReversed())
})

test('a profile update applies title, metadata and the fields that packs handle; others are ignored', async t => {
  const seen: unknown[] = []
  const handler = definePack({
    name: 'handler',
    setup(ctx) {
      const apply = async (_session: unknown, value: unknown) => void seen.push(value)
      ctx.contribute(AgentConfigHandlers, { field: 'model', order: 10, apply })
      ctx.contribute(AgentConfigHandlers, { field: 'thinking', order: 5, apply })
    }
  })
  const { call, events } = await start(t, { packs: [handler] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory(), a: 1 } } })
  const params = { session_id: data.id }

  const updated = await call(updateProfile, {
    params,
    body: {
      title: 'New',
      metadata: { b: 2, cwd: '/elsewhere', goal: 'hidden' },
      agent_config: { model: 'm', thinking: 'high', plan_mode: true, system_prompt: 'x' }
    }
  })

  assert.deepEqual(updated.data.metadata, { a: 1, b: 2, cwd: data.metadata.cwd })
  assert.equal(updated.data.title, 'New')
  assert.ok(updated.data.updated_at > data.updated_at)
  assert.deepEqual(seen, ['high', 'm'])
  assert.deepEqual(events.at(-1), { type: 'session.meta.updated', payload: { title: 'New', patch: { title: 'New', isCustomTitle: true } } })
  assert.equal((await call(updateProfile, { params, body: {} })).data.title, 'New')
  assert.equal((await call(updateProfile, { params, body: { agent_config: { goal_control: 'zap' } } as never })).code, 40001)
})

test('sessions survive a restart, and one whose state was damaged opens again when something was recorded of its agents', async t => {
  const first = await start(t)
  const cwd = await directory()
  const { data } = await first.call(createSession, { body: { metadata: { cwd }, title: 'Kept' } })
  const lost = (await first.call(createSession, { body: { metadata: { cwd } } })).data
  const dir = join(first.home, 'sessions', data.workspace_id)
  await mkdir(join(dir, lost.id, 'agents', 'main'), { recursive: true })
  await writeFile(join(dir, lost.id, 'agents', 'main', 'wire.jsonl'), '{}\n')
  const late = join(dir, 'session_deleted', 'agents', 'main')
  await mkdir(join(late, 'tool-results'), { recursive: true })
  await writeFile(join(late, 'wire.jsonl'), '')
  const { home } = first
  await first.stop()
  await writeFile(join(dir, lost.id, 'state.json'), '{ torn')

  const second = await start(t, { home })

  assert.equal((await second.call(readSession, { params: { session_id: data.id } })).data.title, 'Kept')
  assert.equal((await second.call(readSession, { params: { session_id: lost.id } })).data.metadata.cwd, cwd)
  assert.equal((await second.call(readSession, { params: { session_id: 'session_deleted' } })).code, 40401)
  assert.equal((await second.call(listSessions)).data.items.length, 2)
})

test('two servers share a home: the second sees the sessions and reads them, writes are busy until the first lets go', async t => {
  const shared = await freshDir()
  const config = { sessions: { scan_interval_ms: 0, foreign_refresh_ms: 0 } }
  const first = await start(t, { home: shared, config })
  const seen = probe()
  const second = await start(t, { home: shared, config, packs: [seen.pack] })
  const { data } = await first.call(createSession, { body: { metadata: { cwd: await directory() } } })
  const params = { session_id: data.id }

  assert.deepEqual(
    (await second.call(listSessions)).data.items.map(item => item.id),
    [data.id]
  )
  assert.equal((await seen.sessions.load(data.id)).writable, false)
  assert.equal((await second.call(updateProfile, { params, body: { title: 'x' } })).code, 40901)
  await first.stop()
  assert.equal((await second.call(updateProfile, { params, body: { title: 'x' } })).data.title, 'x')
})

test('what a server says of a session that it only reads is not written to the journal that the owner of the session writes', async t => {
  const home = await freshDir()
  const noted = defineEvent({ type: 'note.added', scope: 'session', durable: true, payload: Type.Object({ by: Type.String() }) })
  const speaker = (by: string) =>
    definePack({
      name: 'speaker',
      needs: { sessions: Sessions },
      setup(ctx, needs) {
        const note = ctx.event(noted)
        const slot = defineSlot('speaker', ({ id }: Session) => ({ close: () => note({ by: `${by} goes` }, id) }))
        ctx.slot(slot)
        needs.sessions.onLoad(session => {
          session.get(slot)
          note({ by }, session.id)
        })
      }
    })
  const first = await start(t, { home, packs: [speaker('owner')] })
  const seen = probe()
  const second = await start(t, { home, packs: [seen.pack, speaker('reader')] })
  const { data } = await first.call(createSession, { body: { metadata: { cwd: await directory() } } })
  await first.kernel.hub.flushed(data.id)
  const written = async () => await readFile(join(home, 'server', 'events', `${data.id}.jsonl`), 'utf8')
  const before = await written()

  assert.equal((await seen.sessions.load(data.id)).writable, false)
  await second.stop()

  assert.equal(await written(), before)
  assert.deepEqual(
    [...before.matchAll(/"by":"(.+?)"/g)].map(([, by]) => by),
    ['owner']
  )
})

test('a server that is alone shows what was put into its home, changed there and taken away by hand', async t => {
  const config = { sessions: { scan_interval_ms: 5 } }
  const { call, home } = await start(t, { config })
  await call(createSession, { body: { metadata: { cwd: await directory() } } })
  const listed = async () => (await call(listSessions)).data.items.map(({ title }) => title)
  const until = async (titles: readonly string[]) => {
    for (let now = await listed(); now.toSorted().join() !== titles.join(); now = await listed()) await turn()
  }
  await until([''])
  const id = 'session_00000000-0000-4000-8000-000000000000'
  const place = join(home, 'sessions', 'wd_by-hand_000000000000')
  const write = async (title: string) =>
    await writeFile(join(place, id, 'state.json'), JSON.stringify(firstState(id, 'wd_by-hand_000000000000', home, { title }, new Date())))
  await mkdir(join(place, id), { recursive: true })
  await write('put')
  await until(['', 'put'])
  await write('changed')
  await until(['', 'changed'])
  await rm(join(place, id), { recursive: true })
  await until([''])
})

test('loading is single-flight, and idle sessions are unloaded beyond the limit with their slots and locks', async t => {
  const seen = probe()
  const { call, home } = await start(t, { packs: [seen.pack], config: { sessions: { max_idle: 1, idle_ms: 0 } } })
  const cwd = await directory()
  const loads: string[] = []
  seen.sessions.onLoad(session => void loads.push(session.id))
  const a = (await call(createSession, { body: { metadata: { cwd } } })).data
  const b = (await call(createSession, { body: { metadata: { cwd } } })).data

  const [one, two] = await Promise.all([seen.sessions.load(a.id), seen.sessions.load(a.id)])

  assert.equal(one, two)
  assert.deepEqual(loads, [a.id, b.id, a.id])
  await new Promise(resolve => setImmediate(resolve))
  await seen.sessions.load(a.id)
  assert.equal(seen.sessions.loaded(b.id), undefined)
  await assert.doesNotReject(seen.sessions.load(b.id))
  const files = await readdir(join(home, 'sessions', a.workspace_id, b.id))
  assert.ok(files.includes('state.json'))
})

test('an agent that comes while its session is closed is closed with it', async t => {
  const seen = probe()
  const { call, stop } = await start(t, { packs: [seen.pack] })
  const { id } = (await call(createSession, { body: { metadata: { cwd: await directory() } } })).data
  const session = await seen.sessions.load(id)
  const main = await session.main()
  const closed: string[] = []
  main.own(async () => {
    closed.push('main')
    const late = await session.createAgent({ type: 'sub' })
    late.own(() => void closed.push(late.id))
  })
  await stop()
  assert.deepEqual(closed, ['main', 'agent-0'])
})

test('a title keeps no credential of any shape that logs and texts are cleaned of', async t => {
  const seen = probe()
  const { call } = await start(t, { packs: [seen.pack] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory() } } })
  const session = await seen.sessions.load(data.id)

  await session.promptSubmitted('clone https://me:hunter2@h.example/x, --token abc123, Bearer abcdef123, secret: s3cr3t, ghp_12345678')

  assert.equal(
    session.state.title,
    'clone https://[redacted]@h.example/x, --token [redacted] Bearer [redacted] secret [redacted] [redacted]'
  )
})

test('the first prompt names an untitled session, secrets masked; later ones only move last_prompt', async t => {
  const seen = probe()
  const { call, events } = await start(t, { packs: [seen.pack] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory() } } })
  const session = await seen.sessions.load(data.id)

  await session.promptSubmitted('use\npassword=hunter2 please')
  await session.promptSubmitted('second')

  const { title, last_prompt } = session.state
  assert.equal(title, 'use password [redacted] please')
  assert.equal(last_prompt, 'second')
  assert.deepEqual(
    events.filter(event => event.type === 'session.meta.updated').map(event => event.payload),
    [{ title, patch: { title, isCustomTitle: false, lastPrompt: title } }, { patch: { lastPrompt: 'second' } }]
  )
  assert.equal((await seen.counter.counts()).get(data.workspace_id), 1)
})

test('a title that a session was made with stays when its first prompt is taken back', async t => {
  const seen = probe()
  const { call } = await start(t, { packs: [seen.pack] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory() }, title: 'Mine' } })
  const session = await seen.sessions.load(data.id)
  await session.promptSubmitted('hello')

  session.promptsUndone(undefined)

  assert.equal(session.state.title, 'Mine')
})

test('work is announced once per change, an approval wins over a question, the reason is persisted', async t => {
  const seen = probe()
  const { call, events } = await start(t, { packs: [seen.pack] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory() } } })
  const { work } = await seen.sessions.load(data.id)
  const announced = () => events.filter(event => event.type === 'event.session.work_changed').map(event => event.payload)

  work.turnStarted('main')
  work.turnStarted('main')
  work.pending('question', 1)
  work.pending('approval', 1)
  work.pending('approval', -1)
  work.pending('question', -1)
  await work.turnEnded('main', 'completed')

  assert.deepEqual(
    announced().map(payload => (payload as { pending_interaction: string }).pending_interaction),
    ['none', 'question', 'approval', 'question', 'none', 'none']
  )
  assert.deepEqual(announced().at(-1), { busy: false, main_turn_active: false, pending_interaction: 'none', last_turn_reason: 'completed' })
  assert.equal((await call(readSession, { params: { session_id: data.id } })).data.last_turn_reason, 'completed')

  work.turnStarted('main')
  assert.deepEqual(announced().at(-1), { busy: true, main_turn_active: true, pending_interaction: 'none' })
  await work.turnEnded('main', 'failed')
})

test('what an earlier process told of the work of a session is not told again, and its requests with the reason that clients know', async t => {
  const seen = probe()
  const { call, events } = await start(t, { packs: [seen.pack] })
  const { data } = await call(createSession, { body: { metadata: { cwd: await directory() } } })
  const { work } = await seen.sessions.load(data.id)
  await work.turnEnded('main', 'cancelled', { announce: false })
  const runs = { busy: true, main_turn_active: true, pending_interaction: 'none' } as const
  work.heard({ work: runs, status: 'running' })

  work.pendingLeft('a', 'approval')
  work.pendingLeft('a', undefined)
  for (const _again of [1, 2]) await work.turnEnded('main', 'cancelled', { announce: true, goesOn: true })

  assert.deepEqual(
    events.filter(event => event.type === 'event.session.work_changed').map(event => event.payload),
    [{ ...runs, pending_interaction: 'approval' }, runs, { ...runs, last_turn_reason: 'cancelled' }]
  )
})

test('a default that its pack cannot say is left out, and the session is made', async t => {
  const odd = definePack({
    name: 'odd',
    setup(ctx) {
      ctx.contribute(SessionDefaults, {
        name: 'odd',
        value() {
          throw new Error('no value today')
        }
      })
      ctx.contribute(SessionDefaults, { name: 'even', value: async () => 2 })
    }
  })
  const user = probe()
  const kernel = await startTestKernel(t, { packs: [workspaces, sessions, odd, user.pack] })
  const { code, data } = await kernel.call(createSession, { body: { metadata: { cwd: await directory() } } })
  assert.equal(code, 0)
  assert.deepEqual((await user.sessions.load(data.id)).state.defaults, { even: 2 })
})

test('a check that fails by itself is put down to its pack, and the session is made', async t => {
  const odd = definePack({
    name: 'odd',
    setup(ctx) {
      ctx.contribute(SessionChecks, {
        name: 'odd',
        async check() {
          throw new Error('no look today')
        }
      })
    }
  })
  const { call, kernel } = await startTestKernel(t, { packs: [workspaces, sessions, odd] })
  assert.equal((await call(createSession, { body: { metadata: { cwd: await directory() } } })).code, 0)
  assert.match(kernel.features().at(-1)?.meta.faults?.last ?? '', /session check odd: no look today/)
})
