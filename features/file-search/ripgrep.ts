/** Search engine on the ripgrep program. */
import { accessSync, constants } from 'node:fs'
import { delimiter, join } from 'node:path'
import { headOf } from '../../kernel/index.ts'
import { ToolRefusal } from '../tools/index.ts'
import {
  assertTexts,
  type FileMatches,
  type GrepRequest,
  type ListRequest,
  namesReturns,
  SEARCH_BYTES,
  SEARCH_MS,
  type SearchEngine
} from './engine.ts'
import { anyGlob, endingGlobs, included } from './globs.ts'
import { isNamed, repositoryOf, VCS_DIRS } from './ignore-rules.ts'
import { Parser, plain, scannedOf } from './ripgrep-output.ts'
import { type End, type Run, run, searchFailed } from './ripgrep-process.ts'
import { hold, type Look, SecondLook } from './second-look.ts'
import { lookBehind } from './special-files.ts'

/** Paths of one search that are remembered. */
const MOST_KNOWN = 200_000

function bundledPackage(): Promise<unknown> {
  const bundled = '@vscode/ripgrep' // a variable, so that a missing optional dependency is no build error
  return import(bundled)
}

/** The bundled program, else `rg` on PATH, else undefined. Installed by another user, or on a disk that runs nothing, one may be of no use. */
export async function findRipgrep(env: NodeJS.ProcessEnv, load = bundledPackage): Promise<string | undefined> {
  const found = (await load().catch(() => undefined)) as { rgPath?: unknown } | undefined // not installed: look on PATH
  if (typeof found?.rgPath === 'string' && isExecutable(found.rgPath)) return found.rgPath
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
      const args = ['--files', '--null', ...(await reach(request)), '--', './']
      const told = new Set<string>()
      const once = (path: string) => {
        if (told.size < MOST_KNOWN) {
          if (told.has(path)) return true
          told.add(path)
        }
        return onPath(path)
      }
      const options = { program, args, cwd: request.root, most_bytes: Number.POSITIVE_INFINITY }
      const search = async (ends: AbortSignal) => {
        const take = (path: string) => !isNamed(request.root, path) || once(path)
        const end = await retried(extra => runForPaths({ ...options, args: [...extra, ...args], signal: ends }, take))
        assertUnderstood(end)
        return end.partial
      }
      return await unlessHeld(request, search, signal, async () => {
        if (told.size >= MOST_KNOWN) return 'size'
        const { walker } = await import('./walker.ts')
        return await walker.list(request, once, signal)
      })
    },
    async grep(request, onFile, signal) {
      assertTexts(request)
      const until = performance.now() + (request.most_ms ?? SEARCH_MS)
      const left = () => Math.max(0, until - performance.now())
      const look = lookInto(program, request, onFile, left, signal)
      if (request.file !== undefined) {
        const file = await hold(request.root, request.file)
        try {
          return { partial: await look(file ? [file] : []), scanned: file ? 1 : 0 }
        } finally {
          file?.close()
        }
      }
      const second = new SecondLook(request.root, look)
      try {
        const found = new Set<string>()
        const add = (path: string) => {
          if (found.has(path)) return true
          found.add(path)
          return second.add(path)
        }
        const search = (ends: AbortSignal) => firstLook(program, request, add, left, ends)
        const { partial, scanned } = await unlessHeld(request, search, signal, () => lookByList(program, request, add, left, signal))
        return { partial: (await second.end()) ?? partial, scanned }
      } finally {
        await second.idle()
      }
    }
  }
}

/** Finds the files with a match. What the program cannot say about the paths is asked of the results. */
async function firstLook(
  program: string,
  request: GrepRequest,
  onPath: (path: string) => boolean,
  left: () => number,
  signal: AbortSignal
): Promise<Found & { readonly scanned: number | undefined }> {
  const fits = included(request)
  const shared = ['--files-with-matches', '--max-count', '1', '--stats', ...(await reach(request))]
  const search = (excluded: (path: string) => boolean, exclude: readonly string[]) =>
    retried(async extra => {
      const args = [...extra, ...shared, ...matching({ ...request, exclude }), './']
      const take = (path: string) => !fits(path) || excluded(path) || onPath(path)
      return await runForPaths({ program, args, cwd: request.root, signal, most_ms: left() }, take)
    })
  const { exclude = [] } = request
  let end = await search(() => false, exclude)
  if (!end.found && exclude.length > 0 && /error parsing glob/.test(end.stderr)) end = await search(anyGlob(exclude), [])
  assertUnderstood(end)
  return { ...end, scanned: scannedOf(end.rest) }
}

/** The same where the program must read no ignore files: it looks everywhere, and what counts are the files that the walker lists. */
async function lookByList(
  program: string,
  request: GrepRequest,
  onPath: (path: string) => boolean,
  left: () => number,
  signal: AbortSignal
): Promise<Awaited<ReturnType<typeof firstLook>>> {
  const { walker } = await import('./walker.ts')
  const known = new Set<string>()
  const cut = await walker.list(request, path => known.add(path).size < MOST_KNOWN, signal)
  const everywhere = { ...request, include_ignored: true }
  const { partial = cut, ...end } = await firstLook(program, everywhere, path => !known.has(path) || onPath(path), left, signal)
  return { ...end, ...(partial ? { partial } : {}) }
}

/** `search`, which reads ignore files; where something in their place holds it up, it is ended, and `otherwise` is done. */
async function unlessHeld<T>(
  { root, include_ignored }: ListRequest,
  search: (signal: AbortSignal) => Promise<T>,
  signal: AbortSignal,
  otherwise: () => Promise<T>
): Promise<T> {
  if (include_ignored) return await search(signal)
  const { above } = await repositoryOf(root)
  signal.throwIfAborted()
  const ends = new AbortController()
  let isHeld = false
  const stop = () => ends.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const endLook = lookBehind({ root, above, reader: 'ripgrep' }, () => {
    isHeld = true
    ends.abort()
  })
  try {
    return await search(ends.signal)
  } catch (error) {
    if (signal.aborted || !isHeld) throw error
  } finally {
    endLook()
    signal.removeEventListener('abort', stop)
  }
  return await otherwise()
}

/** Answers from files that are held: the program gets them open. It prints 10 MiB of all of them at most. */
function lookInto(
  program: string,
  request: GrepRequest,
  onFile: (matches: FileMatches) => boolean,
  left: () => number,
  signal: AbortSignal
): Look {
  let bytes = SEARCH_BYTES
  return async files => {
    const names = files.map(({ fd, at }, index) => (fd === undefined ? at : `/proc/self/fd/${3 + index}`))
    const paths = new Map(names.map((name, index) => [Buffer.from(name).toString('latin1'), files[index]!.path]))
    // Without a file it searches an empty input: what it does not understand, it refuses all the same.
    const args = [
      '--no-ignore',
      '--no-mmap',
      ...shown(request),
      ...matching({ ...request, exclude: [] }),
      ...(names.length > 0 ? names : ['-'])
    ]
    const fds = files.flatMap(({ fd }) => fd ?? [])
    const end = await retried(async extra => {
      const parser = new Parser(request, paths, onFile)
      const onText = (text: string) => {
        bytes -= text.length
        return parser.push(text) && bytes >= 0
      }
      const given = [...extra, ...args]
      const ended = await run({ program, args: given, cwd: request.root, signal, onText, encoding: 'latin1', files: fds, most_ms: left() })
      const partial = parser.end() ? ended.partial : (ended.partial ?? 'size')
      return { ...ended, partial, found: parser.found }
    })
    assertUnderstood(end)
    return end.partial
  }
}

interface Found extends End {
  readonly found: boolean
}

/** Where no more threads can be had, one is enough. */
async function retried<T extends Found>(search: (extra: readonly string[]) => Promise<T>): Promise<T> {
  const end = await search([])
  if (end.found || !/os error 11\b|Resource temporarily unavailable/.test(end.stderr)) return end
  return await search(['--threads', '1'])
}

/** 2: it does not take what was asked for; without a word there is something that it may not read, of which it is told to say nothing. */
function assertUnderstood({ code, found, partial, stderr }: Found): void {
  if (found || partial || code === 0 || code === 1 || (code === 2 && stderr === '')) return
  const said = headOf(stderr, 1000).trim()
  throw code === 2 ? new ToolRefusal(`The search failed: ${said}`) : searchFailed(said || `its program ended with ${code}`)
}

/** A run that prints paths, each with NUL behind it. `rest`: what comes after the last one. */
async function runForPaths(options: Omit<Run, 'onText'>, onPath: (path: string) => boolean): Promise<Found & { readonly rest: string }> {
  let rest = ''
  let found = false
  const onText = (text: string) => {
    const paths = (rest + text).split('\0')
    rest = paths.pop() ?? ''
    found ||= paths.length > 0
    return paths.every(path => onPath(plain(path)))
  }
  const end = await run({ ...options, onText })
  return { ...end, found, rest }
}

/** How far a search of a tree goes. */
async function reach(request: ListRequest): Promise<string[]> {
  return [
    '--null',
    '--no-config',
    '--hidden',
    ...(await reachAbove(request)),
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
async function reachAbove({ root }: ListRequest): Promise<string[]> {
  const repository = await repositoryOf(root)
  if (!repository.git) return ['--no-require-git']
  return repository.root === root ? ['--no-require-git', '--no-ignore-parent'] : []
}

/** What is told of the matches. */
function shown(request: GrepRequest): string[] {
  const args = ['--no-config', '--color=never', '--no-messages', '--null', '--with-filename', '--no-heading']
  if (request.mode === 'files_with_matches') args.push('--files-with-matches')
  else if (request.mode === 'count_matches') args.push('--count-matches')
  else {
    args.push('--line-number', '--column') // the column tells where to cut long lines
    if (request.before > 0) args.push('--before-context', String(request.before))
    if (request.after > 0) args.push('--after-context', String(request.after))
  }
  if (request.most_lines !== undefined) args.push('--max-count', String(request.most_lines))
  return args
}

/** What matches, and, of a tree, in which files. */
function matching(request: GrepRequest): string[] {
  const args = namesReturns(request) ? [] : ['--crlf']
  if (request.ignore_case) args.push('--ignore-case')
  if (request.multiline) args.push('--multiline', '--multiline-dotall')
  if (request.type !== undefined) args.push('--type', request.type)
  if (request.glob !== undefined) args.push('--glob', request.glob)
  if (request.literal) args.push('--fixed-strings')
  // A glob would find ignored files, too; a type does not. What it cannot say is asked of the results.
  const endings = endingGlobs(request.include)
  for (const glob of endings) args.push('--type-add', `wanted:${glob}`)
  if (endings.length > 0) args.push('--type', 'wanted')
  for (const glob of request.exclude ?? []) args.push('--glob', `!${glob}`)
  args.push('--regexp', request.pattern, '--')
  return args
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
