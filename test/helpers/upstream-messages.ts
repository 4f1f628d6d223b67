/** The messages wire format, written by the fake upstream: named events, content blocks by index, stop reason and usage at the end. */
import { cut, type ScriptedTool, type ScriptedUsage, type UpstreamWire, type WireReply } from './upstream-wire.ts'

interface State {
  /** Kind of the block that is open. */
  open?: string | undefined
  index?: number
  reason?: string
  usage?: ScriptedUsage
}

const state = (reply: WireReply) => reply.state as State

function event(type: string, fields: Record<string, unknown>): string {
  return `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`
}

/** Closes the open block, a thinking block with its signature. */
function close(reply: WireReply): string[] {
  const at = state(reply)
  if (at.open === undefined) return []
  const { index = 0, open } = at
  at.open = undefined
  at.index = index + 1
  const signature = event('content_block_delta', { index, delta: { type: 'signature_delta', signature: `sig-${reply.n}-${index}` } })
  return [...(open === 'thinking' ? [signature] : []), event('content_block_stop', { index })]
}

function begin(kind: string, block: Record<string, unknown>, reply: WireReply): string[] {
  const at = state(reply)
  const closed = close(reply)
  at.open = kind
  return [...closed, event('content_block_start', { index: at.index ?? 0, content_block: { type: kind, ...block } })]
}

const delta = (fields: Record<string, unknown>, reply: WireReply) =>
  event('content_block_delta', { index: state(reply).index ?? 0, delta: fields })

function piece(kind: 'text' | 'thinking', text: string, reply: WireReply): string {
  const begun = state(reply).open === kind ? [] : begin(kind, kind === 'text' ? { text: '' } : { thinking: '', signature: '' }, reply)
  return [...begun, delta({ type: `${kind}_delta`, [kind]: text }, reply)].join('')
}

function callEvents(call: ScriptedTool, reply: WireReply): string[] {
  const id = call.id === undefined ? `toolu_${reply.tool_count}` : call.id
  reply.tool_count++
  const args = typeof call.args === 'string' ? call.args : JSON.stringify(call.args)
  return [
    ...begin('tool_use', { ...(id === null ? {} : { id }), name: call.name, input: {} }, reply),
    ...cut(args, call.pieces ?? 2).map(partial_json => delta({ type: 'input_json_delta', partial_json }, reply)),
    ...close(reply)
  ]
}

const words: Readonly<Record<string, string>> = {
  stop: 'end_turn',
  tool_calls: 'tool_use',
  length: 'max_tokens',
  content_filter: 'refusal'
}
const kinds: Readonly<Record<number, string>> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  429: 'rate_limit_error',
  529: 'overloaded_error'
}

export const messagesWire: UpstreamWire = {
  base_path: '',
  content_type: 'text/event-stream; charset=utf-8',
  start: reply => [
    event('message_start', {
      message: {
        id: `msg_${reply.n}`,
        type: 'message',
        role: 'assistant',
        model: reply.model,
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 }
      }
    }),
    event('ping', {})
  ],
  text: (text, reply) => piece('text', text, reply),
  thinking: (text, reply) => piece('thinking', text, reply),
  tools: (calls, reply) => calls.flatMap(call => callEvents(call, reply)),
  usage: (usage, reply) => {
    state(reply).usage = usage
    return []
  },
  finish: (reason, reply) => {
    state(reply).reason = words[reason] ?? reason
    return close(reply)
  },
  done: reply => {
    const { reason, usage = { input: 10, output: 5 } } = state(reply)
    const { input, output, cached = 0 } = usage
    const figures = {
      input_tokens: input - cached,
      cache_creation_input_tokens: 0,
      cache_read_input_tokens: cached,
      output_tokens: output
    }
    return [
      ...close(reply),
      event('message_delta', { delta: { stop_reason: reason, stop_sequence: null }, usage: figures }),
      event('message_stop', {})
    ]
  },
  failure: (status, message) => ({ type: 'error', error: { type: kinds[status] ?? 'api_error', message }, request_id: 'req_1' })
}
