/** A typed REST client: calls a declared route over HTTP and returns its envelope. */
import { Agent, request } from 'node:http'
import type { AnyRoute, DataOf } from '../contract.ts'
import { type CallInput, type Envelope, fillPath, queryString } from '../http/inject.ts'
import { type RawAnswer, witnessed } from './witness.ts'

export interface Extra {
  readonly headers?: Readonly<Record<string, string>>
}

/** Keeps its connections until `close`. */
export class RestClient {
  readonly #url: string
  readonly #token: string
  // Servers end connections that are idle for 5 s: one must not be used again at that moment.
  readonly #agent = new Agent({ keepAlive: true, timeout: 2000 })

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  async call<R extends AnyRoute>(route: R, ...[input]: CallInput<R, Extra>): Promise<Envelope<R>> {
    const {
      params = {},
      query = {},
      body,
      headers = {}
    } = (input ?? {}) as {
      params?: Record<string, unknown>
      query?: Record<string, unknown>
      body?: unknown
      headers?: Record<string, string>
    }
    const answer = await this.raw(route.method, fillPath(route.path, params) + queryString(query), {
      headers: body === undefined ? headers : { 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    if (answer.status === 204) return { status: 204, code: 0, msg: 'success', request_id: '', data: undefined as DataOf<R> }
    return { status: answer.status, ...(JSON.parse(answer.body.toString('utf8')) as Omit<Envelope<R>, 'status'>) }
  }

  /** Any request with the token (unless `token` says otherwise); the path goes out as it is. */
  raw(
    method: string,
    path: string,
    options: { headers?: Record<string, string>; body?: string | Buffer; token?: string | null } = {}
  ): Promise<RawAnswer> {
    const token = options.token === undefined ? this.#token : options.token
    const { hostname, port } = new URL(this.#url)
    const look = witnessed(this.#url, method, path)
    return new Promise((resolve, reject) => {
      const req = request(
        {
          agent: this.#agent,
          host: hostname.replace(/^\[|\]$/g, ''),
          port,
          method,
          path,
          headers: { ...(token === null ? {} : { authorization: `Bearer ${token}` }), ...options.headers }
        },
        res => {
          const chunks: Buffer[] = []
          res.on('data', (chunk: Buffer) => chunks.push(chunk))
          res.on('error', reject)
          res.on('end', () => {
            const answer = { status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }
            look(answer)
            resolve(answer)
          })
        }
      )
      req.on('error', reject)
      req.end(options.body)
    })
  }

  /** A GET or other request whose answer is an envelope. */
  async json(method: string, path: string, body?: unknown): Promise<Envelope> {
    const answer = await this.raw(method, path, {
      ...(body === undefined ? {} : { headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    })
    return { status: answer.status, ...(JSON.parse(answer.body.toString('utf8')) as Omit<Envelope, 'status'>) }
  }

  close(): void {
    this.#agent.destroy()
  }
}
