/** A zip archive that is made while it is read: one file is open at a time, and nothing is held but what is on its way. */
import { type PassThrough, Readable } from 'node:stream'
import type { ZipFile } from 'yazl'
import { type Entry, openEntry } from './entries.ts'
import { withoutThem } from './secrets.ts'

export interface Source {
  /** Absolute path; links do not lead out of it. */
  readonly root: string
  readonly entries: AsyncIterable<Entry>
}

/** A text that is no file. */
export interface Text {
  readonly name: string
  readonly text: string
  readonly kind: 'json' | 'text'
}

/** The bytes of the archive. Whoever destroys the stream closes what is open. */
export async function archiveOf(texts: readonly Text[], sources: readonly Source[], secrets: readonly string[]): Promise<Readable> {
  const { default: yazl } = await import('yazl')
  const zip: ZipFile = new yazl.ZipFile()
  const out = zip.outputStream as PassThrough // whatever its type says
  let current: Readable | undefined
  out.once('close', () => current?.destroy())
  const fill = async () => {
    for (const { name, text, kind } of texts) {
      const parts: Buffer[] = []
      for await (const part of withoutThem(Readable.from([Buffer.from(text)]), secrets, kind)) parts.push(part)
      zip.addBuffer(Buffer.concat(parts), name)
    }
    for (const { root, entries } of sources) {
      for await (const entry of entries) {
        const opened = out.destroyed ? undefined : await openEntry(root, entry)
        if (!opened) continue
        const { handle, size, mtime } = opened
        const isWanted = !out.destroyed // it may have been given up while the file was opened
        if (size === 0 || !isWanted) {
          if (isWanted) zip.addBuffer(Buffer.alloc(0), entry.name, { mtime })
          await handle.close()
          continue
        }
        // What is appended meanwhile is not of this moment.
        const bytes = handle.createReadStream({ end: size - 1 })
        current = entry.kind === 'bytes' ? bytes : Readable.from(withoutThem(bytes, secrets, entry.kind), { objectMode: false })
        current.once('close', () => bytes.destroy())
        const over = new Promise<void>((resolve, reject) => {
          current?.once('end', resolve).once('error', reject).once('close', resolve)
        })
        zip.addReadStream(current, entry.name, { mtime })
        await over
      }
    }
    zip.end()
  }
  fill().catch((error: unknown) => out.destroy(error as Error))
  return out
}
