/** fs:grep: what the engine finds, within the budgets of the request. */
import { AppError, type BodyOf, type DataOf, invalid, partedList, yieldToLoop } from '../../kernel/index.ts'
import { ToolRefusal } from '../tools/index.ts'
import { GrepTimeout, type grepFiles, type Match } from './contract.ts'
import type { FileMatches, GrepRequest, SearchEngine } from './engine.ts'
import { searchEngine } from './machine.ts'

type Wanted = BodyOf<typeof grepFiles>

/**
 * Throws 40001 for a pattern that is no regular expression, GrepTimeout (41305) when nothing was found within `most_ms`. `given`: default
 * that of the machine.
 */
export async function grep(
  root: string,
  wanted: Wanted,
  most_ms: number,
  signal: AbortSignal,
  given?: SearchEngine
): Promise<DataOf<typeof grepFiles>> {
  const began = performance.now()
  const engine = given ?? (await searchEngine()).engine
  const found: FileMatches[] = []
  let total = 0
  let truncated = false
  const collect = (matches: FileMatches) => {
    truncated = found.length === wanted.max_files || total >= wanted.max_total_matches
    if (truncated) return false
    found.push(matches)
    total += matches.rows.reduce((sum, row) => sum + (row.col === undefined ? 0 : 1), 0)
    return true
  }
  const { partial, scanned } = await engine.grep(requestOf(root, wanted, most_ms), collect, signal).catch((error: unknown) => {
    throw error instanceof ToolRefusal ? invalid([{ path: faulty(wanted), message: error.message }], error) : error
  })
  if (partial === 'time' && found.length === 0) throw new AppError(GrepTimeout)
  found.sort((a, b) => (a.path < b.path ? -1 : 1))
  const files: { path: string; matches: Match[] }[] = []
  let left = wanted.max_total_matches
  let chars = 0
  for (const file of found) {
    const most = Math.min(wanted.max_matches_per_file, left)
    const matches: Match[] = []
    let own = 0
    for (const match of matchesOf(file, wanted.context_lines)) {
      if (matches.length === most) {
        truncated = true
        break
      }
      matches.push(match)
      own += charsOf(match)
      if (matches.length % 500 === 0) await yieldToLoop()
    }
    left -= matches.length
    chars += own
    if (matches.length > 0) files.push({ path: file.path, matches: partedList(matches, own) })
    await yieldToLoop()
  }
  return {
    files: partedList(files, chars),
    files_scanned: Math.max(scanned ?? 0, files.length),
    truncated: truncated || partial !== undefined,
    elapsed_ms: Math.round(performance.now() - began)
  }
}

/** The field that is to blame for a refusal: a glob with NUL, or the pattern. */
function faulty(wanted: Wanted): string {
  for (const field of ['include_globs', 'exclude_globs'] as const) {
    const at = wanted[field]?.findIndex(glob => glob.includes('\0')) ?? -1
    if (at >= 0) return `body.${field}.${at}`
  }
  return 'body.pattern'
}

function requestOf(root: string, wanted: Wanted, most_ms: number): GrepRequest {
  return {
    root,
    include_ignored: !wanted.follow_gitignore,
    pattern: wanted.pattern,
    literal: !wanted.regex,
    mode: 'content',
    ignore_case: !wanted.case_sensitive,
    include: wanted.include_globs ?? [],
    exclude: wanted.exclude_globs ?? [],
    before: wanted.context_lines,
    after: wanted.context_lines,
    multiline: false,
    most_lines: wanted.max_matches_per_file + 1,
    most_ms
  }
}

/** Every line with a match, and the neighbours that the engine showed. */
function* matchesOf({ rows }: FileMatches, context: number): Generator<Match> {
  for (const [at, row] of rows.entries()) {
    if (row.col === undefined) continue
    const neighbours = (step: -1 | 1) => {
      const texts: string[] = []
      for (let n = 1; n <= context && rows[at + step * n]?.line === row.line + step * n; n++) texts.push(rows[at + step * n]!.text)
      return texts
    }
    yield { line: row.line, col: row.col, text: row.text, before: neighbours(-1).reverse(), after: neighbours(1) }
  }
}

/** Of its JSON, about. */
const charsOf = ({ text, before, after }: Match) => [...before, ...after].reduce((sum, { length }) => sum + length + 3, text.length + 50)
