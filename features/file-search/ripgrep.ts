/** Search engine on the ripgrep program. */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { ToolRefusal } from '../tools/index.ts'
import {
  assertTexts,
  cutAround,
  type FileMatches,
  type GrepRequest,
  LINE_CHARS,
  type ListRequest,
  namesReturns,
  type Partial,
  type Row,
  SEARCH_BYTES,
  SEARCH_MS,
  type SearchEngine
} from './engine.ts'
import { anyGlob, endingGlobs, included } from './globs.ts'
import { isNamed, repositoryOf, VCS_DIRS } from './ignore-rules.ts'
import { runBehind } from './priority.ts'

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
      const args = ['--files', '--null', ...(await common(request)), '--', './']
      let rest = ''
      const end = await run(
        program,
        args,
        request.root,
        signal,
        text => {
          const paths = (rest + text).split('\0')
          rest = paths.pop() ?? ''
          return paths.every(path => !isNamed(request.root, path) || onPath(plain(path)))
        },
        { bytes: Number.POSITIVE_INFINITY }
      )
      return end.partial
    },
    async grep(request, onFile, signal) {
      assertTexts(request)
      const fits = included(request)
      const shared = await common(request)
      // Globs that the program cannot read are asked of the results.
      let { exclude = [] } = request
      let excluded = anyGlob([])
      const found = (matches: FileMatches) =>
        !fits(matches.path) || excluded(matches.path) || !isNamed(request.root, matches.path) || onFile(matches)
      const single = async (extra: readonly string[]) => {
        const parser = new Parser(request, found)
        const limits = request.most_ms === undefined ? {} : { ms: request.most_ms }
        const end = await run(
          program,
          [...extra, ...shared, ...grepArgs({ ...request, exclude })],
          request.root,
          signal,
          text => parser.push(text),
          limits
        )
        parser.end()
        return { ...end, found: parser.found, scanned: parser.scanned }
      }
      let end = await single([])
      if (!end.found && exclude.length > 0 && /error parsing glob/.test(end.stderr)) {
        excluded = anyGlob(exclude)
        exclude = []
        end = await single([])
      }
      if (!end.found && /os error 11\b|Resource temporarily unavailable/.test(end.stderr)) end = await single(['--threads', '1'])
      if (end.code === 2 && !end.found && end.stderr !== '') throw new ToolRefusal(`The search failed: ${end.stderr.slice(0, 1000).trim()}`)
      const { partial, scanned } = end
      return { ...(partial === undefined ? {} : { partial }), ...(scanned === undefined ? {} : { scanned }) }
    }
  }
}

async function common(request: ListRequest): Promise<string[]> {
  return [
    '--no-config',
    '--hidden',
    ...(await reach(request)),
    '--color=never',
    '--no-messages',
    ...VCS_DIRS.flatMap(dir => ['--glob', `!${dir}`]),
    ...(request.include_ignored ? ['--no-ignore'] : [])
  ]
}

/**
 * Ignore files above count up to the root of the repository. Without the need for one the program reads on to the root of the file system, and
 * with it those of directories that belong to none not at all.
 */
async function reach({ root }: ListRequest): Promise<string[]> {
  const repository = await repositoryOf(root)
  if (!repository.git) return ['--no-require-git']
  return repository.root === root ? ['--no-require-git', '--no-ignore-parent'] : []
}

function grepArgs(request: GrepRequest): string[] {
  const args = ['--null', '--with-filename', '--no-heading', ...(namesReturns(request) ? [] : ['--crlf'])]
  if (request.mode === 'files_with_matches') args.push('--files-with-matches')
  else if (request.mode === 'count_matches') args.push('--count-matches')
  else {
    args.push('--line-number', '--column', '--stats') // the column tells where to cut long lines
    if (request.before > 0) args.push('--before-context', String(request.before))
    if (request.after > 0) args.push('--after-context', String(request.after))
  }
  if (request.ignore_case) args.push('--ignore-case')
  if (request.multiline) args.push('--multiline', '--multiline-dotall')
  if (request.type !== undefined) args.push('--type', request.type)
  if (request.glob !== undefined) args.push('--glob', request.glob)
  if (request.literal) args.push('--fixed-strings')
  if (request.most_lines !== undefined) args.push('--max-count', String(request.most_lines))
  // A glob would find ignored files, too; a type does not. What it cannot say is asked of the results.
  for (const glob of endingGlobs(request.include)) args.push('--type-add', `wanted:${glob}`)
  if (endingGlobs(request.include).length > 0) args.push('--type', 'wanted')
  for (const glob of request.exclude ?? []) args.push('--glob', `!${glob}`)
  args.push('--regexp', request.pattern, '--', request.file === undefined ? './' : `./${request.file}`)
  return args
}

/** Reads ripgrep's lines, `<path> NUL <rest>`, and passes them on file by file. */
class Parser {
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
  { bytes: limit = SEARCH_BYTES, ms = SEARCH_MS }: { readonly bytes?: number; readonly ms?: number } = {}
): Promise<End> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted()
    const child = spawn(program, args, { cwd, env: searchEnv, stdio: ['ignore', 'pipe', 'pipe'], windowsHide: true })
    runBehind(child)
    const decoder = new StringDecoder('utf8')
    let bytes = 0
    let stderr = ''
    let partial: Partial | undefined
    let failure: unknown
    const stop = () => child.kill('SIGKILL')
    const timer = setTimeout(() => {
      partial ??= 'time'
      stop()
    }, ms)
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
