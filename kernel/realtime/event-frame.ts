/** Event frames: what an emitted event becomes on the wire, and the bytes of it. */
import type { EventSpec } from '../contract.ts'
import { serviceToken } from '../lifecycle/services.ts'
import type { Cursor, ResyncReason } from './journal.ts'
import type { Connection, EventTarget } from './types.ts'

/** `session_id` of global events. */
export const globalStream = '__global__'

/**
 * How events of one session are told apart by whom they are about, so that clients can ask for some of them. The kernel has no
 * subjects of its own: at most one pack provides the rule; without one, events carry no such field and nothing is filtered by it.
 */
export interface SubjectRule {
  /** Payload field that names the subject. Put into every event; an owner's own field of that name wins. */
  readonly field: string
  /** Subject of events that name none. */
  readonly fallback: string
  /** Field of `subscribe` and `client_hello` that lists the subjects to show, per session. */
  readonly filter: string
}

/** Provided by the pack that knows whom events are about. */
export const EventSubject = serviceToken<SubjectRule>('event-subject')

/** Which event it is, and whose. */
interface Addressed {
  readonly spec: EventSpec
  readonly session_id: string
  readonly subject: string
  /** The only subscriber that gets it; undefined: all. */
  readonly only: Connection | undefined
  /** Another server of the home told it. */
  readonly foreign?: boolean
}

/** An emitted event before it has a number. */
export interface Draft extends Addressed {
  readonly timestamp: string
  readonly offset: number | undefined
  /** JSON text of the wire payload, taken at emission. */
  readonly text: string
}

/** An event with its number, on its way to disk (`line`: JSON text and a newline) and to sockets (`wire`: the same without the newline). */
export interface EventFrame extends Addressed {
  readonly seq: number
  readonly epoch: string
  /** About what it takes in memory, in bytes. */
  readonly size: number
  readonly line: Buffer
  readonly wire: Buffer
}

/** Tells a client to take the snapshot and to go on from there. */
export function resyncFrame(timestamp: Date, session_id: string, reason: ResyncReason, at: Cursor) {
  const payload = { session_id, reason, current_seq: at.seq, ...(at.epoch === undefined ? {} : { epoch: at.epoch }) }
  return { type: 'resync_required', timestamp: timestamp.toISOString(), payload }
}

/** Reaches every connection, whatever it subscribed to. */
export function reachesEveryone(spec: EventSpec): boolean {
  return spec.scope === 'global' || spec.deliver === 'everyone'
}

/** Whether clients have to take the snapshot behind an event (`EventSpec.resync`). */
export function asksResync(spec: EventSpec | undefined, frame: Buffer): boolean {
  const { resync = false } = spec ?? {}
  return typeof resync === 'string' ? JSON.parse(frame.toString('utf8')).payload[resync] === true : resync
}

/** Tells the events apart that a client gets once (`EventSpec.once`); undefined: it may come again. */
export function onceKey(spec: EventSpec | undefined, session_id: string, seq: number): string | undefined {
  return spec?.once ? `${spec.type} ${session_id} ${seq}` : undefined
}

/** Whom an event is about; the owner's own field wins. Empty when nobody says so. */
export function subjectOf(payload: unknown, target: { readonly subject?: string }, rule: SubjectRule | undefined): string {
  const own = rule && (payload as Record<string, unknown> | null | undefined)?.[rule.field]
  return typeof own === 'string' ? own : (target.subject ?? rule?.fallback ?? '')
}

/** Adds the base fields. The owner's own subject and `sessionId` win (event.session.archived names the real session), `type` never. */
export function draftEvent(
  spec: EventSpec,
  payload: unknown,
  target: EventTarget,
  about: { readonly subject: string; readonly at: Date; readonly rule: SubjectRule | undefined }
): Draft {
  const { session_id, offset, time, only } = target
  const { subject, at, rule } = about
  const fields: Record<string, unknown> = { type: spec.type }
  if (rule) fields[rule.field] = subject
  fields.sessionId = session_id
  if (time !== undefined) fields.time = at.getTime()
  Object.assign(fields, payload)
  fields.type = spec.type
  return { spec, only, session_id, subject, timestamp: at.toISOString(), offset, text: JSON.stringify(fields) }
}

/** Guess for what a frame takes beside its bytes. */
const frameBytes = 512

export function numberFrame(draft: Draft, seq: number, epoch: string): EventFrame {
  const { spec, session_id, subject, only, foreign = false } = draft
  const line = frameLine(draft, seq, epoch)
  const size = line.length + frameBytes
  return { spec, session_id, subject, only, foreign, seq, epoch, size, line, wire: line.subarray(0, line.length - 1) }
}

/** The same event in another life of its stream. */
export function inEpoch(frame: EventFrame, epoch: string): EventFrame {
  const [before, now] = [epochField(frame.epoch), epochField(epoch)]
  const at = frame.line.indexOf(before) // only the type stands before it
  const line = Buffer.concat([frame.line.subarray(0, at), Buffer.from(now), frame.line.subarray(at + before.length)])
  return { ...frame, epoch, line, wire: line.subarray(0, line.length - 1) }
}

const epochField = (epoch: string) => `"epoch":"${epoch}"`

const typeAt = '{"type":"'.length

/** The type of a frame, of its bytes. */
export function frameType(line: Buffer): string {
  return line.toString('utf8', typeAt, line.indexOf('"', typeAt))
}

/** JSON text of a frame and a newline; the type comes first. */
export function frameLine({ spec, session_id, timestamp, offset, text }: Draft, seq: number, epoch: string): Buffer {
  const flags = `${spec.durable ? '' : ',"volatile":true'}${offset === undefined ? '' : `,"offset":${offset}`}`
  const head = `{"type":${JSON.stringify(spec.type)},"seq":${seq},${epochField(epoch)},"session_id":${JSON.stringify(session_id)}`
  return Buffer.from(`${head},"timestamp":"${timestamp}"${flags},"payload":${text}}\n`)
}
