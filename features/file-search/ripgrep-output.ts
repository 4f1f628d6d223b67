/** What ripgrep prints of the files that it was given, read line by line. */
import { cutAround, type FileMatches, type GrepRequest, LINE_CHARS, type Row } from './engine.ts'

/**
 * Reads ripgrep's lines, `<name> NUL <rest>`, and passes them on file by file. The text has a character per byte (latin1): columns count
 * bytes, and lines need not be UTF-8. What begins with no name of a file is a remark of the program.
 */
export class Parser {
  found = false
  readonly #request: GrepRequest
  /** Paths by the names that the program knows the files by. */
  readonly #paths: ReadonlyMap<string, string>
  readonly #onFile: (matches: FileMatches) => boolean
  #rest = ''
  #current: { path: string; rows: Row[] } | undefined

  constructor(request: GrepRequest, paths: ReadonlyMap<string, string>, onFile: (matches: FileMatches) => boolean) {
    this.#request = request
    this.#paths = paths
    this.#onFile = onFile
  }

  /** False: no more is wanted. */
  push(text: string): boolean {
    const lines = (this.#rest + text).split(this.#request.mode === 'files_with_matches' ? '\0' : '\n')
    this.#rest = lines.pop() ?? ''
    return lines.every(line => this.#line(line))
  }

  /** Passes on the last file. False: no more is wanted. */
  end(): boolean {
    const current = this.#current
    this.#current = undefined
    return !current || this.#onFile(current)
  }

  #line(line: string): boolean {
    const { mode } = this.#request
    const nul = line.indexOf('\0')
    const path = this.#paths.get(nul < 0 ? line : line.slice(0, nul))
    if (path === undefined) return true
    this.found = true
    if (mode === 'files_with_matches') return this.#onFile({ path, rows: [] })
    const rest = line.slice(nul + 1)
    if (mode === 'count_matches') return this.#onFile({ path, rows: [], count: Number.parseInt(rest, 10) })
    let more = true
    if (this.#current?.path !== path) {
      more = this.end()
      this.#current = { path, rows: [] }
    }
    this.#current.rows.push(rowOf(rest.replace(/\r$/, '')))
    return more
  }
}

const decoded = (bytes: string) => Buffer.from(bytes, 'latin1').toString('utf8')

/** `12:7:text` of a match, `12-text` of context; long lines are cut. */
function rowOf(row: string): Row {
  const [whole = '', number = '', , column] = /^(\d+)(?:(:)(\d+):|-)/.exec(row) ?? []
  const bytes = row.slice(whole.length)
  const text = decoded(bytes)
  if (column === undefined) return { line: Number(number), text: cutAround(text, 0) }
  const at = column === '1' ? 0 : decoded(bytes.slice(0, Number(column) - 1)).length
  return { line: Number(number), text: text.length <= LINE_CHARS ? text : cutAround(text, at), col: at + 1 }
}

/** Files searched, of the figures at the end of a search. */
export function scannedOf(text: string): number | undefined {
  const scanned = /^(\d+) files? searched$/m.exec(text)?.[1]
  return scanned === undefined ? undefined : Number(scanned)
}

/** A path as the engine tells it. */
export function plain(path: string): string {
  const slashed = process.platform === 'win32' ? path.replaceAll('\\', '/') : path
  return slashed.startsWith('./') ? slashed.slice(2) : slashed
}
