/** What a handler gets: values, request facts and a signal that costs nothing until it is read. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { Readable } from 'node:stream'
import { anonymous, type Principal } from '../access/principal.ts'
import type { Work } from '../lifecycle/activity.ts'
import type { RequestInfo } from '../pack.ts'

/** Facts of one request from its first byte on. */
export class Exchange implements RequestInfo {
  readonly id: string
  readonly raw: IncomingMessage
  /** Target as received, before normalisation. */
  readonly url: string
  /** Nobody until the gate has found out. */
  principal: Principal = anonymous
  readonly began = performance.now()

  constructor(id: string, raw: IncomingMessage) {
    this.id = id
    this.raw = raw
    this.url = raw.url ?? ''
  }

  get method(): string {
    return this.raw.method ?? ''
  }

  get headers(): IncomingHttpHeaders {
    return this.raw.headers
  }

  get remote_address(): string | null {
    return this.raw.socket.remoteAddress ?? null
  }

  get stream(): Readable {
    return this.raw
  }
}

export class HandlerInput {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly request: Exchange
  readonly #work: Work
  readonly #res: ServerResponse
  #abort: AbortController | undefined

  constructor(values: { params: unknown; query: unknown; body: unknown }, request: Exchange, res: ServerResponse, work: Work) {
    this.params = values.params
    this.query = values.query
    this.body = values.body
    this.request = request
    this.#res = res
    this.#work = work
  }

  /** Aborts when the client goes away before the reply is complete, or when the pack unloads. */
  get signal(): AbortSignal {
    if (this.#abort) return this.#abort.signal
    this.#abort = new AbortController()
    if (this.#work.signal.aborted) this.#unloaded()
    else if (this.#res.destroyed) this.#gone()
    else {
      this.#work.signal.addEventListener('abort', this.#unloaded)
      this.#res.once('close', this.#gone)
    }
    return this.#abort.signal
  }

  /** The reply is complete: nothing aborts any more. */
  close(): void {
    if (!this.#abort) return
    this.#work.signal.removeEventListener('abort', this.#unloaded)
    this.#res.off('close', this.#gone)
  }

  readonly #unloaded = () => this.#abort?.abort(this.#work.signal.reason)
  readonly #gone = () => {
    if (!this.#res.writableFinished) this.#abort?.abort(new Error('the client is gone'))
  }
}
