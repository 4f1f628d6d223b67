/** Log store: JSON lines per id, appended with group commit, repaired at the tail, read in slices. */
import { relative } from 'node:path'
import type { StoreSpec } from '../contract.ts'
import { AppError, PersistenceFailed } from '../errors.ts'
import type { Logger } from '../log/log.ts'
import { notSaved, removeFile, replaceFile, type Sync } from './atomic.ts'
import { type Codec, codecOf } from './codec.ts'
import { Tails } from './handles.ts'
import { eachLine, isCompleteRecord } from './lines.ts'
import { fileOf, idsBelow } from './paths.ts'
import type { LogStore } from './ports.ts'
import { setAside } from './quarantine.ts'

export interface LogOptions {
  /** Texts in logs name files relative to it. */
  readonly home: string
  readonly log: Pick<Logger, 'warn'>
  readonly sync: Sync
  /** Files kept open for appending; default 64. */
  readonly handles?: number
}

/** Bytes of one write, and of what may wait for a slow disk per file before appends are refused. */
const batchBytes = 4 * 1024 * 1024
const waitingBytes = 64 * 1024 * 1024

interface Task {
  /** Lines to append; undefined for other work. */
  readonly data?: Buffer
  readonly work?: () => Promise<void>
  resolve(): void
  reject(error: unknown): void
}

interface Queue {
  readonly tasks: Task[]
  bytes: number
}

/** All log stores of one Storage share it: files are queued by their path, whoever opened them. */
export class Logs {
  readonly #options: LogOptions
  readonly #queues = new Map<string, Queue>()
  readonly #tails: Tails
  #closing = false

  constructor(options: LogOptions) {
    this.#options = options
    this.#tails = new Tails({
      sync: options.sync,
      limit: options.handles ?? 64,
      onCut: (file, bytes) => options.log.warn({ file: this.#name(file), bytes }, 'torn tail of a log cut off'),
      isBusy: file => this.#queues.has(file)
    })
  }

  /** The store of a spec in a directory (absolute). Handles belong to this object, so the store can be thrown away freely. */
  open<V>(spec: StoreSpec, dir: string): LogStore<V> {
    const codec = codecOf<V>(spec)
    const place = (id: string) => fileOf(dir, id, '.jsonl')
    return {
      append: async (id, ...records) => {
        if (records.length > 0) await this.#enqueue(place(id), { data: encode(codec, records) })
      },
      read: async id => {
        const file = place(id)
        // What was appended before this call is seen; what comes later does not wait for the reading.
        if (this.#queues.has(file)) await this.#enqueue(file, { work: async () => undefined })
        return this.#read(file, codec)
      },
      rewrite: async (id, records) => {
        const file = place(id)
        // One buffer per record: a long log is never one huge string.
        const chunks = records.map(record => encode(codec, [record]))
        await this.#enqueue(file, { work: () => this.#replace(file, chunks) })
      },
      delete: async id => {
        const file = place(id)
        await this.#enqueue(file, { work: () => this.#remove(file) })
      },
      ids: () => idsBelow(dir, '.jsonl'),
      release: async id => {
        const file = place(id)
        await this.#enqueue(file, { work: () => this.#tails.close(file) })
      }
    }
  }

  /** Writes out what waits, then closes every handle. Later calls throw. */
  async close(): Promise<void> {
    this.#closing = true
    const drained = [...this.#queues.keys()].map(file => this.#enqueue(file, { work: async () => undefined }, true))
    await Promise.all(drained)
    await this.#tails.closeAll()
  }

  #enqueue(file: string, task: Pick<Task, 'data' | 'work'>, closing = false): Promise<void> {
    if (this.#closing && !closing) return Promise.reject(new AppError(PersistenceFailed, { message: 'storage is closed' }))
    return new Promise<void>((resolve, reject) => {
      let queue = this.#queues.get(file)
      const bytes = task.data?.length ?? 0
      if (queue && queue.bytes > 0 && queue.bytes + bytes > waitingBytes) {
        reject(new AppError(PersistenceFailed, { message: `${this.#name(file)}: the disk does not keep up` }))
        return
      }
      if (!queue) {
        const fresh: Queue = { tasks: [], bytes: 0 }
        queue = fresh
        this.#queues.set(file, fresh)
        // After this turn of the loop, so that everything appended in it goes out with one write.
        setImmediate(() => void this.#drain(file, fresh))
      }
      queue.tasks.push({ ...task, resolve, reject })
      queue.bytes += bytes
    })
  }

  async #drain(file: string, queue: Queue): Promise<void> {
    while (queue.tasks.length > 0) {
      const batch = takeBatch(queue.tasks)
      try {
        const data = batch.flatMap(task => task.data ?? [])
        if (data.length > 0) await this.#write(file, data)
        else await batch[0]?.work?.()
        for (const task of batch) task.resolve()
      } catch (error) {
        const failure = notSaved(this.#name(file), error)
        for (const task of batch) task.reject(failure)
      }
      for (const task of batch) queue.bytes -= task.data?.length ?? 0
    }
    this.#queues.delete(file)
  }

  async #write(file: string, data: Buffer[]): Promise<void> {
    const tail = await this.#tails.get(file)
    const bytes = data.length === 1 ? (data[0] as Buffer) : Buffer.concat(data)
    try {
      await tail.handle.appendFile(bytes)
      if (this.#options.sync === 'fsync') await tail.handle.datasync()
      tail.size += bytes.length
    } catch (error) {
      // Refused records must not appear after all: back to the last good length, and a fresh look at the file next time.
      await tail.handle.truncate(tail.size).catch(() => undefined) // repaired when the file is opened again
      await this.#tails.close(file).catch(() => undefined) // the write error tells more
      throw error
    }
  }

  async #replace(file: string, chunks: readonly Buffer[]): Promise<void> {
    await this.#tails.close(file)
    await replaceFile(file, chunks, this.#options)
  }

  async #remove(file: string): Promise<void> {
    await this.#tails.close(file)
    await removeFile(file)
    await removeFile(`${file}.damaged`)
  }

  async #read<V>(file: string, codec: Codec<V>): Promise<V[]> {
    const records: V[] = []
    const damaged: { line: string; reason: string; start: number }[] = []
    let newer = 0
    try {
      await eachLine(file, line => {
        if (!line.whole && !isCompleteRecord(line.text)) return
        const decoded = codec.decode(line.text)
        if (decoded.kind === 'value') records.push(decoded.value)
        else if (decoded.kind === 'newer') newer++
        else damaged.push({ line: line.text, reason: decoded.reason, start: line.start })
      })
      if (damaged.length > 0) {
        const first = damaged[0]
        const where = { file: this.#name(file), count: damaged.length, first_byte: first?.start, reason: first?.reason }
        this.#options.log.warn(where, 'damaged log records skipped, copied to the .damaged file beside')
        await setAside(
          `${file}.damaged`,
          damaged.map(entry => entry.line)
        )
      }
    } catch (error) {
      throw notSaved(this.#name(file), error)
    }
    if (newer > 0) this.#options.log.warn({ file: this.#name(file), count: newer }, 'log records of a newer version skipped')
    return records
  }

  #name(file: string): string {
    return relative(this.#options.home, file)
  }
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

function encode<V>(codec: Codec<V>, records: readonly V[]): Buffer {
  return Buffer.from(`${records.map(record => codec.encode(record)).join('\n')}\n`)
}
