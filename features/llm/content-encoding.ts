/** Bodies that somebody on the way compressed, although requests ask for none. */
import { pipeline, type Readable, type Transform } from 'node:stream'

/** The body in plain bytes; one in an encoding that nobody here knows comes back as it is. What breaks it breaks the result. */
export async function decoded(body: Readable, encoding: string | undefined): Promise<Readable> {
  if (encoding === undefined || encoding === 'identity') return body
  const { createBrotliDecompress, createUnzip } = await import('node:zlib')
  const open: Readonly<Record<string, () => Transform>> = {
    gzip: createUnzip,
    'x-gzip': createUnzip,
    deflate: createUnzip,
    br: createBrotliDecompress
  }
  const name = encoding.trim().toLowerCase()
  if (!Object.hasOwn(open, name)) return body
  // Whoever reads the result learns of the error there.
  return pipeline(body, open[name]!(), () => undefined)
}
