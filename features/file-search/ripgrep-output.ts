/** What ripgrep prints, read line by line. */
import { cutAround, type FileMatches, type GrepRequest, LINE_CHARS, type Row } from './engine.ts'

/** Reads ripgrep's lines, `<path> NUL <rest>`, and passes them on file by file. */
export class Parser {
  found = false
  /** Files that were searched, told at the end. */
  scanned: number | undefined
  readonly #request: GrepRequest
  readonly #onFile: (matches: FileMatches) => boolean
  #rest = ''
  /** A path of which the end has not come. */
  #begun = ''
  #current: { path: string; rows: Row[] } | undefined

  constructor(request: GrepRequest, onFile: (matches: FileMatches) => boolean) {
    this.#request = request
    this.#onFile = onFile
  }

  /** False: no more is wanted. */
  push(text: string): boolean {
    const lines = (this.#rest + text).split(this.#request.mode === 'files_with_matches' ? '\0' : '\n')
    this.#rest = lines.pop() ?? ''
    return lines.every(line => this.#line(line))
  }

  end(): void {
    const { scanned } = this
    if (scanned === undefined) this.#summary(this.#rest)
    this.#pass()
  }

  #pass(): boolean {
    const current = this.#current
    this.#current = undefined
    return !current || this.#onFile(current)
  }

  #line(line: string): boolean {
    const { mode } = this.#request
    if (mode === 'files_with_matches') {
      this.found = true
      return this.#onFile({ path: plain(line), rows: [] })
    }
    const whole = this.#begun + line
    const nul = whole.indexOf('\0')
    if (nul < 0) {
      // Every path begins with ./ here, so this is one with a line break in it.
      if (whole.startsWith('./')) this.#begun = `${whole}\n`
      else this.#summary(line)
      return true
    }
    this.#begun = ''
    this.found = true
    const path = plain(whole.slice(0, nul))
    const rest = whole.slice(nul + 1)
    if (mode === 'count_matches') return this.#onFile({ path, rows: [], count: Number.parseInt(rest, 10) })
    let more = true
    if (this.#current?.path !== path) {
      more = this.#pass()
      this.#current = { path, rows: [] }
    }
    this.#current.rows.push(rowOf(rest.replace(/\r$/, '')))
    return more
  }

  #summary(line: string): void {
    const scanned = /^(\d+) files? searched$/.exec(line)?.[1]
    if (scanned !== undefined) this.scanned = Number(scanned)
  }
}

/** `12:7:text` of a match, `12-text` of context; long lines are cut. */
function rowOf(row: string): Row {
  const [whole = '', number = '', , column] = /^(\d+)(?:(:)(\d+):|-)/.exec(row) ?? []
  const text = row.slice(whole.length)
  if (column === undefined) return { line: Number(number), text: cutAround(text, 0) }
  // the column counts bytes
  const at = column === '1' ? 0 : Buffer.from(text).toString('utf8', 0, Number(column) - 1).length
  return { line: Number(number), text: text.length <= LINE_CHARS ? text : cutAround(text, at), col: at + 1 }
}

/** A path as the engine tells it. */
export function plain(path: string): string {
  const slashed = process.platform === 'win32' ? path.replaceAll('\\', '/') : path
  return slashed.startsWith('./') ? slashed.slice(2) : slashed
}
