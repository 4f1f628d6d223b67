/** A home with 10,000 sessions: start, lists, making sessions, memory; and the newest page of a session with 100 MB. */
import { randomUUID } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { firstState } from '../../features/sessions/create.ts'
import { workspaceId } from '../../features/workspaces/root.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { fill, get, opened, talk, timed, wireOf } from './history.ts'
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const sessions = 10_000
const workspaces = 40
const made = 1500
/** Clients that make sessions side by side. */
const makers = 16
const bigMegabytes = 100
const idle = 300

export async function manySessions(runs: number): Promise<Row[]> {
  const place = await mkdtemp(join(tmpdir(), 'svc-code-bench-'))
  try {
    await manyIn(place)
    await (await startServer({ place, keep: true })).stop() // the first one reads every file
    const empty = await readyTimes(runs, undefined)
    const full = await readyTimes(runs, place)
    const server = await startServer({ place, keep: true })
    const first = await timed(() => get(server, '/api/v2/sessions'))
    const page = await times(server, '/api/v2/sessions', runs * 100)
    const grouped = await times(server, '/api/v2/sessions?view=by_workspace', runs * 50)
    const marks = await times(server, `/api/v2/sessions?fields=id,archived&page_size=${sessions}`, runs * 10)
    await server.loop()
    await Promise.all([1, 2, 3, 4].map(() => times(server, '/api/v2/sessions?view=by_workspace', 50)))
    const loop = await server.loop()
    const memory = await server.rss()
    const rate = await makeMany(server)
    await server.stop()
    return [
      limit('ready, 10,000 sessions', full, 'ms', median(empty) * 2, { floor: median(empty), budget: '<= 2x floor' }),
      { what: '  first page of 50 right after that', ours: first, unit: 'ms', budget: '' },
      limit('  memory', [memory], 'MB', 250),
      limit('page of 50, p99', [p99(page)], 'ms', 15),
      limit('by workspace, p99', [p99(grouped)], 'ms', 25),
      limit(`ids of ${sessions}, p99`, [p99(marks)], 'ms', 150),
      limit('  worst loop delay, four clients', [loop], 'ms', 20),
      { what: `sessions made, ${makers} clients`, ours: rate, unit: '1/s', budget: '>= 300', holds: rate >= 300 },
      ...(await bigSession(runs)),
      ...(await hibernation())
    ]
  } finally {
    await rm(place, { recursive: true, force: true, maxRetries: 3 })
  }
}

function limit(what: string, values: readonly number[], unit: string, most: number, more: Partial<Row> = {}): Row {
  const ours = median(values)
  return { what, ours, ...(values.length > 1 && { spread: spread(values) }), unit, budget: `<= ${most}`, holds: ours <= most, ...more }
}

const p99 = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length * 0.99)] ?? 0
const times = (server: BenchServer, path: string, runs: number) => repeat(runs, () => timed(() => get(server, path)))

async function readyTimes(runs: number, place: string | undefined): Promise<number[]> {
  return repeat(runs, async () => {
    const server = await startServer(place === undefined ? {} : { place, keep: true })
    await server.stop()
    return server.ready_ms
  })
}

/** State files as a server leaves them. */
async function manyIn(place: string): Promise<void> {
  const rows: Record<string, object> = {}
  for (let n = 0; n < workspaces; n++) {
    const root = join(place, `project-${n}`)
    await mkdir(root)
    const at = new Date().toISOString()
    const id = workspaceId(root)
    rows[id] = { root, name: `project-${n}`, created_at: at, last_opened_at: at }
    for (let m = n; m < sessions; m += workspaces) {
      const session = `session_${randomUUID()}`
      const state = firstState(session, id, root, { title: `Session ${m}` }, new Date(Date.now() - m * 60_000))
      const dir = join(place, 'home', 'sessions', id, session)
      await mkdir(dir, { recursive: true, mode: 0o700 })
      const last_prompt = `please look at number ${m} and tell me what is wrong with it`
      await writeFile(join(dir, 'state.json'), JSON.stringify({ ...state, last_prompt, archived: m % 5 === 0 }))
    }
  }
  await writeFile(join(place, 'home', 'workspaces.json'), JSON.stringify({ version: 1, workspaces: rows, deleted_workspace_ids: [] }))
}

/** Sessions a second. */
async function makeMany(server: BenchServer): Promise<number> {
  let left = made
  const ms = await timed(() =>
    Promise.all(
      Array.from({ length: makers }, async () => {
        while (left-- > 0) await server.session()
      })
    )
  )
  return made / (ms / 1000)
}

async function bigSession(runs: number): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, () => [{ text: 'one two three' }])
  try {
    const first = await startServer({ upstream: upstream.url, keep: true })
    const { place } = first
    const session = await first.session()
    await talk(first, session)
    const file = await wireOf(first.home)
    await first.stop()
    await fill(file, bigMegabytes)
    const second = await startServer({ upstream: upstream.url, keep: true, place })
    await talk(second, session) // leaves a checkpoint
    await second.stop()
    const values: number[] = []
    for (let n = 0; n < runs; n++) {
      const server = await startServer({ upstream: upstream.url, keep: n < runs - 1, place })
      values.push((await opened(server, session)).ms)
      await server.stop()
    }
    return [limit(`newest page of messages, ${bigMegabytes} MB`, values, 'ms', 300)]
  } finally {
    for (const fn of undo) await fn()
  }
}

/** Memory that is left of sessions that were opened and then idle, above what it was before. */
async function hibernation(): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, () => [{ text: 'one two three' }])
  try {
    const config = '[packs.config.sessions]\nmax_idle = 1000\nhibernate_ms = 8000\nidle_ms = 500\n'
    const server = await startServer({ upstream: upstream.url, config })
    await talk(server, await server.session()) // what is loaded at the first turn
    await asleep(server)
    const before = await server.used()
    for (let n = 0; n < idle; n++) await talk(server, await server.session())
    const awake = (await server.used()) - before
    await asleep(server)
    const left = (await server.used()) - before
    await server.stop()
    return [
      { what: `memory of ${idle} sessions that were used, above the base`, ours: awake, unit: 'MB', budget: '' },
      { what: '  and when they sleep', ours: left, unit: 'MB', budget: '<= 10', holds: left <= 10 }
    ]
  } finally {
    for (const fn of undo) await fn()
  }
}

/** Every session has given its lock back. */
async function asleep(server: BenchServer): Promise<void> {
  const names = async () => await readdir(join(server.home, 'sessions'), { recursive: true })
  const locked = async () => (await names()).some(name => name.endsWith('/lock'))
  while (await locked().catch(() => true)) await delay(200) // what it lists goes meanwhile
}
