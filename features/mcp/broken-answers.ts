/**
 * Answers over HTTP that break off: a request whose stream of events ends, or is cut, without its answer fails at once. The library resumes
 * streams whose events have ids; of others it says nothing, and their requests would wait for their whole limit.
 */
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { type RemoteFetch, withBody } from './remote.ts'

/** In the data of the error that such a request ends with. */
const mark = { brokeOff: true }

export const brokeOff = (error: unknown): boolean => (error as { readonly data?: unknown }).data === mark

type Id = string | number

export class BrokenAnswers {
  /** Requests whose answer has not begun. */
  readonly #sent = new Map<Id, { resumable: boolean }>()
  #transport: Transport | undefined

  /** What the transport fetches with. */
  over(fetch: RemoteFetch['fetch']): RemoteFetch['fetch'] {
    return async (url, init) => {
      const reply = await fetch(url, init)
      if (!reply.body || init?.method !== 'POST' || !reply.headers.get('content-type')?.includes('text/event-stream')) return reply
      const { id } = JSON.parse(String(init.body)) as { readonly id?: Id }
      const request = id === undefined ? undefined : this.#sent.get(id)
      if (id === undefined || !request) return reply
      const ended = () => {
        // What came is read within this pass of the loop; who has an answer by then does not hear of this.
        setImmediate(() => request.resumable || this.#fail(id))
      }
      return withBody(reply, ReadableStream.from(untilEnd(reply.body, ended)))
    }
  }

  watch(transport: Transport): void {
    this.#transport = transport
    const send = transport.send.bind(transport)
    transport.send = async (message, options) => {
      if (!('method' in message && 'id' in message)) return await send(message, options)
      const request = { resumable: false }
      const onresumptiontoken = () => {
        request.resumable = true
      }
      this.#sent.set(message.id, request)
      try {
        await send(message, { ...options, onresumptiontoken })
      } finally {
        this.#sent.delete(message.id)
      }
    }
  }

  #fail(id: Id): void {
    this.#transport?.onmessage?.({ jsonrpc: '2.0', id, error: { code: -32000, message: 'the answer broke off', data: mark } })
  }
}

async function* untilEnd(body: ReadableStream<Uint8Array>, ended: () => void): AsyncGenerator<Uint8Array> {
  try {
    yield* body
  } finally {
    ended()
  }
}
