/** Wire shapes and routes of searches for files (contract 3, fs:search, fs:grep, fs:suggest). */
import { defineRoute, errorSpec, named, oneOf, type Static, Type } from '../../kernel/index.ts'
import { localRuntime, RuntimeMissing, SessionMissing } from '../sessions/index.ts'
import { PathDenied, PathMissing, WorkspaceMissing } from '../workspaces/index.ts'

export const GrepTimeout = errorSpec('grep_timeout', 41305, 'the search took too long')

export const Kind = oneOf(['file', 'directory', 'symlink'], { description: 'by itself: a link stays a link' })
export const runtime = Type.String({ minLength: 1, default: localRuntime, description: 'where it is done; `local` is the only runtime' })
export const sessionParams = Type.Object({ session_id: Type.String({ minLength: 1 }) })
export const globs = Type.Optional(
  Type.Array(Type.String({ minLength: 1, maxLength: 1000 }), {
    maxItems: 100,
    description: 'without a slash they mean names at any depth; what lies in a directory that fits, fits, too'
  })
)

export const NameHit = named(
  'NameHit',
  Type.Object({
    path: Type.String({ description: 'relative to the workspace, with slashes' }),
    name: Type.String(),
    kind: Kind,
    score: Type.Number({ minimum: 0, maximum: 1 }),
    match_positions: Type.Array(Type.Integer({ minimum: 0 }), { description: 'characters of the path that match' })
  })
)
export type NameHit = Static<typeof NameHit>

const follow_gitignore = Type.Boolean({ default: true })
const names = {
  query: Type.String({ description: 'empty: the top level' }),
  limit: Type.Integer({ minimum: 1, maximum: 200, default: 50 }),
  include_globs: globs,
  exclude_globs: globs,
  follow_gitignore,
  runtime_id: runtime
}
const hits = Type.Object({
  items: Type.Array(NameHit, { description: 'by score, equal ones by path' }),
  truncated: Type.Boolean({ description: 'there are more' })
})
const session = { method: 'POST', params: sessionParams, bodyCheck: 'late' } as const

export const searchNames = defineRoute({
  ...session,
  path: '/api/v1/sessions/{session_id}/fs:search',
  operationId: 'searchNames',
  summary: 'Find files by name',
  description: 'In place of a session id there may be a workspace: the id of a registered one, or an absolute directory (percent-encoded).',
  body: Type.Object(names, { default: {} }),
  data: hits,
  errors: [SessionMissing, RuntimeMissing, PathMissing, PathDenied]
})

const workspace = Type.String({ minLength: 1, description: 'id, or absolute directory, which is registered on the spot' })

export const searchWorkspaceNames = defineRoute({
  method: 'POST',
  path: '/api/v1/workspace/fs:search',
  operationId: 'searchWorkspaceNames',
  summary: 'Find files of a workspace by name',
  body: Type.Object({ workspace, ...names }, { default: {} }),
  data: hits,
  errors: [WorkspaceMissing, RuntimeMissing, PathMissing, PathDenied]
})

export const suggestNames = defineRoute({
  method: 'POST',
  path: '/api/v1/workspace/fs:suggest',
  operationId: 'suggestNames',
  summary: 'What a path that is being typed may become',
  body: Type.Object({ workspace, ...names, show_hidden: Type.Boolean({ default: false }) }, { default: {} }),
  data: hits,
  errors: [WorkspaceMissing, RuntimeMissing, PathMissing, PathDenied]
})

const Match = Type.Object({
  line: Type.Integer({ minimum: 1 }),
  col: Type.Integer({ minimum: 1, description: 'character of the line at which the first match in it begins' }),
  text: Type.String({ description: 'the line; above 2,000 characters cut around the match, with [...] where it is cut' }),
  before: Type.Array(Type.String()),
  after: Type.Array(Type.String())
})
export type Match = Static<typeof Match>

export const grepFiles = defineRoute({
  ...session,
  path: '/api/v1/sessions/{session_id}/fs:grep',
  operationId: 'grepFiles',
  summary: 'Find lines in files',
  body: Type.Object(
    {
      pattern: Type.String({ minLength: 1, maxLength: 10_000 }),
      regex: Type.Boolean({ default: false, description: 'false: a text' }),
      case_sensitive: Type.Boolean({ default: true }),
      include_globs: globs,
      exclude_globs: globs,
      follow_gitignore,
      max_files: Type.Integer({ minimum: 1, maximum: 10_000, default: 200, description: 'files with matches' }),
      max_matches_per_file: Type.Integer({ minimum: 1, maximum: 10_000, default: 50 }),
      max_total_matches: Type.Integer({ minimum: 1, maximum: 100_000, default: 5000 }),
      context_lines: Type.Integer({ minimum: 0, maximum: 10, default: 2 }),
      runtime_id: runtime
    },
    { default: {} }
  ),
  data: Type.Object({
    files: Type.Array(Type.Object({ path: Type.String(), matches: Type.Array(Match, { description: 'one per line' }) })),
    files_scanned: Type.Integer({ minimum: 0, description: 'of a search that was cut: at least' }),
    truncated: Type.Boolean({ description: 'there is more than the budgets allow' }),
    elapsed_ms: Type.Integer({ minimum: 0 })
  }),
  errors: [SessionMissing, RuntimeMissing, PathMissing, PathDenied, GrepTimeout]
})
