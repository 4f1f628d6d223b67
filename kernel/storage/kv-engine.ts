/** The LevelDB behind all kv stores of a home: raw texts under namespaced keys. Only who holds the home's kv lock opens it. */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Level } from 'level'
import { AppError, PersistenceFailed } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { quarantineFile, unlessMissing } from './files.ts'
import type { KeyRange } from './ports.ts'

export type RawOp =
  | { readonly type: 'put'; readonly key: string; readonly value: string }
  | { readonly type: 'delete'; readonly key: string }

type Batch = ({ type: 'put'; key: string; value: string } | { type: 'del'; key: string })[]

interface Write {
  /** A function looks at what is stored when it is its turn. */
  readonly batch: Batch | (() => Promise<Batch>)
  readonly bytes: number
  resolve(): void
  reject(error: unknown): void
}

/** Bytes of one flush, in UTF-16 units, near enough. */
const groupBytes = 8 * 1024 * 1024
const chunkEntries = 1000

export class KvEngine {
  readonly #db: Level<string, string>
  readonly #writes: Write[] = []
  #writer: Promise<void> | undefined
  #refusal: unknown

  private constructor(db: Level<string, string>) {
    this.#db = db
  }

  /** Opens the directory. A corrupted database is repaired, and set aside when that does not help, with a warning each. */
  static async open(dir: string, log: Pick<Logger, 'warn'>): Promise<KvEngine> {
    const { Level: Database } = await import('level')
    await checkFiles(dir)
    const attempt = async () => {
      const db = new Database<string, string>(dir, { keyEncoding: 'utf8', valueEncoding: 'utf8' })
      await db.open()
      return new KvEngine(db)
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

  /**
   * The disk refused a write. What it left in the log of the database hides every write behind it from the next opening, so none is taken any
   * more: the database has to be opened anew.
   */
  get refused(): boolean {
    return this.#refusal !== undefined
  }

  get(ns: string, key: string): Promise<string | undefined> {
    return this.#db.get(fullKey(ns, key))
  }

  /** Keys and texts of a range as it is now, in order; the texts are empty when only keys are asked for. */
  async range(ns: string, range: KeyRange, values: boolean): Promise<[string, string][]> {
    const { limit = Number.POSITIVE_INFINITY, reverse = false } = range
    const strip = fullKey(ns, '').length
    // Bounds are bytes: the end of a prefix is the prefix and 0xff, which no UTF-8 text can hold.
    const iterator = this.#db.iterator<Buffer, string>({ ...bounds(ns, range), reverse, values, keyEncoding: 'buffer' as const })
    const entries: [string, string][] = []
    try {
      while (entries.length < limit) {
        const chunk = await iterator.nextv(Math.min(limit - entries.length, chunkEntries))
        if (chunk.length === 0) break
        for (const [key, value] of chunk) entries.push([key.toString('utf8').slice(strip), values ? value : ''])
      }
    } finally {
      await iterator.close()
    }
    return entries
  }

  /** All or nothing, on the medium. */
  write(ns: string, ops: readonly RawOp[]): Promise<void> {
    return this.#queue(toBatch(ns, ops), sizeOf(ops))
  }

  /** Moves a damaged text out of the way (namespace `<ns>~damaged`) unless it was replaced meanwhile. */
  aside(ns: string, key: string, text: string): Promise<void> {
    const batch = async (): Promise<Batch> => {
      if ((await this.get(ns, key)) !== text) return []
      return [
        { type: 'del', key: fullKey(ns, key) },
        { type: 'put', key: fullKey(`${ns}~damaged`, key), value: text }
      ]
    }
    return this.#queue(batch, text.length)
  }

  /** Finishes the writes and closes the database. */
  async close(): Promise<void> {
    await this.#writer
    await this.#db.close()
  }

  #queue(batch: Write['batch'], bytes: number): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#writes.push({ batch, bytes, resolve, reject })
      // Collects what is asked for in this turn and while a write is under way: one flush to disk serves them all.
      this.#writer ??= Promise.resolve().then(() => this.#write())
    })
  }

  async #write(): Promise<void> {
    while (this.#writes.length > 0) {
      const group = takeGroup(this.#writes)
      try {
        const batch: Batch = []
        for (const write of group) batch.push(...(typeof write.batch === 'function' ? await write.batch() : write.batch))
        if (batch.length > 0) await this.#commit(batch)
        for (const write of group) write.resolve()
      } catch (error) {
        for (const write of group) write.reject(error)
      }
    }
    this.#writer = undefined
  }

  async #commit(batch: Batch): Promise<void> {
    if (this.refused) throw this.#refusal
    try {
      await this.#db.batch(batch, { sync: true })
    } catch (error) {
      this.#refusal = error
      throw error
    }
  }
}

/** Writes that fit one flush; one that looks at what is stored goes alone. */
function takeGroup(writes: Write[]): Write[] {
  let count = 0
  let total = 0
  for (const { batch, bytes } of writes) {
    total += bytes
    if (typeof batch === 'function' || (count > 0 && total > groupBytes)) break
    count++
  }
  return writes.splice(0, Math.max(1, count))
}

/** In UTF-16 units. */
export function sizeOf(ops: readonly RawOp[]): number {
  return ops.reduce((sum, op) => sum + op.key.length + (op.type === 'put' ? op.value.length : 0), 0)
}

function toBatch(ns: string, ops: readonly RawOp[]): Batch {
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

/** The library would wait for whoever writes into a pipe in place of a file, on a thread that nobody gets back. */
async function checkFiles(dir: string): Promise<void> {
  for (const entry of (await unlessMissing(readdir(dir, { withFileTypes: true }))) ?? []) {
    if (entry.isFile() || entry.isDirectory()) continue
    const found = await unlessMissing(stat(join(dir, entry.name)))
    if (!found || found.isFile() || found.isDirectory()) continue
    throw new AppError(PersistenceFailed, { message: `kv database: ${entry.name} is neither a file nor a directory` })
  }
}

function isCorruption(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if ((at as NodeJS.ErrnoException).code === 'LEVEL_CORRUPTION') return true
  return false
}
