/** Tells from the first bytes of a file what it is, as far as Read needs to know. */

export type FileKind = 'text' | 'utf-16le' | 'utf-16be' | 'image' | 'video' | 'binary'

const images = [
  [0x89, 0x50, 0x4e, 0x47],
  [0xff, 0xd8, 0xff],
  [0x47, 0x49, 0x46, 0x38],
  [0x49, 0x49, 0x2a, 0x00],
  [0x4d, 0x4d, 0x00, 0x2a]
]
const binaries = [
  [0x25, 0x50, 0x44, 0x46, 0x2d],
  [0x50, 0x4b, 0x03, 0x04],
  [0x1f, 0x8b],
  [0x7f, 0x45, 0x4c, 0x46],
  [0xff, 0xfe, 0x00, 0x00] // UTF-32, whose mark begins as that of UTF-16 does; the other order begins with zeros
]
const imageBrands = ['avif', 'avis', 'heic', 'heix', 'mif1']

/** Judges by magic bytes, byte order marks and NUL bytes within the first 512 bytes. */
export function fileKind(bytes: Uint8Array): FileKind {
  const head = bytes.subarray(0, 512)
  const starts = (magic: readonly number[]) => magic.every((byte, at) => head[at] === byte)
  const ascii = (from: number, to: number) => String.fromCharCode(...head.subarray(from, to))
  if (images.some(starts) || (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WEBP')) return 'image'
  if (ascii(0, 2) === 'BM' && head.includes(0)) return 'image'
  if (ascii(4, 8) === 'ftyp') return imageBrands.includes(ascii(8, 12)) ? 'image' : 'video'
  if (starts([0x1a, 0x45, 0xdf, 0xa3]) || (ascii(0, 4) === 'RIFF' && ascii(8, 11) === 'AVI')) return 'video'
  if (binaries.some(starts)) return 'binary'
  if (starts([0xff, 0xfe])) return 'utf-16le'
  if (starts([0xfe, 0xff])) return 'utf-16be'
  return head.includes(0) ? 'binary' : 'text'
}
