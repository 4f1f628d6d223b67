/** The responses wire format, written by the fake upstream: numbered events, output items by index, one last event with everything. */
import { cut, type ScriptedTool, type ScriptedUsage, type UpstreamWire, type WireReply } from './upstream-wire.ts'

interface State {
  sequence?: number
  /** Index of the item that is open or comes next. */
  index?: number
  open?: { readonly kind: 'message' | 'reasoning'; text: string } | undefined
  reason?: string
  usage?: ScriptedUsage
}

const state = (reply: WireReply) => reply.state as State

function event(reply: WireReply, type: string, fields: Record<string, unknown>): string {
  const at = state(reply)
  const sequence_number = at.sequence ?? 0
  at.sequence = sequence_number + 1
  return `event: ${type}\ndata: ${JSON.stringify({ type, sequence_number, ...fields })}\n\n`
}

function response(reply: WireReply, fields: Record<string, unknown>) {
  return { id: `resp_${reply.n}`, object: 'response', model: reply.model, error: null, incomplete_details: null, usage: null, ...fields }
}

function item(reply: WireReply, kind: 'message' | 'reasoning', text: string | undefined): Record<string, unknown> {
  const id = `${kind === 'message' ? 'msg' : 'rs'}_${reply.n}_${state(reply).index ?? 0}`
  if (kind === 'message') {
    const content = text === undefined ? [] : [{ type: 'output_text', text, annotations: [] }]
    return { id, type: 'message', role: 'assistant', status: text === undefined ? 'in_progress' : 'completed', content }
  }
  return {
    id,
    type: 'reasoning',
    summary: text === undefined ? [] : [{ type: 'summary_text', text }],
    ...(text === undefined ? {} : { encrypted_content: `enc-${reply.n}-${state(reply).index ?? 0}` })
  }
}

function close(reply: WireReply): string[] {
  const at = state(reply)
  const { open } = at
  if (!open) return []
  const output_index = at.index ?? 0
  const done = event(reply, 'response.output_item.done', { output_index, item: item(reply, open.kind, open.text) })
  at.open = undefined
  at.index = output_index + 1
  return [done]
}

function piece(kind: 'message' | 'reasoning', delta: string, reply: WireReply): string {
  const at = state(reply)
  const events: string[] = []
  if (at.open?.kind !== kind) {
    events.push(...close(reply))
    at.open = { kind, text: '' }
    const added = item(reply, kind, undefined)
    const place = { output_index: at.index ?? 0, item_id: added.id }
    events.push(event(reply, 'response.output_item.added', { output_index: at.index ?? 0, item: added }))
    if (kind === 'message') {
      const part = { type: 'output_text', text: '', annotations: [] }
      events.push(event(reply, 'response.content_part.added', { ...place, content_index: 0, part }))
    } else
      events.push(
        event(reply, 'response.reasoning_summary_part.added', { ...place, summary_index: 0, part: { type: 'summary_text', text: '' } })
      )
  }
  if (at.open) at.open.text += delta
  const type = kind === 'message' ? 'response.output_text.delta' : 'response.reasoning_summary_text.delta'
  events.push(event(reply, type, { output_index: at.index ?? 0, delta }))
  return events.join('')
}

/** Calls that stream side by side: all begin, then their pieces take turns, then all end. */
function callEvents(calls: readonly ScriptedTool[], reply: WireReply): string[] {
  const at = state(reply)
  const events = close(reply)
  const rows = calls.map(call => {
    const output_index = at.index ?? 0
    at.index = output_index + 1
    const args = typeof call.args === 'string' ? call.args : JSON.stringify(call.args)
    const call_id = call.id === undefined ? `call_${reply.tool_count}` : call.id
    reply.tool_count++
    const id = `fc_${reply.n}_${output_index}`
    const fields = { id, type: 'function_call', name: call.name, ...(call_id === null ? {} : { call_id }) }
    const item = { ...fields, arguments: '', status: 'in_progress' }
    events.push(event(reply, 'response.output_item.added', { output_index, item }))
    return { output_index, id, args, fields, pieces: cut(args, call.pieces ?? 2) }
  })
  for (let n = 0; rows.some(row => n < row.pieces.length); n++) {
    for (const { output_index, id, pieces } of rows) {
      const delta = pieces[n]
      if (delta !== undefined) events.push(event(reply, 'response.function_call_arguments.delta', { output_index, item_id: id, delta }))
    }
  }
  for (const { output_index, id, args, fields } of rows) {
    events.push(event(reply, 'response.function_call_arguments.done', { output_index, item_id: id, arguments: args }))
    events.push(event(reply, 'response.output_item.done', { output_index, item: { ...fields, arguments: args, status: 'completed' } }))
  }
  return events
}

const incomplete: Readonly<Record<string, string>> = { length: 'max_output_tokens', content_filter: 'content_filter' }

export const responsesWire: UpstreamWire = {
  base_path: '/v1',
  content_type: 'text/event-stream; charset=utf-8',
  start: reply => [
    event(reply, 'response.created', { response: response(reply, { status: 'in_progress' }) }),
    event(reply, 'response.in_progress', { response: response(reply, { status: 'in_progress' }) })
  ],
  text: (text, reply) => piece('message', text, reply),
  thinking: (text, reply) => piece('reasoning', text, reply),
  tools: callEvents,
  usage: (usage, reply) => {
    state(reply).usage = usage
    return []
  },
  finish: (reason, reply) => {
    state(reply).reason = reason
    return close(reply)
  },
  done: reply => {
    const { reason = 'stop', usage = { input: 10, output: 5 } } = state(reply)
    const { input, output, cached = 0 } = usage
    const figures = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output
    }
    const why = reason === 'stop' || reason === 'tool_calls' ? undefined : (incomplete[reason] ?? reason)
    const status = why === undefined ? 'completed' : 'incomplete'
    const details = why === undefined ? {} : { incomplete_details: { reason: why } }
    return [...close(reply), event(reply, `response.${status}`, { response: response(reply, { status, ...details, usage: figures }) })]
  },
  failure: (status, message) => ({
    error: { message, type: status < 500 ? 'invalid_request_error' : 'server_error', param: null, code: null }
  })
}
