/** Log store: JSON lines per id, appended with group commit. */
import type { StoreSpec } from '../contract.ts'
import { developerError } from '../errors.ts'
import { yieldToLoop } from '../lifecycle/wait.ts'
import { nameIn, type StoreParts, storing } from './fences.ts'
import { fileOf, idsBelow } from './files.ts'
import { LineFiles } from './line-file.ts'
import { isCompleteRecord, type Line, maxLineBytes } from './line-reader.ts'
import { type Codec, codecOf, type Decoded, type LogEntry, type LogPositions, type LogRange, type LogStore } from './ports.ts'
import { notSaved, unsaved } from './refusals.ts'

/** Bytes of one write, and of what may wait for a slow disk per file before appends are refused. */
const groupBytes = 4 * 1024 * 1024
const waitingBytes = 64 * 1024 * 1024
const openFiles = 64

/** Lines that share a write: what is appended in one go, and what follows while the write before is under way. */
interface Group {
  readonly parts: Buffer[]
  bytes: number
  /** Where the file ends after them. */
  readonly end: Promise<number>
}

/** All log stores of one Storage share it: files are queued by their path, whoever opened them. */
export class Logs {
  readonly #options: StoreParts
  readonly #lines: LineFiles
  /** By file, as long as they can grow. */
  readonly #groups = new Map<string, Group>()
  /** Bytes that wait for the disk, by file. */
  readonly #waiting = new Map<string, number>()
  #closing = false

  constructor(options: StoreParts) {
    this.#options = options
    this.#lines = new LineFiles({
      flush: 'each',
      handles: openFiles,
      files: options.files,
      fenceOf: file => options.fences.of(file),
      warn: (file, text, fields) => options.log.warn({ file: nameIn(options, file), ...fields }, `log: ${text}`)
    })
  }

  /** The store of a spec in a directory (absolute). Handles belong to this object, so the store can be thrown away freely. */
  open<V>(spec: StoreSpec, dir: string): LogStore<V> {
    const codec = codecOf<V>(spec)
    const place = (id: string) => fileOf(dir, id, '.jsonl')
    return {
      append: async (id, ...records) => this.#append(place(id), codec, records),
      read: async id => {
        const records: V[] = []
        for await (const { value } of this.#scan(() => place(id), codec, {})) records.push(value)
        return records
      },
      scan: (id, range = {}) => this.#scan(() => place(id), codec, range),
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
    await this.#lines.close()
  }

  async #append<V>(file: string, codec: Codec<V>, records: readonly V[]): Promise<LogPositions> {
    if (records.length === 0) return { at: [], end: await this.#after(file, () => this.#lines.end(file)) }
    const lines = records.map(record => encode(codec, record))
    const data = Buffer.concat(lines)
    const waiting = this.#waiting.get(file) ?? 0
    if (waiting > 0 && waiting + data.length > waitingBytes) throw unsaved(`${nameIn(this.#options, file)}: the disk does not keep up`)
    if (this.#closing) throw unsaved('storage is closed')
    let group = this.#groups.get(file)
    if (!group || group.bytes + data.length > groupBytes) group = this.#begin(file)
    let offset = group.bytes
    group.parts.push(data)
    group.bytes += data.length
    this.#waiting.set(file, waiting + data.length)
    try {
      const start = (await group.end) - group.bytes
      const at = lines.map(line => {
        offset += line.length
        return start + offset - line.length
      })
      return { at, end: start + offset }
    } catch (error) {
      throw notSaved(nameIn(this.#options, file), error)
    } finally {
      const left = (this.#waiting.get(file) ?? 0) - data.length
      if (left > 0) this.#waiting.set(file, left)
      else this.#waiting.delete(file)
    }
  }

  #begin(file: string): Group {
    const parts: Buffer[] = []
    const take = () => {
      if (this.#groups.get(file) === group) this.#groups.delete(file)
      return parts
    }
    const group: Group = { parts, bytes: 0, end: this.#lines.append(file, take) }
    this.#groups.set(file, group)
    return group
  }

  /** Does something with a file when everything that was asked for before is done, and before what is asked for later. */
  async #after<T>(file: string, work: () => Promise<T>): Promise<T> {
    if (this.#closing) throw unsaved('storage is closed')
    this.#groups.delete(file)
    return await storing(this.#options, file, work)
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
        damaged.report()
        if (newer > 0) this.#options.log.warn({ file: nameIn(this.#options, file), count: newer }, 'log records of a newer version skipped')
      }
    } catch (error) {
      throw notSaved(nameIn(this.#options, file), error)
    }
  }
}

/** Undefined for what is no line of a record: an empty one, and a torn tail. */
function decode<V>(codec: Codec<V>, { text, ended }: Line): Decoded<V> | undefined {
  return text === '' || (!ended && !isCompleteRecord(text)) ? undefined : codec.decode(text)
}

function encode<V>(codec: Codec<V>, record: V): Buffer {
  const line = Buffer.from(`${codec.encode(record)}\n`)
  if (line.length > maxLineBytes) throw developerError('store_value_long', 'log record', line.length, maxLineBytes)
  return line
}
