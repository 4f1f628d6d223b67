/**
 * The stores of whole files. Documents: one JSON file per id, replaced atomically, changed under a lock that other processes respect. Blobs:
 * files of bytes, visible complete or not at all.
 */
import { access, open, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import type { StoreSpec } from '../contract.ts'
import { nameIn, quarantineFile, removeFenced, replaceFenced, type StoreParts, storing } from './fences.ts'
import { ensureDir, fileOf, forReading, heardLater, idsBelow, KeyedQueue, nodeFiles, readIfThere, unlessMissing } from './files.ts'
import { type Lock, withLock } from './lock.ts'
import { BlobMissing, type BlobStore, BlobTooLarge, type Codec, codecOf, type DocumentStore } from './ports.ts'
import { sweepAbandoned, temporaryName } from './process-life.ts'
import { unsaved } from './refusals.ts'

/** What all puts may hold while they wait for a slow disk, in UTF-16 units, before further ones are refused. */
const waitingChars = 32 * 1024 * 1024

/** All document stores of one Storage share it: files are queued by their path, whoever opened them. */
export class Documents {
  readonly #options: StoreParts
  readonly #queue = new KeyedQueue()
  #waiting = 0

  constructor(options: StoreParts) {
    this.#options = options
  }

  /** The store of a spec in a directory (absolute). Holds nothing open, so it can be thrown away freely. */
  open<V>(spec: StoreSpec, dir: string): DocumentStore<V> {
    const codec = codecOf<V>(spec)
    const { files, fences } = this.#options
    const place = (id: string) => fileOf(dir, id, '.json')
    return {
      get: async id => {
        const file = place(id)
        const read = await this.#read(file, codec)
        // Quarantining needs the lock: another process may be replacing the bad file with a good one right now.
        return read.damaged === undefined ? read.value : this.#alone(file, async () => (await this.#readOrQuarantine(file, codec)).value)
      },
      put: async (id, value, { guarded = false } = {}) => {
        const file = place(id)
        const text = codec.encode(value)
        if (this.#waiting > 0 && this.#waiting + text.length > waitingChars) {
          throw unsaved(`${nameIn(this.#options, file)}: the disk does not keep up`)
        }
        this.#waiting += text.length
        const put = guarded
          ? this.#inTurn(file, () => replaceFenced(file, text, fences.of(file), this.#options))
          : this.#alone(file, lock => this.#replace(file, text, lock))
        await put.finally(() => {
          this.#waiting -= text.length
        })
      },
      update: async (id, change) => {
        const file = place(id)
        return this.#alone(file, async lock => {
          const before = await this.#readOrQuarantine(file, codec)
          const next = change(before.value)
          const text = next === undefined ? undefined : codec.encode(next)
          if (text === undefined) await removeFenced(file, fences.of(file), files)
          else if (text !== before.text) await this.#replace(file, text, lock)
          return next
        })
      },
      delete: async id => {
        const file = place(id)
        // Looked up first, so that deleting in a directory that is gone does not make it again for the lock.
        await this.#inTurn(file, async () => {
          if (!(await unlessMissing(access(file).then(() => true)))) return
          await withLock(`${file}.lock`, () => removeFenced(file, fences.of(file), files), { files })
        })
      },
      ids: () => storing(this.#options, dir, () => idsBelow(dir, '.json'))
    }
  }

  /** Waits for everything that was asked for. */
  idle(): Promise<void> {
    return this.#queue.idle()
  }

  #inTurn<T>(file: string, work: () => Promise<T>): Promise<T> {
    return this.#queue.run(file, () => storing(this.#options, file, work))
  }

  #alone<T>(file: string, work: (lock: Lock) => Promise<T>): Promise<T> {
    const { files } = this.#options
    return this.#inTurn(file, () => withLock(`${file}.lock`, work, { files }))
  }

  /** A process that stood still until its lock was taken over must not put an old value over a newer one. */
  async #replace(file: string, text: string, lock: Lock): Promise<void> {
    await replaceFenced(file, text, this.#options.fences.of(file), { ...this.#options, confirm: () => lock.confirm() })
  }

  async #readOrQuarantine<V>(file: string, codec: Codec<V>): Promise<{ value?: V; text?: string }> {
    const read = await this.#read(file, codec)
    if (read.damaged === undefined) return read
    const quarantined = await quarantineFile(file, this.#options.files, this.#options.fences.of(file))
    const moved_to = quarantined && nameIn(this.#options, quarantined)
    this.#options.log.warn({ file: nameIn(this.#options, file), moved_to, reason: read.damaged }, 'damaged document quarantined')
    return {}
  }

  /** `text`: of the file. */
  async #read<V>(file: string, codec: Codec<V>): Promise<{ value?: V; text?: string; damaged?: string }> {
    const text = await storing(this.#options, file, () => readIfThere(file, this.#options.files))
    if (text === undefined) return {}
    const decoded = codec.decode(text)
    if (decoded.kind === 'value') return { value: decoded.value, text }
    if (decoded.kind === 'damaged' && !codec.keepsDamaged) return { damaged: decoded.reason }
    // It stays where it is, neither used nor overwritten: a newer program's file is fine, and some are for people to mend.
    throw unsaved(`${nameIn(this.#options, file)}: ${decoded.reason}`)
  }
}

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
      heardLater(source)
      return storing(options, file, async () => {
        try {
          await ensureDir(inbox, files)
          swept ??= sweepAbandoned(inbox, () => true, files).catch(() => {
            swept = undefined // the next put sweeps
          })
          await swept
          const temporary = join(inbox, await temporaryName())
          const confirm = () => ensureDir(dirname(file), files)
          await replaceFenced(file, bounded(source, maxBytes), options.fences.of(file), { temporary, confirm, files })
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
      await storing(options, file, () => removeFenced(file, options.fences.of(file), files))
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
