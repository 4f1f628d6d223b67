/** Messages over a socket: four bytes of length, one byte that says what it is, then the bytes. */
import type { Socket } from 'node:net'
import { isRecord, jsonOf } from '../../kernel/index.ts'

export interface FramedOptions {
  /** Longest message in bytes; a longer one ends the socket. */
  readonly limit: number
  readonly take: (kind: number, bytes: Buffer) => void
  readonly closed?: () => void
}

const headBytes = 5

export class FramedSocket {
  readonly socket: Socket
  readonly #limit: number
  readonly #take: FramedOptions['take']
  #parts: Buffer[] = []
  #held = 0
  #wanted = headBytes

  /** Begins to read at once. */
  constructor(socket: Socket, { limit, take, closed }: FramedOptions) {
    this.socket = socket
    this.#limit = limit
    this.#take = take
    socket.on('data', data => this.#receive(data as Buffer))
    if (closed) {
      if (socket.destroyed) queueMicrotask(closed)
      else socket.once('close', closed)
    }
    socket.resume()
  }

  get open(): boolean {
    return !this.socket.destroyed && this.socket.writable
  }

  /** Bytes that the other side has not taken yet. */
  get waiting(): number {
    return this.socket.writableLength
  }

  /** False when the socket is over: nothing was sent. */
  send(kind: number, bytes: Uint8Array | string, sent?: () => void): boolean {
    if (!this.open) return false
    const body = typeof bytes === 'string' ? Buffer.from(bytes) : bytes
    const head = Buffer.allocUnsafe(headBytes)
    head.writeUInt32BE(body.length, 0)
    head[4] = kind
    this.socket.cork()
    this.socket.write(head)
    this.socket.write(body, () => sent?.())
    this.socket.uncork()
    return true
  }

  #receive(data: Buffer): void {
    this.#parts.push(data)
    this.#held += data.length
    if (this.#held < this.#wanted) return
    let bytes = this.#parts.length === 1 ? data : Buffer.concat(this.#parts)
    for (;;) {
      if (bytes.length < headBytes) {
        this.#wanted = headBytes
        break
      }
      const length = bytes.readUInt32BE(0)
      if (length > this.#limit) {
        this.socket.destroy()
        return
      }
      if (bytes.length < headBytes + length) {
        this.#wanted = headBytes + length
        break
      }
      const kind = bytes[4]!
      this.#take(kind, bytes.subarray(headBytes, headBytes + length))
      if (this.socket.destroyed) return
      bytes = bytes.subarray(headBytes + length)
    }
    this.#parts = bytes.length > 0 ? [bytes] : []
    this.#held = bytes.length
  }
}

/** The object in a message of JSON; undefined when it is none. */
export function objectIn(bytes: Buffer): Readonly<Record<string, unknown>> | undefined {
  const value = jsonOf(bytes.toString('utf8'))
  return isRecord(value) ? value : undefined // not one of ours: the caller hangs up
}
