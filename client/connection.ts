/** One WebSocket connection: frames in, requests with their acks out, and a look now and then whether the other side is still there. */
import { ApiError } from './rest.ts'
import type { Requests, ServerFrame } from './types.ts'

/** What is used of a WebSocket, of a browser or of the package `ws`. */
export interface Socket {
  onopen: ((event: never) => void) | null
  onmessage: ((event: never) => void) | null
  onclose: ((event: never) => void) | null
  onerror: ((event: never) => void) | null
  send(text: string): void
  close(): void
}
export type SocketConstructor = new (url: string, protocols: string[]) => Socket

interface Ack {
  readonly type: 'ack'
  readonly id: string
  readonly code: number
  readonly msg: string
  readonly payload: unknown
}

interface Waiter {
  resolve(payload: unknown): void
  reject(error: Error): void
}

export interface ConnectionOptions {
  readonly url: string
  readonly token: string
  readonly socket: SocketConstructor
  /** After so much silence the server is asked for an ack; without one after as much again the connection counts as lost. ms. */
  readonly silenceMs: number
  onFrame(frame: ServerFrame): void
  /** Called once, after `open` has resolved. */
  onClose(reason: string): void
  /** Called at once with what is being connected: it may be closed before it is open. */
  onBegin?(connection: Connection): void
}

/** A password may hold characters that may not stand in a subprotocol; of a token nothing changes. */
const inSubprotocol = (token: string) => encodeURIComponent(token).replace(/[()]/g, sign => `%${sign.charCodeAt(0).toString(16)}`)

export class Connection {
  readonly #options: ConnectionOptions
  readonly #socket: Socket
  readonly #waiters = new Map<string, Waiter>()
  #next = 1
  #greeted: (() => void) | undefined
  #lost: ((error: Error) => void) | undefined
  #open = false
  #ended = false
  /** Looks since the last frame. Not the time: a tab that was frozen, or a machine that slept, has heard nothing for long and misses nothing. */
  #silentLooks = 0
  #timer: ReturnType<typeof setInterval> | undefined

  private constructor(options: ConnectionOptions) {
    const { url, token, socket } = options
    this.#options = options
    this.#socket = new socket(`${url.replace(/^http/, 'ws')}/api/v1/ws`, [`svc-code.bearer.${inSubprotocol(token)}`])
  }

  /** Resolves after the server's hello; rejects when the connection cannot be made, or is closed before. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const connection = new Connection(options)
    const connected = connection.#connect()
    options.onBegin?.(connection)
    await connected
    return connection
  }

  /** Sends a control frame; resolves with the payload of its ack, rejects with ApiError when that is no success. */
  request<Type extends keyof Requests>(type: Type, payload: Requests[Type]['payload']): Promise<Requests[Type]['ack']> {
    const id = `c${this.#next++}`
    const answer = new Promise<unknown>((resolve, reject) => this.#waiters.set(id, { resolve, reject }))
    if (this.#ended) this.#end('it is closed')
    else this.#socket.send(JSON.stringify({ type, id, payload }))
    return answer as Promise<Requests[Type]['ack']>
  }

  close(): void {
    this.#socket.close()
    this.#end('closed by the client')
  }

  #connect(): Promise<void> {
    this.#socket.onmessage = (event: { data: unknown }) => this.#receive(event.data)
    this.#socket.onerror = (event: { message?: unknown }) => this.#end(typeof event.message === 'string' ? event.message : 'no connection')
    this.#socket.onclose = (event: { code?: number; reason?: string }) => this.#end(event.reason || `closed with ${event.code}`)
    this.#timer = setInterval(() => this.#look(), this.#options.silenceMs)
    if (typeof this.#timer === 'object') (this.#timer as { unref?(): void }).unref?.()
    return new Promise((resolve, reject) => {
      this.#greeted = resolve
      this.#lost = reject
    })
  }

  #receive(data: unknown): void {
    this.#silentLooks = 0
    if (typeof data !== 'string') return // bytes belong to frames that this client does not ask for
    const frame = JSON.parse(data) as ServerFrame | Ack
    if (frame.type === 'ack') this.#answer(frame as Ack)
    else if (frame.type === 'server_hello') {
      this.#open = true
      this.#greeted?.()
    } else this.#options.onFrame(frame as ServerFrame)
  }

  #answer({ id, code, msg, payload }: Ack): void {
    const waiter = this.#waiters.get(id)
    this.#waiters.delete(id)
    if (code === 0) waiter?.resolve(payload)
    else waiter?.reject(new ApiError({ code, msg, data: payload }, 200))
  }

  /** The server sends no heartbeats: a request that changes nothing shows whether it is there. */
  #look(): void {
    this.#silentLooks++
    if (this.#silentLooks > 2) this.#end('nothing was heard of the server')
    else if (this.#silentLooks === 2 && this.#open) this.request('unsubscribe', { session_ids: [] }).catch(() => undefined) // told by onClose
  }

  #end(reason: string): void {
    const error = new Error(`the connection to ${this.#options.url} is lost: ${reason}`)
    for (const waiter of this.#waiters.values()) waiter.reject(error)
    this.#waiters.clear()
    if (this.#ended) return
    this.#ended = true
    clearInterval(this.#timer)
    this.#socket.onmessage = null
    this.#socket.close()
    if (this.#open) this.#options.onClose(reason)
    else this.#lost?.(error)
  }
}
