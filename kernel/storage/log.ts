/** Log store: JSON lines per id, appended with group commit. */
import { relative } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import { AppError, developerError, PersistenceFailed } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { type Codec, codecOf, type Decoded } from './codec.ts'
import { fileOf, idsBelow, notSaved, type StoreParts } from './files.ts'
import { LineFiles } from './line-file.ts'
import { isCompleteRecord, type Line, maxLineBytes } from './line-reader.ts'
import type { LogEntry, LogPositions, LogRange, LogStore } from './ports.ts'

/** Bytes of one write, and of what may wait for a slow disk per file before appends are refused. */
const batchBytes = 4 * 1024 * 1024
const waitingBytes = 64 * 1024 * 1024
const openFiles = 64

interface Task {
  /** Lines to append; undefined for other work. */
  readonly data?: Buffer
  readonly work?: () => Promise<void>
  /** `at`: where its data begins in the file. */
  resolve(at: number): void
  reject(error: unknown): void
}

interface Queue {
  readonly tasks: Task[]
  bytes: number
}

/** All log stores of one Storage share it: files are queued by their path, whoever opened them. */
export class Logs {
  readonly #options: StoreParts
  readonly #queues = new Map<string, Queue>()
  readonly #lines: LineFiles
  #closing = false

  constructor(options: StoreParts) {
    this.#options = options
    this.#lines = new LineFiles({
      flush: options.sync === 'fsync' ? 'each' : 'never',
      handles: openFiles,
      files: options.files,
      fenceOf: file => options.fences?.of(file),
      warn: (file, text, fields) => this.#warn(file, text, fields)
    })
  }

  /** The store of a spec in a directory (absolute). Handles belong to this object, so the store can be thrown away freely. */
  open<V>(spec: StoreSpec, dir: string): LogStore<V> {
    const codec = codecOf<V>(spec)
    const place = (id: string) => fileOf(dir, id, '.jsonl')
    return {
      append: async (id, ...records) => {
        const file = place(id)
        if (records.length === 0) return { at: [], end: await this.#after(file, () => this.#lines.end(file)) }
        return this.#append(
          file,
          records.map(record => encode(codec, record))
        )
      },
      read: async id => {
        const file = place(id)
        // What was appended before this call is seen; what comes later does not wait for the reading.
        if (this.#queues.has(file)) await this.#after(file, async () => undefined)
        return this.#read(file, codec)
      },
      scan: (id, range = {}) => this.#scan(() => place(id), codec, range),
      rewrite: async (id, records) => {
        const file = place(id)
        const all = [...records]
        await this.#after(file, () => this.#lines.replace(file, chunksOf(codec, all)))
      },
      delete: async id => {
        const file = place(id)
        await this.#after(file, () => this.#lines.remove(file))
      },
      ids: () => idsBelow(dir, '.jsonl'),
      release: async id => {
        const file = place(id)
        await this.#after(file, () => this.#lines.release(file))
      }
    }
  }

  /** Writes out what waits, then closes every handle. Later calls throw. */
  async close(): Promise<void> {
    this.#closing = true
    await Promise.all([...this.#queues.keys()].map(file => this.#after(file, async () => undefined, true)))
    await this.#lines.close()
  }

  async #append(file: string, lines: readonly Buffer[]): Promise<LogPositions> {
    let end = await new Promise<number>((resolve, reject) => this.#enqueue(file, { data: Buffer.concat(lines), resolve, reject }))
    const at = lines.map(line => {
      end += line.length
      return end - line.length
    })
    return { at, end }
  }

  /** Does something with a file when everything that was asked for before is done, and before what is asked for later. */
  #after<T>(file: string, work: () => Promise<T>, closing = false): Promise<T> {
    return new Promise((resolve, reject) => {
      this.#enqueue(file, { work: async () => resolve(await work()), resolve: () => undefined, reject }, closing)
    })
  }

  #enqueue(file: string, task: Task, closing = false): void {
    if (this.#closing && !closing) {
      task.reject(new AppError(PersistenceFailed, { message: 'storage is closed' }))
      return
    }
    let queue = this.#queues.get(file)
    const bytes = task.data?.length ?? 0
    if (queue && queue.bytes > 0 && queue.bytes + bytes > waitingBytes) {
      task.reject(new AppError(PersistenceFailed, { message: `${this.#name(file)}: the disk does not keep up` }))
      return
    }
    if (!queue) {
      const fresh: Queue = { tasks: [], bytes: 0 }
      queue = fresh
      this.#queues.set(file, fresh)
      // What is appended in one go shares a write. What follows while that is under way shares the next one.
      queueMicrotask(() => void this.#drain(file, fresh))
    }
    queue.tasks.push(task)
    queue.bytes += bytes
  }

  async #drain(file: string, queue: Queue): Promise<void> {
    while (queue.tasks.length > 0) {
      const batch = takeBatch(queue.tasks)
      try {
        const data = batch.flatMap(task => task.data ?? [])
        if (data.length > 0) {
          let at = (await this.#lines.append(file, data)) - data.reduce((sum, part) => sum + part.length, 0)
          for (const task of batch) {
            task.resolve(at)
            at += task.data?.length ?? 0
          }
        } else await batch[0]?.work?.()
      } catch (error) {
        const failure = notSaved(this.#name(file), error)
        for (const task of batch) task.reject(failure)
      }
      for (const task of batch) queue.bytes -= task.data?.length ?? 0
    }
    this.#queues.delete(file)
  }

  async #read<V>(file: string, codec: Codec<V>): Promise<V[]> {
    const records: V[] = []
    let newer = 0
    try {
      await this.#lines.read(file, line => {
        const decoded = decode(codec, line)
        if (decoded?.kind === 'damaged') return decoded.reason
        if (decoded?.kind === 'newer') newer++
        if (decoded?.kind === 'value') records.push(decoded.value)
        return undefined
      })
    } catch (error) {
      throw notSaved(this.#name(file), error)
    }
    this.#tellNewer(file, newer)
    return records
  }

  async *#scan<V>(placed: () => string, codec: Codec<V>, range: LogRange): AsyncGenerator<LogEntry<V>, void> {
    const file = placed()
    let newer = 0
    try {
      const reader = await this.#after(file, () => this.#lines.reader(file))
      const damaged = this.#lines.damagedLines(file)
      try {
        for await (const lines of reader.batches(range)) {
          for (const line of lines) {
            const decoded = decode(codec, line)
            if (decoded?.kind === 'damaged') damaged.add(line, decoded.reason)
            if (decoded?.kind === 'newer') newer++
            if (decoded?.kind === 'value') yield { at: line.start, next: line.next, value: decoded.value }
            const others = yieldToLoop()
            if (others) await others
          }
        }
      } finally {
        await reader.close()
        await damaged.report()
        this.#tellNewer(file, newer)
      }
    } catch (error) {
      throw notSaved(this.#name(file), error)
    }
  }

  #tellNewer(file: string, count: number): void {
    if (count > 0) this.#options.log.warn({ file: this.#name(file), count }, 'log records of a newer version skipped')
  }

  #warn(file: string, text: string, fields: object): void {
    this.#options.log.warn({ file: this.#name(file), ...fields }, `log: ${text}`)
  }

  #name(file: string): string {
    return relative(this.#options.home, file)
  }
}

/** Undefined for what is no line of a record: an empty one, and a torn tail. */
function decode<V>(codec: Codec<V>, { text, ended }: Line): Decoded<V> | undefined {
  return text === '' || (!ended && !isCompleteRecord(text)) ? undefined : codec.decode(text)
}

/** The next task alone, or a run of appends that fits one write. Removes them from the list. */
function takeBatch(tasks: Task[]): Task[] {
  let count = 0
  let bytes = 0
  while (count < tasks.length) {
    const data = tasks[count]?.data
    if (!data || (count > 0 && bytes + data.length > batchBytes)) break
    bytes += data.length
    count++
  }
  return tasks.splice(0, Math.max(1, count))
}

function encode<V>(codec: Codec<V>, record: V): Buffer {
  const line = Buffer.from(`${codec.encode(record)}\n`)
  if (line.length > maxLineBytes) throw developerError('store_value_long', 'log record', line.length, maxLineBytes)
  return line
}

const chunkBytes = 128 * 1024

/** Encodes while the file is written, so that a long log is neither held in memory a second time nor encoded in one go. */
function* chunksOf<V>(codec: Codec<V>, records: readonly V[]): Generator<Buffer> {
  let lines: Buffer[] = []
  let bytes = 0
  for (const record of records) {
    const line = encode(codec, record)
    lines.push(line)
    bytes += line.length
    if (bytes < chunkBytes) continue
    yield Buffer.concat(lines)
    lines = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(lines)
}
