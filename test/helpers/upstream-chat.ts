/** The chat completions wire format, written by the fake upstream: `data:` events of `chat.completion.chunk` objects. */
import { cut, type ScriptedTool, type UpstreamWire, type WireReply } from './upstream-wire.ts'

function event(reply: WireReply, fields: Record<string, unknown>): string {
  const chunk = { id: `chatcmpl-${reply.n}`, object: 'chat.completion.chunk', created: 1, model: reply.model, ...fields }
  return `data: ${JSON.stringify(chunk)}\n\n`
}

const delta = (reply: WireReply, value: Record<string, unknown>) =>
  event(reply, { choices: [{ index: 0, delta: value, finish_reason: null }] })

function callEvents(call: ScriptedTool, reply: WireReply): string[] {
  const index = reply.tool_count++
  const id = call.id === undefined ? `call_${index}` : call.id
  const args = typeof call.args === 'string' ? call.args : JSON.stringify(call.args)
  const part = (fields: Record<string, unknown>) => delta(reply, { tool_calls: [{ index, ...fields }] })
  return [
    part({ ...(id === null ? {} : { id }), type: 'function', function: { name: call.name, arguments: '' } }),
    ...cut(args, call.pieces ?? 2).map(piece => part({ function: { arguments: piece } }))
  ]
}

export const chatWire: UpstreamWire = {
  base_path: '/v1',
  content_type: 'text/event-stream; charset=utf-8',
  start: reply => [delta(reply, { role: 'assistant', content: '' })],
  text: (piece, reply) => delta(reply, { content: piece }),
  thinking: (piece, reply) => delta(reply, { reasoning_content: piece }),
  tools: (calls, reply) => {
    const rows = calls.map(call => callEvents(call, reply))
    const events: string[] = []
    for (let at = 0; rows.some(row => at < row.length); at++) {
      for (const row of rows) {
        const found = row[at]
        if (found !== undefined) events.push(found)
      }
    }
    return events
  },
  usage: ({ input, output, cached }, reply) => [
    event(reply, {
      choices: [],
      usage: {
        prompt_tokens: input,
        completion_tokens: output,
        total_tokens: input + output,
        ...(cached === undefined ? {} : { prompt_tokens_details: { cached_tokens: cached } })
      }
    })
  ],
  finish: (reason, reply) => [event(reply, { choices: [{ index: 0, delta: {}, finish_reason: reason }] })],
  done: () => ['data: [DONE]\n\n'],
  failure: (status, message) => ({ error: { message, type: 'upstream_error', code: status } })
}
