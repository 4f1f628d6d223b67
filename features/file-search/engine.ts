/** The search engine of requests and of the agent's tools: ripgrep where there is one, a walker in a worker thread otherwise. */
import { headOf } from '../../kernel/index.ts'
import { ToolRefusal } from '../tools/index.ts'

export interface ListRequest {
  /** Directory, real path. */
  readonly root: string
  readonly include_ignored: boolean
}

export interface GrepRequest extends ListRequest {
  /** Name of one file directly in `root`; undefined: the whole directory. */
  readonly file?: string
  readonly pattern: string
  /** The pattern is a text, no regular expression. */
  readonly literal?: boolean
  readonly glob?: string
  readonly type?: string
  /** Globs of which one must fit, and of which none may fit. Unlike `glob` they find nothing that is ignored. */
  readonly include?: readonly string[]
  readonly exclude?: readonly string[]
  readonly mode: 'files_with_matches' | 'content' | 'count_matches'
  readonly ignore_case: boolean
  readonly before: number
  readonly after: number
  readonly multiline: boolean
  /** Lines with a match per file, after which the search goes on with the next one. */
  readonly most_lines?: number
  /** Time limit; default 20 s. */
  readonly most_ms?: number
}

/** A line that is shown: with a match, or around one. */
export interface Row {
  /** From 1. */
  readonly line: number
  /** Cut around the match where it is long. */
  readonly text: string
  /** Character of the whole line at which the first match begins, from 1; absent: the line is context. */
  readonly col?: number
}

/** Results of one file. */
export interface FileMatches {
  /** Relative to the root, with slashes. */
  readonly path: string
  /** content mode. */
  readonly rows: readonly Row[]
  /** count_matches mode. */
  readonly count?: number
}

/** Why a search ended early: its results are only a part. */
export type Partial = 'time' | 'size'

export interface GrepEnd {
  readonly partial?: Partial
  /** Files that were looked into, where the engine got so far as to say. */
  readonly scanned?: number
}

export interface SearchEngine {
  /** Calls `onPath` for every file (relative, with slashes); false ends the search. VCS directories are skipped, hidden files are not. */
  list(request: ListRequest, onPath: (path: string) => boolean, signal: AbortSignal): Promise<Partial | undefined>
  /** `onFile` gets the files as they are found; false ends the search. Throws ToolRefusal for a pattern that is no regular expression. */
  grep(request: GrepRequest, onFile: (matches: FileMatches) => boolean, signal: AbortSignal): Promise<GrepEnd>
}

/** Throws ToolRefusal for NUL in a pattern or glob: no text and no name has one, and no program takes one as an argument. */
export function assertTexts({ pattern, glob = '', type = '', include = [], exclude = [] }: GrepRequest): void {
  if ([pattern, glob, type, ...include, ...exclude].some(text => text.includes('\0')))
    throw new ToolRefusal('The search failed: a pattern must not contain a NUL character.')
}

/** Carriage returns are looked for; else they belong to the end of a line. */
export const namesReturns = ({ pattern }: GrepRequest): boolean => /\\r|\r/.test(pattern)

/** Limits of one search. */
export const SEARCH_MS = 20_000
export const SEARCH_BYTES = 10 * 1024 * 1024

/** Characters of a line in the results. */
export const LINE_CHARS = 2_000

/** A long line cut around the character where its match begins. */
export function cutAround(line: string, at: number): string {
  if (line.length <= LINE_CHARS) return line
  const from = Math.max(0, Math.min(at - LINE_CHARS / 4, line.length - LINE_CHARS))
  const shown = headOf(line.slice(from), LINE_CHARS).replace(/^[\udc00-\udfff]/, '')
  return `${from > 0 ? '[...]' : ''}${shown}${from + shown.length < line.length ? '[...]' : ''}`
}
