/** Sends an API document as plain JSON, without an envelope. */
import { Readable } from 'node:stream'
import { type BinaryReply, binary } from '../../kernel/index.ts'

/** The document is serialised once as long as `read` answers the same object. */
export function documentReply(read: () => object): () => BinaryReply {
  let last: { document: object; bytes: Buffer } | undefined
  return () => {
    const document = read()
    if (last?.document !== document) last = { document, bytes: Buffer.from(JSON.stringify(document)) }
    return binary({ stream: Readable.from([last.bytes]), type: 'application/json; charset=utf-8', size: last.bytes.length })
  }
}
