/** Sends an API document as plain JSON, without an envelope. */
import { Readable } from 'node:stream'
import { type BinaryReply, binary, type Declarations, type KernelInfo } from '../../kernel/index.ts'
import { type DocumentInfo, serversAt } from './document-info.ts'

/** Builds the document at the first request after a pack came or went, and keeps its bytes until then. */
export function documentReply(
  kernel: KernelInfo,
  build: (declared: Declarations, info: DocumentInfo) => Promise<object>
): () => Promise<BinaryReply> {
  let last: { readonly declared: Declarations; readonly address: unknown; readonly bytes: Promise<Buffer> } | undefined
  return async () => {
    const declared = kernel.declarations()
    const address = kernel.address()
    if (last?.declared !== declared || last.address !== address) {
      const info = { title: 'svc-code', version: kernel.version, servers: serversAt(address), owners: declared.owners }
      last = { declared, address, bytes: build(declared, info).then(document => Buffer.from(JSON.stringify(document))) }
    }
    const bytes = await last.bytes
    return binary({ stream: Readable.from([bytes]), type: 'application/json; charset=utf-8', size: bytes.length })
  }
}
