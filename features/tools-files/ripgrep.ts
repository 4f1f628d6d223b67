/** Search engine on the ripgrep program. */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { ToolRefusal } from '../tools/index.ts'
import {
  cutAround,
  type FileMatches,
  type GrepRequest,
  LINE_CHARS,
  type ListRequest,
  type Partial,
  SEARCH_BYTES,
  SEARCH_MS,
  type SearchEngine,
  VCS_DIRS
} from './search.ts'

function bundledPackage(): Promise<unknown> {
  const bundled = '@vscode/ripgrep' // a variable, so that a missing optional dependency is no build error
  return import(bundled)
}

/** The bundled program, else `rg` on PATH, else undefined. */
export async function findRipgrep(env: NodeJS.ProcessEnv, load = bundledPackage): Promise<string | undefined> {
  const found = (await load().catch(() => undefined)) as { rgPath?: unknown } | undefined // not installed: look on PATH
  if (typeof found?.rgPath === 'string' && existsSync(found.rgPath)) return found.rgPath
  const name = process.platform === 'win32' ? 'rg.exe' : 'rg'
  return (env.PATH ?? '')
    .split(delimiter)
    .filter(dir => dir !== '')
    .map(dir => join(dir, name))
    .find(isExecutable)
}

export function createRipgrep(program: string): SearchEngine {
  return {
    async list(request, onPath, signal) {
      const args = ['--files', '--null', ...common(request), '--', './']
      let rest = ''
      const end = await run(
        program,
        args,
        request.root,
        signal,
        text => {
          const paths = (rest + text).split('\0')
          rest = paths.pop() ?? ''
          return paths.every(path => onPath(plain(path)))
        },
        Number.POSITIVE_INFINITY
      )
      return end.partial
    },
    async grep(request, onFile, signal) {
      const single = async (extra: readonly string[]) => {
        const parser = new Parser(request, onFile)
        const end = await run(program, [...extra, ...grepArgs(request)], request.root, signal, text => {
          parser.push(text)
          return true
        })
        parser.end()
        return { ...end, found: parser.found }
      }
      let end = await single([])
      if (!end.found && /os error 11\b|Resource temporarily unavailable/.test(end.stderr)) end = await single(['--threads', '1'])
      if (end.code === 2 && !end.found && end.stderr !== '') throw new ToolRefusal(`The search failed: ${end.stderr.slice(0, 1000).trim()}`)
      return end.partial
    }
  }
}

function common(request: ListRequest): string[] {
  return [
    '--no-config',
    '--hidden',
    '--no-require-git',
    '--color=never',
    '--no-messages',
    ...VCS_DIRS.flatMap(dir => ['--glob', `!${dir}`]),
    ...(request.include_ignored ? ['--no-ignore'] : [])
  ]
}

function grepArgs(request: GrepRequest): string[] {
  const args = ['--null', '--with-filename', '--no-heading', '--crlf', ...common(request)]
  if (request.mode === 'files_with_matches') args.push('--files-with-matches')
  else if (request.mode === 'count_matches') args.push('--count-matches')
  else {
    args.push('--line-number', '--column') // the column tells where to cut long lines
    if (request.before > 0) args.push('--before-context', String(request.before))
    if (request.after > 0) args.push('--after-context', String(request.after))
  }
  if (request.ignore_case) args.push('--ignore-case')
  if (request.multiline) args.push('--multiline', '--multiline-dotall')
  if (request.type !== undefined) args.push('--type', request.type)
  if (request.glob !== undefined) args.push('--glob', request.glob)
  args.push('--regexp', request.pattern, '--', request.file === undefined ? './' : `./${request.file}`)
  return args
}

/** Reads ripgrep's lines, `<path> NUL <rest>`, and passes them on file by file. */
class Parser {
  found = false
  readonly #request: GrepRequest
  readonly #onFile: (matches: FileMatches) => void
  #rest = ''
  #current: { path: string; lines: string[] } | undefined
  #gap = false

  constructor(request: GrepRequest, onFile: (matches: FileMatches) => void) {
    this.#request = request
    this.#onFile = onFile
  }

  push(text: string): void {
    const lines = (this.#rest + text).split(this.#request.mode === 'files_with_matches' ? '\0' : '\n')
    this.#rest = lines.pop() ?? ''
    for (const line of lines) this.#line(line)
  }

  end(): void {
    if (this.#current) this.#onFile(this.#current)
    this.#current = undefined
  }

  #line(line: string): void {
    const { mode } = this.#request
    if (mode === 'files_with_matches') {
      this.found = true
      this.#onFile({ path: plain(line), lines: [] })
      return
    }
    if (line === '--' || line === '--\r') this.#gap = true
    const nul = line.indexOf('\0')
    if (nul < 0) return
    this.found = true
    const path = plain(line.slice(0, nul))
    const rest = line.slice(nul + 1)
    if (mode === 'count_matches') {
      this.#onFile({ path, lines: [], count: Number.parseInt(rest, 10) })
      return
    }
    if (this.#current?.path !== path) {
      this.end()
      this.#current = { path, lines: [] }
    } else if (this.#gap) this.#current.lines.push('--')
    this.#gap = false
    this.#current.lines.push(shownLine(rest.replace(/\r$/, ''), this.#request))
  }
}

/** `12:7:text` of a match, `12-text` of context: without the column, cut where it is long, without the number where none is wanted. */
function shownLine(row: string, { line_numbers }: GrepRequest): string {
  const [whole = '', number = '', mark = ':', column] = /^(\d+)(?:(:)(\d+):|-)/.exec(row) ?? []
  const text = row.slice(whole.length)
  // the column counts bytes
  const at = column === undefined || text.length <= LINE_CHARS ? 0 : Buffer.from(text).toString('utf8', 0, Number(column) - 1).length
  const shown = cutAround(text, at)
  return line_numbers ? `${number}${column === undefined ? '-' : mark}${shown}` : shown
}

function plain(path: string): string {
  const slashed = process.platform === 'win32' ? path.replaceAll('\\', '/') : path
  return slashed.startsWith('./') ? slashed.slice(2) : slashed
}

interface End {
  readonly code: number | null
  readonly stderr: string
  readonly partial?: Partial
}

/** The program needs no more; what it gets, commands of the agent could read in /proc. */
const searchEnv = Object.fromEntries(
  ['PATH', 'LD_LIBRARY_PATH', 'SystemRoot'].flatMap(name => (process.env[name] === undefined ? [] : [[name, process.env[name]]]))
)

/** Runs the program until it ends, `onText` returns false, or a limit is reached. Rejects with the abort's reason. */
function run(
  program: string,
  args: string[],
  cwd: string,
  signal: AbortSignal,
  onText: (text: string) => boolean,
  limit = SEARCH_BYTES
): Promise<End> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const child = spawn(program, args, { cwd, env: searchEnv, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true })
    const decoder = new StringDecoder('utf8')
    let bytes = 0
    let stderr = ''
    let partial: Partial | undefined
    let failure: unknown
    const stop = () => child.kill('SIGKILL')
    const timer = setTimeout(() => {
      partial ??= 'time'
      stop()
    }, SEARCH_MS)
    signal.addEventListener('abort', stop, { once: true })
    child.stdout.on('data', (chunk: Buffer) => {
      if (partial || failure) return
      bytes += chunk.length
      try {
        if (onText(decoder.write(chunk)) && bytes <= limit) return
        partial = 'size'
      } catch (error) {
        failure = error
      }
      stop()
    })
    child.stderr.on('data', (chunk: Buffer) => {
      if (stderr.length < 4_000) stderr += chunk.toString('utf8')
    })
    const over = () => {
      clearTimeout(timer)
      signal.removeEventListener('abort', stop)
    }
    child.once('error', error => {
      over()
      reject(error)
    })
    child.once('close', code => {
      over()
      if (signal.aborted) reject(signal.reason)
      else if (failure) reject(failure)
      else resolve({ code, stderr, ...(partial ? { partial } : {}) })
    })
  })
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
