/** Blob store: files of bytes, visible complete or not at all. */
import { open, readdir, stat } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'
import { Readable } from 'node:stream'
import {
  ensureDir,
  type FileCalls,
  fileOf,
  idsBelow,
  nodeFiles,
  notSaved,
  removeFile,
  type StoreParts,
  type Sync,
  syncDir,
  unlessMissing
} from './files.ts'
import { BlobMissing, type BlobStore, BlobTooLarge } from './ports.ts'
import { isAbandoned, temporaryName } from './process-life.ts'

/**
 * The blob store of a directory (absolute). Temporary files lie in `<dir>/~`; what a killed process left there goes at the first put.
 * Two puts of one id at once: the one that ends last stays.
 */
export function openBlobs(dir: string, options: StoreParts): BlobStore {
  const { files = nodeFiles } = options
  const place = (id: string) => fileOf(dir, id, '')
  const inbox = join(dir, '~')
  let swept: Promise<void> | undefined
  const guard = async <T>(id: string, work: () => Promise<T>): Promise<T> => {
    try {
      return await work()
    } catch (error) {
      throw notSaved(relative(options.home, place(id)), error)
    }
  }
  const info = async (file: string) => {
    const { size, mtime } = await stat(file)
    return { size, modified_at: mtime }
  }
  return {
    put: async (id, source, { maxBytes = Number.POSITIVE_INFINITY } = {}) => {
      const file = place(id)
      return guard(id, async () => {
        await ensureDir(inbox, files)
        swept ??= sweep(inbox)
        await swept
        const temporary = join(inbox, await temporaryName())
        try {
          await receive(temporary, source, maxBytes, options.sync, files)
          await ensureDir(dirname(file), files)
          await files.rename(temporary, file)
        } catch (error) {
          if (source instanceof Readable) source.destroy()
          await removeFile(temporary, files).catch(() => undefined) // the first error tells more
          throw error
        }
        if (options.sync === 'fsync') await syncDir(dirname(file), files)
        return info(file)
      })
    },
    stat: async id => {
      const file = place(id)
      return unlessMissing(info(file))
    },
    open: async (id, range) => {
      const file = place(id)
      const handle = await guard(id, () => unlessMissing(open(file, 'r')))
      if (!handle) throw new BlobMissing(id)
      return handle.createReadStream(range ? { start: range.start, end: range.end } : {})
    },
    delete: async id => {
      await guard(id, () => removeFile(place(id), files))
    },
    ids: () => idsBelow(dir, '')
  }
}

/** Writes a source to a new file. A source that ends early (an aborted upload) rejects like one that fails. */
async function receive(file: string, source: Readable | Uint8Array, maxBytes: number, sync: Sync, files: FileCalls): Promise<void> {
  const handle = await files.open(file, 'wx', 0o600)
  try {
    let size = 0
    const write = async (chunk: Uint8Array) => {
      size += chunk.length
      if (size > maxBytes) throw new BlobTooLarge(maxBytes)
      await handle.appendFile(chunk)
    }
    if (source instanceof Uint8Array) await write(source)
    else for await (const chunk of source) await write(typeof chunk === 'string' ? Buffer.from(chunk) : (chunk as Uint8Array))
    if (sync === 'fsync') await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Removes the temporary files of processes that are gone. */
async function sweep(inbox: string): Promise<void> {
  for (const name of await readdir(inbox)) {
    const file = join(inbox, name)
    if (await isAbandoned(file)) await removeFile(file)
  }
}
