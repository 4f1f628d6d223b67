/** Frames of file watching, and the frame that tells changes (contract 3, Control frames; Session event families). */
import { defineFrame, defineOutFrame, errorSpec, named, oneOf, Type } from '../../kernel/index.ts'
import { RuntimeMissing, RuntimeUnavailable } from '../sessions/index.ts'
import { PathMissing, PathOutside } from '../workspaces/index.ts'

export const WatchLimit = errorSpec('watch_limit', 42902, 'fs.watch_limit_exceeded')

const watched = (paths: string) =>
  Type.Object({
    session_id: Type.String({ minLength: 1 }),
    paths: Type.Array(Type.String(), { default: [], description: paths }),
    recursive: Type.Boolean({ default: true, description: 'false: a path and its direct children' }),
    runtime_id: Type.String({ minLength: 1, default: 'local' })
  })
const ack = Type.Object({
  watched_paths: Type.Array(Type.String(), { description: 'of this connection in this session, sorted' }),
  current_count: Type.Integer({ minimum: 0, description: 'of this connection in all sessions' })
})

export const watchAdd = defineFrame({
  type: 'watch_fs_add',
  here: true,
  summary: 'Start file-change notifications; no subscription is needed',
  payload: watched('relative to the working directory of the session; `.` is all of it'),
  ack,
  errors: [PathMissing, PathOutside, RuntimeMissing, WatchLimit, RuntimeUnavailable]
})
export const watchRemove = defineFrame({
  type: 'watch_fs_remove',
  here: true,
  summary: 'Stop file-change notifications; paths that are not watched are ignored',
  payload: watched('as they were added'),
  ack
})

export const fileChange = named(
  'FileChange',
  Type.Object({
    path: Type.String({ description: 'relative to the working directory of the session' }),
    change: oneOf(['created', 'modified', 'deleted']),
    kind: oneOf(['file', 'directory', 'symlink'])
  })
)

export const fsChanged = defineOutFrame({
  type: 'event.fs.changed',
  fields: { seq: Type.Integer({ minimum: 1 }), session_id: Type.String() },
  summary: 'To connections that watch; `seq` of the frame counts by session, apart from its events, and nothing is replayed',
  payload: Type.Object({
    changes: Type.Array(fileChange, { description: 'in order, at or under the paths that the connection watches' }),
    coalesced_window_ms: Type.Integer({ minimum: 0 }),
    truncated: Type.Optional(Type.Literal(true, { description: 'too many changes, or some were not seen: look again' })),
    count: Type.Optional(Type.Integer({ minimum: 0, description: 'changes of a truncated window' }))
  })
})
