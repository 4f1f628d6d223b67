/** One model request over a server-sent event stream: post, read the events, decode, and say at the end how it went. */
import type { Readable } from 'node:stream'
import { createParser } from 'eventsource-parser'
import { breathe } from '../../kernel/index.ts'
import { formatError, isTransportError, statusError, streamError, traceOf, transportError } from './errors.ts'
import type { LlmError, LlmPart, ResolvedModel } from './service.ts'
import { readText, type Upstream, type UpstreamReply } from './upstream.ts'

/** Characters of one event, bytes of one whole response. */
export interface StreamLimits {
  readonly event: number
  readonly response: number
}

const defaultLimits: StreamLimits = { event: 16 * 1024 * 1024, response: 128 * 1024 * 1024 }

/** Turns the events of one response into parts. */
export interface EventDecoder {
  /** True once the answer is whole, even when the connection breaks off now. */
  readonly finished: boolean
  /** Appends the parts of one event. True: nothing that matters follows. */
  feed(event: object, parts: LlmPart[]): boolean | undefined
  /** Last parts of a whole answer; `finish` is the very last one. */
  end(trace_id: string | undefined): LlmPart[]
}

export interface EventRequest {
  readonly model: ResolvedModel
  /** Below the base URL of the model; may carry a query. */
  readonly path: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: unknown
  readonly decoder: EventDecoder
  /** The error that an event reports, if it reports one. Default: its `error` field. */
  readonly failureOf?: (event: object) => unknown
  /** Corrects the class of an error that the provider stated in words of its own; `said` is its JSON (or text). */
  readonly judge?: (error: LlmError, said: string) => LlmError
  readonly limits?: StreamLimits
}

/**
 * Sends the request and yields the parts of the answer; the last one is `finish` or `error`. After an abort it ends without one, with the
 * connection closed. Throws only what is no failure of the provider or the network.
 */
export async function* streamEvents(
  upstream: Upstream,
  request: EventRequest,
  signal: AbortSignal
): AsyncGenerator<LlmPart, void, undefined> {
  const { model, path, body, decoder } = request
  let reply: UpstreamReply | undefined
  try {
    reply = await upstream.post(model, path, body, { accept: 'text/event-stream', ...request.headers }, signal)
    const refused = await refusal(reply, request)
    if (refused) {
      yield { type: 'error', error: refused }
      return
    }
    yield* read(reply, request)
  } catch (error) {
    if (signal.aborted) return
    if (!isTransportError(error)) throw error
    // Cut after the finish reason: the answer is whole, only the usage may be missing.
    if (decoder.finished) yield* decoder.end(traceOf(reply?.headers ?? {}).trace_id)
    else yield { type: 'error', error: transportError(error, hostOf(model), reply?.headers) }
  } finally {
    if (reply) release(reply.body)
  }
}

/** The error of an answer that is no event stream. */
async function refusal({ status, headers, body }: UpstreamReply, { judge = same }: EventRequest): Promise<LlmError | undefined> {
  if (status < 200 || status > 299) {
    const text = await readText(body)
    return judge(statusError(status, text, headers), text)
  }
  const type = headers['content-type'] ?? ''
  if (/\bjson\b/.test(type)) {
    const text = await readText(body)
    const value = parse(text)
    const first = (Array.isArray(value) ? value[0] : value) as { error?: unknown } | null | undefined
    if (first?.error) return judge(streamError(first.error, headers), text)
  } else if (!/\bhtml\b/.test(type)) return undefined
  return formatError(`the provider answered with ${type} instead of an event stream`, headers)
}

async function* read(
  { body, headers }: UpstreamReply,
  { decoder, failureOf = errorField, judge = same, limits = defaultLimits }: EventRequest
): AsyncGenerator<LlmPart, void, undefined> {
  let parts: LlmPart[] = []
  let over = false
  let size = 0
  const fail = (error: LlmError) => {
    over = true
    parts.push({ type: 'error', error })
  }
  const finish = () => {
    over = true
    parts.push(...decoder.end(traceOf(headers).trace_id))
  }
  const parser = createParser({
    maxBufferSize: limits.event,
    onEvent({ data }) {
      if (over || data === '') return
      if (data === '[DONE]') return finish()
      const event = parse(data)
      if (typeof event !== 'object' || event === null)
        return fail(formatError('the provider sent a stream event that is not JSON', headers))
      const failure = failureOf(event)
      if (failure) fail(judge(streamError(failure, headers), data))
      else if (decoder.feed(event, parts)) finish()
    },
    onError({ type }) {
      // Unknown lines are allowed by the event stream format; only the size limit ends the stream.
      if (type === 'max-buffer-size-exceeded') fail(formatError('the provider sent an oversized stream event', headers, false))
    }
  })
  const utf8 = new TextDecoder()
  // Stays open after the end mark, so that the connection can serve the next request.
  for await (const bytes of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    size += bytes.length
    if (size > limits.response) fail(formatError('the provider sent an oversized response', headers, false))
    else parser.feed(utf8.decode(bytes, { stream: true }))
    const ready = parts
    parts = []
    for (const part of ready) {
      yield part
      const others = breathe() // fifty answers that arrive at once take turns
      if (others) await others
    }
    if (over) return
  }
  if (decoder.finished) yield* decoder.end(traceOf(headers).trace_id)
  else yield { type: 'error', error: transportError(undefined, 'the provider', headers) }
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

const same = (error: LlmError): LlmError => error
const errorField = (event: object): unknown => (event as { error?: unknown }).error

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // the caller reports what is not JSON
  }
}

function hostOf(model: ResolvedModel): string {
  return URL.canParse(model.base_url ?? '') ? new URL(model.base_url!).host : model.provider_id
}
