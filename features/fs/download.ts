/** Bytes of a file as they are. */
import { posix } from 'node:path'
import { type BinaryReply, binary } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { withPin } from './boundary.ts'

export interface ReplyOptions {
  readonly disposition?: 'attachment'
  readonly headers: Readonly<Record<string, string>>
}

/**
 * A file below a root, which the reply pins once more when it opens it. Throws PathIsDirectory (40906), PathMissing (40409), PathOutside (41304),
 * PathDenied (40411).
 */
export async function fileReply(root: Root, path: string, { disposition, headers }: ReplyOptions): Promise<BinaryReply> {
  const [{ assertFile }, { textFacts }] = await Promise.all([import('./read.ts'), import('./text.ts')])
  const filename = posix.basename(path)
  const open = () =>
    withPin(root, path, async pin => {
      assertFile(pin)
      return await pin.open()
    })
  await (await open()).close() // a failure is told before the reply begins
  const { mime } = await withPin(root, path, pin => textFacts(pin, filename))
  return binary({ file: posix.join(root.real, path), open, type: mime, headers, ...(disposition ? { filename, disposition } : {}) })
}
