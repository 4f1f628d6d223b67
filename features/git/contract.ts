/** Wire shapes and routes of version control in a session (contract 3, fs:git_status and fs:diff). */
import { defineRoute, named, nullable, oneOf, Type } from '../../kernel/index.ts'
import { runtime, sessionParams } from '../file-search/index.ts'
import { FileStatus } from '../fs/index.ts'
import { RuntimeMissing, SessionMissing } from '../sessions/index.ts'
import { PathDenied, PathMissing, PathOutside } from '../workspaces/index.ts'
import { GitUnavailable } from './command.ts'

const session = { method: 'POST', params: sessionParams, bodyCheck: 'late' } as const
const errors = [SessionMissing, RuntimeMissing, PathOutside, GitUnavailable]

export const PullRequest = named(
  'PullRequest',
  Type.Object({ number: Type.Integer(), state: oneOf(['open', 'merged', 'closed', 'draft']), url: Type.String() })
)

export const readGitStatus = defineRoute({
  ...session,
  path: '/api/v1/sessions/{session_id}/fs:git_status',
  operationId: 'readGitStatus',
  summary: 'Branch, changed files and pull request of the workspace',
  body: Type.Object(
    {
      paths: Type.Optional(
        Type.Array(Type.String(), { maxItems: 10_000, description: 'only entries at these paths and below them; empty: all' })
      ),
      runtime_id: runtime
    },
    { default: {} }
  ),
  data: Type.Object({
    branch: Type.String({ description: 'empty: none is checked out' }),
    ahead: Type.Integer(),
    behind: Type.Integer(),
    entries: Type.Record(Type.String(), FileStatus, {
      description: 'by path; an untracked directory is one entry, with a slash at its end'
    }),
    additions: Type.Integer({ description: 'lines since the last commit' }),
    deletions: Type.Integer(),
    pullRequest: nullable(PullRequest)
  }),
  errors
})

export const diffFile = defineRoute({
  ...session,
  path: '/api/v1/sessions/{session_id}/fs:diff',
  operationId: 'diffFile',
  summary: 'A file against the last commit',
  body: Type.Object({ path: Type.String({ minLength: 1 }), runtime_id: runtime }, { default: {} }),
  data: Type.Object({
    path: Type.String(),
    diff: Type.String({ description: 'unified; empty: unchanged' }),
    truncated: Type.Boolean({ description: 'it is longer than 1,048,576 characters' })
  }),
  errors: [...errors, PathMissing, PathDenied]
})
