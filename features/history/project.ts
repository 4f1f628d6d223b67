/** What the model sees of a history: a repaired view in which every tool call has exactly one result. */
import type { LlmCallPart, LlmContent, LlmMessage, LlmToolCall } from '../llm/index.ts'
import type { HistoryMessage, WirePart } from './types.ts'

/** Text of a result that was never recorded. */
export const interruptedResult =
  'The tool call was interrupted before its result was recorded. It may or may not have had an effect: do not assume that it succeeded.'

/** Projects sealed messages, oldest first. Pure. */
export function project(messages: readonly HistoryMessage[]): LlmMessage[] {
  const results = collectResults(messages)
  const out: LlmMessage[] = []
  let mergeable = false
  for (const message of messages) {
    if (message.role === 'tool') continue
    if (message.role === 'assistant') {
      const calls = message.tool_calls ?? []
      const content = withCalls(message.content, calls)
      if (!content.some(part => part.type !== 'thinking')) continue
      // An answer that the provider paused goes on in the next one.
      const last = out.at(-1)
      if (last?.role === 'assistant') out[out.length - 1] = { role: 'assistant', content: [...last.content, ...content] }
      else out.push({ role: 'assistant', content })
      for (const call of calls) out.push(resultOf(call, results.get(call.id)))
      mergeable = false
      continue
    }
    const content = message.content.flatMap(part => (part.type === 'thinking' ? [] : (asLlm(part) ?? [])))
    if (content.length === 0) continue
    const plain = message.role === 'user' && (message.origin === undefined || message.origin.kind === 'user')
    const last = out.at(-1)
    if (plain && mergeable && last?.role === 'user') out[out.length - 1] = { role: 'user', content: merge(last.content, content) }
    else out.push({ role: 'user', content })
    mergeable = plain
  }
  return out
}

/** Content and calls of an answer in the order in which they came. */
function withCalls(content: readonly WirePart[], calls: readonly LlmToolCall[]): (LlmContent | LlmCallPart)[] {
  const placed = (at: number) => calls.filter(({ after = content.length }) => Math.min(after, content.length) === at).map(callPart)
  return [...content.flatMap((part, at) => [...placed(at), ...[asLlm(part) ?? []].flat()]), ...placed(content.length)]
}

function callPart({ after: _, ...call }: LlmToolCall): LlmCallPart {
  return { type: 'tool_call', ...call }
}

/** The first result of each call that an earlier assistant message made; orphans and second results are left out. */
function collectResults(messages: readonly HistoryMessage[]): Map<string, HistoryMessage> {
  const asked = new Set<string>()
  const results = new Map<string, HistoryMessage>()
  for (const message of messages) {
    for (const call of message.tool_calls ?? []) asked.add(call.id)
    const id = message.role === 'tool' ? message.tool_call_id : undefined
    if (id !== undefined && asked.has(id) && !results.has(id)) results.set(id, message)
  }
  return results
}

function resultOf(call: LlmToolCall, result: HistoryMessage | undefined): LlmMessage {
  const is_error = result === undefined || result.is_error === true
  const content: LlmContent[] = result
    ? result.content.flatMap(part => asLlm(part) ?? []).map(asData)
    : [{ type: 'text', text: interruptedResult }]
  if (content.length === 0) content.push({ type: 'text', text: '<system>The tool gave no output.</system>' })
  if (is_error) prependText(content, '<system>The tool call failed.</system>\n')
  if (result?.note !== undefined && result.note !== '') content.push({ type: 'text', text: result.note })
  return { role: 'tool', tool_call_id: call.id, name: call.name, content: joinTexts(content, '\n'), is_error }
}

/** What a tool says is data: tags by which the program around the model speaks must not come from there. */
function asData(part: LlmContent): LlmContent {
  return part.type === 'text' ? { type: 'text', text: part.text.replace(/<(?=\s*\/?\s*system)/gi, '&lt;') } : part
}

function prependText(content: LlmContent[], text: string): void {
  const first = content[0]
  if (first?.type === 'text') content[0] = { type: 'text', text: text + first.text }
  else content.unshift({ type: 'text', text: text.trimEnd() })
}

/** Neighbouring texts become one part. */
function joinTexts(content: readonly LlmContent[], separator: string): LlmContent[] {
  const out: LlmContent[] = []
  for (const part of content) {
    const last = out.at(-1)
    if (part.type === 'text' && last?.type === 'text') out[out.length - 1] = { type: 'text', text: `${last.text}${separator}${part.text}` }
    else out.push(part)
  }
  return out
}

/** Two submissions in a row: texts joined by a blank line, then the media. */
function merge(a: readonly LlmContent[], b: readonly LlmContent[]): LlmContent[] {
  const all = [...a, ...b]
  return [
    ...joinTexts(
      all.filter(part => part.type === 'text'),
      '\n\n'
    ),
    ...all.filter(part => part.type !== 'text')
  ]
}

/** A wire part as the model gets it; undefined for empty text. References that nobody resolved become a placeholder. */
function asLlm(part: WirePart): LlmContent | undefined {
  switch (part.type) {
    case 'text':
      if (String(part.text).trim() === '') return undefined
      return { type: 'text', text: String(part.text), ...signature(part) }
    case 'thinking':
      return { type: 'thinking', text: String(part.thinking ?? ''), ...signature(part) }
    case 'image':
    case 'video': {
      const source = (part.source ?? {}) as Readonly<Record<string, unknown>>
      if (part.type === 'image' && source.kind === 'base64') {
        return { type: 'image', media_type: String(source.media_type), data: String(source.data) }
      }
      if (part.type === 'image' && source.kind === 'url') return { type: 'image_url', url: String(source.url) }
      return { type: 'text', text: `[${part.type}]` }
    }
    case 'file':
      return { type: 'text', text: `[file ${String(part.name ?? part.file_id ?? '')}]` }
    default:
      return undefined
  }
}

const signature = (part: WirePart) => (typeof part.signature === 'string' ? { signature: part.signature } : {})
