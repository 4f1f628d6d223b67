/**
 * What a prompt waits for, over a real socket: its answer, the request to the model, and the end of the turn
 * after the last byte. The floor is a request that does nothing.
 */
import { fakeUpstream } from '../helpers/fake-upstream.ts'
import { startServer } from './processes.ts'
import { median, type Row, spread } from './table.ts'

const prompts = 50
const warmUp = 10

export async function latency(): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, () => [{ text: 'one two three' }])
  const server = await startServer({ upstream: upstream.url })
  const floor: number[] = []
  const answered: number[] = []
  const reached: number[] = []
  const ended: number[] = []
  try {
    const session = await server.session()
    const socket = await server.subscribed(session)
    for (let n = 0; n < warmUp + prompts; n++) {
      socket.frames.length = 0 // of the turn before
      const request = upstream.arrived(n)
      const end = socket.next('turn.ended').then(now)
      const over = socket.next('prompt.completed')
      const began = now()
      const answer = server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, { content: [{ type: 'text', text: `go ${n}` }] })
      await answer
      const answer_at = now()
      const { arrived_at, first_byte_at = 0 } = await request
      const end_at = await end
      await over
      if (n < warmUp) continue
      answered.push(answer_at - began)
      reached.push(arrived_at - began)
      ended.push(end_at - first_byte_at) // the reply is so short that all of it goes out at once
      const asked = now()
      await server.rest.json('GET', '/api/v1/healthz')
      floor.push(now() - asked)
    }
    await socket.close()
    const row = (what: string, values: readonly number[], limit: number): Row => ({
      what,
      ours: median(values),
      floor: median(floor),
      spread: spread(values),
      unit: 'ms',
      budget: `<= ${limit}`,
      holds: median(values) <= limit
    })
    return [
      row('POST prompts answered', answered, 2),
      row('model asked after POST prompts', reached, 3),
      row('turn.ended after the last byte of the model', ended, 1.5)
    ]
  } finally {
    await server.stop()
    for (const fn of undo) await fn()
  }
}

const now = () => performance.timeOrigin + performance.now()
