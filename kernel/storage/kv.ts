/** Kv store: typed records on the home's shared database, each store in a namespace of its own. */
import { join } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import { developerError, unsaved } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { codecOf } from './codec.ts'
import type { StoreParts } from './files.ts'
import { KvDatabase, type KvWrite } from './kv-database.ts'
import type { KvStore } from './ports.ts'

const maxKeyBytes = 4096
const maxValueBytes = 1024 * 1024
const maxBatchBytes = 4 * 1024 * 1024

/** All kv stores of one Storage share it. The database is opened at the first request. */
export class Kvs {
  readonly #log: StoreParts['log']
  readonly #kv: KvDatabase

  constructor({ home, log }: StoreParts) {
    this.#log = log
    this.#kv = new KvDatabase(join(home, 'server'), log)
  }

  /**
   * The store of a spec; its records live under `<namespace>/<spec name>`. Keys are any text up to 4 KiB, ordered by their UTF-8 bytes;
   * a record is at most 1 MiB of JSON, a batch 4 MiB. A list is what it was at one moment.
   */
  open<V>(spec: StoreSpec, namespace: string): KvStore<V> {
    const ns = `${namespace}/${spec.name}`
    if (!/^[A-Za-z0-9._@+/-]+$/.test(ns)) throw developerError('store_namespace_bad', ns)
    const codec = codecOf<V>(spec)
    const head = `!${ns}!` // `!` cannot be in a namespace, so no two namespaces meet
    const end = `!${ns}"` // the next character
    const place = (key: string) => head + checkKey(key)
    const put = (key: string, value: V): KvWrite => ({ type: 'put', key: place(key), value: codec.encode(value) })
    const del = (key: string): KvWrite => ({ type: 'del', key: place(key) })
    const write = async (writes: readonly KvWrite[]) => {
      const bytes = sizeOf(writes, head.length)
      if (writes.length > 0) await this.#kv.use(texts => texts.write(writes, bytes), bytes)
    }
    const usable = async (key: string, text: string, alone: boolean): Promise<V | undefined> => {
      const decoded = codec.decode(text)
      if (decoded.kind === 'value') return decoded.value
      const { reason } = decoded
      if (decoded.kind === 'newer' && alone) throw unsaved(`store ${ns}: ${reason}`)
      const became = decoded.kind === 'newer' ? 'kv record of a newer version skipped' : 'damaged kv record quarantined'
      this.#log.warn({ store: ns, key, reason }, became)
      if (decoded.kind === 'damaged') await this.#kv.use(texts => texts.move(head + key, `!${ns}~damaged!${key}`, text))
      return undefined
    }
    const get = async (key: string) => {
      const at = place(key)
      const text = await this.#kv.use(texts => texts.get(at))
      return text === undefined ? undefined : usable(key, text, true)
    }
    const entries = async (): Promise<[string, V][]> => {
      const entries: [string, V][] = []
      for (const [at, text] of await this.#kv.use(texts => texts.entries(head, end))) {
        const key = at.slice(head.length)
        const value = await usable(key, text, false)
        if (value !== undefined) entries.push([key, value])
        const others = yieldToLoop()
        if (others) await others
      }
      return entries
    }
    return {
      get,
      has: async key => (await get(key)) !== undefined,
      put: async (key, value) => write([put(key, value)]),
      delete: async key => write([del(key)]),
      batch: async ops => write(ops.map(op => (op.type === 'put' ? put(op.key, op.value) : del(op.key)))),
      keys: async () => (await this.#kv.use(texts => texts.keys(head, end))).map(at => at.slice(head.length)),
      values: async () => (await entries()).map(([, value]) => value),
      entries
    }
  }

  /** Waits for what was asked for. Later calls throw. */
  close(): Promise<void> {
    return this.#kv.close()
  }
}

function checkKey(key: string): string {
  // A lone surrogate would be stored as another character, and two keys could meet.
  if (Buffer.byteLength(key) > maxKeyBytes || /\p{Surrogate}/u.test(key)) throw developerError('store_key_bad', key)
  return key
}

/** Bytes of what is written. `head`: those that stand before each key. */
function sizeOf(writes: readonly KvWrite[], head: number): number {
  let total = 0
  for (const write of writes) {
    const bytes = Buffer.byteLength(write.key) - head + (write.type === 'put' ? Buffer.byteLength(write.value) : 0)
    if (bytes > maxValueBytes + maxKeyBytes) throw developerError('store_value_long', 'kv record', bytes, maxValueBytes)
    total += bytes
  }
  if (total > maxBatchBytes) throw developerError('store_value_long', 'kv batch', total, maxBatchBytes)
  return total
}
