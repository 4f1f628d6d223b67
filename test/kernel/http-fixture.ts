/** The HTTP side alone on a real socket: gate, router and server without packs, plus a raw client that sends exactly what it is told. */
import { readFile } from 'node:fs/promises'
import { type IncomingHttpHeaders, request } from 'node:http'
import { connect } from 'node:net'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { ulid } from 'ulid'
import { createGate, type Gate } from '../../kernel/access/gate.ts'
import type { AnyRoute } from '../../kernel/contract.ts'
import type { KernelOptions } from '../../kernel/environment.ts'
import { Pipeline } from '../../kernel/http/pipeline.ts'
import { assertRoute, type MountedRoute, nameOf } from '../../kernel/http/router.ts'
import { closeServer, createServer, listen } from '../../kernel/http/server.ts'
import { createKernelHooks } from '../../kernel/lifecycle/hooks.ts'
import { Activity } from '../../kernel/lifecycle/scope.ts'
import { testEnvironment } from '../../kernel/testing.ts'
import { freshDir } from '../helpers/temp.ts'

export interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  /** Parsed envelope; undefined for other bodies. */
  readonly json: { code: number; msg: string; data: never; request_id: string; details?: { path: string; message: string }[] }
}

export interface SendOptions {
  readonly headers?: Record<string, string | string[]>
  readonly body?: string | Buffer
  /** Null sends no credential. */
  readonly token?: string | null
}

// biome-ignore lint/suspicious/noExplicitAny: fixture handlers take whatever their route declares
export type Bound = readonly [spec: AnyRoute, handler: (input: any) => unknown, pack?: string]

export interface Fixture {
  readonly home: string
  readonly port: number
  readonly token: string
  readonly gate: Gate
  readonly logs: string[]
  readonly violations: string[]
  readonly activity: Activity
  mount(...routes: Bound[]): void
  send(method: string, path: string, options?: SendOptions): Promise<Answer>
  /** Writes the bytes and resolves to everything received until the server closes the connection. */
  raw(text: string): Promise<string>
}

/** `host` is what the gate believes in; the socket listens on 127.0.0.1. */
export interface FixtureOptions extends Partial<KernelOptions> {
  readonly level?: 'debug' | 'info'
}

export async function tempHome(): Promise<string> {
  const home = await freshDir()
  return home
}

export async function startHttp(t: TestContext, options: FixtureOptions = {}): Promise<Fixture> {
  const { level = 'info', ...given } = options
  const home = options.home ?? (await tempHome())
  const logs: string[] = []
  const violations: string[] = []
  const env = testEnvironment({
    ...given,
    home,
    newId: () => ulid(),
    log: { level, to: { write: line => logs.push(line) } },
    onViolation: error => violations.push(error.message)
  })
  const gate = await createGate(env)
  const http = new Pipeline(env, { gate, hooks: createKernelHooks() })
  const server = createServer(http.handler)
  const { port } = await listen(server, '127.0.0.1', 0)
  t.after(async () => {
    await closeServer(server, 0)
    gate.close()
  })
  const token = (await readFile(join(home, 'server.token'), 'utf8')).trim()
  const activity = new Activity()
  return {
    home,
    port,
    token,
    gate,
    logs,
    violations,
    activity,
    mount(...routes) {
      const mounted = routes.map(([spec, handler, pack = 'test']): MountedRoute => {
        assertRoute(spec)
        return { pack, name: nameOf(spec), spec, handler: handler as MountedRoute['handler'], activity }
      })
      http.mount(mounted)
    },
    send: (method, path, send = {}) => sendRequest(port, method, path, send, send.token === undefined ? token : send.token),
    raw: text => sendRaw(port, text)
  }
}

function sendRequest(port: number, method: string, path: string, options: SendOptions, token: string | null): Promise<Answer> {
  const headers = { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...options.headers }
  return new Promise((resolve, reject) => {
    const req = request({ host: '127.0.0.1', port, method, path, headers, agent: false }, res => {
      const chunks: Buffer[] = []
      res.on('data', (chunk: Buffer) => chunks.push(chunk))
      res.on('error', reject)
      res.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        const isJson = res.headers['content-type']?.startsWith('application/json') && text !== ''
        resolve({ status: res.statusCode!, headers: res.headers, text, json: isJson ? JSON.parse(text) : undefined })
      })
    })
    req.on('error', reject)
    req.end(options.body)
  })
}

function sendRaw(port: number, text: string): Promise<string> {
  return new Promise((resolve, reject) => {
    let received = ''
    const socket = connect(port, '127.0.0.1', () => socket.write(text))
    socket.setEncoding('utf8')
    socket.on('data', chunk => {
      received += chunk
    })
    socket.on('error', reject)
    socket.on('close', () => resolve(received))
  })
}
