/** The tool calls of one response: their begins and results are recorded, and told from the records; progress is told alone. */
import type { CoreRecord, HistoryRecord, WirePart } from '../history/index.ts'
import type { LlmContent, LlmToolCall } from '../llm/index.ts'
import type { ToolOutcome, ToolReport, ToolResult, TurnFault } from '../tools/index.ts'
import type { AgentEmit } from './contract.ts'

export interface CallPorts {
  runTools(
    calls: readonly LlmToolCall[],
    signal: AbortSignal,
    report: (event: ToolReport) => Promise<void>
  ): Promise<readonly ToolOutcome[]>
  /** Resolves when the records are on disk and their events told. */
  record(...records: (CoreRecord | HistoryRecord)[]): Promise<void>
  /** For what is not recorded. */
  emit: AgentEmit
}

const unanswered: ToolResult = { output: 'The tool call ended without a result. Do not assume that it succeeded.', is_error: true }

export interface CallsOutcome {
  /** A result asks to stop the turn. */
  readonly stop: boolean
  /** Why, when it failed by that. */
  readonly fault?: TurnFault | undefined
  /** The result that came last: to be recorded with the end of the step, by the same write. */
  readonly last: readonly CoreRecord[]
}

/** Runs the calls; every one gets exactly one result. Rejects only when the disk fails. */
export async function runCalls(
  ports: CallPorts,
  at: { readonly turn_id: number; readonly step: number },
  calls: readonly LlmToolCall[],
  signal: AbortSignal
): Promise<CallsOutcome> {
  /** Calls whose begin is recorded, or is being recorded. */
  const begun = new Map<string, Promise<void>>()
  const shown = new Set<string>()
  const answered = new Set<string>()
  let stop = false
  let fault: TurnFault | undefined
  let last: readonly CoreRecord[] = []
  let failure: { readonly error: unknown } | undefined
  const failed = (error: unknown) => {
    failure ??= { error }
  }

  // The tool runs meanwhile; whatever it answers is recorded behind.
  const begin = (event: Extract<ToolReport, { type: 'started' }>): Promise<void> => {
    const { call, args, description, display, changed_by, refused } = event
    const before = begun.get(call.id)
    if (before) return before
    const facts = { tool_call_id: call.id, tool_name: call.name, args: { ...args } }
    const shows = { ...(description === undefined ? {} : { description }), ...(display ? { display } : {}) }
    const more = { ...shows, ...(changed_by ? { changed_by } : {}), ...(refused ? { refused } : {}) }
    const told = ports.record({ type: 'tool.begin', ...at, ...facts, ...more }).then(() => void shown.add(call.id), failed)
    begun.set(call.id, told)
    return told
  }
  const settle = async (call: LlmToolCall, result: ToolResult) => {
    if (answered.has(call.id)) return
    answered.add(call.id)
    if (result.stop_turn) stop = true
    fault ??= result.fail_turn
    const record: CoreRecord = {
      type: 'tool.result',
      ...at,
      tool_call_id: call.id,
      tool_name: call.name,
      content: wireParts(result.output),
      ...(result.is_error ? { is_error: true } : {}),
      ...(result.note === undefined ? {} : { note: result.note })
    }
    if (answered.size < calls.length) await ports.record(record)
    else last = [record]
  }

  const outcomes = await ports.runTools(calls, signal, async event => {
    if (event.type === 'started') await begin(event)
    else if (event.type === 'finished') await settle(event.call, event.result).catch(failed)
    else {
      const { call, update } = event
      const tell = () => ports.emit('toolProgress', { turnId: at.turn_id, toolCallId: call.id, update: { ...update } })
      if (shown.has(call.id)) tell()
      else void begun.get(call.id)?.then(tell)
    }
  })
  await Promise.all(begun.values())
  if (failure) {
    await Promise.allSettled(last.map(record => ports.record(record)))
    throw failure.error
  }
  for (const call of calls) await settle(call, outcomes.find(outcome => outcome.call.id === call.id)?.result ?? unanswered)
  return { stop, fault, last }
}

/** A tool's output in wire form. */
function wireParts(output: ToolResult['output']): WirePart[] {
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
    case 'video':
      return { type: part.type, source: { kind: 'base64', media_type: part.media_type, data: part.data } }
    case 'image_url':
      return { type: 'image', source: { kind: 'url', url: part.url } }
  }
}
