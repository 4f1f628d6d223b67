/** One model request over a server-sent event stream: post, read the events, decode, and say at the end how it went. */
import { Readable } from 'node:stream'
import { yieldToLoop } from '../../kernel/index.ts'
import { foreignAnswer, statusError } from './errors.ts'
import { answerError, EventReader, type ReaderOptions, same } from './event-reader.ts'
import type { LlmError, LlmPart, ResolvedModel } from './request.ts'
import { isTransportError, transportError } from './transport-errors.ts'
import { readText, type Upstream, type UpstreamReply } from './upstream.ts'
import { isRecord, parseJson } from './wire-values.ts'

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
 * Sends the request and yields the parts of the answer; the last one is `finish` or `error`. After an abort it ends without one, with the
 * connection closed. Throws only what is no failure of the provider or the network.
 */
export async function* streamEvents(
  upstream: Upstream,
  { model, path, body, headers, ...options }: EventRequest,
  signal: AbortSignal
): AsyncGenerator<LlmPart, void, undefined> {
  const where = hostOf(model)
  let reply: UpstreamReply | undefined
  let reader: EventReader | undefined
  try {
    reply = await upstream.post(model, path, body, { accept: 'text/event-stream', ...headers }, signal)
    const answer = await opened(reply)
    if (!answer.streams) {
      yield* await unstreamed(answer, { ...options, headers: reply.headers, where })
      return
    }
    reader = new EventReader({ ...options, headers: reply.headers, where })
    // Stays open after the end mark, so that the connection can serve the next request.
    for await (const bytes of answer.body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
      for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
        for (const part of reader.feed(bytes.subarray(at, at + SLICE_BYTES))) {
          yield part
          const others = yieldToLoop() // fifty answers that arrive at once share the event loop
          if (others) await others
        }
        if (reader.over) return
        const others = yieldToLoop() // also where nothing but garbage arrives
        if (others) await others
      }
    }
    yield* reader.end()
  } catch (error) {
    if (signal.aborted) return
    if (!isTransportError(error)) throw error
    if (reader) yield* reader.broken(error)
    else yield { type: 'error', error: transportError(error, where, reply?.headers) }
  } finally {
    if (reply) release(reply.body)
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
  let first = ''
  while (first === '') {
    const { done, value } = await bytes.next()
    if (done) break
    read.push(value)
    first = Buffer.concat(read).toString('utf8').trim().slice(0, 1)
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
async function unstreamed({ status, headers, body }: Answer, options: ReaderOptions): Promise<readonly LlmPart[]> {
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
