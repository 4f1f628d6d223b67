/** One request over the chat completions wire: post, read the event stream, decode, and say at the end how it went. */
import type { Readable } from 'node:stream'
import { createParser } from 'eventsource-parser'
import {
  formatError,
  isTransportError,
  type LlmAdapter,
  type LlmPart,
  type LlmRequest,
  type ResolvedModel,
  readText,
  statusError,
  streamError,
  traceOf,
  transportError,
  type Upstream,
  type UpstreamReply
} from '../llm/index.ts'
import { ChatDecoder } from './decode.ts'
import type { Dialect } from './dialect.ts'
import { encode } from './encode.ts'

/** Characters of one event, bytes of one whole response. */
export interface StreamLimits {
  readonly event: number
  readonly response: number
}

const defaultLimits: StreamLimits = { event: 16 * 1024 * 1024, response: 128 * 1024 * 1024 }
const REMEMBERED_MODELS = 256

/** The adapter of a dialect. It remembers per model in which field the upstream carries reasoning. */
export function chatAdapter(dialect: Dialect, upstream: Upstream, limits: StreamLimits = defaultLimits): LlmAdapter {
  const reasoningKeys = new Map<string, string>()
  const place = (model: ResolvedModel) => `${model.base_url} ${model.name}`

  async function* stream(request: LlmRequest, signal: AbortSignal): AsyncGenerator<LlmPart, void, undefined> {
    const { model } = request
    const known = model.reasoning_key ?? reasoningKeys.get(place(model))
    const headers = { accept: 'text/event-stream', ...(model.api_key !== undefined && { authorization: `Bearer ${model.api_key}` }) }
    const decoder = new ChatDecoder(known)
    let reply: UpstreamReply | undefined
    try {
      const body = encode(request, dialect, known ?? dialect.reasoning_key)
      reply = await upstream.post(model, '/chat/completions', body, headers, signal)
      const refused = await refusal(reply)
      if (refused) {
        yield refused
        return
      }
      yield* read(reply, decoder, limits)
    } catch (error) {
      if (signal.aborted) return
      if (!isTransportError(error)) throw error
      // Cut after the finish reason: the answer is whole, only the usage may be missing.
      if (decoder.finished) yield* decoder.end(traceOf(reply?.headers ?? {}).trace_id)
      else yield { type: 'error', error: transportError(error, hostOf(model), reply?.headers) }
    } finally {
      const { reasoning_key } = decoder
      if (reasoning_key !== undefined && known === undefined) remember(reasoningKeys, place(model), reasoning_key)
      if (reply) release(reply.body)
    }
  }

  return { protocol: dialect.protocol, needs_credential: true, needs_base_url: true, stream }
}

/** The error of an answer that is no event stream. */
async function refusal({ status, headers, body }: UpstreamReply): Promise<LlmPart | undefined> {
  if (status < 200 || status > 299) return { type: 'error', error: statusError(status, await readText(body), headers) }
  const type = headers['content-type'] ?? ''
  if (/\bjson\b/.test(type)) {
    const text = await readText(body)
    const value = parse(text) as { error?: unknown } | undefined
    if (value?.error) return { type: 'error', error: streamError(value.error, headers) }
  } else if (!/\bhtml\b/.test(type)) return undefined
  return { type: 'error', error: formatError(`the provider answered with ${type} instead of an event stream`, headers) }
}

async function* read(
  { body, headers }: UpstreamReply,
  decoder: ChatDecoder,
  limits: StreamLimits
): AsyncGenerator<LlmPart, void, undefined> {
  let parts: LlmPart[] = []
  let over = false
  let size = 0
  const fail = (part: LlmPart) => {
    over = true
    parts.push(part)
  }
  const parser = createParser({
    maxBufferSize: limits.event,
    onEvent({ data }) {
      if (over || data === '') return
      if (data === '[DONE]') {
        over = true
        parts.push(...decoder.end(traceOf(headers).trace_id))
        return
      }
      const chunk = parse(data)
      if (typeof chunk !== 'object' || chunk === null) {
        fail({ type: 'error', error: formatError('the provider sent a stream event that is not JSON', headers) })
        return
      }
      const { error } = chunk as { error?: unknown }
      if (error) fail({ type: 'error', error: streamError(error, headers) })
      else decoder.feed(chunk, parts)
    },
    onError({ type }) {
      // Unknown lines are allowed by the event stream format; only the size limit ends the stream.
      if (type === 'max-buffer-size-exceeded')
        fail({ type: 'error', error: formatError('the provider sent an oversized stream event', headers, false) })
    }
  })
  const utf8 = new TextDecoder()
  // Stays open after the end mark, so that the connection can serve the next request.
  for await (const bytes of body.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>) {
    size += bytes.length
    if (size > limits.response) fail({ type: 'error', error: formatError('the provider sent an oversized response', headers, false) })
    else parser.feed(utf8.decode(bytes, { stream: true }))
    const ready = parts
    parts = []
    for (const part of ready) yield part
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

function remember(keys: Map<string, string>, place: string, key: string): void {
  if (keys.size >= REMEMBERED_MODELS) keys.delete(keys.keys().next().value ?? '')
  keys.set(place, key)
}

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
