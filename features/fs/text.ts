/** What is in a file, as answers show it: text as UTF-8, bytes as base64. */
import { isUtf8 } from 'node:buffer'
import type { FileHandle } from 'node:fs/promises'
import { partedText, yieldToLoop } from '../../kernel/index.ts'
import { denied, type Pin } from './boundary.ts'
import { encodingOf, HEAD_BYTES } from './encoding.ts'
import { languageOf, typeOfName } from './media-type.ts'

/** Bytes that are decoded without a pause. */
const SLICE_BYTES = 256 * 1024

/**
 * The bytes of a text as UTF-8, at least the first `most` of them. What is no character becomes U+FFFD. Marks of other encodings go. Yields to the
 * loop in between.
 */
export async function asUtf8(bytes: Buffer, encoding: string, most: number): Promise<Buffer> {
  if (encoding === 'utf-8' && isUtf8(bytes)) return bytes
  const decoder = new TextDecoder(encoding, { ignoreBOM: encoding === 'utf-8' })
  const parts: Buffer[] = []
  let size = 0
  for (let at = 0; at < bytes.length && size <= most; at += SLICE_BYTES) {
    if (at > 0) await yieldToLoop()
    const end = Math.min(at + SLICE_BYTES, bytes.length)
    // As a stream also the last one: Node 20 takes windows-1252 in one piece for ISO-8859-1.
    const text = decoder.decode(bytes.subarray(at, end), { stream: true })
    const part = Buffer.from(end === bytes.length ? text + decoder.decode() : text, 'utf8')
    parts.push(part)
    size += part.length
  }
  return Buffer.concat(parts)
}

export interface TextPart {
  /** As `partedText` makes it. */
  readonly content: string
  /** Where it ends in the text, bytes. */
  readonly end: number
  /** Lines of the part: those that an editor numbers, without the empty one behind the last line break. */
  readonly lines: number
}

/** A part of UTF-8: the characters that begin in it, whole. Yields to the loop in between. */
export async function sliceText(bytes: Buffer, offset: number, length: number): Promise<TextPart> {
  const start = characterAt(bytes, offset)
  const end = Math.max(start, characterAt(bytes, offset + length))
  const parts: string[] = []
  let lines = end > start && bytes[end - 1] !== lineBreak ? 1 : 0
  for (let at = start, next = start; at < end; at = next) {
    await yieldToLoop()
    next = Math.min(characterAt(bytes, at + SLICE_BYTES), end)
    parts.push(bytes.toString('utf8', at, next))
    lines += lineBreaks(bytes.subarray(at, next))
  }
  return { content: partedText(parts), end, lines }
}

/** Bytes as base64, as `partedText` makes it. Yields to the loop in between. */
export async function base64Of(bytes: Buffer): Promise<string> {
  const parts: string[] = []
  const slice = SLICE_BYTES - (SLICE_BYTES % 3) // so that parts fit together
  for (let at = 0; at < bytes.length; at += slice) {
    await yieldToLoop()
    parts.push(bytes.toString('base64', at, Math.min(at + slice, bytes.length)))
  }
  return partedText(parts)
}

const lineBreak = 0x0a

function lineBreaks(bytes: Buffer): number {
  let count = 0
  for (let at = 0; at < bytes.length; at++) if (bytes[at] === lineBreak) count++
  return count
}

/** The first beginning of a character at or behind a position. */
function characterAt(bytes: Buffer, from: number): number {
  let at = Math.min(from, bytes.length)
  while (at < bytes.length && at < from + 3 && (bytes[at]! & 0xc0) === 0x80) at++
  return at
}

/** The first bytes of a file, at most `bytes`. Throws PathDenied (40411) when the system does not give them. */
export async function headBytes(file: FileHandle, bytes: number, path: string): Promise<Buffer> {
  const head = Buffer.allocUnsafeSlow(bytes)
  let filled = 0
  while (filled < bytes) {
    const { bytesRead } = await file
      .read(head, filled, bytes - filled, filled)
      .catch((error: unknown) => Promise.reject(denied(path, error)))
    if (bytesRead === 0) break
    filled += bytesRead
  }
  return head.subarray(0, filled)
}

/** Type, language and whether it is binary, by name and first bytes. */
export async function textFacts(pin: Pin, name: string): Promise<{ mime: string; language_id?: string; is_binary: boolean }> {
  const file = await pin.open()
  try {
    const head = await headBytes(file, HEAD_BYTES, pin.path)
    return factsOf(name, (await encodingOf(head, head.length < HEAD_BYTES)) === undefined, await typeOfName(name))
  } finally {
    await file.close()
  }
}

export function factsOf(
  name: string,
  is_binary: boolean,
  named: string | undefined
): { mime: string; language_id?: string; is_binary: boolean } {
  const language_id = languageOf(name)
  const mime = named ?? (is_binary ? 'application/octet-stream' : 'text/plain')
  return { mime, ...(language_id === undefined ? {} : { language_id }), is_binary }
}
