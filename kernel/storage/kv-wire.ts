/**
 * How server processes of one home talk about the kv database: JSON lines over loopback TCP. Both sides prove that they know the secret
 * in the owner's file without sending it, so neither a stranger on the port nor a stale file can join.
 */
import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'

/** What the owner publishes for the others (`kv-owner.json`, 0600). */
export interface OwnerFile {
  readonly pid: number
  readonly port: number
  readonly secret: string
}

/** A batch of 4 MiB, its quotes escaped twice, fits. */
export const maxFrameBytes = 12 * 1024 * 1024
export const handshakeFrameBytes = 1024
export const handshakeMs = 2000

export function proof(secret: string, side: 'owner' | 'guest', nonce: string): string {
  return createHmac('sha256', secret).update(`${side}:${nonce}`).digest('hex')
}

/** Compares in constant time. */
export function isProof(given: unknown, expected: string): boolean {
  if (typeof given !== 'string') return false
  const [left, right] = [Buffer.from(given), Buffer.from(expected)]
  return left.length === right.length && timingSafeEqual(left, right)
}

export interface Frames {
  /** Upper bound of one line in bytes; a longer one ends the connection. */
  limit: number
}

/** Calls `receive` with every frame of a socket; what is not a JSON object, or too long, ends the connection. */
export function readFrames(socket: Socket, limit: number, receive: (frame: Record<string, unknown>, bytes: number) => void): Frames {
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

export function sendFrame(socket: Socket, frame: object): void {
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
