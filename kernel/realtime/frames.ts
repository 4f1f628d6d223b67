/** Request frames: parsed, strictly one after another per connection, each answered by an ack after everything it caused. */
import { requireScope } from '../access/principal.ts'
import type { FrameSpec } from '../contract.ts'
import { type RemoteAck, SessionMoved, type StandingFrame, whereverItIs } from '../elsewhere.ts'
import { checkDeclared, checkShape, detailsOf, type Environment } from '../environment.ts'
import { AppError, CredentialRejected, type Detail, developerError, InternalError, invalid, ValidationFailed } from '../errors.ts'
import { parseJson } from '../http/body.ts'
import type { MountedFrame } from '../lifecycle/unit.ts'
import { firstAbort, untilAborted, yieldToLoop } from '../lifecycle/wait.ts'
import type { FrameHandler } from '../pack.ts'
import { tidy } from '../schema.ts'
import { isRecord, type TObject } from '../shapes.ts'
import { refusedByDisk } from '../storage/refusals.ts'
import { headOf } from '../text.ts'
import type { ClientConnection, Transport } from './connection.ts'
import type { ControlFrames } from './control-frames.ts'
import type { Subscriptions } from './subscriptions.ts'

interface RequestFrame {
  readonly type: string
  readonly id: string
  readonly payload: unknown
  /** What follows the line of JSON in a binary message; undefined in other messages. */
  readonly bytes: Buffer | undefined
  /** Why the message is no frame; the other fields are what could be read of it. */
  readonly refused?: Detail
}

interface Ack extends RemoteAck {
  /** Close with 1000 after the ack. */
  readonly close?: boolean
}

/** Beyond these the client is not read until frames are done: the sender waits, nothing is lost. */
const maxWaiting = 256
const maxWaitingBytes = 1024 * 1024

/** What answers the frames of all connections. */
export class Frames {
  readonly #env: Environment
  readonly #core: ControlFrames
  readonly #subscriptions: Subscriptions
  #mounted: ReadonlyMap<string, MountedFrame> = new Map()

  constructor(env: Environment, core: ControlFrames, subscriptions: Subscriptions) {
    this.#env = env
    this.#core = core
    this.#subscriptions = subscriptions
  }

  /** Replaces the frames of packs. Frames being handled go on with what they began with. */
  mount(frames: readonly MountedFrame[]): void {
    this.#mounted = new Map(frames.map(frame => [frame.spec.type, frame]))
  }

  /** See `controlFrames`. */
  arrived(frame: RequestFrame, connection: ClientConnection): (() => void) | undefined {
    return !frame.refused && this.#core.spec(frame.type) ? this.#core.arrived(frame.payload, connection) : undefined
  }

  /** Undefined: no ack. */
  async answer(frame: RequestFrame, connection: ClientConnection): Promise<Ack | undefined> {
    const core = this.#core.spec(frame.type)
    const mounted = core ? undefined : this.#mounted.get(frame.type)
    try {
      if (frame.refused) throw invalid([frame.refused])
      if (mounted) {
        const ack = await whereverItIs(
          async () => (await this.#askElsewhere(mounted, frame, connection)) ?? (await this.#ask(mounted, frame, connection))
        )
        remember(connection, mounted.spec, frame, ack)
        return ack
      }
      if (!core && frame.id === '' && frame.type === 'pong') return undefined // clients of other servers send it on their own
      if (!core) throw unknownType(frame)
      requireScope(connection.principal)
      const { standing = [] } = connection.relayed ? (frame.payload as { standing?: readonly StandingFrame[] }) : {} // sent along by its server
      return { code: 0, msg: 'success', payload: await this.#core.answer(core, checked(core, frame), connection, standing) }
    } catch (thrown) {
      const err = refusedByDisk(thrown) ?? thrown
      if (AppError.is(err)) {
        const close = core !== undefined && err.spec === CredentialRejected
        return { code: err.spec.code, msg: err.message, payload: err.data ?? {}, details: detailsOf(err), close }
      }
      // A handler that meets a connection that has gone is no bug of its pack.
      if (connection.open) this.#env.guard.report(mounted?.pack ?? 'kernel', mounted?.name ?? `handler of frame ${frame.type}`, err)
      else this.#env.log.debug({ err, frame: frame.type }, 'a frame of a connection that has gone failed')
      return { code: InternalError.code, msg: InternalError.message, payload: {} }
    }
  }

  /** Answers a frame once more for a client whose session has moved here (`FrameSpec.stands`). False: it is not set up; the client has to ask. */
  async again(connection: ClientConnection, { type, payload }: StandingFrame): Promise<boolean> {
    const mounted = this.#mounted.get(type)
    if (!mounted?.spec.stands) return false
    try {
      await this.#ask(mounted, { type, payload, id: '', bytes: undefined }, connection)
      return true
    } catch (err) {
      if (err instanceof SessionMoved) throw err
      this.#env.log.debug({ err, frame: type }, 'a frame could not be answered again where its session has moved to')
      return false
    }
  }

  /** The answer of the server that has the session which the frame is about; undefined: this one. */
  async #askElsewhere({ spec }: MountedFrame, frame: RequestFrame, connection: ClientConnection): Promise<Ack | undefined> {
    const { type, payload, bytes } = frame
    const { session_id } = (payload ?? {}) as { session_id?: unknown }
    if (spec.here || typeof session_id !== 'string' || !(spec.payload as TObject).properties?.session_id) return undefined
    return await this.#subscriptions.ask(connection, session_id, { type, payload, bytes, subscribes: spec.subscribes, stands: spec.stands })
  }

  async #ask(mounted: MountedFrame, frame: RequestFrame, connection: ClientConnection): Promise<Ack> {
    const { spec, activity, before } = mounted
    const work = activity.enter()
    if (!work) throw activity.absence ?? unknownType(frame)
    const late = new AbortController()
    const ms = this.#env.options.frameTimeoutMs
    const timer = setTimeout(() => late.abort(developerError('callback_late', ms)), ms)
    const { signal, end } = firstAbort(work.signal, connection.scope.signal, late.signal)
    const handle = async () => {
      requireScope(connection.principal, spec.scope)
      if (before) await before({ payload: frame.payload, connection, signal })
      const handler = mounted.handler as unknown as FrameHandler<FrameSpec> // the check makes the payload fit its spec
      const payload = checked(spec, frame)
      const input = { payload, bytes: frame.bytes ?? noBytes, connection, signal }
      return (await this.#env.guard.run(mounted.pack, mounted.name, () => handler(input))) ?? {}
    }
    try {
      const reply = await untilAborted(handle(), signal)
      checkShape(this.#env.options, `ack of frame '${spec.type}'`, spec.ack, reply)
      return { code: 0, msg: 'success', payload: reply }
    } catch (err) {
      if (work.signal.aborted && !AppError.is(err)) throw activity.absence ?? unknownType(frame) // it ended with its pack, as a request does
      checkDeclared(this.#env.options, `frame '${spec.type}'`, err, [...(spec.invalid ? [spec.invalid] : []), ...(spec.errors ?? [])])
      throw err
    } finally {
      clearTimeout(timer)
      end()
      work.leave()
    }
  }
}

/**
 * Takes the messages of one connection, whose frames are answered one after the other. What is no frame is answered in its turn, too; the
 * connection lives on.
 */
export function frameQueue(env: Environment, frames: Frames, connection: ClientConnection, transport: Transport) {
  const waiting: { readonly frame: RequestFrame; readonly size: number; readonly over: (() => void) | undefined }[] = []
  let waitingBytes = 0
  let isRunning = false

  const run = async () => {
    isRunning = true
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      waitingBytes -= next.size
      if (waiting.length <= maxWaiting / 2 && waitingBytes <= maxWaitingBytes) transport.resume()
      const others = yieldToLoop() // after a drop all clients say hello at once
      if (others) await others
      if (!connection.open) break
      await handle(next.frame, next.over)
    }
    isRunning = false
  }
  const handle = async (frame: RequestFrame, over: (() => void) | undefined) => {
    try {
      const ack = await frames.answer(frame, connection)
      over?.()
      if (!ack) return
      const { code, msg, payload, details } = ack
      connection.send({ type: 'ack', id: frame.id, code, msg, payload, ...(details === undefined ? {} : { details }) })
      if (ack.close) connection.shut(1000, '')
    } catch (err) {
      env.log.error({ err, frame: frame.type }, 'an ack could not be sent')
    }
  }
  return (data: Buffer, binary: boolean): void => {
    const frame = (binary ? withBytes(data) : undefined) ?? parseFrame(data)
    const over = frames.arrived(frame, connection)
    connection.listen()
    waiting.push({ frame, size: data.length, over })
    waitingBytes += data.length
    if (waiting.length > maxWaiting || waitingBytes > maxWaitingBytes) transport.pause()
    if (!isRunning) void run()
  }
}

const noBytes = Buffer.alloc(0)

/** The payload as the spec wants it. Throws what the spec says for one that misses its shape. */
function checked(spec: FrameSpec, { payload, bytes }: RequestFrame): never {
  const tidied = tidy(spec.payload, payload, 'payload', found => {
    const refusal = invalid(found)
    if (!spec.invalid) return refusal
    return new AppError(spec.invalid, { message: `invalid ${spec.type} payload`, details: refusal.details })
  })
  if (bytes?.length && !spec.binary) throw new AppError(ValidationFailed, { message: `frame '${spec.type}' takes no bytes` })
  return tidied as never
}

/** Keeps a frame that stands and was accepted. A client of another server has it kept there. */
function remember(
  connection: ClientConnection,
  { stands }: FrameSpec,
  { type, payload }: RequestFrame,
  { code, payload: answer }: Ack
): void {
  const { session_id } = payload as { session_id?: unknown }
  if (!stands || code !== 0 || connection.relayed || typeof session_id !== 'string') return
  if ((answer as { accepted?: readonly string[] }).accepted?.includes(session_id)) connection.stand(session_id, { type, payload, stands })
}

function parseFrame(text: Buffer): RequestFrame {
  const parsed = parseJson(text)
  if ('problem' in parsed) return noFrame('', `the message ${parsed.problem}`)
  const { value } = parsed
  if (!isRecord(value)) return noFrame('', 'expected an object: { type, id, payload }')
  const { type, id, payload } = value
  const known = typeof id === 'string' ? id : ''
  if (typeof type !== 'string') return { ...noFrame('type', 'expected a string'), id: known }
  return { type, id: known, payload: payload ?? {}, bytes: undefined }
}

function noFrame(path: string, message: string): RequestFrame {
  return { type: '', id: '', payload: {}, bytes: undefined, refused: { path, message } }
}

/** A binary message with bytes: a line of JSON, then the bytes. Other binary messages are read as text. */
function withBytes(data: Buffer): RequestFrame | undefined {
  const end = data.indexOf(10)
  const frame = end < 0 ? undefined : parseFrame(data.subarray(0, end))
  return frame && !frame.refused ? { ...frame, bytes: data.subarray(end + 1) } : undefined
}

function unknownType({ type }: RequestFrame): AppError {
  return invalid([{ path: 'type', message: `unknown frame type '${headOf(type, 80)}'` }])
}
