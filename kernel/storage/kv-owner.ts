/** The owner's side of the kv database: serves the other server processes of the home. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer, type Server, type Socket } from 'node:net'
import { late, waitAtMost } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import { removeFile, replaceFile } from './files.ts'
import type { KvEngine, KvReply, KvRequest } from './kv-engine.ts'
import { handshakeFrameBytes, handshakeMs, isProof, maxFrameBytes, type OwnerFile, proof, readFrames, sendFrame } from './kv-wire.ts'
import type { Lock } from './lock.ts'

/** Per guest: bytes of requests under way, or of answers not yet taken, above which nothing more is read from it. */
const busyBytes = 16 * 1024 * 1024
const maxGuests = 256

export class KvOwner {
  readonly #engine: KvEngine
  readonly #lock: Lock
  readonly #file: string
  readonly #secret = randomBytes(32).toString('hex')
  readonly #guests = new Set<Socket>()
  readonly #serving = new Set<Promise<void>>()
  readonly #server: Server

  private constructor(engine: KvEngine, lock: Lock, file: string) {
    this.#engine = engine
    this.#lock = lock
    this.#file = file
    this.#server = createServer({ noDelay: true }, socket => this.#welcome(socket))
    this.#server.maxConnections = maxGuests
    this.#server.unref()
  }

  /** Starts serving; where no loopback port can be had, this process works alone, with a warning. */
  static async start(engine: KvEngine, lock: Lock, file: string, log: Pick<Logger, 'warn'>): Promise<KvOwner> {
    const owner = new KvOwner(engine, lock, file)
    try {
      await owner.#publish()
    } catch (error) {
      log.warn({ err: error }, 'the kv database cannot be shared with other servers of this home')
    }
    return owner
  }

  /** A write of this process needs its number only when it was sent to another owner before. */
  run(request: KvRequest): Promise<KvReply> {
    if (request.op !== 'write' || request.id?.again) return this.#engine.run(request)
    const { id: _, ...write } = request
    return this.#engine.run(write)
  }

  /** Answers what was asked, closes the database and lets the next process take over. */
  async close(): Promise<void> {
    this.#server.close()
    for (const socket of this.#guests) socket.pause()
    await Promise.allSettled(this.#serving)
    const gone = [...this.#guests].map(socket => (socket.closed ? undefined : once(socket, 'close')))
    for (const socket of this.#guests) socket.destroySoon()
    try {
      await this.#engine.close()
      await removeFile(this.#file)
    } finally {
      await this.#lock.release()
    }
    if ((await waitAtMost(Promise.allSettled(gone), handshakeMs)) === late) for (const socket of this.#guests) socket.destroy()
  }

  async #publish(): Promise<void> {
    this.#server.listen(0, '127.0.0.1')
    await once(this.#server, 'listening')
    this.#server.on('error', () => undefined) // a failed accept is the guest's to retry
    const address = this.#server.address()
    const port = typeof address === 'object' && address !== null ? address.port : 0
    const published: OwnerFile = { pid: process.pid, port, secret: this.#secret }
    await replaceFile(this.#file, JSON.stringify(published), { sync: 'write' })
  }

  #welcome(socket: Socket): void {
    const nonce = randomBytes(16).toString('hex')
    let trusted = false
    let busy = 0
    socket.unref()
    this.#guests.add(socket)
    const timer = setTimeout(() => socket.destroy(), handshakeMs)
    timer.unref()
    const balance = () => {
      if (busy > busyBytes || socket.writableLength > busyBytes) socket.pause()
      else if (this.#server.listening) socket.resume()
    }
    const frames = readFrames(socket, handshakeFrameBytes, (frame, bytes) => {
      if (trusted) {
        busy += bytes
        const served = this.#serve(socket, frame).finally(() => {
          busy -= bytes
          this.#serving.delete(served)
          balance()
        })
        this.#serving.add(served)
        balance()
      } else if (typeof frame.hello === 'string') {
        sendFrame(socket, { nonce, proof: proof(this.#secret, 'owner', frame.hello) })
      } else if (isProof(frame.proof, proof(this.#secret, 'guest', nonce))) {
        trusted = true
        frames.limit = maxFrameBytes
        clearTimeout(timer)
        sendFrame(socket, { welcome: true })
      } else socket.destroy()
    })
    socket.on('drain', balance)
    socket.on('error', () => undefined) // followed by close
    socket.on('close', () => {
      clearTimeout(timer)
      this.#guests.delete(socket)
    })
  }

  async #serve(socket: Socket, frame: Record<string, unknown>): Promise<void> {
    const { id } = frame
    try {
      sendFrame(socket, { id, reply: await this.#engine.run(frame.request as KvRequest) })
    } catch (error) {
      sendFrame(socket, { id, error: error instanceof Error ? error.message : 'failed' })
    }
  }
}
