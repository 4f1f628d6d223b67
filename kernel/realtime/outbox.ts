/** The sending half of a socket: one order, a byte budget, and a hold while a replay runs. */
import type { Duplex } from 'node:stream'
import { WebSocket } from 'ws'

const asText = { binary: false, compress: false } as const

export class Outbox {
  readonly #ws: WebSocket
  readonly #socket: Duplex
  readonly #budget: number
  readonly #onSlow: () => void
  #held: Buffer[] = []
  #heldBytes = 0
  #holds = 0

  /** `budget` is what may wait unsent, in bytes; the frame that finds more waiting calls `onSlow` and is not sent. */
  constructor(ws: WebSocket, socket: Duplex, budget: number, onSlow: () => void) {
    this.#ws = ws
    this.#socket = socket
    this.#budget = budget
    this.#onSlow = onSlow
  }

  get open(): boolean {
    return this.#ws.readyState === WebSocket.OPEN
  }

  /** Sends one text message after everything queued before it. */
  write(bytes: Buffer): void {
    if (!this.open) return
    if (this.#ws.bufferedAmount + this.#heldBytes > this.#budget) {
      this.#onSlow()
    } else if (this.#holds > 0) {
      this.#held.push(bytes)
      this.#heldBytes += bytes.length
    } else {
      this.#ws.send(bytes, asText)
    }
  }

  /** Queues everything that comes by `write` until the returned release is called, so that a replay goes first. */
  hold(): () => void {
    this.#holds++
    let released = false
    return () => {
      if (released) return
      released = true
      if (--this.#holds > 0) return
      const held = this.#held
      this.#held = []
      this.#heldBytes = 0
      if (!this.open) return
      this.cork()
      for (const bytes of held) this.#ws.send(bytes, asText)
      this.uncork()
    }
  }

  /** Sends messages past the hold; resolves when the operating system took the last one, or the socket is gone. */
  async pass(messages: readonly Buffer[]): Promise<void> {
    const last = messages.at(-1)
    if (!last || !this.open) return
    await new Promise<void>(resolve => {
      this.#ws.once('close', resolve)
      this.cork()
      for (const bytes of messages.slice(0, -1)) this.#ws.send(bytes, asText)
      this.#ws.send(last, asText, () => {
        this.#ws.off('close', resolve)
        resolve()
      })
      this.uncork()
    })
  }

  cork(): void {
    this.#socket.cork()
  }

  uncork(): void {
    this.#socket.uncork()
  }
}
