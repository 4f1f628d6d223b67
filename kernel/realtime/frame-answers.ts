/** From a request frame to its ack: the kernel's own frames, the frames of packs, failures. */

import { tidy } from '../clean.ts'
import type { FrameSpec } from '../contract.ts'
import { AppError, generalErrors, InternalError, invalid, ValidationFailed } from '../errors.ts'
import type { MountedFrame } from '../lifecycle/registry.ts'
import type { Logger } from '../log/log.ts'
import type { FrameHandler } from '../pack.ts'
import { problems } from '../schema.ts'
import type { ClientConnection } from './connection.ts'
import type { CoreHandler } from './control-frames.ts'
import type { Ack, Answer, RequestFrame } from './frame-queue.ts'

export interface FrameAnswersOptions {
  readonly core: ReadonlyMap<string, CoreHandler>
  readonly log: Logger
  readonly strict: boolean
  onViolation(error: Error): void
}

export class FrameAnswers {
  readonly #options: FrameAnswersOptions
  #mounted: ReadonlyMap<string, MountedFrame> = new Map()

  constructor(options: FrameAnswersOptions) {
    this.#options = options
  }

  /** Replaces the frames of packs. Frames being handled go on with what they began with. */
  mount(frames: readonly MountedFrame[]): void {
    this.#mounted = new Map(frames.map(frame => [frame.spec.type, frame]))
  }

  readonly answer: Answer = async (frame, connection) => {
    try {
      const core = this.#options.core.get(frame.type)
      if (core) {
        const { code = 0, msg = 'success', payload, close } = await core(asFields(frame.payload), connection)
        return { code, msg, payload, close }
      }
      const mounted = this.#mounted.get(frame.type)
      if (mounted) return await this.#ask(mounted, frame, connection)
    } catch (err) {
      return this.#failure(frame.type, err, connection)
    }
    return unknownFrame(frame)
  }

  async #ask(mounted: MountedFrame, frame: RequestFrame, connection: ClientConnection): Promise<Ack | undefined> {
    const { spec, activity } = mounted
    const work = activity.enter()
    if (!work) return unknownFrame(frame)
    try {
      const payload = tidy(spec.payload, frame.payload)
      const details = problems(spec.payload, payload)
      if (details.length > 0) throw invalid(details)
      const handler = mounted.handler as unknown as FrameHandler<FrameSpec> // the check above makes the payload fit its spec
      const reply = (await untilAborted(Promise.resolve(handler({ payload, connection })), work.signal)) ?? {}
      this.#checkAck(mounted, reply)
      return { code: 0, msg: 'success', payload: reply }
    } catch (err) {
      this.#checkError(mounted, err)
      throw err
    } finally {
      work.leave()
    }
  }

  #failure(type: string, err: unknown, connection: ClientConnection): Ack {
    if (AppError.is(err)) return { code: err.spec.code, msg: err.message, payload: err.data ?? {} }
    // A handler that meets a connection that has gone is no bug of its pack.
    this.#options.log[connection.open ? 'error' : 'debug']({ err, frame: type }, 'a request frame failed')
    return { code: InternalError.code, msg: InternalError.message, payload: {} }
  }

  #checkAck({ spec }: MountedFrame, reply: unknown): void {
    if (!this.#options.strict) return
    const [first] = problems(spec.ack, reply)
    if (first) this.#options.onViolation(new Error(`ack of frame '${spec.type}': ${first.path ? `${first.path}: ` : ''}${first.message}`))
  }

  #checkError({ spec }: MountedFrame, err: unknown): void {
    if (!this.#options.strict || !AppError.is(err)) return
    const declared = [...generalErrors, ...(spec.errors ?? [])].some(known => known.code === err.spec.code)
    if (!declared)
      this.#options.onViolation(new Error(`frame '${spec.type}' answered ${err.spec.name} (${err.spec.code}), which it does not declare`))
  }
}

/** Never an answer without an id: the sender does not wait for one (this covers `pong`). */
function unknownFrame(frame: RequestFrame): Ack | undefined {
  if (frame.id === '') return undefined
  return { code: ValidationFailed.code, msg: `unknown frame type '${frame.type.slice(0, 80)}'`, payload: {} }
}

/** A frame must not block its connection for ever when its pack leaves. */
function untilAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    signal.addEventListener('abort', abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function asFields(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}
