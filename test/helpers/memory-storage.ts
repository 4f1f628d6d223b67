/** An engine of storage that keeps everything in memory, for as long as its `memory` lives: what another engine has to do, at its shortest. */
import { Readable } from 'node:stream'
import {
  AppError,
  BlobMissing,
  type BlobStore,
  BlobTooLarge,
  checkStoreId,
  codecOf,
  type DocumentStore,
  type KvStore,
  type LogStore,
  PersistenceFailed,
  type Storage,
  type StoreOf,
  type StoreSpec
} from '../../kernel/index.ts'

/** What the stores hold, by place: texts, lists of texts, bytes. It outlives a storage as a disk does. */
export type Memory = Map<string, Map<string, unknown>>

export function memoryStorage(memory: Memory = new Map()): Storage {
  let closed = false
  const check = () => {
    if (closed) throw new AppError(PersistenceFailed, { message: 'storage is closed' })
  }
  const spaceOf = <T>(name: string): Map<string, T> => {
    const space = memory.get(name) ?? new Map()
    memory.set(name, space)
    return space as Map<string, T>
  }
  return {
    open: <S extends StoreSpec>(spec: S, { namespace, dir }: { readonly namespace: string; readonly dir: string }) => {
      const kind = spec.kind ?? 'kv'
      const name = `${kind}:${kind === 'kv' ? `${namespace}/${spec.name}` : dir}`
      const stores: Record<string, () => unknown> = {
        kv: () => kv(spec, spaceOf(name), check),
        document: () => documents(spec, spaceOf(name), check),
        log: () => logs(spec, spaceOf(name), check),
        blob: () => blobs(spaceOf(name))
      }
      return stores[kind]?.() as StoreOf<S>
    },
    close: async () => {
      closed = true
    }
  }
}

const sortedKeys = (space: ReadonlyMap<string, unknown>) => [...space.keys()].sort((a, b) => Buffer.from(a).compare(Buffer.from(b)))

function read<V>(decoded: ReturnType<ReturnType<typeof codecOf<V>>['decode']>): V | undefined {
  return decoded.kind === 'value' ? decoded.value : undefined
}

function kv<V>(spec: StoreSpec, space: Map<string, string>, check: () => void): KvStore<V> {
  const codec = codecOf<V>(spec)
  const at = (key: string) => {
    check()
    if (Buffer.byteLength(key) > 4096 || /\p{Surrogate}/u.test(key)) throw new Error('not a usable key')
    return key
  }
  const encode = (value: V) => {
    const text = codec.encode(value)
    if (text.length > 1024 * 1024) throw new Error('too long for a record')
    return text
  }
  const keys = async () => sortedKeys(space)
  const get = async (key: string) => {
    const text = space.get(at(key))
    return text === undefined ? undefined : read(codec.decode(text))
  }
  const entries = async () => (await keys()).map(key => [key, read(codec.decode(space.get(key) ?? ''))] as [string, V])
  return {
    get,
    has: async key => (await get(key)) !== undefined,
    put: async (key, value) => void space.set(at(key), encode(value)),
    delete: async key => void space.delete(at(key)),
    batch: async ops => {
      const bytes = ops.reduce((sum, op) => sum + (op.type === 'put' ? encode(op.value).length : 0), 0)
      if (bytes > 4 * 1024 * 1024) throw new Error('too long for a batch')
      const steps = ops.map(op => [at(op.key), op.type === 'put' ? encode(op.value) : undefined] as const)
      for (const [key, text] of steps) text === undefined ? space.delete(key) : space.set(key, text)
    },
    keys,
    entries,
    values: async () => (await entries()).map(([, value]) => value)
  }
}

function documents<V>(spec: StoreSpec, space: Map<string, string>, check: () => void): DocumentStore<V> {
  const codec = codecOf<V>(spec)
  const at = (id: string) => {
    check()
    checkStoreId(id, '.json')
    return id
  }
  const get = async (id: string) => {
    const text = space.get(at(id))
    return text === undefined ? undefined : read(codec.decode(text))
  }
  return {
    get,
    put: async (id, value) => void space.set(at(id), codec.encode(value)),
    update: async (id, change) => {
      const text = space.get(at(id))
      const next = change(text === undefined ? undefined : read(codec.decode(text)))
      if (next === undefined) space.delete(id)
      else space.set(id, codec.encode(next))
      return next
    },
    delete: async id => void space.delete(at(id)),
    ids: async () => sortedKeys(space)
  }
}

function logs<V>(spec: StoreSpec, space: Map<string, string[]>, check: () => void): LogStore<V> {
  const codec = codecOf<V>(spec)
  const at = (id: string) => {
    check()
    checkStoreId(id, '.jsonl')
    return id
  }
  return {
    append: async (id, ...records) => {
      const lines = records.map(record => codec.encode(record))
      const before = space.get(at(id)) ?? []
      if (lines.length > 0) space.set(id, [...before, ...lines])
      return { at: lines.map((_, index) => before.length + index), end: before.length + lines.length }
    },
    // A position is the number of records before.
    scan: async function* (id, { from = 0, to, reverse = false } = {}) {
      const lines = space.get(at(id)) ?? []
      const end = to ?? lines.length
      for (const position of [from, end]) {
        if (!Number.isInteger(position) || position < 0 || position > lines.length) {
          throw new AppError(PersistenceFailed, { message: `no record begins at position ${position}` })
        }
      }
      const found = lines.slice(from, end).map((line, index) => ({ at: from + index, next: from + index + 1, text: line }))
      for (const { text, ...where } of reverse ? found.reverse() : found) {
        const value = read<V>(codec.decode(text))
        if (value !== undefined) yield { ...where, value }
      }
    },
    read: async id => (space.get(at(id)) ?? []).flatMap(line => read(codec.decode(line)) ?? []),
    delete: async id => void space.delete(at(id)),
    ids: async () => sortedKeys(space),
    release: async id => void at(id)
  }
}

interface Blob {
  readonly bytes: Buffer
  readonly modified_at: Date
}

function blobs(space: Map<string, Blob>): BlobStore {
  const at = (id: string) => {
    checkStoreId(id)
    return id
  }
  const info = ({ bytes, modified_at }: Blob) => ({ size: bytes.length, modified_at })
  return {
    put: async (id, source, { maxBytes = Number.POSITIVE_INFINITY } = {}) => {
      at(id)
      const chunks: Buffer[] = []
      let size = 0
      for await (const chunk of source instanceof Uint8Array ? [source] : source) {
        chunks.push(Buffer.from(chunk as Uint8Array))
        size += chunks.at(-1)?.length ?? 0
        if (size > maxBytes) throw new BlobTooLarge(maxBytes)
      }
      const blob = { bytes: Buffer.concat(chunks), modified_at: new Date() }
      space.set(id, blob)
      return info(blob)
    },
    stat: async id => {
      const blob = space.get(at(id))
      return blob && info(blob)
    },
    open: async (id, range) => {
      const blob = space.get(at(id))
      if (!blob) throw new BlobMissing(id)
      return Readable.from([range ? blob.bytes.subarray(range.start, range.end + 1) : blob.bytes])
    },
    delete: async id => void space.delete(at(id)),
    ids: async () => sortedKeys(space)
  }
}
