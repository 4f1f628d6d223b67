/** fs:read: a file, or a part of it, as text or base64. */
import { posix } from 'node:path'
import { AppError, type DataOf, fileEtag } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { missing, type Pin, translated, withPin } from './boundary.ts'
import type { readFile } from './contract.ts'
import { encodingOf } from './encoding.ts'
import { FileBinary, FileTooLarge, PathIsDirectory } from './errors.ts'
import { typeOfName } from './media-type.ts'
import { asUtf8, base64Of, factsOf, headBytes, sliceText } from './text.ts'

/** Larger files are not read. */
const MAX_BYTES = 10 * 1024 * 1024
/** So much is tried first of a file that says it is empty. */
const UNTOLD_BYTES = 64 * 1024

interface Wanted {
  readonly offset: number
  readonly length: number
  readonly encoding: 'auto' | 'utf-8' | 'base64'
}

/** Throws PathIsDirectory (40906), FileTooLarge (41302), FileBinary (40907), and 40409 for devices, pipes and sockets, which are not opened. */
export function readPart(root: Root, path: string, wanted: Wanted): Promise<DataOf<typeof readFile>> {
  return withPin(root, path, async pin => {
    assertFile(pin)
    const bytes = await bytesOf(pin)
    const encoding = await encodingOf(bytes, true)
    if (encoding === undefined && wanted.encoding === 'utf-8') throw new AppError(FileBinary, { message: `file ${path} is binary` })
    const name = posix.basename(path)
    const facts = factsOf(name, encoding === undefined, await typeOfName(name))
    const common = { path, size: bytes.length, etag: fileEtag(pin.stats), ...facts }
    if (encoding === undefined || wanted.encoding === 'base64') {
      const part = bytes.subarray(wanted.offset, wanted.offset + wanted.length)
      return { ...common, content: await base64Of(part), encoding: 'base64', truncated: wanted.offset + part.length < bytes.length }
    }
    const text = await asUtf8(bytes, encoding, wanted.offset + wanted.length + 4)
    const { content, end, lines } = await sliceText(text, wanted.offset, wanted.length)
    return { ...common, content, encoding: 'utf-8', truncated: end < text.length, line_count: lines }
  })
}

/** Throws unless it is a regular file. */
export function assertFile({ stats, path }: Pin): void {
  if (stats.isDirectory()) throw new AppError(PathIsDirectory, { message: `path ${path} is a directory` })
  if (!stats.isFile()) throw missing(`${path} as a regular file`)
}

/** All of a file; of those that do not tell their size (in /proc) what they give. */
async function bytesOf(pin: Pin): Promise<Buffer> {
  const tooLarge = () => new AppError(FileTooLarge, { message: `file ${pin.path} is larger than ${MAX_BYTES} bytes` })
  if (pin.stats.size > MAX_BYTES) throw tooLarge()
  try {
    const file = await pin.open()
    try {
      const { size } = await file.stat()
      const said = Math.min(size || UNTOLD_BYTES, MAX_BYTES) + 1
      const bytes = await headBytes(file, said, pin.path)
      const all = bytes.length < said ? bytes : await headBytes(file, MAX_BYTES + 1, pin.path) // it says less than it has
      if (all.length > MAX_BYTES) throw tooLarge()
      return all
    } finally {
      await file.close()
    }
  } catch (error) {
    throw translated(error, pin.path)
  }
}
