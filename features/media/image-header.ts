/** What the first bytes of a file say of an image: its format and its size in pixels. Nothing is decoded. */

export interface ImageHeader {
  readonly media_type: string
  readonly width: number
  readonly height: number
}

/** Formats that models take. */
export const shownTypes = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'] as const

/** PNG, JPEG, GIF or WebP; undefined for anything else, and for a head that is cut before the size. */
export function imageHeader(head: Buffer): ImageHeader | undefined {
  const ascii = (from: number, to: number) => head.toString('latin1', from, to)
  if (ascii(0, 8) === '\x89PNG\r\n\x1a\n' && head.length >= 24) return sized('image/png', head.readUInt32BE(16), head.readUInt32BE(20))
  if (/^GIF8[79]a$/.test(ascii(0, 6)) && head.length >= 10) return sized('image/gif', head.readUInt16LE(6), head.readUInt16LE(8))
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WEBP' && head.length >= 30) return webp(head, ascii(12, 16))
  return head[0] === 0xff && head[1] === 0xd8 ? jpeg(head) : undefined
}

function sized(media_type: string, width: number, height: number): ImageHeader | undefined {
  return width > 0 && height > 0 ? { media_type, width, height } : undefined
}

function webp(head: Buffer, chunk: string): ImageHeader | undefined {
  if (chunk === 'VP8X') return sized('image/webp', head.readUIntLE(24, 3) + 1, head.readUIntLE(27, 3) + 1)
  if (chunk === 'VP8 ') return sized('image/webp', head.readUInt16LE(26) & 0x3fff, head.readUInt16LE(28) & 0x3fff)
  if (chunk !== 'VP8L') return undefined
  const bits = head.readUInt32LE(21)
  return sized('image/webp', (bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
}

/** Walks the segments up to the first frame header. */
function jpeg(head: Buffer): ImageHeader | undefined {
  for (let at = 2; at + 9 < head.length; ) {
    if (head[at] !== 0xff) return undefined
    const marker = head[at + 1]!
    if (marker === 0xff || (marker >= 0xd0 && marker <= 0xd9) || marker === 0x01) {
      at += marker === 0xff ? 1 : 2
      continue
    }
    // Frame headers of all codings; C4, C8 and CC are none.
    if (marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker)) {
      return sized('image/jpeg', head.readUInt16BE(at + 7), head.readUInt16BE(at + 5))
    }
    at += 2 + head.readUInt16BE(at + 2)
  }
  return undefined
}

/** As people and models read it. */
export const measured = (header: { readonly width: number; readonly height: number } | undefined, bytes: number): string =>
  `${header ? `${header.width}x${header.height} px, ` : ''}${bytes} bytes`

/** Each comment ends at its first end: where one may reach over others, many of them are taken together in every way before the text is none. */
const svg = /^\s*(?:<\?xml[^>]*>\s*)?(?:<!--(?:(?!-->)[\s\S])*-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]/i

/** The type of an image or video by its first bytes; undefined for anything else. */
export function mediaTypeOf(head: Buffer): string | undefined {
  const ascii = (from: number, to: number) => head.toString('latin1', from, to)
  const header = imageHeader(head)
  if (header) return header.media_type
  if (ascii(0, 4) === '\x89PNG') return 'image/png'
  if (ascii(0, 3) === '\xff\xd8\xff') return 'image/jpeg'
  if (ascii(0, 4) === 'GIF8') return 'image/gif'
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'WEBP') return 'image/webp'
  if (ascii(0, 2) === 'BM' && head.subarray(0, 64).includes(0)) return 'image/bmp'
  if (ascii(0, 4) === 'II*\0' || ascii(0, 4) === 'MM\0*') return 'image/tiff'
  if (svg.test(head.toString('utf8', 0, 1024))) return 'image/svg+xml'
  if (ascii(4, 8) === 'ftyp') {
    const brand = ascii(8, 12)
    if (/^avi[fs]$/.test(brand)) return 'image/avif'
    if (/^(?:hei[cxms]|hev[cx]|mif1|msf1)$/.test(brand)) return 'image/heic'
    return brand === 'qt  ' ? 'video/quicktime' : 'video/mp4'
  }
  if (ascii(0, 4) === '\x1a\x45\xdf\xa3') return head.includes('webm') ? 'video/webm' : 'video/x-matroska'
  if (ascii(0, 4) === 'RIFF' && ascii(8, 12) === 'AVI ') return 'video/x-msvideo'
  if (ascii(0, 4) === '\0\0\x01\xba' || ascii(0, 4) === '\0\0\x01\xb3') return 'video/mpeg'
  return undefined
}
