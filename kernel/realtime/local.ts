/** Connections without a socket: the other end is code of this process (a bridge, a test, another instance). */
import { EventEmitter } from 'node:events'
import type { Logger } from '../log/log.ts'
import type { Transport } from './connection.ts'
import type { LocalClient } from './types.ts'

/** A client that takes this much too little should be waited for. */
const fullBytes = 64 * 1024
/** A client that does not take what was sent before a close is left after this. */
const closeGraceMs = 1000

interface Message {
  readonly bytes: Buffer
  readonly binary: boolean
}

export class LocalTransport extends EventEmitter implements Transport {
  readonly #client: LocalClient
  readonly #log: Logger
  readonly #messages: Message[] = []
  #pending = 0
  #running = false
  #end: { readonly code: number; readonly reason: string } | undefined
  #over = false
  #paused = false
  #senders: (() => void)[] = []

  constructor(client: LocalClient, log: Logger) {
    super()
    this.#client = client
    this.#log = log
  }

  get open(): boolean {
    return !this.#end
  }

  get pending(): number {
    return this.#pending
  }

  get full(): boolean {
    return this.#pending > fullBytes
  }

  send(bytes: Buffer, binary: boolean): void {
    if (!this.open) return
    this.#messages.push({ bytes, binary })
    this.#pending += bytes.length
    if (!this.#running) void this.#run()
  }

  pause(): void {
    this.#paused = true
  }

  resume(): void {
    this.#paused = false
    for (const resolve of this.#senders.splice(0)) resolve()
  }

  /** Resolves while the server takes messages. */
  ready(): Promise<void> {
    return this.#paused && !this.#over ? new Promise(resolve => this.#senders.push(resolve)) : Promise.resolve()
  }

  /** What was sent before is given to the client first. */
  close(code: number, reason: string): void {
    if (this.#end) return
    this.#end = { code, reason }
    if (!this.#running) this.finish(code, reason)
    else setTimeout(() => this.finish(code, reason), closeGraceMs).unref()
  }

  /** The end, whatever waits. */
  finish(code: number, reason: string): void {
    if (this.#over) return
    this.#end ??= { code, reason }
    this.#over = true
    this.#messages.length = 0
    this.resume()
    this.emit('close')
    this.#client.closed?.(code, reason)
  }

  async #run(): Promise<void> {
    this.#running = true
    await null // never inside the call that sends
    for (let next = this.#messages.shift(); next && !this.#over; next = this.#messages.shift()) {
      try {
        await this.#client.message(next.bytes, next.binary)
      } catch (err) {
        this.#log.warn({ err }, 'a client in this process failed')
        this.finish(1011, 'client failed')
      }
      this.#pending -= next.bytes.length
      if (this.#pending === 0) this.emit('drain')
    }
    this.#running = false
    if (this.#end) this.finish(this.#end.code, this.#end.reason)
  }
}
