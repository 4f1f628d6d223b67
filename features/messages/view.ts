/** The message object of the wire. Pure. */
import { argumentsFromModel, type History, type HistoryMessage, type WirePart } from '../history/index.ts'
import type { MessageObject } from './contract.ts'

export function messageObject(message: HistoryMessage, session_id: string): MessageObject {
  return {
    id: message.id,
    session_id,
    role: message.role,
    content: contentOf(message),
    created_at: message.created_at,
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
    return argumentsFromModel(text)
  } catch {
    return text
  }
}
