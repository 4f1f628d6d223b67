/** An upstream that writes the bytes of its answer itself: for servers that speak HTTP badly, loosely, or not to the end. */

import type { AddressInfo } from 'node:net'
import { createServer, type Socket } from 'node:net'
import type { UpstreamWire, WireReply } from './upstream-wire.ts'

export interface RawUpstream {
  /** Base URL of a wire at this server. */
  url(wire: UpstreamWire): string
  /** Requests that have arrived. */
  readonly count: number
  /** Resolves when the connection of this request is gone. */
  gone(n: number): Promise<void>
}

/** Starts it on 127.0.0.1. `answer` is called once per request, as soon as its head has arrived. */
export async function rawUpstream(
  t: { after(fn: () => unknown): void },
  answer: (socket: Socket, n: number) => void | Promise<void>
): Promise<RawUpstream> {
  const sockets = new Set<Socket>()
  const closed: Promise<void>[] = []
  const server = createServer(socket => {
    sockets.add(socket)
    let head = ''
    const over = new Promise<void>(resolve =>
      socket.once('close', () => {
        sockets.delete(socket)
        resolve()
      })
    )
    // Clients that lose interest reset the connection; the test looks at what they report.
    socket.on('error', () => undefined)
    socket.on('data', bytes => {
      head += bytes.toString('latin1')
      if (!head.includes('\r\n\r\n')) return
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0)
      if (head.length < head.indexOf('\r\n\r\n') + 4 + length) return
      head = ''
      closed.push(over)
      void answer(socket, closed.length - 1)
    })
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    for (const socket of sockets) socket.destroy()
    return new Promise(resolve => server.close(resolve))
  })
  const { port } = server.address() as AddressInfo
  return {
    url: wire => `http://127.0.0.1:${port}${wire.base_path}`,
    get count() {
      return closed.length
    },
    gone: n => closed[n] ?? Promise.reject(new Error(`there was no request ${n}`))
  }
}

export interface HeadOptions {
  readonly status?: number
  readonly version?: '1.0' | '1.1'
  readonly headers?: Readonly<Record<string, string>>
}

/** Head of an answer; without other headers an event stream that ends with the connection. */
export function head({ status = 200, version = '1.1', headers = {} }: HeadOptions = {}): string {
  const all = { 'content-type': 'text/event-stream', connection: 'close', ...headers }
  const lines = Object.entries(all).flatMap(([name, value]) => (value === '' ? [] : [`${name}: ${value}`]))
  return `HTTP/${version} ${status} X\r\n${lines.join('\r\n')}\r\n\r\n`
}

/** The bytes of a whole answer with this text. */
export function wholeAnswer(wire: UpstreamWire, text: string): string {
  const reply: WireReply = { n: 0, model: 'm', tool_count: 0, state: {} }
  const begin = [...wire.start(reply), wire.text(text, reply), ...wire.finish('stop', reply)]
  return [...begin, ...wire.usage({ input: 10, output: 5 }, reply), ...wire.done(reply)].join('')
}

/** The bytes of an answer with this text that has not ended. */
export function halfAnswer(wire: UpstreamWire, text: string): string {
  const reply: WireReply = { n: 0, model: 'm', tool_count: 0, state: {} }
  return [...wire.start(reply), wire.text(text, reply)].join('')
}
