/** A WebSocket client for tests: frames are recorded, waits are for frames, acks are matched by id. */
import { WebSocket } from 'ws'
import { type Limit, within } from './limit.ts'
import { type WitnessedSocket, witnessedSocket } from './witness.ts'

/** Any frame of the server. */
export interface Frame {
  readonly type: string
  readonly seq?: number
  readonly epoch?: string
  readonly session_id?: string
  readonly id?: string
  readonly code?: number
  readonly msg?: string
  readonly volatile?: boolean
  readonly offset?: number
  readonly timestamp?: string
  /** What a binary message brought beside its line of JSON. */
  readonly bytes?: Buffer
  // biome-ignore lint/suspicious/noExplicitAny: a list of fields, or an object
  readonly details?: any
  // biome-ignore lint/suspicious/noExplicitAny: tests look into payloads of many shapes
  readonly payload: any
}

export interface SocketOptions {
  readonly headers?: Readonly<Record<string, string>>
  readonly protocols?: readonly string[]
  /** Default `/api/v1/ws`. */
  readonly path?: string
}

interface Waiter {
  readonly limit: Limit
  fits(frame: Frame): boolean
  resolve(frame: Frame): void
  reject(error: Error): void
}

export interface WaitOptions {
  /** How long to wait, ms; then the wait rejects and says what came instead. Default 60,000. */
  readonly limitMs?: number
}

/** The socket behind a client, for tests that look below frames. */
export interface RawSocket {
  readonly protocol: string
  on(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  off(event: 'message', listener: (data: Buffer, isBinary: boolean) => void): unknown
  setMaxListeners(count: number): unknown
  send(data: string | Uint8Array): void
  /** Reads no more until `resume`. */
  pause(): void
  resume(): void
}

export class SocketClient {
  readonly frames: Frame[] = []
  readonly ws: RawSocket
  readonly closed: Promise<{ code: number; reason: string }>
  readonly #ws: WebSocket
  readonly #waiters = new Set<Waiter>()
  readonly #look: WitnessedSocket
  #next = 1

  private constructor(ws: WebSocket, look: WitnessedSocket) {
    this.ws = ws
    this.#ws = ws
    this.#look = look
    ws.on('message', (data: Buffer, binary) => this.#receive(binary ? withBytes(data) : (JSON.parse(data.toString()) as Frame)))
    this.closed = new Promise(resolve => {
      ws.on('close', (code, reason) => {
        resolve({ code, reason: reason.toString() })
        for (const waiter of this.#waiters) {
          waiter.limit.end()
          waiter.reject(new Error(`the socket closed with ${code}`))
        }
        this.#waiters.clear()
      })
    })
    ws.on('error', () => undefined) // a failed connection is reported through `open` and `closed`
  }

  /** Connects with the token in the header (unless protocols are given); resolves after server_hello. */
  static async open(url: string, token: string, options: SocketOptions = {}): Promise<SocketClient> {
    const headers = options.protocols ? options.headers : { authorization: `Bearer ${token}`, ...options.headers }
    const ws = new WebSocket(`${url.replace(/^http/, 'ws')}${options.path ?? '/api/v1/ws'}`, [...(options.protocols ?? [])], {
      headers: { ...headers }
    })
    const client = new SocketClient(ws, witnessedSocket(url))
    await Promise.race([
      client.next('server_hello'),
      new Promise((_, reject) => {
        ws.once('unexpected-response', (_req, res) => reject(new Error(`upgrade refused with ${res.statusCode}`)))
        ws.once('error', reject)
      })
    ])
    return client
  }

  /** First frame (received already or to come) of that type, or that fits. Rejects when the socket closes, or when none came in time. */
  next(fits: string | ((frame: Frame) => boolean), { limitMs }: WaitOptions = {}): Promise<Frame> {
    const test = typeof fits === 'string' ? (frame: Frame) => frame.type === fits : fits
    const seen = this.frames.find(test)
    if (seen) return Promise.resolve(seen)
    return new Promise((resolve, reject) => {
      const limit = within(limitMs, typeof fits === 'string' ? `frame ${fits}` : 'frame that fits', this.frames, error => {
        this.#waiters.delete(waiter)
        reject(error)
      })
      const waiter: Waiter = { fits: test, limit, resolve, reject }
      this.#waiters.add(waiter)
    })
  }

  /** Sends a control frame and resolves with its ack. */
  request(type: string, payload: unknown = {}, bytes?: Uint8Array): Promise<Frame> {
    const id = `t${this.#next++}`
    const ack = this.next(frame => frame.type === 'ack' && frame.id === id)
    this.send({ type, id, payload }, bytes)
    return ack
  }

  /** Sends a frame, or text as it is; with `bytes` as a binary message. */
  send(frame: unknown, bytes?: Uint8Array): void {
    this.#look.sent(frame)
    const text = typeof frame === 'string' ? frame : JSON.stringify(frame)
    this.ws.send(bytes ? Buffer.concat([Buffer.from(`${text}\n`), bytes]) : text)
  }

  close(): Promise<{ code: number; reason: string }> {
    this.#ws.close()
    return this.closed
  }

  terminate(): void {
    this.#ws.terminate()
  }

  #receive(frame: Frame): void {
    this.#look.got(frame)
    this.frames.push(frame)
    for (const waiter of [...this.#waiters]) {
      if (!waiter.fits(frame)) continue
      this.#waiters.delete(waiter)
      waiter.limit.end()
      waiter.resolve(frame)
    }
  }
}

function withBytes(data: Buffer): Frame {
  const end = data.indexOf(10)
  return { ...(JSON.parse(data.subarray(0, end).toString()) as Frame), bytes: data.subarray(end + 1) }
}
