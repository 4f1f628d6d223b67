/** Token estimates: ASCII characters count a quarter, others one; a medium counts 2000. */
import type { HistoryMessage, WirePart } from './types.ts'

const mediaTokens = 2000

/** `ceil(ascii / 4) + non-ascii` in UTF-16 units. */
export function estimateText(text: string): number {
  if (Buffer.byteLength(text) === text.length) return Math.ceil(text.length / 4) // all of it is ASCII: found out much faster
  let ascii = 0
  for (let at = 0; at < text.length; at++) if (text.charCodeAt(at) < 128) ascii++
  return Math.ceil(ascii / 4) + (text.length - ascii)
}

export function estimateMessage(message: Pick<HistoryMessage, 'role' | 'content' | 'note' | 'tool_calls'>): number {
  const calls = sum(message.tool_calls ?? [], call => estimateText(call.name) + estimateText(call.arguments))
  return estimateText(message.role) + sum(message.content, partTokens) + estimateText(message.note ?? '') + calls
}

function partTokens(part: WirePart): number {
  if (part.type === 'text') return estimateText(String(part.text ?? ''))
  if (part.type === 'thinking') return estimateText(String(part.thinking ?? ''))
  if (part.type === 'image' || part.type === 'video') return mediaTokens
  return estimateText(JSON.stringify(part))
}

function sum<T>(items: readonly T[], value: (item: T) => number): number {
  let total = 0
  for (const item of items) total += value(item)
  return total
}
