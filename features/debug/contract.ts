/** Wire shapes of the debug routes: no promise to clients, they follow what the server is made of. */
import { defineRoute, named, oneOf, Time, Type } from '../../kernel/index.ts'

const text = Type.String()
const count = Type.Integer({ minimum: 0 })
const bytes = count
const ms = Type.Number({ minimum: 0 })

const route = <N extends string, S extends Parameters<typeof Type.Object>[0]>(name: N, summary: string, shape: S) =>
  defineRoute({ method: 'GET', path: `/api/v1/debug/${name}`, summary, data: Type.Object(shape) })

const DebugPack = named(
  'DebugPack',
  Type.Object({
    name: text,
    state: oneOf(['Pending', 'Activating', 'Active', 'Unloading', 'Failed']),
    setup_ms: Type.Optional(Type.Number({ minimum: 0, description: 'how long its last setup took' })),
    waiting_for: Type.Optional(Type.Array(text)),
    error: Type.Optional(text),
    faults: Type.Optional(Type.Object({ count, last: text })),
    routes: count,
    events: count,
    frames: count
  })
)
export const listPacks = route('packs', 'Packs in the order in which they were given, and how long each took to start', {
  packs: Type.Array(DebugPack),
  setup_ms: Type.Number({ minimum: 0, description: 'of all together' })
})

export const listRoutes = route('routes', 'Routes that are mounted, by path', {
  routes: Type.Array(
    named(
      'DebugRoute',
      Type.Object({
        method: text,
        path: text,
        pack: text,
        summary: text,
        open: Type.Boolean({ description: 'no credential is asked for' })
      })
    )
  )
})

const DebugHook = named(
  'DebugHook',
  Type.Object({
    name: Type.String({ description: 'empty: its pack did not name it' }),
    of: oneOf(['kernel', 'pack']),
    kind: oneOf(['notify', 'bail', 'waterfall']),
    taps: Type.Array(Type.Object({ pack: text, name: text, stage: Type.Integer() }), {
      description: 'in the order in which they are called'
    })
  })
)
export const listHooks = route('hooks', 'Hooks of the kernel, those of packs that have taps, and their taps', {
  hooks: Type.Array(DebugHook)
})

const DebugSession = named(
  'DebugSession',
  Type.Object({
    id: text,
    workspace_id: text,
    writable: Type.Boolean({ description: 'false: another server of the home has it' }),
    busy: Type.Boolean(),
    pending_interaction: oneOf(['none', 'approval', 'question']),
    running_turns: Type.Array(text, { description: 'ids of agents' }),
    agents: Type.Array(text)
  })
)
export const listLoadedSessions = route('sessions', 'Sessions that are in memory here', { sessions: Type.Array(DebugSession) })

const DebugJournal = named(
  'DebugJournal',
  Type.Object({
    session_id: Type.String({ description: '`__global__`: events of the server' }),
    epoch: Type.Optional(Type.String({ description: 'this and the next two: once the file is open' })),
    seq: Type.Optional(Type.Integer({ minimum: 0, description: 'number given out last' })),
    written_seq: Type.Optional(Type.Integer({ minimum: 0, description: 'on disk, and handed to the sockets' })),
    kept: Type.Boolean({ description: 'its session is loaded; others go when they are idle' }),
    subscribers: count
  })
)
export const listJournals = route('journals', 'Event journals that are open here, and how far they are', {
  journals: Type.Array(DebugJournal),
  waiting_bytes: Type.Integer({ minimum: 0, description: 'of events that wait for disk and sockets' })
})

export const readProcess = route('process', 'Memory, and how punctual the event loop was since the server started', {
  pid: Type.Integer(),
  started_at: Time,
  uptime_s: Type.Number({ minimum: 0 }),
  event_loop: Type.Object({
    delay_ms: Type.Object({ mean: ms, p50: ms, p99: ms, max: ms }, { description: 'beyond the 10 ms of the measuring timer' }),
    utilization: Type.Number({ minimum: 0, maximum: 1, description: 'share of the time in which it worked' })
  }),
  memory: Type.Object({
    rss_bytes: bytes,
    heap_total_bytes: bytes,
    heap_used_bytes: bytes,
    external_bytes: bytes,
    array_buffers_bytes: bytes
  }),
  heap: Type.Object({ limit_bytes: bytes, malloced_bytes: bytes, contexts: count, detached_contexts: count }),
  resources: Type.Record(text, count, { description: 'what keeps the process alive, by kind' })
})
