/** A model provider for tests and benchmarks: a real HTTP server that plays scripted replies in the wire format of a provider. */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { chatWire } from './upstream-chat.ts'
import { cut, type ScriptedTool, type ScriptedUsage, type UpstreamWire, type WireReply } from './upstream-wire.ts'

/** One thing the upstream does. Steps without a meaning in a wire format are refused by that format. */
export type Step =
  /** Answer text, cut into `chunks` pieces (default 1), `every_ms` apart (default: as fast as the socket takes them). */
  | { readonly text: string; readonly chunks?: number; readonly every_ms?: number }
  | { readonly thinking: string; readonly chunks?: number; readonly every_ms?: number }
  /** One tool call; `args` as value or as raw JSON text; written in `pieces` (default 2). Several in a row are parallel calls. */
  | { readonly tool: ScriptedTool }
  /** Parallel tool calls whose pieces are interleaved. */
  | { readonly tools: readonly ScriptedTool[] }
  | { readonly usage: ScriptedUsage }
  /** Finish reason in neutral words; the format translates it. */
  | { readonly finish: 'stop' | 'tool_calls' | 'length' | 'content_filter' | (string & {}) }
  /** An HTTP answer instead of a stream; must be the first step. Objects become JSON. */
  | { readonly status: number; readonly body?: unknown; readonly headers?: Readonly<Record<string, string>> }
  /** Response headers of the stream; must come before anything is written. */
  | { readonly headers: Readonly<Record<string, string>> }
  /** Resets the connection. */
  | { readonly cut: true }
  /** Waits for one `release()`. */
  | { readonly hang: true }
  /** Bytes as they are; the format's event end (`\n\n`) included by the writer of the script. */
  | { readonly raw: string | Uint8Array }
  /** Ends the response here, without finish, usage or end mark. */
  | { readonly end: true }

export type Script =
  | readonly (readonly Step[])[]
  | ((body: Record<string, unknown>, n: number, request: RecordedRequest) => readonly Step[])

export interface RecordedRequest {
  /** 0 for the first request. */
  readonly n: number
  readonly method: string
  readonly path: string
  readonly headers: IncomingHttpHeaders
  /** Parsed JSON body, `{}` when there was none. */
  readonly body: Record<string, unknown>
  /** Epoch milliseconds with fractions. */
  readonly arrived_at: number
  /** When the first byte of the stream was handed to the socket; epoch milliseconds with fractions. */
  first_byte_at?: number
  /** Resolves when the exchange is over: `client` when the client went away before the reply was complete. */
  readonly closed: Promise<'client' | 'done'>
}

export interface FakeUpstream {
  /** Base URL to configure. */
  readonly url: string
  readonly port: number
  readonly requests: readonly RecordedRequest[]
  /** The request with this number, as soon as it arrived. */
  arrived(n: number): Promise<RecordedRequest>
  /** Lets `count` hanging steps go on (default 1); steps that hang later find it waiting. */
  release(count?: number): void
  /** Connections open now. */
  connections(): Promise<number>
  close(): Promise<void>
}

export interface FakeUpstreamOptions {
  /** Default: chat completions. */
  readonly wire?: UpstreamWire
  /** Default 0 (any free port). */
  readonly port?: number
}

const clock = () => performance.timeOrigin + performance.now()

/**
 * Starts the upstream on 127.0.0.1. A list answers request n with entry n (the last entry repeats); a function decides per request.
 * A reply that names no finish gets the fitting one, usage of 10 in and 5 out, and the format's end mark.
 */
export async function fakeUpstream(
  t: { after(fn: () => unknown): void },
  script: Script,
  { wire = chatWire, port = 0 }: FakeUpstreamOptions = {}
): Promise<FakeUpstream> {
  const requests: RecordedRequest[] = []
  const waiting = new Map<number, ((request: RecordedRequest) => void)[]>()
  const hanging: (() => void)[] = []
  let credits = 0

  const hang = (gone: Promise<unknown>) =>
    new Promise<void>(resolve => {
      if (credits > 0) {
        credits--
        resolve()
        return
      }
      hanging.push(resolve)
      void gone.then(() => {
        const at = hanging.indexOf(resolve)
        if (at >= 0) hanging.splice(at, 1)
        resolve()
      })
    })

  const server = createServer((req, res) => {
    void answer(req, res).catch(error => {
      process.emitWarning(`fake upstream: ${error instanceof Error ? error.stack : String(error)}`)
      res.destroy()
    })
  })

  async function answer(req: IncomingMessage, res: ServerResponse) {
    const arrived_at = clock()
    const chunks: Buffer[] = []
    for await (const chunk of req) chunks.push(chunk as Buffer)
    const text = Buffer.concat(chunks).toString()
    const n = requests.length
    const closed = new Promise<'client' | 'done'>(resolve => res.once('close', () => resolve(res.writableFinished ? 'done' : 'client')))
    const request: RecordedRequest = {
      n,
      method: req.method ?? '',
      path: req.url ?? '',
      headers: req.headers,
      body: text === '' ? {} : (JSON.parse(text) as Record<string, unknown>),
      arrived_at,
      closed
    }
    requests.push(request)
    for (const wake of waiting.get(n) ?? []) wake(request)
    waiting.delete(n)
    const steps = typeof script === 'function' ? script(request.body, n, request) : (script[Math.min(n, script.length - 1)] ?? [])
    await play(steps, res, request, { wire, hang })
  }

  await new Promise<void>(resolve => server.listen(port, '127.0.0.1', resolve))
  const address = server.address() as AddressInfo
  const close = () =>
    new Promise<void>(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  t.after(close)
  return {
    url: `http://127.0.0.1:${address.port}${wire.base_path}`,
    port: address.port,
    requests,
    arrived: n => {
      const request = requests[n]
      if (request) return Promise.resolve(request)
      return new Promise(resolve => waiting.set(n, [...(waiting.get(n) ?? []), resolve]))
    },
    release: (count = 1) => {
      for (let i = 0; i < count; i++) {
        const next = hanging.shift()
        if (next) next()
        else credits++
      }
    },
    connections: () => new Promise((resolve, reject) => server.getConnections((error, count) => (error ? reject(error) : resolve(count)))),
    close
  }
}

interface Stage {
  readonly wire: UpstreamWire
  hang(gone: Promise<unknown>): Promise<void>
}

async function play(steps: readonly Step[], res: ServerResponse, request: RecordedRequest, { wire, hang }: Stage): Promise<void> {
  const reply: WireReply = { n: request.n, model: String(request.body.model ?? 'model'), tool_count: 0, state: {} }
  const headers: Record<string, string> = { 'content-type': wire.content_type }
  let finished = false
  let used = false
  const write = async (events: string | Uint8Array | readonly string[]) => {
    if (!res.headersSent) {
      res.socket?.setNoDelay(true)
      res.writeHead(200, headers)
      for (const event of wire.start(reply)) res.write(event)
    }
    for (const event of typeof events === 'string' || events instanceof Uint8Array ? [events] : events) {
      if (res.destroyed) return
      request.first_byte_at ??= clock()
      if (!res.write(event)) await Promise.race([new Promise(resolve => res.once('drain', resolve)), request.closed])
    }
  }

  for (let at = 0; at < steps.length; at++) {
    const step = steps[at] as Step
    if (res.destroyed) return
    if ('status' in step) {
      const { status, body = wire.failure(status, `status ${status}`), headers: extra } = step
      const raw = typeof body === 'string' ? body : JSON.stringify(body)
      res.writeHead(status, { 'content-type': typeof body === 'string' ? 'text/html' : 'application/json', ...extra })
      res.end(raw)
      return
    }
    if ('headers' in step) Object.assign(headers, step.headers)
    else if ('text' in step) await pieces(step, piece => write(wire.text(piece, reply)))
    else if ('thinking' in step) await pieces({ ...step, text: step.thinking }, piece => write(wire.thinking(piece, reply)))
    else if ('tool' in step) await write(wire.tools([step.tool], reply))
    else if ('tools' in step) await write(wire.tools(step.tools, reply))
    else if ('usage' in step) {
      used = true
      await write(wire.usage(step.usage, reply))
    } else if ('finish' in step) {
      finished = true
      await write(wire.finish(step.finish, reply))
    } else if ('raw' in step) await write(step.raw)
    else if ('hang' in step) await hang(request.closed)
    else if ('cut' in step) {
      // What was written must reach the client before the reset, or the reset would overtake it.
      await new Promise<void>(resolve => (res.headersSent ? res.write(': cut\n\n', () => resolve()) : resolve()))
      res.socket?.destroy()
      return
    } else if ('end' in step) {
      await write('')
      res.end()
      return
    }
  }
  if (!finished) await write(wire.finish(reply.tool_count > 0 ? 'tool_calls' : 'stop', reply))
  if (!used) await write(wire.usage({ input: 10, output: 5 }, reply))
  await write(wire.done(reply))
  res.end()
}

async function pieces(step: { text: string; chunks?: number; every_ms?: number }, write: (piece: string) => Promise<void>): Promise<void> {
  for (const piece of cut(step.text, step.chunks ?? 1)) {
    await write(piece)
    if (step.every_ms !== undefined) await new Promise(resolve => setTimeout(resolve, step.every_ms))
  }
}
