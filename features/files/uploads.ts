/** Uploads on disk. The bytes come first, then the facts that make them an upload; they go in the opposite order. */
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { AppError, type BlobStore, type DocumentStore, yieldToLoop } from '../../kernel/index.ts'
import { bytesDir, type UploadObject, UploadsFailed } from './contract.ts'
import { onDisk } from './form.ts'
import type { Upload } from './service.ts'

/** Bytes without facts belong to an upload that still arrives, or to nobody; those of a transfer that ended this long ago belong to nobody. */
const strayMs = 3_600_000

export interface UploadsParts {
  /** Absolute. */
  readonly home: string
  readonly facts: DocumentStore<UploadObject>
  readonly bytes: BlobStore
  readonly now: () => Date
}

const isUploadId = (id: string): boolean => /^f_[0-9A-HJKMNP-TV-Z]{26}$/.test(id)

/** Those that expire lie apart, so that a sweep looks at no others. */
const expiring = (id: string): string => `expiring/${id}`

export class UploadTable {
  readonly #parts: UploadsParts

  constructor(parts: UploadsParts) {
    this.#parts = parts
  }

  /** Takes the bytes in; `announce` makes an upload of them. Throws BlobTooLarge. */
  async receive(id: string, source: Readable, maxBytes: number): Promise<{ readonly size: number }> {
    return await onDisk(UploadsFailed, () => this.#parts.bytes.put(id, source, { maxBytes }))
  }

  async announce(upload: UploadObject): Promise<void> {
    const place = upload.expires_at === undefined ? upload.id : expiring(upload.id)
    await onDisk(UploadsFailed, () => this.#parts.facts.put(place, upload))
  }

  /** The upload; one that has expired is removed. Throws UploadsFailed (50003, HTTP 500), also for damaged facts. */
  async find(id: string): Promise<Upload | undefined> {
    if (!isUploadId(id)) return undefined
    const { facts, home } = this.#parts
    const found = await onDisk(UploadsFailed, async () => (await facts.get(id)) ?? (await facts.get(expiring(id))))
    if (!found) return undefined
    if (this.#isOver(found)) {
      await this.remove(id)
      return undefined
    }
    const file = join(home, bytesDir, id)
    return (await isFile(file)) ? { ...found, file } : undefined
  }

  /** Removes an upload, also one whose facts are damaged; false: there is none. */
  async discard(id: string): Promise<boolean> {
    const isThere = await this.find(id).then(found => found !== undefined, isFailure)
    if (isThere) await this.remove(id)
    return isThere
  }

  /** Removes what there is of an upload, bytes without facts too. */
  async remove(id: string): Promise<void> {
    const { facts, bytes } = this.#parts
    await onDisk(UploadsFailed, async () => {
      await facts.delete(id)
      await facts.delete(expiring(id))
      await bytes.delete(id)
    })
  }

  /** Removes what has expired, and bytes that no upload has. */
  async sweep(signal: AbortSignal): Promise<void> {
    const { facts, bytes, now } = this.#parts
    const known = new Set((await facts.ids()).map(place => place.slice(place.lastIndexOf('/') + 1)))
    for (const place of await facts.ids()) {
      if (signal.aborted) return
      if (!place.startsWith('expiring/')) continue
      const upload = await facts.get(place).catch(error => void isFailure(error)) // damaged: whoever asks for it hears
      if (upload && this.#isOver(upload)) await this.remove(place.slice(place.lastIndexOf('/') + 1))
      await yieldToLoop()
    }
    for (const id of await bytes.ids()) {
      if (signal.aborted) return
      if (known.has(id)) continue
      const modified = (await bytes.stat(id))?.modified_at.getTime() ?? Number.POSITIVE_INFINITY
      if (modified < now().getTime() - strayMs) await this.remove(id)
      await yieldToLoop()
    }
  }

  #isOver({ expires_at }: UploadObject): boolean {
    return expires_at !== undefined && Date.parse(expires_at) <= this.#parts.now().getTime()
  }
}

/** Rethrows what is no failure of the storage. */
function isFailure(error: unknown): true {
  if (AppError.is(error) && error.code === UploadsFailed.code) return true
  throw error
}

/** False when nothing is there. What is there and is no file is a fault of the disk. */
async function isFile(file: string): Promise<boolean> {
  try {
    if ((await stat(file)).isFile()) return true
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw new AppError(UploadsFailed, { message: 'the upload could not be read', cause })
  }
  throw new AppError(UploadsFailed, { message: 'the upload could not be read' })
}
