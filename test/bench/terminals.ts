/**
 * Terminals: 100 MB that a program prints, to one client, beside a pseudo terminal and a socket without us; and what a flood that nobody
 * reads does to others.
 */
import { once } from 'node:events'
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { spawn } from 'node-pty'
import { WebSocket } from 'ws'
import { type BenchServer, type Child, startFloor, startServer } from './processes.ts'
import { median, type Row, repeat, spread } from './table.ts'

const megabytes = 100
const line = `${'x'.repeat(79)}\n`

export async function terminals(runs: number): Promise<Row[]> {
  const server = await startServer()
  const floor = await startFloor()
  const file = join(server.workspace, 'big.txt')
  try {
    await writeFile(file, line.repeat(Math.ceil((megabytes * 1e6) / line.length)))
    const session = await server.session()
    const idle = await server.rss()
    const first = await stream(server, session, file)
    const streams: Streamed[] = []
    const [alone, relayed]: [number[], number[]] = [[], []]
    for (let n = 0; n < runs; n++) {
      alone.push(await bare(file))
      relayed.push(await relay(floor, file))
      streams.push(await stream(server, session, file))
    }
    const speeds = streams.map(({ speed }) => speed)
    const peak = Math.max(...streams.map(each => each.peak))
    const reads = await repeat(runs, () => read(server, session))
    const flood = await open(server, session, 'yes')
    const { socket, seen } = await attached(server, session, flood, 64 * 1024)
    socket.pause()
    const stalled = await server.rss()
    const loops = await readsFor(server, session, runs)
    const grown = (await server.rss()) - stalled
    socket.terminate()
    const unwatched = await open(server, session, 'yes')
    await server.rest.json('POST', `/api/v1/sessions/${session}/terminals/${flood}:close`)
    const unseen = await readsFor(server, session, runs)
    const kept = (await server.rss()) - stalled
    await server.rest.json('POST', `/api/v1/sessions/${session}/terminals/${unwatched}:close`)
    const limit = (what: string, values: readonly number[], unit: string, most: number): Row => ({
      what,
      ours: median(values),
      spread: spread(values),
      unit,
      budget: `< ${most}`,
      holds: median(values) < most
    })
    return [
      {
        what: `${megabytes} MB to one client`,
        ours: median(speeds),
        floor: median(relayed),
        spread: spread(speeds),
        unit: 'MB/s',
        budget: '>= 50 or 0.9x',
        holds: median(speeds) >= Math.min(50, median(relayed) * 0.9)
      },
      { what: '  a bare pseudo terminal without a client', ours: median(alone), spread: spread(alone), unit: 'MB/s', budget: '' },
      { what: '  processor time of the server', ours: median(streams.map(({ cpu }) => cpu)), unit: 'ms', budget: '' },
      limit('  memory at its highest, above that of an idle server', [Math.max(peak, first.peak) - idle], 'MB', 96),
      limit(`  of ${runs} more streams, above that of the first`, [peak - first.peak], 'MB', 64),
      limit(
        '  loop delay, p99',
        streams.map(({ loop }) => loop),
        'ms',
        20
      ),
      { what: 'a read without a flood', ours: median(reads), unit: 'ms', budget: '' },
      limit(`a read beside \`yes\`, its client stands still after ${seen() >> 10} KiB`, loops.took, 'ms', 20),
      limit('  loop delay, p99', [loops.loop], 'ms', 20),
      limit('  memory growth', [grown], 'MB', 32),
      limit('a read beside `yes` that nobody watches', unseen.took, 'ms', 20),
      limit('  loop delay, p99', [unseen.loop], 'ms', 20),
      limit('  memory growth', [kept], 'MB', 32)
    ]
  } finally {
    await Promise.all([server.stop(), floor.stop()])
    await rm(file, { force: true })
  }
}

/** MB/s of the pseudo terminal alone. */
function bare(file: string): Promise<number> {
  return new Promise(resolve => {
    const began = performance.now()
    let chars = 0
    const pty = spawn('/bin/sh', ['-c', `cat ${file}`], { name: 'xterm', cols: 80, rows: 24 })
    pty.onData(data => {
      chars += data.length
    })
    pty.onExit(() => resolve(chars / 1000 / (performance.now() - began)))
  })
}

/** MB/s of a pseudo terminal whose output goes to a client as it is, over a bare WebSocket. */
async function relay({ url }: Child, file: string): Promise<number> {
  const socket = new WebSocket(url.replace('http', 'ws'), { perMessageDeflate: false })
  let bytes = 0
  socket.on('message', (data: Buffer) => {
    bytes += data.length
  })
  await once(socket, 'open')
  const began = performance.now()
  await (await fetch(`${url}/print/${encodeURIComponent(file)}`)).text()
  socket.close()
  await once(socket, 'close')
  return bytes / 1000 / (performance.now() - began)
}

async function open({ rest, workspace }: BenchServer, session: string, command: string): Promise<string> {
  const script = join(workspace, 'run.sh')
  await writeFile(script, `#!/bin/sh\nread go\nexec ${command}\n`, { mode: 0o755 })
  const { data, code, msg } = await rest.json('POST', `/api/v1/sessions/${session}/terminals`, { shell: script })
  if (code !== 0) throw new Error(msg)
  return (data as { id: string }).id
}

/** Attaches, lets the command begin, and resolves when so many characters have come. */
async function attached({ url, token }: BenchServer, session_id: string, terminal_id: string, enough: number) {
  const socket = new WebSocket(`${url.replace('http', 'ws')}/api/v1/ws`, {
    headers: { authorization: `Bearer ${token}` },
    perMessageDeflate: false
  })
  let chars = 0
  await new Promise<void>((resolve, reject) => {
    socket.on('error', reject)
    socket.on('open', () => {
      const ids = { session_id, terminal_id }
      socket.send(JSON.stringify({ type: 'terminal_attach', id: '1', payload: ids }))
      socket.send(JSON.stringify({ type: 'terminal_input', id: '2', payload: { ...ids, data: '\n' } }))
    })
    socket.on('message', (bytes: Buffer) => {
      const { type, payload } = JSON.parse(bytes.toString()) as { type: string; payload: { data?: string } }
      if (type === 'terminal_output') chars += payload.data?.length ?? 0
      if (type === 'terminal_exit' || chars >= enough) resolve()
    })
  })
  return { socket, seen: () => chars }
}

interface Streamed {
  /** MB/s */
  readonly speed: number
  /** Largest resident memory, MB. */
  readonly peak: number
  readonly loop: number
  /** Processor time of the server, ms. */
  readonly cpu: number
}

async function cpuOf({ pid }: BenchServer): Promise<number> {
  const fields = (await readFile(`/proc/${pid}/stat`, 'utf8')).split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) * 10 // ticks of 10 ms
}

async function stream(server: BenchServer, session: string, file: string): Promise<Streamed> {
  const id = await open(server, session, `cat ${file}`)
  await p99(server)
  let peak = 0
  const watching = setInterval(async () => {
    peak = Math.max(peak, await server.rss())
  }, 50)
  const cpu = await cpuOf(server)
  const began = performance.now()
  const { socket, seen } = await attached(server, session, id, Infinity)
  const took = performance.now() - began
  clearInterval(watching)
  socket.terminate()
  return { speed: seen() / 1000 / took, peak, loop: await p99(server), cpu: (await cpuOf(server)) - cpu }
}

async function p99({ rest }: BenchServer): Promise<number> {
  return ((await rest.json('GET', '/api/v1/bench/loop')).data as { p99_ms: number }).p99_ms
}

async function read({ rest }: BenchServer, session: string): Promise<number> {
  const began = performance.now()
  await rest.json('GET', `/api/v1/sessions/${session}`)
  return performance.now() - began
}

/** 200 reads per run, while something else goes on. */
async function readsFor(server: BenchServer, session: string, runs: number): Promise<{ took: number[]; loop: number }> {
  await p99(server)
  const took: number[] = []
  for (let n = 0; n < runs * 200; n++) took.push(await read(server, session))
  return { took, loop: await p99(server) }
}
