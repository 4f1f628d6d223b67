/** What is asked of the thread that knows the names of files, and what it answers. */
import type { NameHit } from './contract.ts'

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
