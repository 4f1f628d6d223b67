/** A route asked from inside this process: the same routing, checks, handler and reply, without a socket. */
import { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { inProcess, type Principal } from '../access/principal.ts'
import type { AnyRoute, BodyOf, DataOf, ParamsOf, QueryOf } from '../contract.ts'
import type { Way } from '../elsewhere.ts'
import { type Detail, developerError } from '../errors.ts'
import { limitedStream } from './body.ts'
import type { FileReply, StreamReply } from './bytes.ts'
import type { Exchange } from './exchange.ts'
import { type AnswerText, LargeText } from './large-json.ts'

/** The envelope of a route with the HTTP status it came with. */
export interface Envelope<R extends AnyRoute = AnyRoute> {
  readonly status: number
  readonly code: number
  readonly msg: string
  readonly data: DataOf<R>
  readonly request_id: string
  readonly details?: Detail[]
}

/** `bytes`: what a `binary` route answered, unread; the data is null then. A stream is the caller's to read or destroy. */
export interface Injected<R extends AnyRoute = AnyRoute> extends Envelope<R> {
  readonly bytes?: FileReply | StreamReply
}

type Part<Key extends string, T> = [T] extends [undefined]
  ? unknown
  : T extends Record<string, never>
    ? unknown
    : Record<never, never> extends T
      ? { readonly [K in Key]?: T }
      : { readonly [K in Key]: T }
type RouteValues<R extends AnyRoute> = Part<'params', ParamsOf<R>> & Part<'query', QueryOf<R>> & Part<'body', BodyOf<R>>
/** Params, query and body of a route, each present only when the spec declares it, and `Extra` beside them. */
export type CallInput<R extends AnyRoute, Extra = unknown> =
  Record<never, never> extends RouteValues<R> ? [input?: RouteValues<R> & Extra] : [input: RouteValues<R> & Extra]

export interface InjectOptions {
  /** Who asks; default: this process, which may use everything. */
  readonly principal?: Principal
  /** Lower-case names. */
  readonly headers?: Readonly<Record<string, string>>
  /** The body of a `bodyType: 'stream'` route. */
  readonly stream?: Readable
  /** The caller does not wait any more: aborts the handler's signal. */
  readonly signal?: AbortSignal
}

/** Asks a declared route in this process and resolves to its answer; never rejects for what the route answers. */
export type Inject = <R extends AnyRoute>(route: R, ...input: CallInput<R, InjectOptions>) => Promise<Injected<R>>

/** What `inject` reads of its input, whatever the route. */
export interface InjectInput extends InjectOptions {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}

const jsonHeaders = { 'content-type': 'application/json' }

export class InjectedExchange implements Exchange {
  readonly id: string
  readonly method: string
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly principal: Principal
  readonly remote_address = null
  readonly relayed = false
  readonly began = performance.now()
  readonly signal: AbortSignal
  readonly #input: InjectInput
  stream: Readable
  #answer: Injected | undefined

  constructor(id: string, route: AnyRoute, input: InjectInput) {
    this.id = id
    this.method = route.method
    this.url = fillPath(route.path, input.params ?? {}) + queryString(input.query ?? {})
    this.headers = input.headers ?? {}
    this.principal = input.principal ?? inProcess
    this.stream = input.stream ?? Readable.from([])
    this.signal = input.signal ?? new AbortController().signal
    this.#input = input
  }

  /** What the pipeline answered. Throws when the caller went away first. */
  answer(): Injected {
    if (!this.#answer) throw this.signal.reason ?? developerError('request_unanswered')
    return this.#answer
  }

  get gone(): boolean {
    return this.signal.aborted
  }

  get begun(): boolean {
    return this.#answer !== undefined
  }

  /** A copy, as JSON carries it: handler and caller share nothing. */
  async body(): Promise<unknown> {
    const { body } = this.#input
    return body === undefined ? undefined : JSON.parse(JSON.stringify(body))
  }

  openStream(limit: number | undefined): void {
    if (limit !== undefined) this.stream = limitedStream(this.stream, limit)
  }

  send(status: number, text: AnswerText | undefined): Promise<void> | undefined {
    if (text instanceof LargeText) return text.whole().then(whole => this.#send(status, whole))
    this.#send(status, text)
    return undefined
  }

  #send(status: number, text: string | undefined): void {
    const envelope = text === undefined ? { code: 0, msg: 'success', data: null, request_id: this.id } : JSON.parse(text)
    this.#answer = { status, ...(envelope as Omit<Injected, 'status'>) }
  }

  async sendBytes(bytes: FileReply | StreamReply): Promise<number> {
    this.#answer = { status: 200, code: 0, msg: 'success', data: null as never, request_id: this.id, bytes }
    return 200
  }

  async relay(way: Way): Promise<number | undefined> {
    const { id, method, url, headers, principal, remote_address, signal } = this
    const { body: given, stream } = this.#input
    const body = given === undefined ? undefined : Buffer.from(JSON.stringify(given))
    const asked = { id, method, url, headers: { ...headers, ...(body === undefined ? {} : jsonHeaders) }, principal, remote_address }
    const reply = await way.relay(asked, body ?? stream, signal)
    if (!reply) return undefined
    const type = String(reply.headers['content-type'] ?? '')
    if (type !== '' && !type.startsWith('application/json')) {
      const { 'content-type': _type, ...rest } = reply.headers
      const kept = Object.entries(rest).map(([key, value]) => [key, String(value)])
      await this.sendBytes({ stream: reply.body, type, headers: Object.fromEntries(kept) as Record<string, string> })
      return reply.status
    }
    this.#send(reply.status, (await text(reply.body)) || undefined)
    return reply.status
  }

  cut(): void {
    // what was answered is with the caller already
  }
}

/** The path of a template with its values in it, encoded. */
export function fillPath(template: string, params: Readonly<Record<string, unknown>>): string {
  return template.replace(/\{(\+?)(\w+)\}/g, (_, plus: string, name: string) => {
    const value = String(params[name])
    return plus ? value.split('/').map(encodeURIComponent).join('/') : encodeURIComponent(value)
  })
}

/** `?a=1&b=2`, empty without values; arrays repeat their key. */
export function queryString(query: Readonly<Record<string, unknown>>): string {
  const search = new URLSearchParams() // half a character becomes a sign for one: it fails nothing
  for (const [key, value] of Object.entries(query)) for (const each of [value ?? []].flat()) search.append(key, String(each))
  const text = search.toString()
  return text === '' ? '' : `?${text}`
}
