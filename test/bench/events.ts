/** The event side: fan-out against bare ws, replay, and journal appends against plain fs. */
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { WebSocket } from 'ws'
import { SocketClient } from '../../kernel/testing.ts'
import { type BenchServer, startFloor, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const subscribers = 100
const deltas = 1000
const piece = 'some text '

export async function fanOut(runs: number): Promise<Row[]> {
  const server = await startServer()
  const floor = await startFloor()
  const session = await server.session()
  await server.loop()
  const ours = await repeat(runs, () => stream(server, session))
  const loop = await server.loop()
  const bare = await repeat(runs, () => bareStream(floor.url))
  await server.stop()
  await floor.stop()
  const ratio = median(ours) / median(bare)
  return [
    {
      what: `${subscribers} subscribers x ${deltas} deltas`,
      ours: median(ours),
      floor: median(bare),
      spread: spread(ours),
      unit: 'ms',
      budget: '<= 2.00x',
      holds: ratio <= 2
    },
    { what: 'loop delay during fan-out', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 }
  ]
}

/** Time until the last subscriber has the whole text. */
async function stream(server: BenchServer, session: string): Promise<number> {
  const wanted = deltas * piece.length
  const all = await Promise.all(Array.from({ length: subscribers }, () => subscribed(server.url, server.token, session)))
  const began = performance.now()
  const done = all.map(socket => {
    let length = 0
    return until(socket, frame => {
      if (frame.type === 'bench.delta') length += String(frame.payload.delta).length
      return length >= wanted
    })
  })
  await server.rest.json('POST', '/api/v1/bench/emit', { session_id: session, count: deltas, text: piece })
  await Promise.all(done)
  const took = performance.now() - began
  for (const socket of all) socket.terminate()
  return took
}

async function bareStream(url: string): Promise<number> {
  const all = await Promise.all(Array.from({ length: subscribers }, () => opened(new WebSocket(url.replace('http', 'ws')))))
  const began = performance.now()
  const done = all.map(socket => {
    let frames = 0
    return until(socket, () => ++frames >= deltas)
  })
  await fetch(`${url}/emit/${deltas}/${piece.length}`)
  await Promise.all(done)
  const took = performance.now() - began
  for (const socket of all) socket.terminate()
  return took
}

export async function replay(runs: number): Promise<Row[]> {
  const server = await startServer()
  const session = await server.session()
  await server.rest.json('POST', '/api/v1/bench/emit', { session_id: session, count: 1000, durable: true, text: piece })
  const probe = await SocketClient.open(server.url, server.token)
  const ack = await probe.request('subscribe', { session_ids: [session] })
  const { seq, epoch } = (ack.payload as { cursors: Record<string, { seq: number; epoch: string }> }).cursors[session] ?? {
    seq: 0,
    epoch: ''
  }
  await probe.close()
  await server.loop()
  const ours = await repeat(runs * 2, async () => {
    const socket = await SocketClient.open(server.url, server.token)
    const began = performance.now()
    await socket.request('subscribe', { session_ids: [session], cursors: { [session]: { seq: seq - 1000, epoch } } })
    const took = performance.now() - began
    const events = socket.frames.filter(frame => frame.session_id === session).length
    if (events !== 1000) throw new Error(`replayed ${events} events`)
    await socket.close()
    return took
  })
  const loop = await server.loop()
  await server.stop()
  return [
    { what: 'replay of 1000 events', ours: median(ours), spread: spread(ours), unit: 'ms', budget: '<= 50', holds: median(ours) <= 50 },
    { what: 'loop delay during replay', ours: loop, unit: 'ms', budget: '< 20', holds: loop < 20 }
  ]
}

export async function journal(runs: number): Promise<Row[]> {
  const server = await startServer()
  const ours = await repeat(runs, async () => {
    const session = await server.session()
    const body = { session_id: session, count: 5000, durable: true, text: piece }
    return ((await server.rest.json('POST', '/api/v1/bench/emit', body)).data as { elapsed_ms: number }).elapsed_ms / 5
  })
  await server.stop()
  const bare = await repeat(runs, plainAppend)
  return [{ what: 'journal, 1000 durable events', ours: median(ours), floor: median(bare), spread: spread(ours), unit: 'ms', budget: '' }]
}

/** The same bytes in batches of ten, appended by plain fs. */
async function plainAppend(): Promise<number> {
  const dir = await mkdtemp(join(tmpdir(), 'svc-code-bench-'))
  const file = await open(join(dir, 'log'), 'a')
  const line = `${JSON.stringify({ type: 'bench.fact', seq: 1, session_id: 'x'.repeat(44), payload: { delta: piece, turnId: 0, agentId: 'main' } }).padEnd(330)}\n`
  const began = performance.now()
  for (let n = 0; n < 5000; n += 10) await file.write(line.repeat(10))
  const took = (performance.now() - began) / 5
  await file.close()
  await rm(dir, { recursive: true })
  return took
}

async function subscribed(url: string, token: string, session: string): Promise<WebSocket> {
  const socket = await opened(new WebSocket(`${url.replace('http', 'ws')}/api/v1/ws`, { headers: { authorization: `Bearer ${token}` } }))
  const ack = until(socket, frame => frame.type === 'ack')
  socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { session_ids: [session] } }))
  await ack
  return socket
}

function opened(socket: WebSocket): Promise<WebSocket> {
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket))
    socket.once('error', reject)
  })
}

function until(socket: WebSocket, fits: (frame: { type: string; payload: { delta?: string } }) => boolean): Promise<void> {
  return new Promise(resolve => {
    const look = (data: unknown) => {
      if (!fits(JSON.parse(String(data)) as { type: string; payload: { delta?: string } })) return
      socket.off('message', look)
      resolve()
    }
    socket.on('message', look)
  })
}
