/** A small client of the server: REST with the token, and the event stream. */
import { WebSocket } from 'ws'

export interface EventFrame {
  readonly type: string
  readonly seq?: number
  // biome-ignore lint/suspicious/noExplicitAny: the demo prints fields of many event types
  readonly payload: any
}

export class Client {
  readonly #url: string
  readonly #token: string

  constructor(url: string, token: string) {
    this.#url = url
    this.#token = token
  }

  /** Sends a request; throws with the server's text unless the envelope code is 0. */
  // biome-ignore lint/suspicious/noExplicitAny: answers of many routes
  async call(method: string, path: string, body?: unknown): Promise<any> {
    const answer = await fetch(`${this.#url}/api/v1${path}`, {
      method,
      headers: { authorization: `Bearer ${this.#token}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) })
    })
    const envelope = (await answer.json()) as { code: number; msg: string; data: unknown }
    if (envelope.code !== 0) throw new Error(`${method} ${path}: ${envelope.code} ${envelope.msg}`)
    return envelope.data
  }

  /** Subscribes to a session; `onEvent` sees every frame of it. Resolves when the subscription stands. */
  async follow(session_id: string, onEvent: (event: EventFrame) => void): Promise<() => void> {
    const socket = new WebSocket(`${this.#url.replace('http', 'ws')}/api/v1/ws`, [`svc-code.bearer.${this.#token}`])
    await new Promise<void>((resolve, reject) => {
      socket.on('error', reject)
      socket.on('message', data => {
        const frame = JSON.parse(data.toString()) as EventFrame
        if (frame.type === 'server_hello')
          socket.send(JSON.stringify({ type: 'subscribe', id: '1', payload: { session_ids: [session_id] } }))
        else if (frame.type === 'ack') resolve()
        else onEvent(frame)
      })
    })
    return () => socket.close()
  }
}
