/** Blob store: files of bytes, visible complete or not at all. */
import { open, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import {
  ensureDir,
  fileOf,
  forReading,
  idsBelow,
  nodeFiles,
  removeFenced,
  replaceFenced,
  type StoreParts,
  storing,
  unlessMissing
} from './files.ts'
import { BlobMissing, type BlobStore, BlobTooLarge } from './ports.ts'
import { sweepAbandoned, temporaryName } from './process-life.ts'

/**
 * The blob store of a directory (absolute). Temporary files lie in `<dir>/~`; what a killed process left there goes at the first put.
 * Two puts of one id at once: the one that ends last stays.
 */
export function openBlobs(dir: string, options: StoreParts): BlobStore {
  const { files = nodeFiles } = options
  const place = (id: string) => fileOf(dir, id, '')
  const inbox = join(dir, '~')
  let swept: Promise<void> | undefined
  const info = async (file: string) => {
    const { size, mtime } = await stat(file)
    return { size, modified_at: mtime }
  }
  return {
    put: async (id, source, { maxBytes = Number.POSITIVE_INFINITY } = {}) => {
      const file = place(id)
      return storing(options, file, async () => {
        try {
          await ensureDir(inbox, files)
          swept ??= sweepAbandoned(inbox, () => true, files)
          await swept
          const temporary = join(inbox, await temporaryName())
          const confirm = () => ensureDir(dirname(file), files)
          await replaceFenced(file, bounded(source, maxBytes), options.fences?.of(file), { temporary, confirm, files })
          return await info(file)
        } catch (error) {
          if (source instanceof Readable) source.destroy()
          throw error
        }
      })
    },
    stat: async id => {
      const file = place(id)
      return unlessMissing(info(file))
    },
    open: async (id, range) => {
      const file = place(id)
      const handle = await storing(options, file, () => unlessMissing(open(file, forReading)))
      if (!handle) throw new BlobMissing(id)
      return handle.createReadStream(range ? { start: range.start, end: range.end } : {})
    },
    delete: async id => {
      const file = place(id)
      await storing(options, file, () => removeFenced(file, options.fences?.of(file), files))
    },
    ids: () => idsBelow(dir, '')
  }
}

/** The bytes of a source, as long as they are not too many. One that ends early (an aborted upload) throws like one that fails. */
async function* bounded(source: Readable | Uint8Array, maxBytes: number): AsyncGenerator<Uint8Array> {
  let size = 0
  for await (const part of source instanceof Uint8Array ? [source] : source) {
    const bytes = typeof part === 'string' ? Buffer.from(part) : (part as Uint8Array)
    size += bytes.length
    if (size > maxBytes) throw new BlobTooLarge(maxBytes)
    yield bytes
  }
}
