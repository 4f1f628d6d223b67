/** What Glob and Grep need of a search engine: ripgrep where there is one, a walker in a worker thread otherwise. */
import { headOf } from '../tools/index.ts'
import type { FileOps } from './file-ops.ts'

export interface ListRequest {
  /** Directory, real path. */
  readonly root: string
  readonly include_ignored: boolean
}

export interface GrepRequest extends ListRequest {
  /** Name of one file directly in `root`; undefined: the whole directory. */
  readonly file?: string
  readonly pattern: string
  readonly glob?: string
  readonly type?: string
  readonly mode: 'files_with_matches' | 'content' | 'count_matches'
  readonly ignore_case: boolean
  readonly line_numbers: boolean
  readonly before: number
  readonly after: number
  readonly multiline: boolean
}

/** Results of one file. */
export interface FileMatches {
  /** Relative to the root, with slashes. */
  readonly path: string
  /** content mode: `12:text` (match), `12-text` (context), `--` (gap); without line numbers just the text. */
  readonly lines: string[]
  /** count_matches mode. */
  readonly count?: number
}

/** Why a search ended early: its results are only a part. */
export type Partial = 'time' | 'size'

export interface SearchEngine {
  /** Calls `onPath` for every file (relative, with slashes); false ends the search. VCS directories are skipped, hidden files are not. */
  list(request: ListRequest, onPath: (path: string) => boolean, signal: AbortSignal): Promise<Partial | undefined>
  /** Throws ToolRefusal for a pattern that is no regular expression. */
  grep(request: GrepRequest, onFile: (matches: FileMatches) => void, signal: AbortSignal): Promise<Partial | undefined>
}

/** Limits of one search. */
export const SEARCH_MS = 20_000
export const SEARCH_BYTES = 10 * 1024 * 1024

/** Files that one search looks at closer (their times); more are too many. */
export const SEARCH_FILES = 20_000

/** Characters of a line in the results. */
export const LINE_CHARS = 2_000

/** A long line cut around the character where its match begins. */
export function cutAround(line: string, at: number): string {
  if (line.length <= LINE_CHARS) return line
  const from = Math.max(0, Math.min(at - LINE_CHARS / 4, line.length - LINE_CHARS))
  const shown = headOf(line.slice(from), LINE_CHARS).replace(/^[\udc00-\udfff]/, '')
  return `${from > 0 ? '[...]' : ''}${shown}${from + shown.length < line.length ? '[...]' : ''}`
}

export const VCS_DIRS = ['.git', '.hg', '.svn', '.jj', '.bzr']

/** The items, newest file first, equal times by path; 32 looks at the disk at a time. Vanished files come last. Throws at the abort. */
export async function newestFirst<T>(items: readonly T[], pathOf: (item: T) => string, ops: FileOps, signal: AbortSignal): Promise<T[]> {
  const timed: { readonly item: T; readonly path: string; readonly at: number }[] = []
  let next = 0
  const work = async () => {
    for (let index = next++; index < items.length; index = next++) {
      signal.throwIfAborted()
      const item = items[index]!
      const path = pathOf(item)
      const facts = await ops.stat(path).catch(() => undefined) // unreadable counts as vanished
      timed.push({ item, path, at: facts?.mtimeMs ?? 0 })
    }
  }
  await Promise.all(Array.from({ length: 32 }, work))
  return timed.sort((a, b) => b.at - a.at || (a.path < b.path ? -1 : 1)).map(({ item }) => item)
}
