/**
 * The kv database beyond its process: the owner serves the other server processes of the home, the guests send it their requests. They talk
 * in JSON lines over loopback TCP. Both sides prove that they know the secret in the owner's file without sending it, so neither a stranger
 * on the port nor a stale file can join.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { AppError, PersistenceFailed } from '../errors.ts'
import { late, waitAtMost } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import { removeFile, replaceFile } from './files.ts'
import type { KvEngine, KvReply, KvRequest } from './kv-engine.ts'
import type { Lock } from './lock.ts'

/** What the owner publishes for the others (`kv-owner.json`, 0600). */
interface OwnerFile {
  readonly pid: number
  readonly port: number
  readonly secret: string
}

/** A batch of 4 MiB, its quotes escaped twice, fits. */
const maxFrameBytes = 12 * 1024 * 1024
const handshakeFrameBytes = 1024
const handshakeMs = 2000

function proof(secret: string, side: 'owner' | 'guest', nonce: string): string {
  return createHmac('sha256', secret).update(`${side}:${nonce}`).digest('hex')
}

/** Compares in constant time. */
function isProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string') return false
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

interface Frames {
  /** Upper bound of one line in bytes; a longer one ends the connection. */
  limit: number
}

/** Calls `receive` with every frame of a socket; what is not a JSON object, or too long, ends the connection. */
function readFrames(socket: Socket, limit: number, receive: (frame: Record<string, unknown>, bytes: number) => void): Frames {
  const frames: Frames = { limit }
  const parts: Buffer[] = []
  let held = 0
  socket.on('data', (data: Buffer) => {
    let from = 0
    for (let at = data.indexOf(10); at >= 0 && !socket.destroyed; at = data.indexOf(10, from)) {
      parts.push(data.subarray(from, at))
      from = at + 1
      const line = Buffer.concat(parts)
      parts.length = 0
      held = 0
      const frame = line.length <= frames.limit ? parse(line) : undefined
      if (frame) receive(frame, line.length)
      else socket.destroy()
    }
    if (socket.destroyed) return
    if (from < data.length) {
      parts.push(data.subarray(from))
      held += data.length - from
    }
    if (held > frames.limit) socket.destroy()
  })
  return frames
}

function sendFrame(socket: Socket, frame: object): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(frame)}\n`)
}

function parse(line: Buffer): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(line.toString('utf8'))
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
  } catch {
    return undefined // not one of ours: the caller hangs up
  }
}

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

/** The owner went away before it answered; the request goes to the next owner. */
export class OwnerGone extends Error {}

/** Bytes of requests that may wait for answers. */
const waitingBytes = 64 * 1024 * 1024

interface Waiting {
  readonly bytes: number
  resolve(reply: KvReply): void
  reject(error: Error): void
}

export class KvGuest {
  readonly #socket: Socket
  readonly #waiting = new Map<number, Waiting>()
  #nextId = 0
  #bytes = 0

  private constructor(socket: Socket) {
    this.#socket = socket
  }

  /** Connects to the owner that `file` names; undefined when there is none to be reached. */
  static async join(file: string): Promise<KvGuest | undefined> {
    const owner = await readOwner(file)
    if (!owner) return undefined
    const socket = connect({ port: owner.port, host: '127.0.0.1', noDelay: true })
    const guest = new KvGuest(socket)
    const closed = once(socket, 'close').then(
      () => false,
      () => false // an error: refused or reset
    )
    const joined = await waitAtMost(Promise.race([guest.#greet(owner.secret), closed]), handshakeMs)
    if (joined !== true) {
      socket.destroy()
      return undefined
    }
    socket.unref()
    return guest
  }

  run(request: KvRequest): Promise<KvReply> {
    return new Promise((resolve, reject) => {
      if (this.#socket.destroyed || !this.#socket.writable) {
        // Before this one, so that the next owner gets the requests in the order of the calls.
        this.#lost()
        reject(new OwnerGone())
        return
      }
      const id = this.#nextId++
      const line = `${JSON.stringify({ id, request })}\n`
      const bytes = Buffer.byteLength(line)
      if (this.#bytes > 0 && this.#bytes + bytes > waitingBytes) {
        reject(new AppError(PersistenceFailed, { message: 'the owner of the kv database does not keep up' }))
        return
      }
      this.#bytes += bytes
      this.#waiting.set(id, { bytes, resolve, reject })
      this.#socket.ref()
      this.#socket.write(line)
    })
  }

  async close(): Promise<void> {
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.destroySoon()
    await closed
  }

  #greet(secret: string): Promise<boolean> {
    const socket = this.#socket
    const nonce = randomBytes(16).toString('hex')
    socket.on('error', () => undefined) // followed by close
    socket.on('close', () => this.#lost())
    socket.on('connect', () => socket.write(`${JSON.stringify({ hello: nonce })}\n`))
    let stage: 'hello' | 'proven' | 'joined' = 'hello'
    return new Promise(resolve => {
      const frames = readFrames(socket, handshakeFrameBytes, frame => {
        if (stage === 'joined') this.#answer(frame)
        else if (stage === 'proven' && frame.welcome === true) {
          stage = 'joined'
          frames.limit = maxFrameBytes
          resolve(true)
        } else if (stage === 'hello' && isProof(frame.proof, proof(secret, 'owner', nonce)) && typeof frame.nonce === 'string') {
          stage = 'proven'
          socket.write(`${JSON.stringify({ proof: proof(secret, 'guest', frame.nonce) })}\n`)
        } else socket.destroy()
      })
    })
  }

  #answer(frame: Record<string, unknown>): void {
    const waiting = this.#take(frame.id as number)
    if (!waiting) return
    if (typeof frame.error === 'string') {
      waiting.reject(new AppError(PersistenceFailed, { message: `kv database: ${frame.error}` }))
    } else waiting.resolve((frame.reply ?? {}) as KvReply)
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id)
    if (!waiting) return undefined
    this.#waiting.delete(id)
    this.#bytes -= waiting.bytes
    // An idle connection does not keep the process alive; one with requests under way does.
    if (this.#waiting.size === 0) this.#socket.unref()
    return waiting
  }

  #lost(): void {
    for (const id of [...this.#waiting.keys()]) this.#take(id)?.reject(new OwnerGone())
  }
}

async function readOwner(file: string): Promise<OwnerFile | undefined> {
  try {
    const owner = JSON.parse(await readFile(file, 'utf8')) as OwnerFile
    const usable = Number.isSafeInteger(owner.pid) && owner.port > 0 && owner.port < 65_536 && typeof owner.secret === 'string'
    return usable ? owner : undefined
  } catch {
    return undefined // not there (yet), or half written by a crash: the next owner replaces it
  }
}
