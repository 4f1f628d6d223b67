/** A proxy for tests: real HTTP on this machine. It forwards whole URLs and opens tunnels, both to one port, and notes what it was asked. */
import { createServer, request } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import type { TestContextLike } from '../../kernel/testing.ts'

export interface FakeProxy {
  readonly url: string
  readonly port: number
  /** `CONNECT host:443`, `POST http://host/path`, in order. */
  readonly asked: readonly string[]
  /** `proxy-authorization` of each of them. */
  readonly credentials: readonly (string | undefined)[]
}

export interface FakeProxyOptions {
  /** Hangs up after so much of its answer, once each; what comes later it takes as the other options say. */
  readonly breaks?: readonly string[]
  /** Answers everything with this status. */
  readonly refuse?: number
  /** Never answers. */
  readonly hang?: boolean
}

/** `port`: where everything is led to, whatever its name. Closed with the test. */
export async function fakeProxy(
  t: TestContextLike,
  port: number,
  { breaks = [], refuse, hang = false }: FakeProxyOptions = {}
): Promise<FakeProxy> {
  const asked: string[] = []
  const credentials: (string | undefined)[] = []
  const note = (what: string, given: string | undefined) => {
    asked.push(what)
    credentials.push(given)
  }
  const server = createServer((req, res) => {
    note(`${req.method} ${req.url}`, req.headers['proxy-authorization'])
    if (hang) return
    if (refuse !== undefined) {
      res.writeHead(refuse).end()
      return
    }
    const { pathname, search } = new URL(req.url ?? '')
    const { 'proxy-authorization': _, ...headers } = req.headers
    const onward = request({ port, path: pathname + search, method: req.method, headers }, reply => {
      res.writeHead(reply.statusCode ?? 502, reply.headers)
      reply.pipe(res)
    })
    onward.on('error', () => res.destroy())
    res.on('close', () => onward.destroy())
    req.pipe(onward)
  })
  /** The server knows nothing of them any more: one whose client left while it stands still would keep the process. */
  const tunnels = new Set<{ destroy(): void }>()
  server.on('connect', (req, socket, head) => {
    tunnels.add(socket)
    note(`CONNECT ${req.url}`, req.headers['proxy-authorization'])
    socket.on('error', () => undefined) // the client went away: its test knows
    const cut = breaks[asked.length - 1]
    if (cut !== undefined) {
      socket.end(cut)
      return
    }
    if (hang) return
    if (refuse !== undefined) {
      socket.end(`HTTP/1.1 ${refuse} No\r\n\r\n`)
      return
    }
    const target = connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n')
      target.write(head)
      target.pipe(socket).pipe(target)
    })
    socket.on('close', () => target.destroy())
    target.on('error', () => socket.destroy())
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(
    () =>
      new Promise<void>(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
        for (const tunnel of tunnels) tunnel.destroy()
      })
  )
  const own = (server.address() as AddressInfo).port
  return { url: `http://127.0.0.1:${own}`, port: own, asked, credentials }
}
