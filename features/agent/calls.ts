/** The tool calls of one response: announces starts and progress, records every result before it is announced. */
import type { CoreRecord, HistoryRecord, WirePart } from '../history/index.ts'
import type { LlmContent, LlmToolCall } from '../llm/index.ts'
import type { ToolOutcome, ToolReport, ToolResult } from '../tools/index.ts'
import type { AgentEmit } from './contract.ts'

export interface CallPorts {
  runTools(
    calls: readonly LlmToolCall[],
    signal: AbortSignal,
    report: (event: ToolReport) => Promise<void>
  ): Promise<readonly ToolOutcome[]>
  record(...records: (CoreRecord | HistoryRecord)[]): Promise<void>
  emit: AgentEmit
}

const unanswered: ToolResult = { output: 'The tool call ended without a result. Do not assume that it succeeded.', is_error: true }

/** Runs the calls; every one gets exactly one result. True when a result asks to stop the turn. Rejects only when the disk fails. */
export async function runCalls(
  ports: CallPorts,
  at: { readonly turn_id: number; readonly step: number },
  calls: readonly LlmToolCall[],
  signal: AbortSignal
): Promise<boolean> {
  const { turn_id: turnId } = at
  const started = new Set<string>()
  const answered = new Set<string>()
  let stop = false
  let failure: { readonly error: unknown } | undefined

  const start = (call: LlmToolCall, event?: Extract<ToolReport, { type: 'started' }>) => {
    if (started.has(call.id)) return
    started.add(call.id)
    ports.emit('toolCallStarted', {
      turnId,
      toolCallId: call.id,
      name: call.name,
      args: { ...event?.args },
      ...(event?.description === undefined ? {} : { description: event.description }),
      ...(event?.display === undefined ? {} : { display: event.display })
    })
  }
  const settle = async (call: LlmToolCall, result: ToolResult) => {
    if (answered.has(call.id)) return
    answered.add(call.id)
    if (result.stop_turn) stop = true
    start(call) // clients close the message at the first result: no call may come after it
    const content = wireParts(result.output)
    await ports.record({
      type: 'tool.result',
      ...at,
      tool_call_id: call.id,
      tool_name: call.name,
      content,
      ...(result.is_error ? { is_error: true } : {}),
      ...(result.note === undefined ? {} : { note: result.note })
    })
    ports.emit('toolResult', { turnId, toolCallId: call.id, output: textOr(content), ...(result.is_error ? { isError: true } : {}) })
  }

  const outcomes = await ports.runTools(calls, signal, async event => {
    if (event.type === 'started') start(event.call, event)
    else if (event.type === 'progress') ports.emit('toolProgress', { turnId, toolCallId: event.call.id, update: { ...event.update } })
    else {
      await settle(event.call, event.result).catch((error: unknown) => {
        failure ??= { error }
      })
    }
  })
  if (failure) throw failure.error
  for (const call of calls) await settle(call, outcomes.find(outcome => outcome.call.id === call.id)?.result ?? unanswered)
  return stop
}

/** A tool's output in wire form. */
export function wireParts(output: ToolResult['output']): WirePart[] {
  if (typeof output === 'string') return output === '' ? [] : [{ type: 'text', text: output }]
  return output.map(wirePart)
}

function wirePart(part: LlmContent): WirePart {
  switch (part.type) {
    case 'text':
      return { type: 'text', text: part.text }
    case 'thinking':
      return { type: 'thinking', thinking: part.text }
    case 'image':
      return { type: 'image', source: { kind: 'base64', media_type: part.media_type, data: part.data } }
    case 'image_url':
      return { type: 'image', source: { kind: 'url', url: part.url } }
  }
}

/** Joined text when there is nothing else, so that clients need not look into parts. */
function textOr(output: readonly WirePart[]): string | WirePart[] {
  return output.every(part => part.type === 'text') ? output.map(part => String(part.text)).join('\n') : [...output]
}
