/**
 * Answers over HTTP that break off: a request whose answer, or stream of events, ends or is cut without what it was sent for fails at once. The
 * library resumes streams whose events have ids; of others, and of those that cannot be resumed, it says nothing, and their requests would wait
 * for their whole limit. It goes on with what belongs to a cancelled request, too: that ends here.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { firstAbort } from '../../kernel/index.ts'
import { type RemoteFetch, withBody } from './remote.ts'

/** In the data of the error that such a request ends with. */
const mark = { brokeOff: true }

export const brokeOff = (error: unknown): boolean => (error as { readonly data?: unknown }).data === mark

/** What the library does by itself; its delays are in ms. */
export const reconnectionOptions = {
  maxRetries: 2,
  initialReconnectionDelay: 1000,
  maxReconnectionDelay: 30_000,
  reconnectionDelayGrowFactor: 1.5
}

type Id = string | number

class Request {
  readonly id: Id
  /** Of the last event of its stream that has one. */
  token: string | undefined
  /** How often its stream could not be resumed, one time after the other. */
  failures = 0
  /** Aborts when nobody waits for the answer any more. */
  readonly over = new AbortController()

  constructor(id: Id) {
    this.id = id
  }
}

export class BrokenAnswers {
  /** Without their answers. */
  readonly #open = new Map<Id, Request>()
  /** By the last event; also some that are over, until the library wants to resume them. */
  readonly #resumable = new Map<string, Request>()
  #transport: Transport | undefined

  /** What the transport fetches with. */
  over(fetch: RemoteFetch['fetch']): RemoteFetch['fetch'] {
    return async (url, init) => {
      const send = (request: Request, ended: () => unknown) => this.#send(fetch, url, init ?? {}, request, ended)
      if (init?.method === 'POST') {
        const { id } = JSON.parse(String(init.body)) as { readonly id?: Id }
        const request = id === undefined ? undefined : this.#open.get(id)
        return request ? await send(request, () => request.token === undefined && this.#fail(request)) : await fetch(url, init)
      }
      const request = this.#resumable.get(new Headers(init?.headers).get('last-event-id') ?? '')
      return request ? await this.#resume(request, () => send(request, () => undefined)) : await fetch(url, init)
    }
  }

  watch(transport: Transport): void {
    this.#transport = transport
    transport.onmessage = message => {
      if ('method' in message || message.id === undefined) return
      const { token } = this.#end(message.id) ?? {}
      if ('result' in message && token !== undefined) this.#resumable.delete(token) // the library resumes behind errors alone
    }
    const send = transport.send.bind(transport)
    transport.send = async (message, options) => {
      if (!('method' in message)) return await send(message, options)
      if (!('id' in message)) {
        await send(message, options).finally(() => {
          if (message.method === 'notifications/cancelled') this.#end(message.params?.requestId as Id)?.over.abort()
        })
        return
      }
      const request = new Request(message.id)
      this.#open.set(request.id, request)
      await send(message, { ...options, onresumptiontoken: token => this.#resumableFrom(request, token) }).catch((error: unknown) => {
        this.#end(request.id)
        throw error
      })
    }
  }

  #resumableFrom(request: Request, token: string): void {
    if (request.token !== undefined) this.#resumable.delete(request.token)
    request.token = token
    this.#resumable.set(token, request)
  }

  /** `ended`: the body is through, and what came with it was read. */
  async #send(
    fetch: RemoteFetch['fetch'],
    url: string | URL,
    init: RequestInit,
    request: Request,
    ended: () => unknown
  ): Promise<Response> {
    const { signal, end } = firstAbort(request.over.signal, ...(init.signal ? [init.signal] : []))
    const reply = await fetch(url, { ...init, signal }).catch((error: unknown) => {
      end()
      throw error
    })
    if (!reply.body) {
      end()
      return reply
    }
    const events = reply.headers.get('content-type')?.includes('text/event-stream')
    const through = () => {
      end()
      // What came is read within this pass of the loop.
      if (events) setImmediate(() => this.#open.get(request.id) === request && ended())
    }
    return withBody(reply, observed(reply.body, through))
  }

  /** 405: there is nothing to resume, which the library takes for an answer. */
  async #resume(request: Request, send: () => Promise<Response>): Promise<Response> {
    const forget = () => void this.#resumable.delete(request.token ?? '')
    const isOpen = () => this.#open.get(request.id) === request
    const failed = (last: boolean) => {
      if (!last && ++request.failures < reconnectionOptions.maxRetries) return
      forget()
      if (isOpen()) this.#fail(request)
    }
    if (!isOpen()) {
      forget()
      return new Response(null, { status: 405 })
    }
    const reply = await send().catch((error: unknown) => {
      failed(false)
      throw error
    })
    if (reply.ok) request.failures = 0
    else failed(reply.status === 405)
    return reply
  }

  #end(id: Id): Request | undefined {
    const request = this.#open.get(id)
    this.#open.delete(id)
    return request
  }

  #fail({ id }: Request): void {
    this.#transport?.onmessage?.({ jsonrpc: '2.0', id, error: { code: -32000, message: 'the answer broke off', data: mark } })
  }
}

/** `ended`: it was read to its end, broke off, or is not wanted. */
function observed(body: ReadableStream<Uint8Array>, ended: () => void): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const source = {
    async pull(controller: ReadableStreamDefaultController<Uint8Array>) {
      try {
        const { done, value } = await reader.read()
        if (!done) return controller.enqueue(value)
        controller.close()
      } catch (error) {
        controller.error(error)
      }
      ended()
    },
    async cancel(reason: unknown) {
      ended()
      await reader.cancel(reason)
    }
  }
  return new ReadableStream(source, { highWaterMark: 0 })
}
