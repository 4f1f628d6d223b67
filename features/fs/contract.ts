/** Wire shapes and routes of files in a session (contract 3, File system). */
import { defineRoute, named, oneOf, type Static, Time, Type } from '../../kernel/index.ts'
import { globs, Kind, runtime, sessionParams } from '../file-search/index.ts'
import { RuntimeMissing, SessionMissing } from '../sessions/index.ts'
import { PathDenied, PathMissing, PathOutside } from '../workspaces/index.ts'
import { FileBinary, FileTooLarge, PathExists, PathIsDirectory } from './errors.ts'

export const FileStatus = oneOf(['clean', 'modified', 'added', 'deleted', 'renamed', 'untracked', 'ignored', 'conflicted'])
export type FileStatus = Static<typeof FileStatus>

export const Entry = named(
  'FileEntry',
  Type.Object({
    path: Type.String({ description: 'relative to the workspace, with slashes' }),
    name: Type.String(),
    kind: Kind,
    size: Type.Optional(Type.Integer({ minimum: 0, description: 'bytes; files only' })),
    modified_at: Time,
    etag: Type.Optional(Type.String()),
    mime: Type.Optional(Type.String({ description: 'stat of a file only' })),
    language_id: Type.Optional(Type.String()),
    is_binary: Type.Optional(Type.Boolean({ description: 'stat of a file only' })),
    is_symlink_to: Type.Optional(Type.String({ description: 'what the link says' })),
    git_status: Type.Optional(FileStatus),
    child_count: Type.Optional(
      Type.Integer({ minimum: 0, description: 'what a listing of the directory with the same options would show' })
    )
  })
)
export type Entry = Static<typeof Entry>

const path = Type.String({ minLength: 1, description: 'relative to the working directory of the session' })
const base = '/api/v1/sessions/{session_id}'
const session = { method: 'POST', params: sessionParams, bodyCheck: 'late' } as const
const errors = [SessionMissing, RuntimeMissing, PathMissing, PathOutside, PathDenied]

const listing = {
  depth: Type.Integer({ minimum: 1, maximum: 10, default: 1 }),
  limit: Type.Integer({
    minimum: 1,
    maximum: 1000,
    default: 200,
    description: 'entries of the directory; those below it are not cut by it'
  }),
  show_hidden: Type.Boolean({ default: false, description: 'names that begin with a dot' }),
  follow_gitignore: Type.Boolean({ default: true }),
  exclude_globs: globs,
  sort: oneOf(['type_first', 'name_asc', 'name_desc', 'mtime_desc', 'size_desc'], { default: 'type_first' }),
  include_git_status: Type.Boolean({ default: false }),
  runtime_id: runtime
}
const Listing = Type.Object(listing)
export type Listing = Static<typeof Listing>

export const listFiles = defineRoute({
  ...session,
  path: `${base}/fs:list`,
  operationId: 'listFiles',
  summary: 'List a directory',
  body: Type.Object(
    { path: Type.String({ default: '.', description: 'relative to the working directory of the session' }), ...listing },
    { default: {} }
  ),
  data: Type.Object({
    items: Type.Array(Entry),
    children_by_path: Type.Optional(
      Type.Record(Type.String(), Type.Array(Entry), { description: 'depth above 1: entries of the directories below, by path' })
    ),
    truncated: Type.Boolean()
  }),
  errors
})

export const listManyFiles = defineRoute({
  ...session,
  path: `${base}/fs:list_many`,
  operationId: 'listManyFiles',
  summary: 'List several directories; one that fails is told in its place',
  body: Type.Object({ paths: Type.Array(Type.String(), { minItems: 1, maxItems: 100 }), ...listing }, { default: {} }),
  data: Type.Object({
    results: Type.Record(Type.String(), Type.Array(Entry), {
      description: 'by path, as it was asked for; depth above 1: the directories below, too'
    }),
    truncated_paths: Type.Array(Type.String()),
    partial_errors: Type.Record(Type.String(), Type.Object({ code: Type.Integer(), msg: Type.String() }))
  }),
  errors: [SessionMissing, RuntimeMissing]
})

export const readFile = defineRoute({
  ...session,
  path: `${base}/fs:read`,
  operationId: 'readFile',
  summary: 'Read a file, or a part of it',
  body: Type.Object(
    {
      path,
      offset: Type.Integer({ minimum: 0, default: 0, description: 'bytes of the content as it is returned' }),
      length: Type.Integer({
        minimum: 1,
        maximum: 10 * 1024 * 1024,
        default: 1024 * 1024,
        description: 'bytes; a character that begins in them is whole'
      }),
      encoding: oneOf(['auto', 'utf-8', 'base64'], { default: 'auto' }),
      runtime_id: runtime
    },
    { default: {} }
  ),
  data: Type.Object({
    path: Type.String(),
    content: Type.String(),
    encoding: oneOf(['utf-8', 'base64'], { description: 'of the content' }),
    size: Type.Integer({ description: 'bytes of the file' }),
    truncated: Type.Boolean({ description: 'more follows' }),
    etag: Type.String(),
    mime: Type.String(),
    language_id: Type.Optional(Type.String()),
    line_count: Type.Optional(Type.Integer({ description: 'lines of the content; text only' })),
    is_binary: Type.Boolean()
  }),
  errors: [...errors, PathIsDirectory, FileBinary, FileTooLarge]
})

export const statFile = defineRoute({
  ...session,
  path: `${base}/fs:stat`,
  operationId: 'statFile',
  summary: 'Facts of a file or directory',
  body: Type.Object({ path, runtime_id: runtime }, { default: {} }),
  data: Entry,
  errors
})

export const statManyFiles = defineRoute({
  ...session,
  path: `${base}/fs:stat_many`,
  operationId: 'statManyFiles',
  summary: 'Facts of several files; null for what is missing',
  body: Type.Object({ paths: Type.Array(Type.String(), { minItems: 1, maxItems: 1000 }), runtime_id: runtime }, { default: {} }),
  data: Type.Object({
    entries: Type.Record(Type.String(), Type.Union([Entry, Type.Null()]), { description: 'by path, as it was asked for' })
  }),
  errors: [SessionMissing, RuntimeMissing, PathOutside]
})

export const makeDirectory = defineRoute({
  ...session,
  path: `${base}/fs:mkdir`,
  operationId: 'makeDirectory',
  summary: 'Make a directory',
  body: Type.Object({ path, recursive: Type.Boolean({ default: false }), runtime_id: runtime }, { default: {} }),
  data: Entry,
  errors: [...errors, PathExists]
})

export const downloadFromSession = defineRoute({
  method: 'GET',
  path: `${base}/fs/{+path}:download`,
  operationId: 'downloadFromSession',
  summary: 'Bytes of a file; single ranges, ETag',
  params: Type.Object({ session_id: Type.String({ minLength: 1 }), path }),
  query: Type.Object({ runtime_id: runtime }),
  data: Type.Unknown(),
  binary: { types: ['*/*'], statuses: [200, 206, 304] },
  errors: [...errors, PathIsDirectory]
})

const opened = Type.Object({ opened: Type.Literal(true) })
const line = Type.Optional(Type.Integer({ minimum: 1, description: 'where the application can show one' }))

export const openFile = defineRoute({
  ...session,
  path: `${base}/fs:open`,
  operationId: 'openFile',
  summary: 'Open a file on the machine of the server, with the editor of its user or what the system opens it with',
  body: Type.Object({ path, line, runtime_id: runtime }, { default: {} }),
  data: opened,
  errors
})

export const openFileIn = defineRoute({
  ...session,
  path: `${base}/fs:open-in`,
  operationId: 'openFileIn',
  summary: 'Open a file or directory in an application on the machine of the server',
  body: Type.Object(
    { app_id: oneOf(['finder', 'editor_a', 'editor_b', 'terminal_app', 'terminal']), path, line, runtime_id: runtime },
    { default: {} }
  ),
  data: opened,
  errors
})

export const revealFile = defineRoute({
  ...session,
  path: `${base}/fs:reveal`,
  operationId: 'revealFile',
  summary: 'Show a file in the file manager of the machine of the server',
  body: Type.Object({ path, runtime_id: runtime }, { default: {} }),
  data: Type.Object({ revealed: Type.Literal(true) }),
  errors
})
