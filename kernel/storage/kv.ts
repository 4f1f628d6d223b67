/**
 * Kv stores: typed records on the LevelDB of the home, each store in a namespace of its own. One server after the other uses the database:
 * whoever holds `<home>/server/kv.lock` has it open, for a moment, or until the disk refuses a write; then the others come first. A process that
 * dies loses it at once. Two kernels of one process take turns as well: a second open of a LevelDB directory inside one process, although
 * refused, would drop the process's own file lock.
 */
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Level } from 'level'
import type { StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import { inOrder, late, waitAtMost, yieldToLoop } from '../lifecycle/wait.ts'
import type { Logger } from '../log/log.ts'
import { quarantineFile } from './fences.ts'
import { unlessMissing } from './files.ts'
import { withLock } from './lock.ts'
import { codecOf, type KvStore } from './ports.ts'
import { notSaved, unsaved } from './refusals.ts'

interface KvTimes {
  /** Longest time a request may take, waiting for other processes included. */
  readonly patienceMs: number
  /** The database is given back so long after it was opened. */
  readonly holdMs: number
}
const usual: KvTimes = { patienceMs: 10_000, holdMs: 200 }
/** Whoever has given it back tries later than those who wait for the lock. */
const pauseMs = 30
/** What may wait for the database and its disk, bytes, before requests are refused. */
const waitingBytes = 64 * 1024 * 1024
/** Bytes of one flush, near enough. */
const groupBytes = 8 * 1024 * 1024

/** Of records and of what is written together. */
const maxKeyBytes = 4096
const maxValueBytes = 1024 * 1024
const maxBatchBytes = 4 * 1024 * 1024

/** The database while this process has it, or waits for it. */
interface Holding {
  readonly opened: Promise<KvTexts>
  /** Requests that use it or wait for it. */
  readonly users: Set<Promise<unknown>>
  /** Aborted when it is to be given back. */
  readonly end: AbortController
}

/** All kv stores of one home; the database is opened at the first request. */
export class KvDatabase {
  readonly #dir: string
  readonly #log: Pick<Logger, 'warn'>
  readonly #times: KvTimes
  #holding: Holding | undefined
  /** The one before is given back. */
  #turn: Promise<unknown> = Promise.resolve()
  #waiting = 0
  #closed = false
  #unclean: unknown

  /** `dir`: where the database and its lock lie. */
  constructor(dir: string, log: Pick<Logger, 'warn'>, times = usual) {
    this.#dir = dir
    this.#log = log
    this.#times = times
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
      if (writes.length > 0) await this.use(texts => texts.write(writes, bytes), bytes)
    }
    const usable = async (key: string, text: string, alone: boolean): Promise<V | undefined> => {
      const decoded = codec.decode(text)
      if (decoded.kind === 'value') return decoded.value
      const { reason } = decoded
      if (decoded.kind === 'newer' && alone) throw unsaved(`store ${ns}: ${reason}`)
      const became = decoded.kind === 'newer' ? 'kv record of a newer version skipped' : 'damaged kv record quarantined'
      this.#log.warn({ store: ns, key, reason }, became)
      if (decoded.kind === 'damaged') await this.use(texts => texts.move(head + key, `!${ns}~damaged!${key}`, text))
      return undefined
    }
    const get = async (key: string) => {
      const at = place(key)
      const text = await this.use(texts => texts.get(at))
      return text === undefined ? undefined : usable(key, text, true)
    }
    const entries = async (): Promise<[string, V][]> => {
      const entries: [string, V][] = []
      for (const [at, text] of await this.use(texts => texts.entries(head, end))) {
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
      keys: async () => (await this.use(texts => texts.keys(head, end))).map(at => at.slice(head.length)),
      values: async () => (await entries()).map(([, value]) => value),
      entries
    }
  }

  /**
   * Works with the database, in the order of the calls. Throws PersistenceFailed when that is not through within 10 s; a write may then have
   * happened or not. `bytes`: what the request holds in memory meanwhile.
   */
  async use<T>(work: (texts: KvTexts) => Promise<T>, bytes = 0): Promise<T> {
    if (this.#closed) throw unsaved('storage is closed')
    if (this.#waiting > 0 && this.#waiting + bytes > waitingBytes) throw unsaved('kv database: the disk does not keep up')
    this.#waiting += bytes
    this.#holding ??= this.#take()
    const holding = this.#holding
    const using = holding.opened.then(texts =>
      work(texts).finally(() => {
        if (texts.refused) this.#giveBack(holding)
      })
    )
    const done = () => {
      this.#waiting -= bytes
      holding.users.delete(using)
    }
    holding.users.add(using)
    using.then(done, done)
    try {
      const { patienceMs } = this.#times
      const answer = await waitAtMost(using, patienceMs)
      if (answer !== late) return answer
      throw unsaved(`the kv database did not answer within ${patienceMs} ms`)
    } catch (error) {
      throw notSaved('kv record', error)
    }
  }

  /** Answers what was asked, and lets the next process have it. Later requests are refused. Rejects when it did not close cleanly. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#holding) this.#giveBack(this.#holding)
    await this.#turn
    if (this.#unclean) throw this.#unclean
  }

  #take(): Holding {
    const end = new AbortController()
    const users = new Set<Promise<unknown>>()
    const opened = new Promise<KvTexts>((open, fail) => {
      const hold = async () => {
        const texts = await KvTexts.open(join(this.#dir, 'kv'), this.#log)
        open(texts)
        await delay(this.#times.holdMs, undefined, { ref: false, signal: end.signal }).catch(() => undefined) // given back before
        this.#giveBack(holding)
        await Promise.allSettled(users)
        await texts.close().catch((error: unknown) => {
          this.#unclean = error
        })
      }
      const leave = () => (this.#closed ? undefined : delay(pauseMs))
      this.#turn = this.#turn
        .then(() => withLock(join(this.#dir, 'kv.lock'), hold, { timeoutMs: this.#times.patienceMs }))
        .catch((error: unknown) => {
          this.#giveBack(holding) // the next request tries again from the start
          fail(error)
        })
        .then(leave)
    })
    const holding: Holding = { opened, users, end }
    return holding
  }

  /** Who asks from here on takes the database anew, behind the others. */
  #giveBack(holding: Holding): void {
    if (this.#holding === holding) this.#holding = undefined
    holding.end.abort()
  }
}

type KvWrite = { readonly type: 'put'; readonly key: string; readonly value: string } | { readonly type: 'del'; readonly key: string }

/** Raw texts by key, as long as the database is open. */
export class KvTexts {
  readonly #db: Level<string, string>
  /** Writes that can grow: what is asked for in this turn and while the one before is under way shares one flush. */
  #group: { readonly writes: KvWrite[]; bytes: number; readonly written: Promise<void> } | undefined
  readonly #inTurn = inOrder()
  #refusal: unknown

  private constructor(db: Level<string, string>) {
    this.#db = db
  }

  /** Opens the directory. A corrupted database is repaired, and quarantined when that does not help, with a warning each. */
  static async open(dir: string, log: Pick<Logger, 'warn'>): Promise<KvTexts> {
    const { Level: Database } = await import('level')
    await checkFiles(dir)
    const attempt = async () => {
      const db = new Database<string, string>(dir, { keyEncoding: 'utf8', valueEncoding: 'utf8' })
      await db.open()
      return new KvTexts(db)
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
      log.warn({ err: error, moved_to: await quarantineFile(dir) }, 'the kv database could not be repaired and was quarantined')
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

  get(key: string): Promise<string | undefined> {
    return this.#db.get(key)
  }

  /** Keys from one text to before another as they are at one moment, in the order of their bytes. */
  keys(from: string, before: string): Promise<string[]> {
    return this.#db.keys({ gte: from, lt: before }).all()
  }

  entries(from: string, before: string): Promise<[string, string][]> {
    return this.#db.iterator({ gte: from, lt: before }).all()
  }

  /** All or nothing, on the medium. */
  write(writes: readonly KvWrite[], bytes: number): Promise<void> {
    if (!this.#group || this.#group.bytes + bytes > groupBytes) this.#group = this.#begin()
    this.#group.writes.push(...writes)
    this.#group.bytes += bytes
    return this.#group.written
  }

  /** Moves a text to another key, unless it was replaced meanwhile. */
  move(key: string, to: string, text: string): Promise<void> {
    this.#group = undefined // what is written later comes after it
    return this.#inTurn(async () => {
      if ((await this.get(key)) !== text) return
      await this.#commit([
        { type: 'del', key },
        { type: 'put', key: to, value: text }
      ])
    })
  }

  close(): Promise<void> {
    return this.#inTurn(() => this.#db.close())
  }

  #begin() {
    const writes: KvWrite[] = []
    const written = this.#inTurn(async () => {
      if (this.#group === group) this.#group = undefined
      await this.#commit(writes)
    })
    const group = { writes, bytes: 0, written }
    return group
  }

  async #commit(writes: readonly KvWrite[]): Promise<void> {
    if (this.refused) throw this.#refusal
    try {
      await this.#db.batch([...writes], { sync: true })
    } catch (error) {
      this.#refusal = error
      throw error
    }
  }
}

/** The library would wait for whoever writes into a pipe in place of a file, on a thread that nobody gets back. */
async function checkFiles(dir: string): Promise<void> {
  for (const entry of (await unlessMissing(readdir(dir, { withFileTypes: true }))) ?? []) {
    if (entry.isFile() || entry.isDirectory()) continue
    const found = await unlessMissing(stat(join(dir, entry.name)))
    if (!found || found.isFile() || found.isDirectory()) continue
    throw unsaved(`kv database: ${entry.name} is neither a file nor a directory`)
  }
}

function isCorruption(error: unknown): boolean {
  for (let at = error; at instanceof Error; at = at.cause) if ((at as NodeJS.ErrnoException).code === 'LEVEL_CORRUPTION') return true
  return false
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
