/** Search over 200,000 documents: how long the first one waits, before and after there is an index on disk, and how long the others take. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BenchServer, startServer } from './processes.ts'
import { type Row, spread } from './table.ts'

const sessions = 1000
const turns = 100
const documents = sessions * turns * 2
const words = 40
const vocabulary = 30_000

export async function searches(runs: number): Promise<Row[]> {
  const first = await startServer({ keep: true })
  const model = await first.session()
  await first.stop()
  await fill(first.home, model)
  const home = { keep: true, place: first.place }
  const cold = await startServer(home)
  const build = await built(cold)
  await cold.stop()
  const server = await startServer({ ...home, keep: false })
  try {
    const before = await server.rss()
    const load = await built(server)
    const grown = (await server.rss()) - before
    const rows: Row[] = [
      { what: `index of ${documents} documents from the journals`, ours: build.ms, unit: 'ms', budget: '' },
      { what: '  loop delay, p99', ours: build.loop, unit: 'ms', budget: '< 20', holds: build.loop < 20 },
      { what: '  from its snapshots', ours: load.ms, unit: 'ms', budget: '' },
      { what: '  loop delay, p99', ours: load.loop, unit: 'ms', budget: '< 20', holds: load.loop < 20 },
      { what: '  memory growth', ours: grown, unit: 'MB', budget: '<= 600', holds: grown <= 600 }
    ]
    await p99(server)
    const all: number[] = []
    for (const [what, query] of Object.entries(queries())) {
      const took = await timed(server, query, runs * 20)
      all.push(...took)
      rows.push({ what: `  p95, ${what}`, ours: p95(took), spread: spread(took), unit: 'ms', budget: '' })
    }
    const loop = await p99(server)
    rows.push({ what: '  p95 of all searches', ours: p95(all), unit: 'ms', budget: '< 60', holds: p95(all) < 60 })
    rows.push({ what: '  loop delay, p99', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 })
    return rows
  } finally {
    await server.stop()
  }
}

const p95 = (values: readonly number[]) => [...values].sort((a, b) => a - b)[Math.floor(values.length * 0.95)] ?? 0

/** Loop delay since the last call. */
async function p99({ rest }: BenchServer): Promise<number> {
  return ((await rest.json('GET', '/api/v1/bench/loop')).data as { p99_ms: number }).p99_ms
}

type Ask = (n: number) => Record<string, unknown>

function queries(): Readonly<Record<string, Ask>> {
  const word = (from: number) => (n: number) => wordOf((from + n * 7) % vocabulary)
  return {
    'a rare word': n => ({ query: word(20_000)(n) }),
    'a word of one in a hundred': n => ({ query: word(600)(n) }),
    'a word of every second': n => ({ query: wordOf(n % 3) }),
    'two words': n => ({ query: `${wordOf(n % 5)} ${word(300)(n)}` }),
    'three words, any of them': n => ({ query: `${word(300)(n)} ${word(900)(n)} ${word(5000)(n)}`, op: 'OR' }),
    'by time': n => ({ query: word(300)(n), sort: 'time_desc' }),
    Chinese: () => ({ query: '数据库' }),
    'an exact text': n => ({ query: `${word(600)(n)} ${wordOf(1)}`, mode: 'literal' }),
    'part of a word': n => ({ query: `${word(9000)(n).slice(1)}`, mode: 'literal' })
  }
}

async function timed({ rest }: BenchServer, ask: Ask, count: number): Promise<number[]> {
  const took: number[] = []
  for (let n = 0; n < count; n++) {
    const begun = performance.now()
    const { code, msg } = await rest.json('POST', '/api/v1/search', ask(n))
    took.push(performance.now() - begun)
    if (code !== 0) throw new Error(`search answers ${code} ${msg}`)
  }
  return took
}

/** Searches until everything is in. */
async function built(server: BenchServer): Promise<{ ms: number; loop: number }> {
  await p99(server)
  const begun = performance.now()
  for (;;) {
    const { data } = await server.rest.json('POST', '/api/v1/search', { query: 'nothing' })
    const { state, documents: count, stale } = (data as { index_state: { state: string; documents: number; stale?: boolean } }).index_state
    if (state !== 'building' && !stale && count >= documents) break
  }
  return { ms: performance.now() - begun, loop: await p99(server) }
}

const wordOf = (n: number) => `w${n.toString(36)}`

/** Sessions as a server would have left them, with texts in which a few words are frequent and most are rare. */
async function fill(home: string, model: string): Promise<void> {
  const found = (await readdir(join(home, 'sessions'), { recursive: true })).find(name => name.endsWith('state.json'))
  if (!found) throw new Error('no session')
  const state = JSON.parse(await readFile(join(home, 'sessions', found), 'utf8')) as Record<string, unknown>
  const workspace = join(home, 'sessions', found, '../..')
  let seed = 1
  const random = () => {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0
    return seed / 2 ** 32
  }
  const text = () => {
    const picked = Array.from({ length: words }, () => wordOf(Math.floor(random() ** 4 * vocabulary)))
    return `${picked.join(' ')}${random() < 0.01 ? ' 数据库连接失败' : ''}`
  }
  for (let n = 0; n < sessions; n++) {
    const id = `session_${String(n).padStart(8, '0')}${model.slice('session_'.length + 8)}`
    const dir = join(workspace, id)
    await mkdir(join(dir, 'agents', 'main'), { recursive: true })
    await writeFile(join(dir, 'state.json'), JSON.stringify({ ...state, id, title: `session ${n}`, agents: { main: { type: 'main' } } }))
    const start = Date.now() - 100_000_000 - n * 1000
    const records: object[] = [{ time: start, type: 'metadata', protocol_version: '1.1', created_at: start }]
    let number = 0
    for (let turn_id = 0; turn_id < turns; turn_id++) {
      const time = start + turn_id * 10
      const prompt_id = `msg_${n}_${turn_id}`
      const origin = { kind: 'user' }
      records.push(
        { time, type: 'prompt.accepted', prompt_id, content: [{ type: 'text', text: text() }], origin, starts: true },
        { time, type: 'turn.started', turn_id, origin, prompt_id },
        { time, type: 'message', id: prompt_id, role: 'user', origin, prompt_id, turn_id, number: number++ },
        { time, type: 'step.message', turn_id, step: 1, content: [{ type: 'text', text: text() }], tool_calls: [], number: number++ },
        { time, type: 'turn.ended', turn_id, reason: 'completed', duration_ms: 5, steps: 1 },
        { time, type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed', turn_id }
      )
    }
    await writeFile(join(dir, 'agents', 'main', 'wire.jsonl'), records.map(record => `${JSON.stringify(record)}\n`).join(''))
  }
}
