/** Turns through the whole engine: first delta, a tool step, fifty turns side by side, against HTTP streaming and process spawn. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { SocketClient } from '../../kernel/testing.ts'
import { type FakeUpstream, fakeUpstream, type Step } from '../helpers/fake-upstream.ts'
import { type BenchServer, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const text = 'word '.repeat(200)

function script(body: Record<string, unknown>): Step[] {
  const messages = body.messages as { role: string; content: unknown }[]
  const last = messages.at(-1)
  const asked = JSON.stringify(messages.filter(message => message.role === 'user'))
  if (asked.includes('tool') && last?.role !== 'tool') return [{ tool: { name: 'Bash', args: { command: 'true' } } }]
  return asked.includes('many') ? [{ text, chunks: 200 }] : [{ text: 'one two three', chunks: 3 }]
}

export async function turns(runs: number): Promise<Row[]> {
  const undo: (() => unknown)[] = []
  const upstream = await fakeUpstream({ after: fn => undo.push(fn) }, script)
  const server = await startServer({ upstream: upstream.url })
  try {
    const first = await repeat(runs * 4, () => firstDelta(server, upstream))
    const direct = await repeat(runs * 4, () => directFirst(upstream))
    const tool = await repeat(runs * 4, () => toolStep(server, upstream))
    const bare = await repeat(runs * 4, spawnTrue)
    await sideBySide(server, 50)
    await server.loop() // like every figure here: what is compiled and loaded once is not counted
    const many = await repeat(runs, () => sideBySide(server, 50))
    const loop = await server.loop()
    const bareMany = await repeat(runs, () => directMany(upstream, 50))
    const beside = median(tool) - median(bare)
    return [
      {
        what: 'first delta after upstream byte',
        ours: median(first),
        floor: median(direct),
        spread: spread(first),
        unit: 'ms',
        budget: '<= 5',
        holds: median(first) <= 5
      },
      {
        what: 'tool step (Bash true)',
        ours: median(tool),
        floor: median(bare),
        spread: spread(tool),
        unit: 'ms',
        budget: '<= spawn + 15',
        holds: beside <= 15
      },
      {
        what: '50 turns x 200 chunks',
        ours: median(many),
        floor: median(bareMany),
        spread: spread(many),
        unit: 'ms',
        budget: '<= 1500',
        holds: median(many) <= 1500
      },
      { what: 'loop delay during 50 turns', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 }
    ]
  } finally {
    await server.stop()
    for (const fn of undo) await fn()
  }
}

async function begin(server: BenchServer): Promise<{ socket: SocketClient; session: string }> {
  const session = await server.session()
  const socket = await SocketClient.open(server.url, server.token)
  await socket.request('subscribe', { session_ids: [session] })
  return { socket, session }
}

const prompt = (server: BenchServer, session: string, words: string) =>
  server.rest.json('POST', `/api/v1/sessions/${session}/prompts`, { content: [{ type: 'text', text: words }] })

async function firstDelta(server: BenchServer, upstream: FakeUpstream): Promise<number> {
  const { socket, session } = await begin(server)
  const seen = socket.next('assistant.delta').then(() => performance.timeOrigin + performance.now())
  const request = upstream.arrived(upstream.requests.length)
  await prompt(server, session, 'go')
  const at = await seen
  await socket.next('prompt.completed')
  await socket.close()
  return at - ((await request).first_byte_at ?? at)
}

async function directFirst(upstream: FakeUpstream): Promise<number> {
  const n = upstream.requests.length
  const reader = (await chat(upstream, 'go')).getReader()
  await reader.read()
  const at = performance.timeOrigin + performance.now()
  await reader.cancel()
  return at - (upstream.requests[n]?.first_byte_at ?? at)
}

async function directMany(upstream: FakeUpstream, count: number): Promise<number> {
  const began = performance.now()
  await Promise.all(
    Array.from({ length: count }, async () => {
      for await (const chunk of await chat(upstream, 'many')) void chunk
    })
  )
  return performance.now() - began
}

async function chat(upstream: FakeUpstream, content: string): Promise<ReadableStream<Uint8Array>> {
  const answer = await fetch(`${upstream.url}/chat/completions`, {
    method: 'POST',
    body: JSON.stringify({ messages: [{ role: 'user', content }] })
  })
  if (!answer.body) throw new Error('no body')
  return answer.body as ReadableStream<Uint8Array>
}

/** From the end of the model's reply that asks for the tool to the arrival of the request that carries its result. */
async function toolStep(server: BenchServer, upstream: FakeUpstream): Promise<number> {
  const { socket, session } = await begin(server)
  const n = upstream.requests.length
  const ended = upstream.arrived(n).then(async request => {
    await request.closed
    return performance.timeOrigin + performance.now()
  })
  const next = upstream.arrived(n + 1)
  await prompt(server, session, 'tool')
  const took = (await next).arrived_at - (await ended)
  await socket.next('prompt.completed')
  await socket.close()
  return took
}

async function spawnTrue(): Promise<number> {
  const began = performance.now()
  await once(spawn('/bin/bash', ['-c', 'true'], { stdio: ['ignore', 'pipe', 'pipe'] }), 'close')
  return performance.now() - began
}

async function sideBySide(server: BenchServer, count: number): Promise<number> {
  const ready = await Promise.all(Array.from({ length: count }, () => begin(server)))
  const began = performance.now()
  await Promise.all(
    ready.map(async ({ socket, session }) => {
      await prompt(server, session, 'many')
      await socket.next('prompt.completed')
    })
  )
  const took = performance.now() - began
  await Promise.all(ready.map(({ socket }) => socket.close()))
  return took
}
