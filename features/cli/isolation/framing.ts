/**
 * What goes between the server and a pack's process: over which descriptors, and messages as bytes (JSON, or its length, the JSON, and each
 * piece of bytes behind its own length).
 */
import type { Message } from './peer.ts'

/** Descriptors of the process, as it is started: what it says, what it is told, what it stands still for, and what ends with the server. */
export const channels = { says: 3, told: 4, answers: 5, life: 6 } as const

/** As they were before a pack could change them. */
const { stringify, parse } = JSON

const plain = 0
const withBytes = 1
/** Longest message. */
export const messageBytes = 64 * 1024 * 1024

interface Packed {
  readonly kind: number
  readonly body: Uint8Array
}

export function pack(message: Message, bytes: readonly Uint8Array[]): Packed {
  const json = Buffer.from(stringify(message))
  const packed =
    bytes.length === 0
      ? { kind: plain, body: json }
      : { kind: withBytes, body: Buffer.concat([json, ...bytes].flatMap(part => [lengthOf(part), part])) }
  if (packed.body.length > messageBytes)
    throw new Error(`a message of ${packed.body.length} bytes is more than ${messageBytes}, which is the limit`)
  return packed
}

function lengthOf(part: Uint8Array): Buffer {
  const length = Buffer.allocUnsafe(4)
  length.writeUInt32BE(part.length)
  return length
}

/** Throws on what `pack` did not make. The pieces are copies: what they came in is used again. */
export function unpack(kind: number, body: Buffer): { readonly message: Message; readonly bytes: readonly Uint8Array[] } {
  if (kind === plain) return { message: parse(body.toString('utf8')) as Message, bytes: [] }
  const parts: Buffer[] = []
  for (let at = 0; at < body.length; ) {
    const end = at + 4 + body.readUInt32BE(at)
    parts.push(Buffer.from(body.subarray(at + 4, end)))
    at = end
  }
  const [json, ...bytes] = parts
  return { message: parse(String(json)) as Message, bytes }
}
