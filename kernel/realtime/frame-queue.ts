/** Request frames of one connection: strictly one after another, each answered by an ack after everything it caused. */
import type { RawData, WebSocket } from 'ws'
import type { Logger } from '../log/log.ts'
import type { ClientConnection } from './connection.ts'

/** A well-formed request frame. */
export interface RequestFrame {
  readonly type: string
  readonly id: string
  readonly payload: unknown
}

export interface Ack {
  readonly code: number
  readonly msg: string
  readonly payload: unknown
  /** Close with 1000 after the ack. */
  readonly close?: boolean | undefined
}

/** Answers a frame; undefined sends no ack. Must not reject. */
export type Answer = (frame: RequestFrame, connection: ClientConnection) => Promise<Ack | undefined>

/** Beyond these the socket is not read until frames are done: the sender waits, nothing is lost. */
const maxWaiting = 256
const maxWaitingBytes = 1024 * 1024

export class FrameQueue {
  readonly #connection: ClientConnection
  readonly #ws: WebSocket
  readonly #answer: Answer
  readonly #log: Logger
  readonly #waiting: { readonly frame: RequestFrame; readonly bytes: number }[] = []
  #bytes = 0
  #running = false

  constructor(connection: ClientConnection, ws: WebSocket, answer: Answer, log: Logger) {
    this.#connection = connection
    this.#ws = ws
    this.#answer = answer
    this.#log = log
  }

  /** Takes a message. What is no frame is dropped silently (ws-protocol rule: never close for it). */
  receive(data: RawData): void {
    const bytes = toBuffer(data)
    const frame = parseFrame(bytes)
    if (!frame) return
    this.#waiting.push({ frame, bytes: bytes.length })
    this.#bytes += bytes.length
    if (this.#waiting.length > maxWaiting || this.#bytes > maxWaitingBytes) this.#ws.pause()
    if (!this.#running) void this.#run()
  }

  async #run(): Promise<void> {
    this.#running = true
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      this.#bytes -= next.bytes
      if (this.#ws.isPaused && this.#waiting.length <= maxWaiting / 2 && this.#bytes <= maxWaitingBytes) this.#ws.resume()
      if (!this.#connection.open) break
      await this.#handle(next.frame)
    }
    this.#running = false
  }

  async #handle(frame: RequestFrame): Promise<void> {
    try {
      const ack = await this.#answer(frame, this.#connection)
      if (!ack) return
      this.#connection.send({ type: 'ack', id: frame.id, code: ack.code, msg: ack.msg, payload: ack.payload })
      if (ack.close) this.#connection.shut(1000, '')
    } catch (err) {
      this.#log.error({ err, frame: frame.type }, 'an ack could not be sent')
    }
  }
}

function toBuffer(data: RawData): Buffer {
  if (Buffer.isBuffer(data)) return data
  return Array.isArray(data) ? Buffer.concat(data) : Buffer.from(data)
}

function parseFrame(bytes: Buffer): RequestFrame | undefined {
  let value: unknown
  try {
    value = JSON.parse(bytes.toString('utf8'))
  } catch {
    return undefined // text that is not JSON is dropped
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return undefined
  const { type, id, payload } = value as { type?: unknown; id?: unknown; payload?: unknown }
  if (typeof type !== 'string') return undefined
  return { type, id: typeof id === 'string' ? id : '', payload: payload ?? {} }
}
