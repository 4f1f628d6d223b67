/** A session with a long history: what it costs to open it, with and without a checkpoint, and to page it. */
import { readdir, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { wireStore } from '../../features/history/contract.ts'
import { createStorage } from '../../kernel/storage/index.ts'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

export const megabytes = 202
const smallMegabytes = 2
const stepsPerTurn = 20

export async function longHistory(runs: number): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, () => [{ text: 'one two three' }])
  try {
    const small = await measure(upstream.url, smallMegabytes, runs)
    const large = await measure(upstream.url, megabytes, runs)
    const { cold, warm, pages } = large
    const row = (what: string, values: readonly number[], unit: string, limit: number): Row => ({
      what,
      ours: median(values),
      spread: spread(values),
      unit,
      budget: `<= ${limit}`,
      holds: median(values) <= limit
    })
    return [
      { what: `first GET messages, ${megabytes} MB, no checkpoint`, ours: cold.ms, unit: 'ms', budget: '' },
      { what: '  worst loop delay', ours: cold.loop, unit: 'ms', budget: '<= 20', holds: cold.loop <= 20 },
      { what: '  memory growth', ours: cold.grown, floor: small.cold.grown, unit: 'MB', budget: '' },
      row(
        'first GET messages, with a checkpoint',
        warm.map(each => each.ms),
        'ms',
        300
      ),
      row(
        '  worst loop delay',
        warm.map(each => each.loop),
        'ms',
        20
      ),
      {
        what: '  memory growth',
        ours: median(warm.map(each => each.grown)),
        floor: median(small.warm.map(each => each.grown)),
        unit: 'MB',
        budget: '<= floor + 30',
        holds: median(warm.map(each => each.grown)) <= median(small.warm.map(each => each.grown)) + 30
      },
      row('page of 50 at the end', pages.end, 'ms', 10),
      row('page of 50 in the middle', pages.middle, 'ms', 10),
      row('page of 50 at the start', pages.start, 'ms', 10),
      row('one message in the middle', pages.one, 'ms', 10),
      row('snapshot', pages.snapshot, 'ms', 20),
      row('  worst loop delay of all of these', pages.loop, 'ms', 20)
    ]
  } finally {
    for (const fn of undo) await fn()
  }
}

interface Opening {
  readonly ms: number
  /** Worst loop delay meanwhile, ms. */
  readonly loop: number
  /** Of resident memory, MB. */
  readonly grown: number
}

async function measure(upstream: string, size: number, runs: number) {
  const first = await startServer({ upstream, keep: true })
  const session = await first.session()
  await talk(first, session)
  const file = await wireOf(first.home)
  await first.stop()
  const messages = await fill(file, size)
  const home = { upstream, keep: true, place: first.place }
  const unread = await startServer(home)
  const cold = await opened(unread, session)
  await talk(unread, session) // which leaves a checkpoint
  await unread.stop()
  const warm: Opening[] = []
  for (let n = 0; n < runs; n++) {
    const server = await startServer(home)
    warm.push(await opened(server, session))
    await server.stop()
  }
  const server = await startServer({ ...home, keep: false })
  const path = `/api/v1/sessions/${session}`
  const id = (n: number) => `msg_${session}_${String(n).padStart(6, '0')}`
  const middle = id(Math.floor(messages / 2) | 1)
  const took = (query: string) => repeat(runs * 10, () => timed(() => get(server, `${path}${query}`)))
  await took('/messages?page_size=50')
  await server.loop()
  const pages = {
    end: await took('/messages?page_size=50'),
    middle: await took(`/messages?page_size=50&before_id=${middle}`),
    start: await took(`/messages?page_size=50&before_id=${id(51)}`),
    one: await took(`/messages/${middle}`),
    snapshot: await took('/snapshot'),
    loop: [await server.loop()]
  }
  await server.stop()
  return { cold, warm, pages }
}

export async function opened(server: BenchServer, session: string): Promise<Opening> {
  await get(server, '/api/v1/sessions')
  const before = await server.rss()
  await server.loop()
  const ms = await timed(() => get(server, `/api/v1/sessions/${session}/messages?page_size=50`))
  return { ms, loop: await server.loop(), grown: (await server.rss()) - before }
}

export async function get(server: BenchServer, path: string): Promise<unknown> {
  const answer = await server.rest.json('GET', path)
  if (answer.code !== 0) throw new Error(`GET ${path}: ${answer.code} ${answer.msg}`)
  return answer.data
}

export async function timed(work: () => Promise<unknown>): Promise<number> {
  const began = performance.now()
  await work()
  return performance.now() - began
}

/** One prompt, to its end. */
export async function talk(server: BenchServer, session: string): Promise<void> {
  const socket = await server.subscribed(session)
  await server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, { content: [{ type: 'text', text: 'go' }] })
  await socket.next('prompt.completed')
  await socket.close()
}

export async function wireOf(home: string): Promise<string> {
  const found = (await readdir(home, { recursive: true })).find(name => name.endsWith('agents/main/wire.jsonl'))
  if (!found) throw new Error('no journal')
  return join(home, found)
}

/**
 * Appends turns with tool calls until the journal is so large, as a server would have written them, then these records. Answers the number
 * of messages.
 */
export async function fill(
  file: string,
  size: number,
  behind: readonly { type: string; [field: string]: unknown }[] = []
): Promise<number> {
  const storage = createStorage({ home: dirname(file), log: { warn: () => undefined } })
  const log = storage.open(wireStore, { namespace: '', dir: '.' })
  let number = 2 // the prompt that made the session, and its answer
  let time = Date.now() - 100_000_000
  let told: { type: string; [field: string]: unknown } = { type: 'told' }
  for (let turn_id = 0; (await stat(file)).size < size * 1024 * 1024; ) {
    const records: ReturnType<typeof turnOf>[number][] = []
    while (records.length < 100) records.push(...turnOf(++turn_id, () => number++)) // each append is flushed
    const { end } = await log.append('wire', ...records.map(record => ({ ...record, time: time++ })))
    told = { type: 'told', at: end, seq: turn_id, epoch: 'bench' }
  }
  if (behind.length > 0) await log.append('wire', ...behind.map(record => ({ ...record, time: time++ })))
  await log.append('wire', told) // a server leaves no more than the last few events untold
  await storage.close()
  return number
}

const words = 'The quick brown fox jumps over the lazy dog; "quoted" and\n\tindented, with a path /home/user/project/src/index.ts. '
const ofLength = (chars: number) => words.repeat(Math.ceil(chars / words.length)).slice(0, chars)
const text = (chars: number) => [{ type: 'text', text: ofLength(chars) }]

function turnOf(turn_id: number, number: () => number): { type: string; [field: string]: unknown }[] {
  const prompt_id = `msg_01BENCH${String(turn_id).padStart(19, '0')}`
  const origin = { kind: 'user' }
  const records: { type: string; [field: string]: unknown }[] = [
    { type: 'prompt.accepted', prompt_id, content: text(300), origin, starts: true },
    { type: 'turn.started', turn_id, origin, prompt_id },
    { type: 'message', id: prompt_id, role: 'user', origin, prompt_id, turn_id, number: number() }
  ]
  for (let step = 1; step <= stepsPerTurn; step++) {
    const at = { turn_id, step }
    const step_id = `${turn_id}-${step}`
    const call = { id: `call_${turn_id}_${step}`, name: 'Read', arguments: JSON.stringify({ path: `src/${ofLength(40)}.ts` }) }
    const shown = { tool_call_id: call.id, tool_name: call.name }
    const usage = { inputOther: 500, output: 200, inputCacheRead: 50_000, inputCacheCreation: 500 }
    records.push(
      { type: 'step.begin', ...at, step_id },
      { type: 'step.message', ...at, content: text(400), tool_calls: [call], number: number() },
      {
        type: 'tool.begin',
        ...at,
        ...shown,
        args: { path: 'src/index.ts' },
        description: 'Reading src/index.ts',
        display: { kind: 'file_read' }
      },
      { type: 'tool.result', ...at, ...shown, content: text(1000 + ((turn_id * 7919 + step * 104_729) % 11_000)), number: number() },
      { type: 'step.end', ...at, step_id, reason: 'tool_use', provider_reason: 'tool_calls', model: 'bench/m', usage, stream_ms: 1234.5 }
    )
  }
  records.push(
    { type: 'turn.ended', turn_id, reason: 'completed', duration_ms: 60_000, steps: stepsPerTurn },
    { type: 'prompt.settled', prompt_ids: [prompt_id], status: 'completed', turn_id }
  )
  return records
}
