/**
 * Sockets between the server processes of one home, over loopback TCP. Both sides prove that they hold the secret of the home
 * (`<home>/server/channel.secret`, 0600) without sending it, for one purpose and one listener: a stranger on a port that was given up
 * gains nothing, also by passing on what others say.
 */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { makeFile, readIfThere } from '../../kernel/index.ts'

/** What a handshake is about: what the socket is for, and who listens. */
export interface ChannelName {
  readonly purpose: string
  /** Of the listener: a port alone does not tell who is there. */
  readonly id: string
}

const handshakeBytes = 1024
const handshakeMs = 2000
/** So many may be in their handshake; those that are welcome are as many as the other servers have clients. */
const maxStrangers = 4096

/** The secret of a home, in `<home>/server` (`dir`), made (0600) by whoever needs it first. */
export async function homeSecret(dir: string): Promise<string> {
  const path = join(dir, 'channel.secret')
  for (let round = 0; ; round++) {
    const text = (await readIfThere(path)) ?? ''
    if (/^[0-9a-f]{64}$/.test(text)) return text
    if (round > 0) throw new Error('the secret of the home cannot be used; remove server/channel.secret and start again')
    await makeFile(path, randomBytes(32).toString('hex'))
  }
}

/** Listens on a loopback port for sockets of other processes of the home; `take` gets those that proved themselves. */
export async function listenToChannels(
  secret: string,
  id: string,
  take: (socket: Socket, purpose: string) => void
): Promise<{ readonly server: Server; readonly port: number }> {
  let strangers = 0
  const server = createServer({ noDelay: true }, socket => {
    socket.unref()
    socket.on('error', () => undefined) // followed by close
    if (strangers >= maxStrangers) {
      socket.destroy()
      return
    }
    strangers++
    welcome(socket, secret, id)
      .finally(() => strangers--)
      .then(
        purpose => take(socket, purpose),
        () => socket.destroy() // a stranger, or somebody of another home
      )
  })
  server.unref()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  server.on('error', () => undefined) // a failed accept is the caller's to retry
  const address = server.address()
  return { server, port: typeof address === 'object' && address !== null ? address.port : 0 }
}

/** Somebody listens there and says nothing. */
export class NoAnswer extends Error {}

/** A socket to a listener. Rejects when nobody is there, or not who was meant, within 2 s, and with `NoAnswer` after that. The socket is paused. */
export async function dialChannel(port: number, secret: string, name: ChannelName): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true })
  socket.on('error', () => undefined) // followed by close
  try {
    return await within(socket, async () => {
      const mine = nonce()
      say(socket, { hello: mine, purpose: name.purpose })
      const answer = await hear(socket)
      const theirs = answer.nonce
      if (typeof theirs !== 'string' || !isProof(answer.proof, proof(secret, 'listener', name, mine, theirs))) throw new Error('a stranger')
      say(socket, { proof: proof(secret, 'caller', name, mine, theirs) })
      if ((await hear(socket)).welcome !== true) throw new Error('not welcome')
      return socket
    })
  } catch (error) {
    socket.destroy()
    throw error
  }
}

async function welcome(socket: Socket, secret: string, id: string): Promise<string> {
  return await within(socket, async () => {
    const { hello, purpose } = await hear(socket)
    if (typeof hello !== 'string' || typeof purpose !== 'string') throw new Error('no hello')
    const name = { purpose, id }
    const mine = nonce()
    say(socket, { nonce: mine, proof: proof(secret, 'listener', name, hello, mine) })
    if (!isProof((await hear(socket)).proof, proof(secret, 'caller', name, hello, mine))) throw new Error('no proof')
    say(socket, { welcome: true })
    return purpose
  })
}

const nonce = () => randomBytes(16).toString('hex')

/** Each side's proof is about both nonces, so none can be used again or thrown back. */
function proof(secret: string, side: 'listener' | 'caller', { purpose, id }: ChannelName, caller: string, listener: string): string {
  return createHmac('sha256', secret)
    .update(JSON.stringify([side, purpose, id, caller, listener]))
    .digest('hex')
}

/** Compares in constant time. */
function isProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string') return false
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

function say(socket: Socket, message: object): void {
  if (!socket.destroyed) socket.write(`${JSON.stringify(message)}\n`)
}

async function within<T>(socket: Socket, work: () => Promise<T>): Promise<T> {
  const limit = setTimeout(() => socket.destroy(new NoAnswer()), handshakeMs)
  try {
    return await work()
  } finally {
    clearTimeout(limit)
  }
}

/** The next line, an object. What follows it stays in the socket, which is paused. */
function hear(socket: Socket): Promise<Record<string, unknown>> {
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = []
    let length = 0
    const over = () => reject(socket.errored ?? new Error('the other side is gone'))
    const take = (data: Buffer) => {
      const at = data.indexOf(10)
      parts.push(at < 0 ? data : data.subarray(0, at))
      length += data.length
      if (at < 0 && length <= handshakeBytes) return
      socket.off('data', take)
      socket.off('close', over)
      socket.pause()
      if (at >= 0 && at + 1 < data.length) socket.unshift(data.subarray(at + 1))
      try {
        const value: unknown = at < 0 ? undefined : JSON.parse(Buffer.concat(parts).toString('utf8'))
        if (typeof value !== 'object' || value === null) throw new Error('no object')
        resolve(value as Record<string, unknown>)
      } catch (error) {
        reject(error)
      }
    }
    if (socket.destroyed) {
      over()
      return
    }
    socket.on('data', take)
    socket.once('close', over)
    socket.resume()
  })
}
