/** A typed REST client: calls a declared route over HTTP and returns its envelope. */
import { Agent, request } from 'node:http'
import type { AnyRoute, BodyOf, DataOf, ParamsOf, QueryOf } from '../contract.ts'
import type { Detail } from '../errors.ts'

export interface Envelope<R extends AnyRoute = AnyRoute> {
  /** HTTP status. */
  readonly status: number
  readonly code: number
  readonly msg: string
  readonly data: DataOf<R>
  readonly request_id: string
  readonly details?: Detail[]
}

type Part<Key extends string, T> = [T] extends [undefined]
  ? unknown
  : T extends Record<string, never>
    ? unknown
    : Record<never, never> extends T
      ? { readonly [K in Key]?: T }
      : { readonly [K in Key]: T }
type Input<R extends AnyRoute> = Part<'params', ParamsOf<R>> & Part<'query', QueryOf<R>> & Part<'body', BodyOf<R>>
/** Params, query and body of a route, each present only when the spec declares it. */
export type CallInput<R extends AnyRoute> = Record<never, never> extends Input<R> ? [input?: Input<R> & Extra] : [input: Input<R> & Extra]

interface Extra {
  readonly headers?: Readonly<Record<string, string>>
}

export interface RawAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly body: Buffer
}

/** Keeps its connections until `close`. */
export class RestClient {
  readonly #url: string
  readonly #token: string
  readonly #agent = new Agent({ keepAlive: true })

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  async call<R extends AnyRoute>(route: R, ...[input]: CallInput<R>): Promise<Envelope<R>> {
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
          res.on('end', () => resolve({ status: res.statusCode ?? 0, headers: res.headers, body: Buffer.concat(chunks) }))
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

function fillPath(template: string, params: Readonly<Record<string, unknown>>): string {
  return template.replace(/\{(\+?)(\w+)\}/g, (_, plus: string, name: string) => {
    const value = String(params[name])
    return plus ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value)
  })
}

function queryString(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams()
  for (const [key, value] of Object.entries(query)) {
    if (value === undefined) continue
    for (const item of Array.isArray(value) ? value : [value]) search.append(key, String(item))
  }
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
