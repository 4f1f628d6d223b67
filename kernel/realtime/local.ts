/** Connections without a socket: the other end is code of this process (a bridge, a test, another instance). */
import { EventEmitter } from 'node:events'
import type { Logger } from '../log/log.ts'
import type { Transport } from './connection.ts'
import type { LocalClient } from './types.ts'

/** A client that takes this much too little should be waited for. */
const fullBytes = 64 * 1024
/** A client that does not take what was sent before a close is left after this. */
const closeGraceMs = 1000

export class LocalTransport extends EventEmitter implements Transport {
  readonly #client: LocalClient
  readonly #log: Logger
  /** The client has taken, or refused, what was sent so far. */
  #taken: Promise<void> = Promise.resolve()
  #pending = 0
  #closing = false
  #over = false
  #paused = false
  #senders: (() => void)[] = []

  constructor(client: LocalClient, log: Logger) {
    super()
    this.#client = client
    this.#log = log
  }

  get open(): boolean {
    return !this.#closing
  }

  get pending(): number {
    return this.#pending
  }

  get full(): boolean {
    return this.#pending > fullBytes
  }

  /** The client gets it behind what was sent before, never inside this call. */
  send(bytes: Buffer, binary: boolean): void {
    if (!this.open) return
    this.#pending += bytes.length
    this.#taken = this.#taken.then(() => this.#give(bytes, binary))
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
    this.#closing = true
    const finish = () => this.finish(code, reason)
    void this.#taken.then(finish)
    setTimeout(finish, closeGraceMs).unref()
  }

  /** The end, whatever waits. */
  finish(code: number, reason: string): void {
    if (this.#over) return
    this.#closing = true
    this.#over = true
    this.resume()
    this.emit('close')
    this.#client.closed?.(code, reason)
  }

  async #give(bytes: Buffer, binary: boolean): Promise<void> {
    if (this.#over) return
    try {
      await this.#client.message(bytes, binary)
    } catch (err) {
      this.#log.warn({ err }, 'a client in this process failed')
      this.finish(1011, 'client failed')
    }
    this.#pending -= bytes.length
    if (this.#pending === 0) this.emit('drain')
  }
}
