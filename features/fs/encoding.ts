/** Whether bytes are text, and in which encoding. */
import { isAscii, isUtf8 } from 'node:buffer'
import { yieldToLoop } from '../../kernel/index.ts'
import { fileKind } from '../tools-files/index.ts'

/** Bytes by which a file is judged. */
export const HEAD_BYTES = 8192
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
  const text = whole ? bytes : bytes.subarray(0, lastStart(bytes))
  return isUtf8(text) || (await isDamagedUtf8(text)) ? 'utf-8' : await legacyEncoding(bytes)
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

/**
 * Whether most of what is not ASCII is UTF-8, as a character that was cut or a stray byte leaves it. In legacy texts of every language two or three
 * of ten characters go together by chance at most.
 */
async function isDamagedUtf8(bytes: Buffer): Promise<boolean> {
  const decoder = new TextDecoder()
  let [good, bad] = [0, 0]
  for (let at = 0; at < bytes.length; at += SLICE_BYTES) {
    await yieldToLoop()
    const text = decoder.decode(bytes.subarray(at, at + SLICE_BYTES), { stream: at + SLICE_BYTES < bytes.length })
    for (let char = 0; char < text.length; char++) {
      const code = text.charCodeAt(char)
      if (code === 0xfffd) bad++
      else if (code >= 0x80) good++
    }
  }
  return good >= bad * 3
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
