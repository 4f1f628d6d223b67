/** Event frames: what an emitted event becomes on the wire, and the bytes of it. */
import type { EventSpec } from '../contract.ts'
import { jsonText } from '../http/json-text.ts'
import type { EventTarget } from './types.ts'

/** `session_id` of global events. */
export const globalStream = '__global__'

/** An emitted event before it has a number. */
export interface Draft {
  readonly spec: EventSpec
  readonly session_id: string
  readonly agent_id: string
  readonly timestamp: string
  readonly offset: number | undefined
  /** The wire payload; a shallow copy of what the owner passed. */
  readonly fields: Readonly<Record<string, unknown>>
  /** Its JSON text, taken at emission. */
  readonly text: string
}

/** An event with its number, on its way to disk and sockets. */
export interface EventFrame {
  readonly draft: Draft
  readonly seq: number
  readonly epoch: string
  /** JSON text and a newline, as in the journal; undefined as long as the frame may still be merged. */
  readonly line: Buffer | undefined
}

/** Reaches every connection, whatever it subscribed to. */
export function reachesEveryone(spec: EventSpec): boolean {
  return spec.scope === 'global' || spec.deliver === 'everyone'
}

/** Agent an event belongs to; the owner's own `agentId` wins. */
export function agentOf(payload: unknown, target: EventTarget): string {
  const own = (payload as { agentId?: unknown } | null | undefined)?.agentId
  return typeof own === 'string' ? own : (target.agent_id ?? 'main')
}

/** Adds the base fields. The owner's own `agentId` and `sessionId` win (event.session.archived names the real session), `type` never. */
export function draftEvent(spec: EventSpec, payload: unknown, target: EventTarget, at: Date): Draft {
  const { session_id, offset } = target
  const agent_id = agentOf(payload, target)
  const time = target.time === undefined ? {} : { time: at.getTime() }
  const fields = { type: spec.type, agentId: agent_id, sessionId: session_id, ...time, ...(payload as object | undefined) }
  fields.type = spec.type
  return { spec, session_id, agent_id, timestamp: at.toISOString(), offset, fields, text: jsonText(fields) }
}

export function numberFrame(draft: Draft, seq: number, epoch: string): EventFrame {
  const mergeable = draft.spec.merge !== undefined && !draft.spec.durable
  return { draft, seq, epoch, line: mergeable ? undefined : frameLine(draft, seq, epoch) }
}

/** JSON text of a frame and a newline. `payload` replaces the draft's text when frames were merged. */
export function frameLine(draft: Draft, seq: number, epoch: string, payload = draft.text): Buffer {
  const { spec, session_id, timestamp, offset } = draft
  const flags = `${spec.durable ? '' : ',"volatile":true'}${offset === undefined ? '' : `,"offset":${offset}`}`
  const head = `{"type":${JSON.stringify(spec.type)},"seq":${seq},"epoch":"${epoch}","session_id":${JSON.stringify(session_id)}`
  return Buffer.from(`${head},"timestamp":"${timestamp}"${flags},"payload":${payload}}\n`)
}

/** The bytes a socket gets: the line without its newline. */
export function wireBytes(line: Buffer): Buffer {
  return line.subarray(0, line.length - 1)
}
