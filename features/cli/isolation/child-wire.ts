/**
 * The channel as the pack's process has it: what it says is written at once and in order (a server that does not read makes it wait), what
 * it is told comes in its own time, and answers that it stands still for have a way of their own.
 */
import { readSync, writeSync } from 'node:fs'
import { Socket } from 'node:net'
import { FramedSocket } from '../../peers/framed.ts'
import { channels, messageBytes, pack, unpack } from './framing.ts'
import type { Message, Wire } from './peer.ts'

const headBytes = 5

export class ChildWire implements Wire {
  send(message: Message, bytes: readonly Uint8Array[]): void {
    const { kind, body } = pack(message, bytes)
    const frame = Buffer.allocUnsafe(headBytes + body.length)
    frame.writeUInt32BE(body.length)
    frame[4] = kind
    frame.set(body, headBytes)
    for (let at = 0; at < frame.length; ) at += orEnd(() => writeSync(channels.says, frame, at))
  }

  ask(message: Message, bytes: readonly Uint8Array[]) {
    this.send(message, bytes)
    const head = read(headBytes)
    return unpack(head[4]!, read(head.readUInt32BE(0)))
  }

  /** Begins to hear what the server says; without a server there is no pack. */
  listen(take: (message: Message, bytes: readonly Uint8Array[]) => void): void {
    new FramedSocket(new Socket({ fd: channels.told, readable: true, writable: false }), {
      limit: messageBytes,
      take: (kind, body) => {
        const { message, bytes } = unpack(kind, body)
        take(message, bytes)
      },
      closed: () => process.exit()
    })
  }
}

function read(length: number): Buffer {
  const bytes = Buffer.allocUnsafe(length)
  for (let at = 0; at < length; ) {
    const count = orEnd(() => readSync(channels.answers, bytes, at, length - at, null))
    if (count === 0) process.exit() // the server is gone
    at += count
  }
  return bytes
}

/** A channel that is over has no other end. */
function orEnd(work: () => number): number {
  try {
    return work()
  } catch {
    process.exit()
  }
}
