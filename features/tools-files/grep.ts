/** The Grep tool: files by content. */
import { basename, dirname, join, relative, sep } from 'node:path'
import type { Static } from '../../kernel/index.ts'
import type { FileMatches, GrepRequest, Partial } from '../file-search/index.ts'
import { isInside, isProtected, mayChange, secretLinks, type Tool, ToolRefusal, type ToolResult } from '../tools/index.ts'
import { grepParameters } from './contract.ts'
import type { SearchPorts } from './glob.ts'
import { newestFirst } from './newest.ts'
import { locate, searchRule, surroundings } from './places.ts'

type Arguments = Static<typeof grepParameters>

/** Result lines in one answer, unless `head_limit` says otherwise. */
const SHOWN = 250
/** Characters of result lines in one answer. */
const SHOWN_CHARS = 48_000

export function createGrep(ports: SearchPorts): Tool<typeof grepParameters> {
  const { ops, engine, readable } = ports
  return {
    name: 'Grep',
    description:
      'Searches file contents with a regular expression. output_mode files_with_matches lists paths, content shows lines, count_matches ' +
      'counts. Files changed last come first. Files excluded by ignore files are skipped unless include_ignored is set. Lines above 2000 characters are cut around the match.',
    parameters: grepParameters,
    source: 'builtin',
    async prepare(args: Arguments, env) {
      const place = await locate(args.path ?? '.', env, ports)
      const single = (await ops.stat(place.real))?.kind !== 'directory'
      const assertSearchable = async () => {
        const kind = (await ops.stat(place.real))?.kind ?? 'other'
        if (kind === 'other') throw new ToolRefusal(`${place.path} does not exist, or is neither a file nor a directory.`)
        if ((kind === 'file') !== single) throw new ToolRefusal(`${place.path} is something else by now. Make the call again.`)
        if (!single && !(await ops.maySearch(place.real))) throw new ToolRefusal(`No permission for ${place.path}.`)
      }
      const root = single ? dirname(place.real) : place.real
      const shownRoot = single ? dirname(place.path) : place.path
      return {
        description: `Searching for ${args.pattern}`,
        display: { kind: 'file_io', operation: 'grep', path: place.path, detail: args.pattern },
        accesses: [{ kind: 'search' as const, path: place.real, recursive: !single }],
        ...searchRule(args.pattern),
        async check(signal) {
          if (!mayChange(env.earlier, place.real, !single)) await assertSearchable()
          // A search in a place where nothing is to be found: what the engine does not understand, it refuses there, too.
          if (sep === '/') await (await engine()).grep(requestOf(args, '/dev', 'null'), () => true, signal)
        },
        async run(_progress, signal) {
          await assertSearchable()
          const mayRead = await readable(env)
          const around = await surroundings(env, ports)
          const found: FileMatches[] = []
          let hidden = 0
          const collect = (matches: FileMatches) => {
            const real = join(root, matches.path)
            if (isProtected(real, around) || !mayRead(real)) hidden++
            else found.push(matches)
            return true
          }
          const request = requestOf(args, root, single ? basename(place.real) : undefined)
          const { partial } = await (await engine()).grep(request, collect, signal)
          const pathOf = (each: FileMatches) => join(root, each.path)
          const secrets = await secretLinks(found.map(pathOf), around.home)
          const free = found.filter(each => !secrets.has(pathOf(each)))
          const sorted = await newestFirst(free, pathOf, ops, signal)
          const inside = isInside(shownRoot, env.cwd)
          return show(
            sorted,
            path => (inside ? relative(env.cwd, join(shownRoot, path)) : join(shownRoot, path)),
            args,
            request,
            hidden + secrets.size,
            partial
          )
        }
      }
    }
  }
}

function requestOf(args: Arguments, root: string, file: string | undefined): GrepRequest {
  return {
    root,
    include_ignored: args.include_ignored ?? false,
    pattern: args.pattern,
    mode: args.output_mode ?? 'files_with_matches',
    ignore_case: args['-i'] ?? false,
    before: args['-C'] ?? args['-B'] ?? 0,
    after: args['-C'] ?? args['-A'] ?? 0,
    multiline: args.multiline ?? false,
    ...(file === undefined ? {} : { file }),
    ...(args.glob === undefined ? {} : { glob: args.glob }),
    ...(args.type === undefined ? {} : { type: args.type })
  }
}

function show(
  files: readonly FileMatches[],
  pathOf: (path: string) => string,
  args: Arguments,
  request: GrepRequest,
  hidden: number,
  partial: Partial | undefined
): ToolResult {
  const rows = files.flatMap(file => rowsOf(file, pathOf(file.path), request, args['-n'] ?? true))
  const from = args.offset ?? 0
  const limit = args.head_limit ?? SHOWN
  const wanted = rows.slice(from, limit === 0 ? undefined : from + limit)
  const shown = fitting(wanted)
  const next = from + shown.length
  const notes: string[] = []
  if (request.mode === 'count_matches')
    notes.push(`(${files.reduce((sum, file) => sum + (file.count ?? 0), 0)} matches in ${files.length} files)`)
  if (shown.length > 0 && shown.length < rows.length)
    notes.push(`(showing ${shown.length} of ${rows.length} lines from ${from}${next < rows.length ? `; go on with offset ${next}` : ''})`)
  if (hidden > 0) notes.push(`(${hidden} ${hidden === 1 ? 'file' : 'files'} that must not be read left out)`)
  if (partial)
    notes.push(partial === 'time' ? '(the search was stopped after 20 s; there may be more)' : '(too many results; there are more)')
  const none = rows.length > 0 ? `There are only ${rows.length} lines: none from ${from} on.` : 'No matches found.'
  const output = [...(shown.length > 0 ? shown : [none]), ...notes].join('\n')
  return { output, ...(shown.length < wanted.length ? { truncated: true } : {}) }
}

/** The first rows, as many as fit an answer: what is left out is told, and where it goes on. */
function fitting(rows: readonly string[]): readonly string[] {
  let end = 0
  for (let chars = 0; end < rows.length; end++) {
    chars += rows[end]!.length + 1
    if (chars > SHOWN_CHARS) break
  }
  return rows.slice(0, end)
}

/** `path`, `path:count`, or `path:12:text` with `-` around the numbers of context lines and `--` between lines that are no neighbours. */
function rowsOf(file: FileMatches, path: string, request: GrepRequest, numbers: boolean): string[] {
  if (request.mode === 'files_with_matches') return [path]
  if (request.mode === 'count_matches') return [`${path}:${file.count ?? 0}`]
  const gaps = request.before + request.after > 0
  return file.rows.flatMap(({ line, text, col }, at) => {
    const mark = col === undefined ? '-' : ':'
    const shown = numbers ? `${path}${mark}${line}${mark}${text}` : `${path}:${text}`
    return gaps && at > 0 && line > file.rows[at - 1]!.line + 1 ? ['--', shown] : [shown]
  })
}
