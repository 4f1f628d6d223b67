/** The generate-content wire format, written by the fake upstream: whole objects as events, no names, no end mark, CRLF. */
import type { ScriptedTool, ScriptedUsage, UpstreamWire, WireReply } from './upstream-wire.ts'

interface State {
  signed?: boolean
  reason?: string
  usage?: ScriptedUsage
}

const state = (reply: WireReply) => reply.state as State

function chunk(
  reply: WireReply,
  parts: readonly object[],
  fields: Record<string, unknown> = {},
  candidate: Record<string, unknown> = {}
): string {
  const content = { role: 'model', parts }
  const value = { candidates: [{ content, index: 0, ...candidate }], ...fields, modelVersion: 'm-001', responseId: `resp-${reply.n}` }
  return `data: ${JSON.stringify(value)}\r\n\r\n`
}

/** The first call of a response carries the signature of the thoughts before it. */
function callPart(call: ScriptedTool, reply: WireReply): object {
  const id = call.id === undefined ? `call_${reply.tool_count}` : call.id
  reply.tool_count++
  const args: unknown = typeof call.args === 'string' ? JSON.parse(call.args) : call.args
  const part = { functionCall: { ...(id === null ? {} : { id }), name: call.name, args } }
  if (state(reply).signed) return part
  state(reply).signed = true
  return { ...part, thoughtSignature: `sig-${reply.n}` }
}

const words: Readonly<Record<string, string>> = { stop: 'STOP', tool_calls: 'STOP', length: 'MAX_TOKENS', content_filter: 'SAFETY' }
const statuses: Readonly<Record<number, string>> = {
  400: 'INVALID_ARGUMENT',
  401: 'UNAUTHENTICATED',
  403: 'PERMISSION_DENIED',
  429: 'RESOURCE_EXHAUSTED',
  503: 'UNAVAILABLE'
}

export const genaiWire: UpstreamWire = {
  base_path: '',
  content_type: 'text/event-stream',
  start: () => [],
  text: (text, reply) => chunk(reply, [{ text }]),
  thinking: (text, reply) => chunk(reply, [{ text, thought: true }]),
  tools: (calls, reply) => calls.map(call => chunk(reply, [callPart(call, reply)])),
  usage: (usage, reply) => {
    state(reply).usage = usage
    return []
  },
  finish: (reason, reply) => {
    state(reply).reason = words[reason] ?? reason
    return []
  },
  done: reply => {
    const { reason, signed, usage = { input: 10, output: 5 } } = state(reply)
    const { input, output, cached } = usage
    const usageMetadata = {
      promptTokenCount: input,
      candidatesTokenCount: output,
      totalTokenCount: input + output,
      ...(cached === undefined ? {} : { cachedContentTokenCount: cached })
    }
    const last = signed ? { text: '' } : { text: '', thoughtSignature: `sig-${reply.n}` }
    return [chunk(reply, [last], { usageMetadata }, { finishReason: reason })]
  },
  failure: (status, message) => ({ error: { code: status, message, status: statuses[status] ?? 'INTERNAL' } })
}
