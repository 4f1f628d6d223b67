/** The standing connection between two servers: beats, words of packs, and the events that reach everyone. */
import type { Socket } from 'node:net'
import type { SharedEvent } from '../../kernel/index.ts'
import { FramedSocket, objectIn } from './framed.ts'
import { Unreached } from './owner.ts'

const json = 0
const event = 1
const limit = 80 * 1024 * 1024
/** What may wait for a server that does not read; then it is left, and linked again when it reads. */
const waitingBytes = 64 * 1024 * 1024
const beatMs = 1000
/** So many beats without a word, and it hangs. */
const missedBeats = 3
const askMs = 10_000

export interface LinkPorts {
  shared(event: SharedEvent): void
  told(topic: string, payload: unknown): void
  asked(topic: string, payload: unknown): Promise<unknown>
  /** It says something again after it was silent, or says nothing any more. */
  silent(isSilent: boolean): void
  closed(): void
}

export class Link {
  readonly #framed: FramedSocket
  readonly #ports: LinkPorts
  readonly #asked = new Map<number, { resolve(value: unknown): void; reject(error: Error): void }>()
  readonly #timer: NodeJS.Timeout
  #next = 0
  #missed = 0
  #closing = false

  constructor(socket: Socket, ports: LinkPorts) {
    this.#ports = ports
    this.#framed = new FramedSocket(socket, { limit, take: (kind, bytes) => this.#take(kind, bytes), closed: () => this.#closed() })
    socket.unref()
    this.#timer = setInterval(() => this.#beat(), beatMs)
    this.#timer.unref()
  }

  get silent(): boolean {
    return this.#missed >= missedBeats
  }

  share({ frame, ...about }: SharedEvent): void {
    this.#send(event, Buffer.concat([Buffer.from(`${JSON.stringify(about)}\n`), frame]))
  }

  tell(topic: string, payload: unknown): void {
    this.#say({ tell: topic, payload })
  }

  /** Rejects with `Unreached` when there is no answer, as soon as the other side is silent. */
  ask(topic: string, payload: unknown): Promise<unknown> {
    if (this.silent) return Promise.reject(new Unreached(undefined, true))
    const ask = this.#next++
    return new Promise((resolve, reject) => {
      const limitTimer = setTimeout(() => {
        this.#asked.delete(ask)
        reject(new Unreached())
      }, askMs)
      const done = <T>(then: (value: T) => void) => {
        return (value: T) => {
          clearTimeout(limitTimer)
          then(value)
        }
      }
      this.#asked.set(ask, { resolve: done(resolve), reject: done(reject) })
      if (!this.#say({ ask, topic, payload })) this.#asked.get(ask)?.reject(new Unreached())
    })
  }

  /** What was said before goes out; what comes is for nobody any more. */
  close(): void {
    this.#closing = true
    this.#framed.socket.destroySoon()
  }

  #say(message: object): boolean {
    return this.#send(json, Buffer.from(JSON.stringify(message)))
  }

  #send(kind: number, bytes: Buffer): boolean {
    if (this.#framed.waiting > waitingBytes) this.#framed.socket.destroy()
    return this.#framed.send(kind, bytes)
  }

  #beat(): void {
    this.#missed++
    if (this.#missed === missedBeats) {
      this.#ports.silent(true)
      this.#unanswered(true)
    }
    this.#say({ beat: true })
  }

  #take(kind: number, bytes: Buffer): void {
    if (this.#closing) return
    if (this.silent) this.#ports.silent(false)
    this.#missed = 0
    if (kind === event) {
      const end = bytes.indexOf(10)
      const about = objectIn(bytes.subarray(0, end))
      if (about) this.#ports.shared({ ...(about as unknown as SharedEvent), frame: Buffer.from(bytes.subarray(end + 1)) })
      return
    }
    const message = objectIn(bytes)
    if (!message) this.#framed.socket.destroy()
    else if (typeof message.tell === 'string') this.#ports.told(message.tell, message.payload)
    else if (typeof message.ask === 'number') void this.#answer(message.ask, String(message.topic), message.payload)
    else if (typeof message.answer === 'number') {
      const asked = this.#asked.get(message.answer)
      this.#asked.delete(message.answer)
      if (typeof message.error === 'string') asked?.reject(new Error(message.error))
      else asked?.resolve(message.payload)
    }
  }

  async #answer(answer: number, topic: string, asked: unknown): Promise<void> {
    try {
      this.#say({ answer, payload: await this.#ports.asked(topic, asked) })
    } catch (error) {
      this.#say({ answer, error: error instanceof Error ? error.message : 'failed' })
    }
  }

  #unanswered(silent = false): void {
    for (const { reject } of this.#asked.values()) reject(new Unreached(undefined, silent))
    this.#asked.clear()
  }

  #closed(): void {
    clearInterval(this.#timer)
    this.#unanswered()
    this.#ports.closed()
  }
}
