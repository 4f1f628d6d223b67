/**
 * Line model: a third-party model adapter. Its servers take one JSON object and answer with one per line.
 *
 * A provider of `type = "lines"` in `config.toml` uses it. `POST <base_url>/generate` with `{ model, system, messages, tools }`; the lines are
 * `{ "say": text }`, `{ "call": { "id", "name", "arguments" } }`, and last `{ "end": "stop" | "length", "tokens": [input, output] }`.
 */
import type { Readable } from 'node:stream'
import {
  createUpstream,
  formatError,
  type LlmAdapter,
  LlmAdapters,
  type LlmPart,
  listOf,
  parseJson,
  readText,
  recordOf,
  statusError,
  stringOf,
  tokenCount,
  transportError,
  type Upstream
} from '../../features/llm/index.ts'
import { definePack, yieldToLoop } from '../../kernel/index.ts'

const lineBytes = 1_048_576

const linesAdapter = (upstream: Upstream): LlmAdapter => ({
  protocol: 'lines',
  needs_credential: true,
  needs_base_url: true,
  // Never rejects: what goes wrong is the last part. After an abort it just ends.
  async *stream({ model, system, messages, tools }, signal): AsyncIterable<LlmPart> {
    const where = URL.canParse(model.base_url ?? '') ? new URL(model.base_url!).host : model.provider_id
    let body: Readable | undefined
    try {
      const headers = { authorization: `Bearer ${model.api_key}` }
      const reply = await upstream.post(model, '/generate', { model: model.name, system, messages, tools }, headers, signal)
      body = reply.body
      if (reply.status !== 200) {
        yield { type: 'error', error: statusError(reply.status, await readText(body), reply.headers) }
        return
      }
      let called = false
      for await (const line of linesOf(body)) {
        const said = recordOf(parseJson(line))
        const call = recordOf(said.call)
        if (typeof said.say === 'string') yield { type: 'text', text: said.say }
        else if (said.call !== undefined) {
          called = true
          const id = stringOf(call.id)
          yield { type: 'tool_call', id, name: stringOf(call.name) }
          yield { type: 'tool_arguments', id, text: JSON.stringify(call.arguments ?? {}) }
        } else if (typeof said.end === 'string') {
          const [input, output] = listOf(said.tokens)
          yield {
            type: 'usage',
            usage: { inputOther: tokenCount(input), output: tokenCount(output), inputCacheRead: 0, inputCacheCreation: 0 }
          }
          yield { type: 'finish', reason: said.end === 'length' ? 'truncated' : called ? 'tool_calls' : 'completed', raw_reason: said.end }
          return
        } else {
          yield { type: 'error', error: formatError(`${where} sent a line that means nothing`, reply.headers) }
          return
        }
      }
      yield { type: 'error', error: formatError(`the answer of ${where} broke off`, reply.headers) }
    } catch (error) {
      if (!signal.aborted) yield { type: 'error', error: transportError(error, where) }
    } finally {
      body?.destroy()
    }
  }
})

/** The lines of a body as they come; throws when one has no end. */
async function* linesOf(body: Readable): AsyncIterable<string> {
  let open = ''
  for await (const text of body.setEncoding('utf8') as AsyncIterable<string>) {
    const lines = (open + text).split('\n')
    open = lines.pop() ?? ''
    if (open.length > lineBytes) throw new Error('a line is too long')
    for (const line of lines) if (line.trim() !== '') yield line
    const others = yieldToLoop() // answers that arrive side by side share the event loop
    if (others) await others
  }
  if (open.trim() !== '') yield open
}

export default definePack({
  name: 'line-model',
  description: 'A model adapter for servers that answer in lines of JSON',
  setup(ctx) {
    const upstream = createUpstream() // proxies, the offline switch and time limits of the server hold for it
    ctx.own(() => upstream.close())
    ctx.contribute(LlmAdapters, linesAdapter(upstream))
  }
})
