/**
 * What a server knows of the sessions of its home, kept over its end: the facts of each session and the stamp of the state file that they
 * were read from, so that the next start compares stamps instead of reading every file. A cache: a line that is damaged, or whose stamp
 * is not that of the file, counts for nothing, and without the file all is read again.
 */
import { appendFile } from 'node:fs/promises'
import { crc32 } from 'node:zlib'
import { codecOf, type Logger, readIfThere, replaceFile, yieldToLoop } from '../../kernel/index.ts'
import { stateStore } from './contract.ts'
import type { SessionState } from './service.ts'

interface IndexRow {
  readonly state: SessionState
  /** Of the state file; tells one content from the next. */
  readonly stamp: string
}

/** What is new waits so long for company. */
const flushMs = 1000
const batchChars = 4 * 1024 * 1024

const codec = codecOf<SessionState>(stateStore)

export class IndexFile {
  readonly #path: string
  readonly #log: Logger
  readonly #rows: () => Iterable<IndexRow>
  #waiting = new Map<string, IndexRow>()
  /** Lines in the file, useless ones too. */
  #lines = 0
  #timer: NodeJS.Timeout | undefined
  #writing: Promise<void> = Promise.resolve()

  /** `rows`: what the file holds when it is written anew. */
  constructor(path: string, log: Logger, rows: () => Iterable<IndexRow>) {
    this.#path = path
    this.#log = log
    this.#rows = rows
  }

  /** The newest row of each session. */
  async read(): Promise<ReadonlyMap<string, IndexRow>> {
    const found = new Map<string, IndexRow>()
    const text = (await readIfThere(this.#path).catch(() => undefined)) ?? '' // none yet, or out of reach: all is read again
    for (let from = 0; from < text.length; ) {
      const end = text.indexOf('\n', from)
      const row = rowOf(text.slice(from, end < 0 ? text.length : end))
      if (row) found.set(row.state.id, row)
      this.#lines++
      from = end < 0 ? text.length : end + 1
      await yieldToLoop()
    }
    return found
  }

  /** Keeps a row; written a little later. */
  keep(row: IndexRow): void {
    this.#waiting.set(row.state.id, row)
    this.#timer ??= setTimeout(() => void this.flush(), flushMs).unref()
  }

  /** Resolves when everything is written; never rejects. */
  flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    const rows = this.#waiting
    this.#waiting = new Map()
    this.#writing = this.#writing
      .then(() => this.#write([...rows.values()]))
      .catch(err => this.#log.debug({ err }, 'the index of sessions was not written'))
    return this.#writing
  }

  async #write(rows: readonly IndexRow[]): Promise<void> {
    if (rows.length === 0) return
    const all = [...this.#rows()]
    if (this.#lines + rows.length > 2 * all.length + 1000) {
      await replaceFile(this.#path, chunks(all), { sync: 'write', unserialised: true })
      this.#lines = all.length
      return
    }
    for await (const chunk of chunks(rows)) await appendFile(this.#path, chunk, { mode: 0o600 })
    this.#lines += rows.length
  }
}

/** Each chunk begins a line, whatever a crash left before it. */
async function* chunks(rows: readonly IndexRow[]): AsyncGenerator<Buffer> {
  let text = '\n'
  for (const { state, stamp } of rows) {
    const line = `${stamp} ${codec.encode(state)}`
    text += `${sumOf(line)} ${line}\n`
    if (text.length >= batchChars) {
      yield Buffer.from(text)
      text = '\n'
    }
    await yieldToLoop()
  }
  yield Buffer.from(text)
}

function rowOf(line: string): IndexRow | undefined {
  const [sum = '', stamp = ''] = line.split(' ', 2)
  const text = line.slice(sum.length + stamp.length + 2)
  if (stamp === '' || sum !== sumOf(`${stamp} ${text}`)) return undefined
  const read = codec.decode(text)
  return read.kind === 'value' ? { state: read.value, stamp } : undefined
}

const sumOf = (line: string): string => crc32(line).toString(16)
