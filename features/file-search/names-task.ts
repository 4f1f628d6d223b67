/** What is asked of the thread that knows the names of files, and what it answers. */

/** Contract 3, Name-search hit. */
export interface NameHit {
  readonly path: string
  readonly name: string
  readonly kind: 'file' | 'directory' | 'symlink'
  /** 0 to 1. */
  readonly score: number
  /** Characters of the path that match, from 0. */
  readonly match_positions: number[]
}

export interface NameQuery {
  /** `fuzzy`: anywhere in the path; `suggest`: what a path that is being typed may become. */
  readonly mode: 'fuzzy' | 'suggest'
  /** Directory, links resolved. */
  readonly root: string
  readonly follow_gitignore: boolean
  readonly show_hidden: boolean
  readonly query: string
  readonly limit: number
  readonly include: readonly string[]
  readonly exclude: readonly string[]
}

export interface NamesTask {
  readonly id: number
  readonly query: NameQuery
}

export interface NamesAnswer {
  readonly id: number
  readonly items: readonly NameHit[]
  readonly truncated: boolean
  /** In place of hits: what went wrong. */
  readonly problem?: string
}
