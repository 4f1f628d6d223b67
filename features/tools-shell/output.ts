// biome-ignore-all lint/suspicious/noControlCharactersInRegex: control characters are what is left out here
/** Collects what a command prints: bounded text for the model, the whole of it on disk when it is longer, live pieces for clients. */
import { headOf, tailOf } from '../../kernel/index.ts'
import { CUT_MARK, KeptText, type ToolUpdate } from '../tools/index.ts'

/** Characters of the output that go to the model (with the closing lines below 50000); the rest is cut in the middle. */
const KEEP_CHARS = 49_000
const HEAD_CHARS = 20_000
/** A command that prints more is killed. */
export const MAX_BYTES = 16 * 1024 * 1024
/** Characters of one live piece; of more only the end is shown. */
const PIECE_CHARS = 16 * 1024

/** Escape sequences: colours and cursor (CSI), titles and links (OSC and their like), single ones. */
const escapes = /\x1b(?:\[[0-?]*[ -/]*[@-~]|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)|[ -/]*[0-Z\\^-~])/g
/** A line that has not ended is passed on at this length. */
const LINE_CHARS = 16 * 1024

/** What a terminal would show in the end: without escape sequences, of a line that overwrites itself (progress bars) the last state. */
export class Cleaner {
  #rest = ''

  /** The lines that have ended. */
  push(text: string): string {
    const all = this.#rest + text
    const at = all.lastIndexOf('\n') + 1
    this.#rest = all.slice(at)
    if (this.#rest.length > LINE_CHARS) this.#rest = lastState(this.#rest) + (this.#rest.endsWith('\r') ? '\r' : '')
    if (this.#rest.length <= LINE_CHARS) return cleaned(all.slice(0, at))
    return cleaned(all.slice(0, at)) + this.end()
  }

  /** The line that has not ended, so far. */
  get unfinished(): string {
    return cleaned(this.#rest)
  }

  /** The line that has not ended. */
  end(): string {
    const rest = this.unfinished
    this.#rest = ''
    return rest
  }
}

function cleaned(text: string): string {
  if (!/[\x1b\r\x08]/.test(text)) return text
  return text.replace(escapes, '').split('\n').map(lastState).join('\n')
}

/** What stands behind the last carriage return, and backspaces carried out. */
function lastState(line: string): string {
  const end = line.replace(/(?<!\r)\r+$/, '')
  const shown = end.slice(end.lastIndexOf('\r') + 1)
  if (!shown.includes('\b')) return shown
  const kept: string[] = []
  for (const char of shown) {
    if (char === '\b') kept.pop()
    else kept.push(char)
  }
  return kept.join('')
}

/** The text of one command's output. */
export class Output {
  readonly #logPath: string
  #head = ''
  #tail = ''
  #cut = false
  /** Bytes so far (UTF-8), as they came. */
  bytes = 0
  #log: KeptText | undefined
  #kept = true
  readonly #heard: ((text: string) => void) | undefined
  readonly #cleaners = { stdout: new Cleaner(), stderr: new Cleaner() }

  /** `heard`: gets every piece of the text. */
  constructor(logPath: string, heard?: (text: string) => void) {
    this.#logPath = logPath
    this.#heard = heard
  }

  /** The lines that have not ended, so far. */
  get unfinished(): string {
    return this.#cleaners.stdout.unfinished + this.#cleaners.stderr.unfinished
  }

  /** From now on the text is passed on and not kept. */
  passOn(): void {
    this.#kept = false
    this.#head = ''
    this.#tail = ''
    this.#cut = false
    void this.#log?.end(false)
    this.#log = undefined
  }

  add(kind: 'stdout' | 'stderr', text: string): void {
    this.bytes += Buffer.byteLength(text)
    this.#keep(this.#cleaners[kind].push(text))
  }

  #keep(text: string): void {
    if (text === '') return
    this.#heard?.(text)
    if (!this.#kept) return
    this.#log?.write(text)
    this.#tail += text
    if (!this.#cut && this.#tail.length > KEEP_CHARS) {
      this.#log = KeptText.open(this.#logPath) // without a directory for it no path is promised
      this.#log?.write(this.#tail)
      this.#cut = true
      this.#head = headOf(this.#tail, HEAD_CHARS)
    }
    if (this.#cut && this.#tail.length > 2 * KEEP_CHARS) this.#tail = this.#tail.slice(-(KEEP_CHARS - HEAD_CHARS))
  }

  /** The bounded text, and where the whole is when it was cut, and the disk took it. Closes the file. */
  async finish(): Promise<{ readonly text: string; readonly logPath?: string; readonly truncated: boolean }> {
    for (const cleaner of Object.values(this.#cleaners)) this.#keep(cleaner.end())
    if (!this.#cut) return { text: this.#tail, truncated: false }
    const whole = await this.#log?.end(true)
    const text = `${this.#head}\n${CUT_MARK}\n${tailOf(this.#tail, KEEP_CHARS - HEAD_CHARS)}`
    return { text, truncated: true, ...(whole ? { logPath: this.#logPath } : {}) }
  }
}

/** Passes live text on in pieces: at once after a pause, else every 50 ms, a new piece for each change of stream. */
export class Pieces {
  readonly #send: (update: ToolUpdate) => void
  #kind: 'stdout' | 'stderr' = 'stdout'
  #text = ''
  #timer: NodeJS.Timeout | undefined

  constructor(send: (update: ToolUpdate) => void) {
    this.#send = send
  }

  add(kind: 'stdout' | 'stderr', text: string): void {
    if (kind !== this.#kind) this.flush()
    this.#kind = kind
    this.#text += text
    if (this.#text.length > 2 * PIECE_CHARS) this.#text = this.#text.slice(-PIECE_CHARS)
    this.#timer ??= setTimeout(() => this.flush(), 50)
  }

  /** Sends what is waiting. */
  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#text === '') return
    const text = tailOf(this.#text, PIECE_CHARS)
    this.#text = ''
    this.#send({ kind: this.#kind, text })
  }
}
