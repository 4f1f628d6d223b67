/** A turn of very many steps: what a step costs at its beginning and at its end, where the context is large. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { startServer } from './processes.ts'
import { median, type Row } from './table.ts'

const steps = 2000
/** Steps that are looked at, at both ends. */
const window = 100

export async function longTurn(): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  /** When each reply was complete. */
  const replied: number[] = []
  const bytes: number[] = []
  let encode = 0
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, (body, n, request) => {
    void request.closed.then(() => {
      replied[n] = performance.timeOrigin + performance.now()
    })
    if (n === window || n === steps) {
      const began = performance.now()
      bytes.push(Buffer.from(JSON.stringify(body)).length)
      encode = performance.now() - began - encode
    }
    // Bodies are not kept: they would be gigabytes.
    for (const key of Object.keys(body)) delete body[key]
    // The first turn is a short one: what is compiled and loaded once is not counted.
    return n > 0 && n <= steps ? [{ tool: { name: 'Read', args: { path: 'a.txt', n_lines: 20 + (n % 900) } } }] : [{ text: 'done' }]
  })
  const server = await startServer({ upstream: upstream.url })
  try {
    await writeFile(join(server.workspace, 'a.txt'), 'some text of a file\n'.repeat(10))
    const session = await server.session()
    const socket = await server.subscribed(session)
    const talk = async () => {
      socket.frames.length = 0
      await server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, { content: [{ type: 'text', text: 'go' }] })
      await socket.next('prompt.completed')
    }
    await talk()
    const before = await server.rss()
    await server.loop()
    const began = performance.now()
    await talk()
    const took = performance.now() - began
    const loop = await server.loop()
    const grown = (await server.rss()) - before
    await socket.close()
    const gap = (n: number) => (upstream.requests[n + 1]?.arrived_at ?? 0) - (replied[n] ?? 0)
    const gaps = (from: number) => median(Array.from({ length: window }, (_, n) => gap(from + n)))
    const first = gaps(window)
    const last = gaps(steps - 1 - window)
    const megabyte = 1024 * 1024
    const context = ((bytes[1] ?? 0) - (bytes[0] ?? 0)) / megabyte
    return [
      { what: `turn of ${steps} steps, per step`, ours: took / steps, unit: 'ms', budget: '' },
      { what: '  between reply and next request, at the beginning', ours: first, unit: 'ms', budget: '' },
      {
        what: `  the same at the end, ${context.toFixed(1)} MB later`,
        ours: last,
        floor: encode,
        unit: 'ms',
        budget: '<= 1.25 x beginning (floor: encoding the whole request)',
        holds: last <= 1.25 * first
      },
      { what: '  worst loop delay', ours: loop, unit: 'ms', budget: '<= 20', holds: loop <= 20 },
      { what: '  memory growth', ours: grown, unit: 'MB', budget: '' }
    ]
  } finally {
    await server.stop()
    for (const fn of undo) await fn()
  }
}
