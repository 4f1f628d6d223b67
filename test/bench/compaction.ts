/** Compaction at work: a turn of very many steps in a small window, and a long history of which the model sees the end. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { fill, get, megabytes, talk, timed, wireOf } from './history.ts'
import { startServer } from './processes.ts'
import { median, type Row } from './table.ts'

const steps = 2000
/** Steps that are looked at, at both ends. */
const sample = 300
const window = 120_000
/** Of the text that each step reads, characters. */
const readChars = 2000

const isSummary = (body: Record<string, unknown>): boolean =>
  JSON.stringify((body.messages as unknown[] | undefined)?.at(-1) ?? '').includes('replaced by a note')

export async function compaction(): Promise<Row[]> {
  return [...(await longTurn()), ...(await longHistory())]
}

async function longTurn(): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const replied = new Map<number, number>()
  const summaries = new Set<number>()
  let step = 0
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, (body, n, request) => {
    void request.closed.then(() => replied.set(n, performance.timeOrigin + performance.now()))
    const summary = isSummary(body)
    const usage = { input: Math.ceil(JSON.stringify(body.messages).length / 4), output: 10 }
    for (const key of Object.keys(body)) delete body[key]
    if (summary) summaries.add(n)
    if (summary) return [{ text: 'what was done '.repeat(100) }, { usage }]
    return n > 0 && ++step <= steps
      ? [{ tool: { name: 'Read', args: { path: 'a.txt', n_lines: 20 + (step % 900) } } }, { usage }]
      : [{ text: 'done' }]
  })
  const server = await startServer({ upstream: upstream.url, window })
  try {
    await writeFile(join(server.workspace, 'a.txt'), `${'x'.repeat(99)}\n`.repeat(readChars / 100))
    const session = await server.session()
    const socket = await server.subscribed(session)
    const prompt = async () => {
      socket.frames.length = 0
      await server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, { content: [{ type: 'text', text: 'go' }] })
      await socket.next('prompt.completed')
    }
    await prompt()
    await server.loop()
    const began = performance.now()
    const over = prompt()
    const memory: number[] = []
    const timer = setInterval(() => void server.rss().then(value => memory.push(value)), 250)
    await over
    clearInterval(timer)
    const took = performance.now() - began
    const loop = await server.loop()
    await socket.close()
    /** Between a reply and the request behind it, where neither is of a compaction. */
    const gaps = upstream.requests.flatMap((request, n) =>
      n > 1 && !summaries.has(n) && !summaries.has(n - 1) ? [request.arrived_at - (replied.get(n - 1) ?? 0)] : []
    )
    const first = median(gaps.slice(0, sample))
    const last = median(gaps.slice(-sample))
    const part = Math.floor(memory.length / 4)
    const [early, late] = [median(memory.slice(part, 2 * part)), median(memory.slice(-part))]
    return [
      {
        what: `turn of ${steps} steps, window ${window / 1000}k, ${summaries.size} compactions, per step`,
        ours: took / steps,
        unit: 'ms',
        budget: ''
      },
      { what: '  between reply and next request, at the beginning', ours: first, unit: 'ms', budget: '' },
      { what: '  the same at the end', ours: last, unit: 'ms', budget: '<= 1.5 x beginning', holds: last <= 1.5 * first },
      { what: '  worst loop delay', ours: loop, unit: 'ms', budget: '<= 20', holds: loop <= 20 },
      {
        what: '  memory in the last quarter (floor: in the second)',
        ours: late,
        floor: early,
        unit: 'MB',
        budget: '<= floor + 40',
        holds: late <= early + 40
      }
    ]
  } finally {
    await server.stop()
    for (const fn of undo) await fn()
  }
}

async function longHistory(): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, body => [{ text: isSummary(body) ? 'the summary' : 'one two three' }])
  try {
    const first = await startServer({ upstream: upstream.url, keep: true })
    const session = await first.session()
    await talk(first, session)
    const file = await wireOf(first.home)
    await first.stop()
    const text = (value: string) => [{ type: 'text', text: value }]
    const summary = { role: 'user', content: text('the summary'), origin: { kind: 'compaction_summary' } }
    await fill(file, megabytes, [{ type: 'context.compacted', messages: [{ role: 'user', content: text('go') }, summary] }])
    const server = await startServer({ upstream: upstream.url, place: first.place })
    try {
      const path = `/api/v1/sessions/${session}`
      const post = async (action: string) => {
        const { code, data } = await server.rest.json('POST', `${path}${action}`, {})
        if (code !== 0) throw new Error(`${action}: ${code}`)
        return data as { id?: string }
      }
      await get(server, `${path}/messages?page_size=1`) // reads it once, and leaves a checkpoint
      const before = await server.rss()
      await server.loop()
      const prompt = await timed(() => talk(server, session))
      const undone = await timed(() => post(':undo'))
      let fork = ''
      const forked = await timed(async () => {
        fork = (await post(':fork')).id ?? ''
      })
      const loop = await server.loop()
      const inFork = await timed(() => talk(server, fork))
      const grown = (await server.rss()) - before
      return [
        { what: `prompt behind ${megabytes} MB and a compaction`, ours: prompt, unit: 'ms', budget: '<= 150', holds: prompt <= 150 },
        { what: '  undo of it', ours: undone, unit: 'ms', budget: '<= 50', holds: undone <= 50 },
        { what: '  fork of all', ours: forked, unit: 'ms', budget: '' },
        { what: '  prompt in the fork', ours: inFork, unit: 'ms', budget: '<= 150', holds: inFork <= 150 },
        { what: '  worst loop delay', ours: loop, unit: 'ms', budget: '<= 20', holds: loop <= 20 },
        { what: '  memory growth', ours: grown, unit: 'MB', budget: '<= 60', holds: grown <= 60 }
      ]
    } finally {
      await server.stop()
    }
  } finally {
    for (const fn of undo) await fn()
  }
}
