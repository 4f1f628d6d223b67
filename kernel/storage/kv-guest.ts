/** The kv database seen from a process that does not own it: requests travel to the owner. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, type Socket } from 'node:net'
import { AppError, PersistenceFailed } from '../errors.ts'
import { waitAtMost } from '../lifecycle/wait.ts'
import type { KvReply, KvRequest } from './kv-engine.ts'
import { handshakeFrameBytes, handshakeMs, isProof, maxFrameBytes, type OwnerFile, proof, readFrames } from './kv-wire.ts'

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
