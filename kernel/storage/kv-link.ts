/**
 * The kv database beyond its process: the owner serves the other server processes of the home, the guests send it their requests, over the
 * channel between the processes of a home.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import type { Server, Socket } from 'node:net'
import { dirname } from 'node:path'
import { FramedSocket, jsonOf } from '../channel/framed.ts'
import { dialChannel, homeSecret, listenToChannels } from '../channel/handshake.ts'
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
  readonly id: string
}

/** A batch of 4 MiB, its quotes escaped twice, fits. */
const maxFrameBytes = 12 * 1024 * 1024
const closeMs = 2000
const purpose = 'kv'
const json = 0

/** Per guest: bytes of requests under way, or of answers not yet taken, above which nothing more is read from it. */
const busyBytes = 16 * 1024 * 1024
const maxGuests = 256

export class KvOwner {
  readonly #engine: KvEngine
  readonly #lock: Lock
  readonly #file: string
  readonly #id = randomBytes(16).toString('hex')
  readonly #guests = new Set<Socket>()
  readonly #serving = new Set<Promise<void>>()
  /** Undefined: this process works alone. */
  #server: Server | undefined

  private constructor(engine: KvEngine, lock: Lock, file: string) {
    this.#engine = engine
    this.#lock = lock
    this.#file = file
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
    this.#server?.close()
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
    if ((await waitAtMost(Promise.allSettled(gone), closeMs)) === late) for (const socket of this.#guests) socket.destroy()
  }

  async #publish(): Promise<void> {
    const secret = await homeSecret(dirname(this.#file))
    const { server, port } = await listenToChannels(secret, this.#id, socket => this.#welcome(socket))
    this.#server = server
    const published: OwnerFile = { pid: process.pid, port, id: this.#id }
    await replaceFile(this.#file, JSON.stringify(published), { sync: 'write' })
  }

  #welcome(socket: Socket): void {
    if (this.#guests.size >= maxGuests || !this.#server?.listening) {
      socket.destroy()
      return
    }
    let busy = 0
    this.#guests.add(socket)
    const balance = () => {
      if (busy > busyBytes || socket.writableLength > busyBytes) socket.pause()
      else if (this.#server?.listening) socket.resume()
    }
    const guest = new FramedSocket(socket, {
      limit: maxFrameBytes,
      take: (_kind, bytes) => {
        const frame = jsonOf(bytes)
        if (!frame) {
          socket.destroy()
          return
        }
        busy += bytes.length
        const served = this.#serve(guest, frame).finally(() => {
          busy -= bytes.length
          this.#serving.delete(served)
          balance()
        })
        this.#serving.add(served)
        balance()
      },
      closed: () => this.#guests.delete(socket)
    })
    socket.on('drain', balance)
  }

  async #serve(guest: FramedSocket, frame: Record<string, unknown>): Promise<void> {
    const { id } = frame
    const answer = (fields: object) => void guest.send(json, JSON.stringify({ id, ...fields }))
    try {
      answer({ reply: await this.#engine.run(frame.request as KvRequest) })
    } catch (error) {
      answer({ error: error instanceof Error ? error.message : 'failed' })
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
  readonly #framed: FramedSocket
  readonly #waiting = new Map<number, Waiting>()
  #nextId = 0
  #bytes = 0

  private constructor(socket: Socket) {
    this.#socket = socket
    this.#framed = new FramedSocket(socket, {
      limit: maxFrameBytes,
      take: (_kind, bytes) => {
        const frame = jsonOf(bytes)
        if (frame) this.#answer(frame)
        else socket.destroy()
      },
      closed: () => this.#lost()
    })
    socket.unref()
  }

  /** Connects to the owner that `file` names; undefined when there is none to be reached. */
  static async join(file: string): Promise<KvGuest | undefined> {
    const owner = await readOwner(file)
    if (!owner) return undefined
    try {
      return new KvGuest(await dialChannel(owner.port, await homeSecret(dirname(file)), { purpose, id: owner.id }))
    } catch {
      return undefined // the next owner writes the file again
    }
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
      const line = Buffer.from(JSON.stringify({ id, request }))
      const bytes = line.length
      if (this.#bytes > 0 && this.#bytes + bytes > waitingBytes) {
        reject(new AppError(PersistenceFailed, { message: 'the owner of the kv database does not keep up' }))
        return
      }
      this.#bytes += bytes
      this.#waiting.set(id, { bytes, resolve, reject })
      this.#socket.ref()
      this.#framed.send(json, line)
    })
  }

  async close(): Promise<void> {
    if (this.#socket.closed) return
    const closed = once(this.#socket, 'close')
    this.#socket.destroySoon()
    await closed
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
    const usable = Number.isSafeInteger(owner.pid) && owner.port > 0 && owner.port < 65_536 && typeof owner.id === 'string'
    return usable ? owner : undefined
  } catch {
    return undefined // not there (yet), or half written by a crash: the next owner replaces it
  }
}
