/** The LevelDB behind all kv stores of a home: raw texts under namespaced keys. Only the owner of the home's kv lock opens it. */
import type { Level } from 'level'
import { AppError, PersistenceFailed } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { quarantineFile, type Sync } from './files.ts'
import type { KeyRange } from './ports.ts'

export type RawOp =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'delete'; readonly key: string }

/** Tells a write of another process, so that it is not made a second time when its answer got lost and it is sent again. */
export interface WriteId {
  readonly client: string
  readonly n: number
  /** Writes of the client below it are answered: their numbers need not be kept. */
  readonly low: number
  /** It was sent before. */
  readonly again: boolean
}

/** What can be asked of the database, here or through its owner. All can be repeated without harm, a write by its id: an answer may get lost. */
export type KvRequest =
  | { readonly op: 'get'; readonly ns: string; readonly key: string }
  /** A run of a range, in order, up to a page's size. */
  | { readonly op: 'page'; readonly ns: string; readonly range: KeyRange; readonly values: boolean }
  | { readonly op: 'write'; readonly ns: string; readonly ops: readonly RawOp[]; readonly sync: Sync; readonly id?: WriteId }
  /** Moves a damaged text out of the way (namespace `<ns>~damaged`) unless it was replaced meanwhile. */
  | { readonly op: 'aside'; readonly ns: string; readonly key: string; readonly text: string }

export interface KvPage {
  /** Key and text; the text is empty when only keys were asked for. */
  readonly entries: readonly (readonly [string, string])[]
  readonly more: boolean
}

export interface KvReply {
  readonly text?: string
  readonly page?: KvPage
}

const pageEntries = 1000
const pageBytes = 1024 * 1024
const groupBytes = 8 * 1024 * 1024
/** What may wait for a slow disk before writes are refused. */
const waitingBytes = 64 * 1024 * 1024

interface Write {
  readonly request: Extract<KvRequest, { op: 'write' | 'aside' }>
  readonly bytes: number
  resolve(): void
  reject(error: unknown): void
}

type Batch = ({ type: 'put'; key: string; value: string } | { type: 'del'; key: string })[]

export class KvEngine {
  readonly #db: Level<string, string>
  readonly #writes: Write[] = []
  readonly #made = new MadeWrites()
  #waiting = 0
  #writer: Promise<void> | undefined

  private constructor(db: Level<string, string>) {
    this.#db = db
  }

  /** Opens the directory. A corrupted database is repaired, and set aside when that does not help, with a warning each. */
  static async open(dir: string, log: Pick<Logger, 'warn'>): Promise<KvEngine> {
    const { Level: Database } = await import('level')
    const attempt = async () => {
      const db = new Database<string, string>(dir, { keyEncoding: 'utf8', valueEncoding: 'utf8' })
      await db.open()
      const engine = new KvEngine(db)
      await engine.#made.load(db)
      return engine
    }
    try {
      return await attempt()
    } catch (error) {
      if (!isCorruption(error)) throw error
      log.warn({ err: error }, 'the kv database is damaged and will be repaired')
    }
    try {
      // On Node `Level` is the native class, which can repair; the shared type is that of the browser, too.
      await (Database as unknown as { repair(dir: string): Promise<void> }).repair(dir)
      return await attempt()
    } catch (error) {
      log.warn({ err: error, moved_to: await quarantineFile(dir) }, 'the kv database could not be repaired and was set aside')
      return attempt()
    }
  }

  async run(request: KvRequest): Promise<KvReply> {
    if (request.op === 'get') {
      const text = await this.#db.get(fullKey(request.ns, request.key))
      return text === undefined ? {} : { text }
    }
    if (request.op === 'page') return { page: await this.#page(request.ns, request.range, request.values) }
    const bytes = sizeOf(request)
    if (this.#waiting > 0 && this.#waiting + bytes > waitingBytes) {
      throw new AppError(PersistenceFailed, { message: 'kv database: the disk does not keep up' })
    }
    this.#waiting += bytes
    await new Promise<void>((resolve, reject) => {
      this.#writes.push({ request, bytes, resolve, reject })
      // Collects what is asked for in this turn and while a write is under way: one flush to disk serves them all.
      this.#writer ??= Promise.resolve().then(() => this.#write())
    })
    return {}
  }

  /** Finishes the writes and closes the database. */
  async close(): Promise<void> {
    await this.#writer
    await this.#db.close()
  }

  async #write(): Promise<void> {
    while (this.#writes.length > 0) {
      const group = takeGroup(this.#writes)
      try {
        const batch: Batch = []
        for (const { request } of group) {
          if (request.op === 'aside') batch.push(...(await this.#asideBatch(request)))
          else if (!request.id) batch.push(...toBatch(request))
          else if (!(request.id.again && this.#made.has(request.id))) batch.push(...toBatch(request), ...this.#made.add(request.id))
        }
        const sync = group.some(({ request }) => request.op === 'write' && request.sync === 'fsync')
        if (batch.length > 0) await this.#db.batch(batch, { sync })
        for (const write of group) write.resolve()
      } catch (error) {
        for (const { request } of group) if (request.op === 'write' && request.id) this.#made.forget(request.id)
        for (const write of group) write.reject(error)
      }
      for (const { bytes } of group) this.#waiting -= bytes
    }
    this.#writer = undefined
  }

  async #asideBatch({ ns, key, text }: { ns: string; key: string; text: string }): Promise<Batch> {
    if ((await this.#db.get(fullKey(ns, key))) !== text) return []
    return [
      { type: 'del', key: fullKey(ns, key) },
      { type: 'put', key: fullKey(`${ns}~damaged`, key), value: text }
    ]
  }

  async #page(ns: string, range: KeyRange, values: boolean): Promise<KvPage> {
    const limit = Math.min(range.limit ?? Number.POSITIVE_INFINITY, pageEntries)
    if (limit <= 0) return { entries: [], more: false }
    const strip = fullKey(ns, '').length
    // Bounds are bytes: the end of a prefix is the prefix and 0xff, which no UTF-8 text can hold.
    const options = { ...bounds(ns, range), reverse: range.reverse === true, values, keyEncoding: 'buffer' as const }
    const iterator = this.#db.iterator<Buffer, string>(options)
    const entries: [string, string][] = []
    let bytes = 0
    try {
      while (entries.length < limit && bytes < pageBytes) {
        const chunk = await iterator.nextv(limit - entries.length)
        if (chunk.length === 0) return { entries, more: false }
        for (const [key, value] of chunk) {
          entries.push([key.toString('utf8').slice(strip), values ? value : ''])
          bytes += key.length + (values ? value.length : 0)
        }
      }
    } finally {
      await iterator.close()
    }
    return { entries, more: range.limit === undefined || entries.length < range.limit }
  }
}

const madeSpace = '~made'
const maxClients = 1024

/** Numbers of the writes of other processes that were made and may be sent again. Stored with the writes themselves. */
class MadeWrites {
  /** By client, the one that wrote last at the end. */
  readonly #numbers = new Map<string, number[]>()

  async load(db: Level<string, string>): Promise<void> {
    const prefix = fullKey(madeSpace, '')
    for await (const key of db.keys({ gte: prefix, lt: `${prefix}\uffff` })) {
      const [client = '', n] = key.slice(prefix.length).split('!')
      this.#numbers.set(client, [...(this.#numbers.get(client) ?? []), Number(n)])
    }
  }

  has({ client, n }: WriteId): boolean {
    return this.#numbers.get(client)?.includes(n) === true
  }

  /** What goes to the database with the write. */
  add({ client, n, low }: WriteId): Batch {
    const numbers = this.#numbers.get(client) ?? []
    const batch: Batch = [{ type: 'put', key: madeKey(client, n), value: '' }]
    for (const old of numbers) if (old < low) batch.push({ type: 'del', key: madeKey(client, old) })
    this.#numbers.delete(client)
    this.#numbers.set(client, [...numbers.filter(old => old >= low), n])
    if (this.#numbers.size > maxClients) batch.push(...this.#dropOldest())
    return batch
  }

  /** The write failed. */
  forget({ client, n }: WriteId): void {
    const numbers = this.#numbers.get(client)
    if (numbers)
      this.#numbers.set(
        client,
        numbers.filter(other => other !== n)
      )
  }

  /** A client that so many others wrote after has ended long ago. */
  #dropOldest(): Batch {
    const [client, numbers] = this.#numbers.entries().next().value ?? ['', []]
    this.#numbers.delete(client)
    return numbers.map(n => ({ type: 'del', key: madeKey(client, n) }))
  }
}

function madeKey(client: string, n: number): string {
  return fullKey(madeSpace, `${client}!${n}`)
}

/** Writes that fit one flush; an `aside` looks at what is stored, so it goes alone. */
function takeGroup(writes: Write[]): Write[] {
  let count = 0
  let total = 0
  for (const { request, bytes } of writes) {
    total += bytes
    if (request.op === 'aside' || (count > 0 && total > groupBytes)) break
    count++
  }
  return writes.splice(0, Math.max(1, count))
}

/** In UTF-16 units, near enough. */
function sizeOf(request: Write['request']): number {
  if (request.op === 'aside') return request.text.length
  return request.ops.reduce((sum, op) => sum + op.key.length + (op.type === 'put' ? op.value.length : 0), 0)
}

function toBatch({ ns, ops }: { ns: string; ops: readonly RawOp[] }): Batch {
  return ops.map(op =>
    op.type === 'put' ? { type: 'put', key: fullKey(ns, op.key), value: op.value } : { type: 'del', key: fullKey(ns, op.key) }
  )
}

/** `!` cannot be in a namespace, so no two namespaces meet. */
function fullKey(ns: string, key: string): string {
  return `!${ns}!${key}`
}

function bounds(ns: string, range: KeyRange): { gte?: Buffer; gt?: Buffer; lt?: Buffer; lte?: Buffer } {
  const bytes = (key: string) => Buffer.from(fullKey(ns, key))
  const prefix = bytes(range.prefix ?? '')
  let low: { at: Buffer; inclusive: boolean } = { at: prefix, inclusive: true }
  let high: { at: Buffer; inclusive: boolean } = { at: Buffer.concat([prefix, Buffer.from([0xff])]), inclusive: false }
  const raise = (at: Buffer, inclusive: boolean) => {
    const order = at.compare(low.at)
    if (order > 0 || (order === 0 && !inclusive)) low = { at, inclusive }
  }
  const lower = (at: Buffer, inclusive: boolean) => {
    const order = at.compare(high.at)
    if (order < 0 || (order === 0 && !inclusive)) high = { at, inclusive }
  }
  if (range.gt !== undefined) raise(bytes(range.gt), false)
  if (range.gte !== undefined) raise(bytes(range.gte), true)
  if (range.lt !== undefined) lower(bytes(range.lt), false)
  if (range.lte !== undefined) lower(bytes(range.lte), true)
  return { ...(low.inclusive ? { gte: low.at } : { gt: low.at }), ...(high.inclusive ? { lte: high.at } : { lt: high.at }) }
}

function isCorruption(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if ((at as NodeJS.ErrnoException).code === 'LEVEL_CORRUPTION') return true
  return false
}
