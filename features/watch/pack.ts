/** Wires file watching: frames of clients, and the service for other packs. */
import { AppError, type Connection, definePack, defineSlot, Type } from '../../kernel/index.ts'
import { relativePath } from '../fs/index.ts'
import { Peers, PeerTopics } from '../peers/index.ts'
import { localRuntime, RuntimeMissing, RuntimeUnavailable, Sessions, sessionArchived } from '../sessions/index.ts'
import { PathMissing, PathOutside } from '../workspaces/index.ts'
import { fsChanged, WatchLimit, watchAdd, watchRemove } from './contract.ts'
import { NewestFrames } from './newest-frames.ts'
import { Room, type WatchedPath } from './room.ts'
import { FileWatches, type WatchListener, WatchTrouble } from './service.ts'
import { Watchers } from './watchers.ts'

const nothing = { watched_paths: [], current_count: 0 }

const maxWindowMs = 60_000
/** Told between servers: the session with this id was archived, or deleted. */
const archivedTopic = 'watch-archived'

export default definePack({
  name: 'watch',
  description: 'Tells clients and other packs which files change',
  area: 'Files',
  needs: { sessions: Sessions },
  optional: { peers: Peers },
  provides: [FileWatches],
  config: Type.Object({
    max_paths: Type.Integer({ minimum: 1, default: 100, description: 'paths that one connection watches' }),
    max_entries: Type.Integer({
      minimum: 1,
      default: 200_000,
      description: 'files and directories that are watched at a time, 1 to 2 KB each'
    }),
    window_ms: Type.Integer({ minimum: 1, maximum: maxWindowMs, default: 200, description: 'changes of so long go out together' }),
    max_changes: Type.Integer({ minimum: 1, default: 500, description: 'changes of one window that are listed' })
  }),
  setup(ctx, { sessions, peers }) {
    const { max_paths, max_entries } = ctx.config
    const window_ms = given(process.env.SVC_CODE_FS_WATCH_DEBOUNCE_MS, maxWindowMs) ?? ctx.config.window_ms
    const max_changes = given(process.env.SVC_CODE_FS_WATCH_MAX_CHANGES_PER_WINDOW) ?? ctx.config.max_changes
    const watchers = new Watchers(max_entries, call => {
      try {
        call()
      } catch (err) {
        ctx.log.error({ err }, 'a listener of file changes failed')
      }
    })
    ctx.own(() => watchers.close())
    ctx.provide(FileWatches, watchers)

    /** Those that somebody watches; each goes with its last watcher. */
    const rooms = new Map<string, Room>()
    ctx.own(() => {
      for (const room of rooms.values()) room.close()
    })
    const newest = new NewestFrames()
    const end = (session_id: string) => {
      rooms.get(session_id)?.close()
      newest.take(session_id)
    }
    ctx.on(sessionArchived, ({ payload: { sessionId } }) => {
      end(sessionId)
      peers()?.tell(archivedTopic, sessionId)
    })
    ctx.contribute(PeerTopics, { topic: archivedTopic, told: session_id => end(String(session_id)) })
    const slot = defineSlot('watches', (connection: Connection) => ({
      close() {
        for (const room of rooms.values()) room.leave(connection)
      }
    }))
    ctx.slot(slot)

    const roomOf = (session_id: string) => {
      let room = rooms.get(session_id)
      if (!room) {
        const empty = (seq: number) => {
          rooms.delete(session_id)
          newest.keep(session_id, seq)
        }
        const seq = newest.take(session_id)
        room = new Room({ session_id, windowMs: window_ms, maxChanges: max_changes, now: ctx.now, seq, empty })
        rooms.set(session_id, room)
      }
      return room
    }
    const countOf = (connection: Connection) => [...rooms.values()].reduce((sum, room) => sum + room.pathsOf(connection).length, 0)
    const stateOf = (connection: Connection, session_id: string) => ({
      watched_paths: rooms.get(session_id)?.pathsOf(connection) ?? [],
      current_count: countOf(connection)
    })

    ctx.outFrame(fsChanged)
    ctx.frame(watchAdd, async ({ payload: { session_id, paths: given, recursive, runtime_id }, connection }) => {
      const session = await sessions.state(session_id)
      if (!session) throw new AppError(PathMissing, { message: `session ${session_id} not found`, data: nothing })
      if (runtime_id !== localRuntime) throw new AppError(RuntimeMissing, { data: nothing })
      const known = rooms.get(session_id)
      const wanted = pathsOf(given).filter(path => {
        const watched = known?.of(connection, path)
        return !watched || (recursive && !watched.recursive)
      })
      const added = wanted.filter(path => !known?.of(connection, path)).length
      if (countOf(connection) + added > max_paths)
        throw new AppError(WatchLimit, {
          message: `fs.watch_limit_exceeded: a connection watches ${max_paths} paths at most`,
          data: nothing
        })
      const opened: WatchedPath[] = []
      let lost: WatchTrouble | undefined
      try {
        for (const path of wanted) {
          const listener: WatchListener = {
            changed: changes => rooms.get(session_id)?.changed(connection, path, changes),
            unknown: count => rooms.get(session_id)?.unknown(count),
            lost: trouble => {
              lost = trouble
              ctx.log.warn({ session_id, path, trouble: trouble.trouble }, `a path is not watched any more: ${trouble.message}`)
              rooms.get(session_id)?.lost(connection, path)
            }
          }
          opened.push({ path, recursive, release: await watchers.watch({ root: session.cwd, path, recursive }, listener) })
        }
        if (lost) throw lost // one of them, while others were opened
        if (opened.length > 0) {
          connection.get(slot)
          for (const watched of opened.splice(0)) roomOf(session_id).put(connection, watched)
        }
      } catch (error) {
        throw asAppError(error)
      } finally {
        for (const { release } of opened) release() // refused, or the client has gone
      }
      return stateOf(connection, session_id)
    })
    ctx.frame(watchRemove, ({ payload: { session_id, paths }, connection }) => {
      const room = rooms.get(session_id)
      for (const path of watchable(paths)) room?.remove(connection, path)
      return stateOf(connection, session_id)
    })
  }
})

/** A whole number from 1; anything else counts as not set. */
function given(text: string | undefined, max = Number.MAX_SAFE_INTEGER): number | undefined {
  const number = Number(text)
  return Number.isInteger(number) && number >= 1 && number <= max ? number : undefined
}

/** Sorted, normalised (`./src/` is `src`, `.` the whole), each once. Throws PathOutside (41304). */
function pathsOf(given: readonly string[]): string[] {
  try {
    return [...new Set(given.map(path => relativePath(path, 'payload.paths')))].sort()
  } catch (error) {
    throw AppError.is(error) ? new AppError(error.spec, { message: error.message, details: error.details, data: nothing }) : error
  }
}

/** Paths that cannot be watched are not. */
function watchable(given: readonly string[]): string[] {
  return given.flatMap(path => {
    try {
      return [relativePath(path)]
    } catch {
      return [] // it leads out of the workspace
    }
  })
}

function asAppError(error: unknown): unknown {
  if (!(error instanceof WatchTrouble)) return error
  const spec = { outside: PathOutside, too_many: WatchLimit, exhausted: WatchLimit, missing: PathMissing, failed: RuntimeUnavailable }[
    error.trouble
  ]
  const prefix = spec === WatchLimit ? 'fs.watch_limit_exceeded: ' : ''
  return new AppError(spec, { message: prefix + error.message, data: nothing, cause: error })
}
