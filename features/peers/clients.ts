/** WebSocket clients of one server that have a session at another: each is a connection there, over an authenticated socket. */
import type { Socket } from 'node:net'
import type { RelayedClient, Relays } from '../../kernel/index.ts'
import { FramedSocket, objectIn } from './framed.ts'
import type { RelayedEnd } from './owner.ts'

const text = 0
const bytes = 1
const control = 2
const limit = 80 * 1024 * 1024
/** A side that has taken so much too little is waited for. */
const fullBytes = 256 * 1024

/** Messages one after the other; while the taker takes its time the socket is not read. */
class Inbox {
  readonly #socket: Socket
  readonly #waiting: (() => unknown)[] = []
  #running = false

  constructor(socket: Socket) {
    this.#socket = socket
  }

  add(work: () => unknown): void {
    this.#waiting.push(work)
    if (!this.#running) this.#run()
  }

  #run(): void {
    this.#running = true
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      const taken = next()
      if (taken instanceof Promise) {
        this.#socket.pause()
        void taken.catch(() => this.#socket.destroy()).then(() => this.#goOn())
        return
      }
    }
    this.#running = false
  }

  #goOn(): void {
    this.#run()
    if (!this.#running) this.#socket.resume()
  }
}

const drained = (framed: FramedSocket) =>
  framed.waiting < fullBytes || !framed.open
    ? undefined
    : new Promise<void>(resolve => {
        const done = () => {
          framed.socket.off('drain', done)
          framed.socket.off('close', done)
          resolve()
        }
        framed.socket.on('drain', done)
        framed.socket.on('close', done)
      })

/** The end of a client at the server that it connected to. */
export function clientOver(socket: Socket, client: RelayedClient): RelayedEnd {
  const inbox = new Inbox(socket)
  let end = { code: 1006, reason: '' }
  const framed = new FramedSocket(socket, {
    limit,
    take: (kind, data) => {
      if (kind !== control) inbox.add(() => client.message(data, kind === bytes))
      else end = { ...end, ...objectIn(data) }
    },
    closed: () => inbox.add(() => client.closed(end.code, end.reason))
  })
  const { principal, remote_address, user_agent } = client
  framed.send(control, JSON.stringify({ principal, remote_address, user_agent }))
  return {
    send: (data, binary) => void framed.send(binary ? bytes : text, data),
    close: () => socket.destroySoon()
  }
}

/** The end at the server that has the session. */
export function takeClient(socket: Socket, relays: Relays): void {
  const inbox = new Inbox(socket)
  let connection: ReturnType<Relays['connect']> | undefined
  const framed: FramedSocket = new FramedSocket(socket, {
    limit,
    take: (kind, data) => {
      if (kind === control && !connection) connection = accept(objectIn(data) as unknown as RelayedClient)
      else if (kind !== control) inbox.add(() => connection?.receive(Buffer.from(data), kind === bytes))
    },
    closed: () => connection?.close()
  })
  const accept = (asker: RelayedClient) => {
    try {
      return relays.connect({
        principal: asker.principal,
        remote_address: asker.remote_address,
        user_agent: asker.user_agent,
        message: (data, binary) => {
          framed.send(binary ? bytes : text, data)
          return drained(framed)
        },
        closed: (code, reason) => {
          framed.send(control, JSON.stringify({ code, reason }))
          socket.destroySoon()
        }
      })
    } catch {
      socket.destroy() // the server is stopping
      return undefined
    }
  }
}
