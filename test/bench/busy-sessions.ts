/** Reads over HTTP while 200 sessions have running turns: each streams a piece of text every 100 ms and reads a file every 5 s, over and over. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fakeUpstream, type Step } from '../helpers/fake-upstream.ts'
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, spread } from './table.ts'

const count = 200

function script(_body: Record<string, unknown>, n: number): Step[] {
  return [{ text: 'word '.repeat(50), chunks: 50, every_ms: 100 }, { tool: { name: 'Read', args: { path: 'a.txt', limit: n + 1 } } }]
}

export async function busySessions(runs: number): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, script)
  const server = await startServer({ upstream: upstream.url })
  try {
    await writeFile(join(server.workspace, 'a.txt'), 'some text of a file\n'.repeat(50))
    const sessions: string[] = []
    for (let n = 0; n < count; n++) sessions.push(await server.session())
    const idle = await p99(server, sessions)
    for (const session of sessions) {
      const body = { content: [{ type: 'text', text: 'go' }], permission_mode: 'yolo' }
      await server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, body)
    }
    await upstream.arrived(count * 2)
    await server.loop()
    const busy: number[] = []
    for (let run = 0; run < runs; run++) busy.push(await p99(server, sessions))
    const loop = await server.loop()
    const what = `p99 of reads, ${count} running turns`
    return [
      { what, ours: median(busy), floor: idle, spread: spread(busy), unit: 'ms', budget: '< 50', holds: median(busy) < 50 },
      { what: `loop delay, ${count} running turns`, ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 }
    ]
  } finally {
    await server.stop()
    for (const fn of undo) await fn()
  }
}

const reads = ['', '/snapshot', '/status', '/messages?page_size=20', '/prompts']

/** Of 1000 reads, four at a time: sessions in turn, five kinds of reads, and a page of the list. */
async function p99({ rest }: BenchServer, sessions: readonly string[]): Promise<number> {
  const took: number[] = []
  let next = 0
  const read = async () => {
    while (next < 1000) {
      const n = next++
      const path = n % 6 === 5 ? '/api/v1/sessions?page_size=50' : `/api/v1/sessions/${sessions[n % sessions.length]}${reads[n % 6]}`
      const begun = performance.now()
      const { code } = await rest.json('GET', path)
      if (code !== 0) throw new Error(`${path} answers ${code}`)
      took.push(performance.now() - begun)
    }
  }
  await Promise.all([read(), read(), read(), read()])
  return took.sort((a, b) => a - b)[Math.floor(took.length * 0.99)] ?? 0
}
