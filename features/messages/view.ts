/** The message object of the wire, and pages of messages. Pure. */
import type { History, HistoryMessage, WirePart } from '../history/index.ts'
import type { MessageObject } from './contract.ts'

/** The last `last` messages (default all), oldest first. `created_at` rises strictly. */
export function messageObjects(messages: readonly HistoryMessage[], session_id: string, last = messages.length): MessageObject[] {
  let before = 0
  const out: MessageObject[] = []
  for (const [index, message] of messages.entries()) {
    before = Math.max(before + 1, Date.parse(message.created_at))
    if (index >= messages.length - last) out.push(messageObject(message, session_id, new Date(before).toISOString()))
  }
  return out
}

function messageObject(message: HistoryMessage, session_id: string, created_at: string): MessageObject {
  return {
    id: message.id,
    session_id,
    role: message.role,
    content: contentOf(message),
    created_at,
    ...(message.prompt_id === undefined ? {} : { prompt_id: message.prompt_id }),
    ...(message.origin ? { metadata: { origin: message.origin } } : {})
  }
}

/** The message of a prompt that was announced and whose turn has not begun: clients know it, so a rebuilt one must, too. */
export function startingMessage(history: Pick<History, 'prompt'> | undefined, active: string | undefined): HistoryMessage[] {
  const prompt = active === undefined ? undefined : history?.prompt(active)
  if (prompt?.status !== 'queued') return []
  const { prompt_id, content, created_at, origin = { kind: 'user' } } = prompt
  return [{ id: prompt_id, role: 'user', created_at, prompt_id, content, origin }]
}

/** Assistant: thinking, then text, then tool_use. A tool message is its result. */
function contentOf(message: HistoryMessage): WirePart[] {
  if (message.role === 'tool') {
    return [
      {
        type: 'tool_result',
        tool_call_id: message.tool_call_id ?? '',
        output: outputOf(message.content),
        ...(message.is_error ? { is_error: true } : {})
      }
    ]
  }
  if (message.role !== 'assistant') return [...message.content]
  // A part that is a signature alone is for the provider.
  const thinking = message.content.filter(part => part.type === 'thinking' && part.thinking !== '')
  const calls = message.tool_calls?.map(call => ({
    type: 'tool_use',
    tool_call_id: call.id,
    tool_name: call.name,
    input: inputOf(call.arguments)
  }))
  // So is the signature of a text.
  const others = message.content.flatMap(({ signature: _, ...part }) => (part.type === 'thinking' ? [] : [part]))
  return [...thinking, ...others, ...(calls ?? [])]
}

/** Joined text, or the parts when there is media among them. */
function outputOf(content: readonly WirePart[]): string | readonly WirePart[] {
  return content.every(part => part.type === 'text') ? content.map(part => String(part.text)).join('\n') : content
}

/** Parsed arguments; the raw text when they do not parse. */
function inputOf(text: string): unknown {
  if (text.trim() === '') return {}
  try {
    return JSON.parse(text)
  } catch {
    return text
  }
}

export interface MessageQuery {
  readonly before_id?: string
  readonly after_id?: string
  readonly page_size?: number
  readonly role?: string
}

/**
 * A page, newest first. An unknown cursor counts as none; with `after_id` the newest of the messages after it; `role` is applied after
 * slicing, so a page may be short while there is more.
 */
export function messagePage(messages: readonly MessageObject[], query: MessageQuery): { items: MessageObject[]; has_more: boolean } {
  const size = query.page_size ?? 50
  const pivot = query.before_id ?? query.after_id
  const at = pivot === undefined ? -1 : messages.findIndex(message => message.id === pivot)
  const range = at < 0 ? messages : query.before_id !== undefined ? messages.slice(0, at) : messages.slice(at + 1)
  const items = range.slice(-size).reverse()
  return { items: items.filter(message => query.role === undefined || message.role === query.role), has_more: range.length > size }
}
