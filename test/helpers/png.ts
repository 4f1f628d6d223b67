/** PNG files as tests need them: of any size, smooth (they get small) or noisy (they do not). */
import { randomBytes } from 'node:crypto'
import { deflateSync } from 'node:zlib'

const table = Array.from({ length: 256 }, (_, n) => {
  let c = n
  for (let bit = 0; bit < 8; bit++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1
  return c >>> 0
})

function crc(bytes: Buffer): number {
  let c = 0xffffffff
  for (const byte of bytes) c = (c >>> 8) ^ (table[(c ^ byte) & 255] ?? 0)
  return (c ^ 0xffffffff) >>> 0
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), data])
  const out = Buffer.alloc(body.length + 8)
  out.writeUInt32BE(data.length, 0)
  body.copy(out, 4)
  out.writeUInt32BE(crc(body), body.length + 4)
  return out
}

/** RGB, 8 bits. */
export function png(width: number, height: number, { noise = false }: { readonly noise?: boolean } = {}): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header.set([8, 2, 0, 0, 0], 8)
  const line = width * 3 + 1
  const pixels = noise ? randomBytes(line * height) : Buffer.alloc(line * height, 120)
  for (let y = 0; y < height; y++) pixels[y * line] = 0
  const data = deflateSync(pixels, { level: 1 })
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0))
  ])
}
