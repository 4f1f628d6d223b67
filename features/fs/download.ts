/** Bytes of a file of a workspace as they are. */
import { posix } from 'node:path'
import { type BinaryReply, binary } from '../../kernel/index.ts'
import type { Root } from '../file-search/index.ts'
import { withPin } from './boundary.ts'
import { assertFile } from './read.ts'
import { textFacts } from './text.ts'

/** The file is pinned once more when the reply opens it. Throws PathIsDirectory (40906), PathMissing (40409), PathOutside (41304). */
export async function downloadOf(root: Root, path: string): Promise<BinaryReply> {
  const filename = posix.basename(path)
  const { mime } = await withPin(root, path, async pin => {
    assertFile(pin)
    return await textFacts(pin, filename)
  })
  const open = () =>
    withPin(root, path, async pin => {
      assertFile(pin)
      return await pin.open()
    })
  const headers = { 'accept-ranges': 'bytes', 'x-content-type-options': 'nosniff' }
  return binary({ file: `${root.real}/${path}`, open, type: mime, filename, disposition: 'attachment', headers })
}
