/** The floor: bare polka and bare ws in a process of their own, doing the same job without us. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setImmediate as turn } from 'node:timers/promises'
import polka from 'polka'
import { type WebSocket, WebSocketServer } from 'ws'

const sockets = new Set<WebSocket>()
let body = '{}'

const app = polka()
  .get('/set/:size', (req, res) => {
    body = JSON.stringify({ code: 0, msg: 'success', data: 'x'.repeat(Number(req.params.size)), request_id: '0'.repeat(26) })
    res.end()
  })
  .get('/read/:id', (_req, res) => {
    res.writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) })
    res.end(body)
  })
  .get('/emit/:count/:size', async (req, res) => {
    const frame = JSON.stringify({ type: 'bench.delta', seq: 0, payload: { delta: 'x'.repeat(Number(req.params.size)) } })
    for (let n = 0; n < Number(req.params.count); n++) {
      for (const socket of sockets) socket.send(frame)
      if (n % 10 === 9) await turn()
    }
    res.end('{}')
  })

/** What a program prints on a pseudo terminal, as it comes, to every client; ends with the program. */
app.get('/print/:file', async (req, res) => {
  const { spawn } = await import('node-pty')
  const pty = spawn('/bin/cat', [req.params.file!], { cols: 80, rows: 24 })
  pty.onData(async data => {
    for (const socket of sockets) socket.send(data)
    if ([...sockets].every(socket => socket.bufferedAmount < 1e6)) return
    pty.pause()
    while ([...sockets].some(socket => socket.bufferedAmount > 0)) await turn()
    pty.resume()
  })
  pty.onExit(() => res.end('{}'))
})

const loop = monitorEventLoopDelay({ resolution: 1 })
loop.enable()
app.get('/loop', (_req, res) => {
  const { max } = loop
  loop.reset()
  res.end(JSON.stringify(Math.max(0, max / 1e6 - 1))) // the monitor's own period is part of what it reports
})

const server = createServer(app.handler as never)
const wss = new WebSocketServer({ server, perMessageDeflate: false })
wss.on('connection', (socket, { url }) => {
  sockets.add(socket)
  if (url === '/api/v1/ws') greet(socket)
  socket.on('error', () => socket.terminate())
  socket.on('close', () => sockets.delete(socket))
})
server.listen(0, '127.0.0.1', () => process.stdout.write(`listening on http://127.0.0.1:${(server.address() as AddressInfo).port}\n`))

/** The least that a client of ours gets: a hello, and an answer to its own. */
function greet(socket: WebSocket): void {
  socket.send('{"type":"server_hello"}')
  socket.on('message', data => {
    const { id } = JSON.parse(String(data)) as { id: string }
    socket.send(JSON.stringify({ type: 'ack', id }))
  })
}
