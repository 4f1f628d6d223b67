/** 1,000 sockets: they connect and subscribe, drop while events flow, and come back with their cursors. Every event is counted at each of them. */
import { WebSocket } from 'ws'
import type { Frame } from '../../kernel/testing.ts'
import { type BenchServer, startFloor, startServer } from './processes.ts'
import { median, type Row, spread } from './table.ts'

const count = 1000
const perSession = 20
const facts = 40

interface Cursor {
  readonly seq: number
  readonly epoch: string
}

/** A client of one session that keeps its cursor over connections. */
class Client {
  cursor: Cursor
  /** Events that were missed or came twice. */
  faults = 0
  readonly #server: Pick<BenchServer, 'url' | 'token'>
  readonly #session: string
  #socket: WebSocket | undefined
  #waiter: { readonly seq: number; readonly reached: () => void } | undefined

  constructor(server: Pick<BenchServer, 'url' | 'token'>, session: string, cursor: Cursor) {
    this.#server = server
    this.#session = session
    this.cursor = cursor
  }

  /** Resolves when its subscription is acknowledged. */
  async connect(): Promise<void> {
    const { url, token } = this.#server
    const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/ws`, { headers: { authorization: `Bearer ${token}` } })
    this.#socket = socket
    await new Promise<void>((resolve, reject) => {
      socket.once('error', reject)
      socket.on('message', (data: Buffer) => {
        if (this.#socket !== socket) return
        const frame = JSON.parse(data.toString()) as Frame
        if (frame.type === 'server_hello') socket.send(JSON.stringify(this.#hello()))
        else if (frame.type === 'ack') resolve()
        else this.#take(frame)
      })
    })
  }

  #hello(): object {
    const payload = { client_id: 'bench', subscriptions: [this.#session], cursors: { [this.#session]: this.cursor } }
    return { type: 'client_hello', id: '1', payload }
  }

  drop(): void {
    this.#socket?.terminate()
    this.#socket = undefined
  }

  reaches(seq: number): Promise<void> {
    if (this.cursor.seq >= seq) return Promise.resolve()
    return new Promise(reached => {
      this.#waiter = { seq, reached }
    })
  }

  #take({ type, session_id, seq = 0, epoch = '' }: Frame): void {
    if (type === 'resync_required') this.faults++
    if (session_id !== this.#session || type !== 'bench.fact') return
    if (seq !== this.cursor.seq + 1) this.faults++
    this.cursor = { seq, epoch }
    if (this.#waiter && seq >= this.#waiter.seq) this.#waiter.reached()
  }
}

export async function manySockets(runs: number): Promise<Row[]> {
  const floor = await bareSockets(runs)
  const server = await startServer()
  try {
    const sessions = await Promise.all(Array.from({ length: count / perSession }, () => server.session()))
    const marks = new Map<string, Cursor>()
    for (const session of sessions) {
      const probe = await server.subscribed(session)
      const ack = await probe.request('subscribe', { session_ids: [session] })
      marks.set(session, (ack.payload as { cursors: Record<string, Cursor> }).cursors[session] as Cursor)
      await probe.close()
    }
    const connecting: number[] = []
    const returning: number[] = []
    const delays = { connecting: 0, returning: 0 }
    let faults = 0
    await server.loop()
    for (let run = 0; run < runs; run++) {
      const clients = sessions.flatMap(session =>
        Array.from({ length: perSession }, () => new Client(server, session, marks.get(session) as Cursor))
      )
      let began = performance.now()
      await Promise.all(clients.map(client => client.connect()))
      connecting.push(performance.now() - began)
      delays.connecting = Math.max(delays.connecting, await server.loop())

      began = performance.now()
      const emitted = sessions.map(session =>
        server.rest.json('POST', '/api/v1/bench/emit', { session_id: session, count: facts, durable: true, text: 'x' })
      )
      for (const client of clients) client.drop()
      await Promise.all(clients.map(client => client.connect()))
      await Promise.all(emitted)
      const end = (marks.get(sessions[0] as string) as Cursor).seq + facts
      await Promise.all(clients.map(client => client.reaches(end)))
      returning.push(performance.now() - began)
      delays.returning = Math.max(delays.returning, await server.loop())
      faults += clients.reduce((sum, client) => sum + client.faults, 0)
      for (const session of sessions) marks.set(session, { seq: end, epoch: (marks.get(session) as Cursor).epoch })
      for (const client of clients) client.drop()
    }
    const delay = (what: string, ours: number, bare: number): Row => ({
      what,
      ours,
      floor: bare,
      unit: 'ms',
      budget: '< 20',
      holds: ours < 20
    })
    return [
      { what: `${count} sockets connect and subscribe`, ours: median(connecting), spread: spread(connecting), unit: 'ms', budget: '' },
      delay('loop delay meanwhile (floor: ws alone)', delays.connecting, floor.connecting),
      {
        what: `${count} sockets come back, ${facts} events each`,
        ours: median(returning),
        spread: spread(returning),
        unit: 'ms',
        budget: ''
      },
      delay('loop delay meanwhile (floor: ws alone)', delays.returning, floor.returning),
      { what: 'events lost or doubled', ours: faults, unit: '', budget: '0', holds: faults === 0 }
    ]
  } finally {
    await server.stop()
  }
}

/** Loop delay of the library alone, which greets as many clients, hears from them, and loses them. */
async function bareSockets(runs: number): Promise<{ readonly connecting: number; readonly returning: number }> {
  const { url, stop } = await startFloor()
  const loop = async () => Number(await (await fetch(`${url}/loop`)).text())
  const delays = { connecting: 0, returning: 0 }
  try {
    const open = async (many: number) => {
      const clients = Array.from({ length: many }, () => new Client({ url, token: '' }, '', { seq: 0, epoch: '' }))
      await Promise.all(clients.map(client => client.connect()))
      return clients
    }
    for (const client of await open(count / perSession)) client.drop()
    await loop()
    for (let run = 0; run < runs; run++) {
      const clients = await open(count)
      delays.connecting = Math.max(delays.connecting, await loop())
      for (const client of clients) client.drop()
      const back = await open(count)
      delays.returning = Math.max(delays.returning, await loop())
      for (const client of back) client.drop()
    }
    return delays
  } finally {
    await stop()
  }
}
