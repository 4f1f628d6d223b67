/** What is in a file: text in one of many encodings, or bytes. */
import { isAscii, isUtf8 } from 'node:buffer'
import type { FileHandle } from 'node:fs/promises'
import { partedText, yieldToLoop } from '../../kernel/index.ts'
import { fileKind } from '../tools-files/index.ts'
import { denied, type Pin } from './boundary.ts'
import { languageOf, typeOfName } from './media-type.ts'

/** Bytes by which a file is judged. */
const HEAD_BYTES = 8192
/** Bytes that the guess of a legacy encoding looks at. */
const GUESS_BYTES = 8 * 1024
/** Bytes that are decoded without a pause. */
const SLICE_BYTES = 256 * 1024

/** Name of the encoding for TextDecoder, or undefined for bytes that are no text. `whole`: nothing follows. */
export async function encodingOf(bytes: Buffer, whole: boolean): Promise<string | undefined> {
  const kind = fileKind(bytes)
  if (kind === 'utf-16le' || kind === 'utf-16be') return kind
  if (kind === 'image' || kind === 'video') return undefined
  const head = bytes.subarray(0, HEAD_BYTES)
  if (head.includes(0)) return kind === 'text' || isWide(head) ? wideEncoding(head) : undefined
  if (kind === 'binary') return undefined
  if (controls(head) > head.length * 0.3) return undefined
  if (isUtf8(whole ? bytes : bytes.subarray(0, lastStart(bytes)))) return 'utf-8'
  return await legacyEncoding(bytes)
}

/** UTF-16 without a mark: every other byte of mostly Latin text is zero. */
function wideEncoding(head: Buffer): string | undefined {
  if (!isWide(head)) return undefined
  return zeros(head, 1) > zeros(head, 0) ? 'utf-16le' : 'utf-16be'
}

function isWide(head: Buffer): boolean {
  const pairs = Math.floor(head.length / 2)
  if (pairs < 2 || head.length % 2 === 1) return false
  const [even, odd] = [zeros(head, 0), zeros(head, 1)]
  return Math.max(even, odd) > pairs * 0.7 && Math.min(even, odd) === 0
}

function zeros(head: Buffer, from: number): number {
  let count = 0
  for (let at = from; at < head.length; at += 2) if (head[at] === 0) count++
  return count
}

/** Control characters that are no white space and no escape. */
function controls(bytes: Buffer): number {
  let count = 0
  for (const byte of bytes) if ((byte < 32 && !(byte >= 8 && byte <= 13) && byte !== 27) || byte === 127) count++
  return count
}

async function legacyEncoding(bytes: Buffer): Promise<string | undefined> {
  const from = Math.max(0, firstOther(bytes) - GUESS_BYTES / 2)
  const sample = bytes.subarray(from, from + GUESS_BYTES)
  if (controls(sample) > sample.length * 0.02) return undefined
  const { default: chardet } = await import('chardet')
  // So few characters are a guess for every encoding with two bytes; a single byte between ASCII is an accent.
  const accents = !sample.some((byte, at) => byte >= 0x80 && sample[at + 1]! >= 0x80)
  const guesses = chardet.analyse(sample).filter(({ confidence }) => confidence > 10 || !accents)
  for (const name of [...guesses.map(guess => guess.name), 'windows-1252']) {
    if (name === 'ASCII' || name.startsWith('UTF-')) continue
    try {
      const text = new TextDecoder(name).decode(sample)
      if (!/\ufffd(?=.)/su.test(text)) return name
    } catch {
      // an encoding that this machine does not know: the next guess
    }
  }
  return undefined
}

/** Where the first byte stands that is not ASCII. */
function firstOther(bytes: Buffer): number {
  let from = 0
  while (from < bytes.length && isAscii(bytes.subarray(from, from + GUESS_BYTES))) from += GUESS_BYTES
  while (from < bytes.length && bytes[from]! < 0x80) from++
  return from
}

/** Where the last character, which may be cut, begins. */
function lastStart(bytes: Buffer): number {
  let at = bytes.length
  while (at > 0 && at > bytes.length - 4 && (bytes[at - 1]! & 0xc0) === 0x80) at--
  return at > 0 && bytes[at - 1]! >= 0xc0 ? at - 1 : bytes.length
}

/** The bytes of a text as UTF-8, at least the first `most` of them. Marks of other encodings go. Yields to the loop in between. */
export async function asUtf8(bytes: Buffer, encoding: string, most: number): Promise<Buffer> {
  if (encoding === 'utf-8') return bytes
  const decoder = new TextDecoder(encoding)
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
