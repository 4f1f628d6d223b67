/** Kv store: typed records on the home's shared database, each store in a namespace of its own. */
import { join } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import { AppError, developerError, PersistenceFailed } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { type Codec, codecOf } from './codec.ts'
import type { StoreParts } from './files.ts'
import { type RawOp, sizeOf } from './kv-engine.ts'
import { SharedKv } from './kv-shared.ts'
import type { KeyRange, KvStore } from './ports.ts'

const maxKeyBytes = 4096
const maxValueBytes = 1024 * 1024
const maxBatchBytes = 4 * 1024 * 1024

/** All kv stores of one Storage share it. The database is opened at the first request. */
export class Kvs {
  readonly #options: StoreParts
  readonly #kv: SharedKv

  constructor(options: StoreParts) {
    this.#options = options
    this.#kv = new SharedKv(join(options.home, 'server'), options.log)
  }

  /**
   * The store of a spec; its records live under `<namespace>/<spec name>`. Keys are any text up to 4 KiB, ordered by their UTF-8 bytes;
   * a record is at most 1 MiB of JSON, a batch 4 MiB. A range is what it was at one moment.
   */
  open<V>(spec: StoreSpec, namespace: string): KvStore<V> {
    const ns = `${namespace}/${spec.name}`
    if (!/^[A-Za-z0-9._@+/-]+$/.test(ns)) throw developerError('store_namespace_bad', ns)
    const codec = codecOf<V>(spec)
    const encode = (key: string, value: V): RawOp => ({ type: 'put', key: checkKey(key), value: codec.encode(value) })
    const write = async (ops: readonly RawOp[]) => {
      checkSize(ops)
      if (ops.length > 0) await this.#kv.use(engine => engine.write(ns, ops), sizeOf(ops))
    }
    const read = (range: KeyRange = {}, values = true) => this.#kv.use(engine => engine.range(ns, range, values))
    const get = async (key: string) => {
      checkKey(key)
      const text = await this.#kv.use(engine => engine.get(ns, key))
      return text === undefined ? undefined : this.#decode(codec, ns, key, text, true)
    }
    const entriesOf = async (range?: KeyRange): Promise<[string, V][]> => {
      const entries: [string, V][] = []
      for (const [key, text] of await read(range)) {
        const value = await this.#decode(codec, ns, key, text, false)
        if (value !== undefined) entries.push([key, value])
        const others = yieldToLoop()
        if (others) await others
      }
      return entries
    }
    return {
      get,
      has: async key => (await get(key)) !== undefined,
      put: async (key, value) => write([encode(key, value)]),
      delete: async key => write([{ type: 'delete', key: checkKey(key) }]),
      batch: async ops => write(ops.map(op => (op.type === 'put' ? encode(op.key, op.value) : { type: 'delete', key: checkKey(op.key) }))),
      keys: async range => (await read(range, false)).map(([key]) => key),
      values: async range => (await entriesOf(range)).map(([, value]) => value),
      entries: entriesOf
    }
  }

  /** Waits for what was asked for. Later calls throw. */
  close(): Promise<void> {
    return this.#kv.close()
  }

  /** Undefined for what cannot be used: a damaged record is set aside; one of a newer program stays, and asking for it alone throws. */
  async #decode<V>(codec: Codec<V>, ns: string, key: string, text: string, alone: boolean): Promise<V | undefined> {
    const decoded = codec.decode(text)
    if (decoded.kind === 'value') return decoded.value
    const { reason } = decoded
    if (decoded.kind === 'damaged') {
      this.#options.log.warn({ store: ns, key, reason }, 'damaged kv record set aside')
      await this.#kv.use(engine => engine.aside(ns, key, text))
    } else if (alone) throw new AppError(PersistenceFailed, { message: `store ${ns}: ${reason}` })
    else this.#options.log.warn({ store: ns, key, reason }, 'kv record of a newer version skipped')
    return undefined
  }
}

function checkKey(key: string): string {
  // A lone surrogate would be stored as another character, and two keys could meet.
  if (Buffer.byteLength(key) > maxKeyBytes || /\p{Surrogate}/u.test(key)) throw developerError('store_key_bad', key)
  return key
}

function checkSize(ops: readonly RawOp[]): void {
  let total = 0
  for (const op of ops) {
    const bytes = Buffer.byteLength(op.key) + (op.type === 'put' ? Buffer.byteLength(op.value) : 0)
    if (bytes > maxValueBytes + maxKeyBytes) throw developerError('store_value_long', 'kv record', bytes, maxValueBytes)
    total += bytes
  }
  if (total > maxBatchBytes) throw developerError('store_value_long', 'kv batch', total, maxBatchBytes)
}
