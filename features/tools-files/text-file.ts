/** How a text file is written down: encoding, byte order mark, line endings. Read shows none of them, so Write and Edit keep them. */
import { fileKind } from './file-kind.ts'

export interface TextStyle {
  readonly encoding: 'utf-8' | 'utf-16le' | 'utf-16be'
  /** A byte order mark stands at the beginning. */
  readonly bom: boolean
  readonly endings: Endings
}

/** What ends the lines of a text: the same throughout or not, or nothing where there is one line. */
type Endings = 'LF' | 'CR LF' | 'CR' | 'mixed' | 'none'

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
    return { text: bom ? decoded.slice(1) : decoded, style: { encoding, bom, endings: endingsOf(decoded) } }
  } catch {
    return undefined // not valid in its encoding
  }
}

function endingsOf(text: string): Endings {
  if (!text.includes('\r')) return text.includes('\n') ? 'LF' : 'none'
  if (!/(?<!\r)\n|\r(?!\n)/.test(text)) return 'CR LF'
  return text.includes('\n') ? 'mixed' : 'CR'
}

/** The bytes of a text in this style. Line endings are written as they are in the text. `part`: to be added to a file that is there. */
export function encodeText(text: string, { encoding, bom }: TextStyle, part = false): Buffer {
  const marked = bom && !part && !text.startsWith('\ufeff') ? `\ufeff${text}` : text
  if (encoding === 'utf-8') return Buffer.from(marked)
  const bytes = Buffer.from(marked, 'utf16le')
  return encoding === 'utf-16be' ? bytes.swap16() : bytes
}

/** A text with lone line feeds in the line endings of a file. */
export function inStyle(text: string, { endings }: TextStyle): string {
  return endings === 'CR LF' && !text.includes('\r') ? text.replaceAll('\n', '\r\n') : text
}

/**
 * What of the style of a file was kept when a text took its place, or (`part`) was added to it, and which line endings it lost by that, in
 * words; empty for plain UTF-8 with LF.
 */
export function keptStyle({ encoding, bom, endings }: TextStyle, text: string, part = false): string {
  const given = endingsOf(text)
  const now = !part || endings === 'none' || endings === given ? given : given === 'none' ? endings : 'mixed'
  const kept = [
    ...(encoding === 'utf-8' ? [] : [encoding.toUpperCase()]),
    ...(bom ? ['byte order mark'] : []),
    ...(now === endings && now !== 'LF' && now !== 'none' ? [`${now} line endings`] : [])
  ]
  const isChanged = now !== endings && now !== 'none' && endings !== 'none'
  const said = [
    ...(kept.length > 0 ? [`kept: ${kept.join(', ')}`] : []),
    ...(isChanged ? [`line endings were ${endings}, are ${now} now`] : [])
  ]
  return said.length === 0 ? '' : ` (${said.join('; ')})`
}
