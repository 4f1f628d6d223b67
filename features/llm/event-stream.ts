/** One model request over a server-sent event stream: post, read the events, decode, and say at the end how it went. */
import { Readable } from 'node:stream'
import { isRecord, yieldToLoop } from '../../kernel/index.ts'
import { foreignAnswer, statusError } from './errors.ts'
import { answerError, EventReader, type ReaderOptions, same } from './event-reader.ts'
import { Incoming } from './incoming.ts'
import type { LlmError, LlmPart, ResolvedModel } from './request.ts'
import { isTransportError, transportError } from './transport-errors.ts'
import { readText, type Upstream, type UpstreamReply } from './upstream.ts'
import { parseJson } from './wire-values.ts'

/** Read in one go. */
const SLICE_BYTES = 16 * 1024

/** What is sent, and how the answer is read. */
export interface EventRequest extends Omit<ReaderOptions, 'headers' | 'where'> {
  readonly model: ResolvedModel
  /** Below the base URL of the model; may carry a query. */
  readonly path: string
  /** Of the request. */
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
}

/**
 * Sends the request when the first part is asked for, and answers with its parts; the last one is `finish` or `error`. After an abort it ends
 * without one, with the connection closed. Rejects only with what is no failure of the provider or the network.
 */
export function streamEvents(upstream: Upstream, request: EventRequest, signal: AbortSignal): AsyncIterableIterator<LlmPart> {
  return new EventStream(upstream, request, signal)
}

type Step = IteratorResult<LlmPart, undefined>
const ended: Step = { done: true, value: undefined }

/** Asked for one part at a time. An object of its own instead of a generator: each of thousands of parts passes through. */
class EventStream implements AsyncIterableIterator<LlmPart> {
  readonly #upstream: Upstream
  readonly #request: EventRequest
  readonly #signal: AbortSignal
  readonly #where: string
  #reply: UpstreamReply | undefined
  #body: Incoming | undefined
  #reader: EventReader | undefined
  /** Bytes that came and were not read yet. */
  #bytes: Uint8Array = new Uint8Array()
  /** Parts that were read and not asked for yet. */
  #parts: LlmPart[] = []
  /** No more than these will come. */
  #over = false

  constructor(upstream: Upstream, request: EventRequest, signal: AbortSignal) {
    this.#upstream = upstream
    this.#request = request
    this.#signal = signal
    this.#where = hostOf(request.model)
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  next(): Promise<Step> {
    const others = yieldToLoop() // fifty answers that arrive at once share the event loop
    return !others && this.#parts.length > 0 ? Promise.resolve(this.#taken()) : this.#more(others)
  }

  async return(): Promise<Step> {
    this.#parts = []
    this.#end()
    return ended
  }

  #taken(): Step {
    const value = this.#parts.shift()
    return value ? { done: false, value } : ended
  }

  async #more(others: Promise<void> | undefined): Promise<Step> {
    if (others) await others
    try {
      while (this.#parts.length === 0 && !this.#over) {
        this.#parts = await this.#read()
        const rest = yieldToLoop() // also where nothing but garbage arrives
        if (rest) await rest
      }
    } catch (error) {
      this.#end()
      if (this.#signal.aborted) return ended
      if (!isTransportError(error)) throw error
      const failed = () => ({ type: 'error', error: transportError(error, this.#where, this.#reply?.headers) }) as const
      this.#parts = this.#reader?.broken(error) ?? [failed()]
    }
    return this.#taken()
  }

  /** The next parts; perhaps none yet. */
  async #read(): Promise<LlmPart[]> {
    const reader = this.#reader
    if (!reader || !this.#body) return await this.#begin()
    if (this.#bytes.length === 0) {
      const bytes = this.#body.take() ?? (await this.#body.coming())
      if (!bytes) {
        this.#end()
        return reader.end()
      }
      this.#bytes = bytes
    }
    const parts = reader.feed(this.#bytes.subarray(0, SLICE_BYTES))
    this.#bytes = this.#bytes.subarray(SLICE_BYTES)
    if (reader.over) this.#end()
    return parts
  }

  /** Sends the request; all parts at once when the answer does not stream. */
  async #begin(): Promise<LlmPart[]> {
    const { model, path, body, headers, ...options } = this.#request
    const reply = await this.#upstream.post(model, path, body, { accept: 'text/event-stream', ...headers }, this.#signal)
    this.#reply = reply
    const answer = await opened(reply)
    if (this.#over) release(reply.body) // nobody waited for it
    if (this.#over) return []
    const reading = { ...options, headers: reply.headers, where: this.#where }
    if (answer.streams) {
      this.#reader = new EventReader(reading)
      this.#body = new Incoming(answer.body)
      return []
    }
    const parts = await unstreamed(answer, reading)
    this.#end()
    return parts
  }

  #end(): void {
    if (this.#over) return
    this.#over = true
    this.#body?.leave()
    if (this.#reply) release(this.#reply.body)
  }
}

/** An answer, and whether it may be an event stream. */
interface Answer extends UpstreamReply {
  readonly streams: boolean
}

/** Some gateways call every answer JSON or a page: then its first character says what it is. */
async function opened(reply: UpstreamReply): Promise<Answer> {
  if (reply.status < 200 || reply.status > 299) return { ...reply, streams: false }
  if (!/\b(json|html)\b/.test(reply.headers['content-type'] ?? '')) return { ...reply, streams: true }
  const bytes = reply.body.iterator({ destroyOnReturn: false }) as AsyncIterator<Uint8Array> & AsyncIterable<Uint8Array>
  const read: Uint8Array[] = []
  const utf8 = new TextDecoder()
  let first = ''
  // Some send blanks while they think; what is longer than a whole answer may be is none.
  for (let size = 0; first === '' && size < WHOLE_BYTES; ) {
    const { done, value } = await bytes.next()
    if (done) break
    read.push(value)
    size += value.length
    first = utf8.decode(value, { stream: true }).trim().slice(0, 1)
  }
  return { ...reply, body: Readable.from(chain(read, bytes)), streams: first !== '' && !'{["<'.includes(first) }
}

async function* chain(read: readonly Uint8Array[], rest: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
  yield* read
  yield* rest
}

/** Of an answer that came whole. */
const WHOLE_BYTES = 4 * 1024 * 1024

/** The parts of an answer that is no event stream: an error, or everything at once, from a server that does not stream. */
async function unstreamed({ status, headers, body }: Answer, options: ReaderOptions): Promise<LlmPart[]> {
  const { decoder, judge = same } = options
  const failed = (error: LlmError): LlmPart[] => [{ type: 'error', error }]
  if (status < 200 || status > 299) {
    const text = await readText(body)
    return failed(judge(statusError(status, text, headers), text))
  }
  const text = await readText(body, WHOLE_BYTES)
  const value = parseJson(text)
  const error = answerError(value, text, options)
  if (error) return failed(error)
  const reader = new EventReader(options)
  const events = Array.isArray(value) ? value : isRecord(value) ? [value] : []
  const parts = events.flatMap(event => reader.feed(Buffer.from(`data: ${JSON.stringify(event)}\n\n`)))
  if (reader.over || decoder.finished) return [...parts, ...reader.end()]
  return failed(foreignAnswer(headers['content-type'] ?? '', text, headers))
}

const REST_MS = 250

/** Lets the rest of a finished response pass for a moment, so that its connection can serve the next request; then closes it. */
function release(body: Readable): void {
  if (body.closed) return
  const timer = setTimeout(() => body.destroy(), REST_MS).unref()
  body.on('close', () => clearTimeout(timer))
  // The answer is complete or has failed already; what happens to its connection now changes nothing.
  body.on('error', () => undefined)
  body.resume()
}

function hostOf(model: ResolvedModel): string {
  return URL.canParse(model.base_url ?? '') ? new URL(model.base_url!).host : model.provider_id
}
