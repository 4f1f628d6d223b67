/** How a text file is written down: encoding, byte order mark, line endings. Read shows none of them, so Write and Edit keep them. */
import { fileKind } from './file-kind.ts'

export interface TextStyle {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be'
  /** A byte order mark stands at the beginning. */
  readonly bom: boolean
  /** Every line ends with CR LF, and there is one. */
  readonly crlf: boolean
}

export interface TextFile {
  /** Without the byte order mark. */
  readonly text: string
  readonly style: TextStyle
}

/** Undefined for what is no text file to Read, either. */
export function decodeText(bytes: Uint8Array): TextFile | undefined {
  const kind = fileKind(bytes)
  if (kind !== 'text' && kind !== 'utf-16le' && kind !== 'utf-16be') return undefined
  const encoding = kind === 'text' ? 'utf-8' : kind
  try {
    const decoded = new TextDecoder(encoding, { fatal: true, ignoreBOM: true }).decode(bytes)
    const bom = decoded.startsWith('\ufeff')
    const crlf = decoded.includes('\r\n') && !/(?<!\r)\n|\r(?!\n)/.test(decoded)
    return { text: bom ? decoded.slice(1) : decoded, style: { encoding, bom, crlf } }
  } catch {
    return undefined // not valid in its encoding
  }
}

/** The bytes of a text in this style. Line endings are written as they are in the text. `part`: to be added to a file that is there. */
export function encodeText(text: string, { encoding, bom }: TextStyle, part = false): Buffer {
  const marked = bom && !part && !text.startsWith('\ufeff') ? `\ufeff${text}` : text
  if (encoding === 'utf-8') return Buffer.from(marked)
  const bytes = Buffer.from(marked, 'utf16le')
  return encoding === 'utf-16be' ? bytes.swap16() : bytes
}

/** A text with lone line feeds in the line endings of a file. */
export function inStyle(text: string, style: TextStyle): string {
  return style.crlf && !text.includes('\r') ? text.replaceAll('\n', '\r\n') : text
}

/** What was kept, in words; empty for plain UTF-8 with LF. */
export function keptStyle({ encoding, bom, crlf }: TextStyle): string {
  const kept = [
    ...(encoding === 'utf-8' ? [] : [encoding.toUpperCase()]),
    ...(bom ? ['byte order mark'] : []),
    ...(crlf ? ['CR LF line endings'] : [])
  ]
  return kept.length === 0 ? '' : ` (kept: ${kept.join(', ')})`
}
