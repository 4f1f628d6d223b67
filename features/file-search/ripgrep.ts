/** Search engine on the ripgrep program. */
import { spawn } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { StringDecoder } from 'node:string_decoder'
import { ToolRefusal } from '../tools/index.ts'
import {
  assertTexts,
  type FileMatches,
  type GrepRequest,
  type ListRequest,
  namesReturns,
  type Partial,
  SEARCH_BYTES,
  SEARCH_MS,
  type SearchEngine
} from './engine.ts'
import { anyGlob, endingGlobs, included } from './globs.ts'
import { isNamed, repositoryOf, VCS_DIRS } from './ignore-rules.ts'
import { runBehind } from './priority.ts'
import { Parser, plain } from './ripgrep-output.ts'

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
      return { partial: end.partial, scanned: end.scanned }
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
