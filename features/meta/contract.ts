/** Wire shapes and routes of the server's own facts (contract 1, Server and metadata; contract 3, Connections). */
import { defineRoute, named, nullable, oneOf, Time, Type } from '../../kernel/index.ts'

const FeatureShape = named(
  'Feature',
  Type.Object({
    name: Type.String(),
    state: oneOf(['Pending', 'Activating', 'Active', 'Unloading', 'Failed']),
    meta: Type.Object({
      version: Type.Optional(Type.String()),
      waiting_for: Type.Optional(Type.Array(Type.String(), { description: 'services that nobody provides yet' })),
      error: Type.Optional(Type.String({ description: 'why the pack failed' })),
      faults: Type.Optional(
        Type.Object(
          { count: Type.Integer({ minimum: 1 }), last: Type.String() },
          { description: 'what of the pack went wrong since it was activated: listeners, taps, clean-ups' }
        )
      ),
      time: Type.Optional(
        Type.Object(
          {
            ms: Type.Integer({ minimum: 1 }),
            calls: Type.Integer({ minimum: 1 }),
            slow: Type.Optional(
              Type.Object(
                { count: Type.Integer({ minimum: 1 }), last: Type.String() },
                { description: 'calls beside which nothing else could run for half a second' }
              )
            )
          },
          { description: 'how long the pack had the event loop since it was activated, as far as the server called it; absent below 1 ms' }
        )
      )
    })
  })
)

const Capabilities = named(
  'ServerCapabilities',
  Type.Object({
    websocket: Type.Literal(true),
    file_upload: Type.Literal(true),
    fs_query: Type.Literal(true),
    mcp: Type.Literal(true),
    tasks: Type.Literal(true),
    terminal: Type.Literal(true)
  })
)

const Meta = named(
  'ServerMeta',
  Type.Object({
    server_version: Type.String(),
    capabilities: Capabilities,
    server_id: Type.String({ description: 'ULID of this server instance' }),
    started_at: Time,
    open_in_apps: Type.Array(Type.String()),
    dangerous_bypass_auth: Type.Boolean(),
    backend: oneOf(['v1', 'v2']),
    experimental_flags: Type.Record(Type.String(), Type.Boolean()),
    features: Type.Array(FeatureShape),
    web_title: Type.Optional(Type.String())
  })
)

const ConnectionShape = named(
  'Connection',
  Type.Object({
    id: Type.String(),
    connected_at: Time,
    remote_address: nullable(Type.String()),
    user_agent: nullable(Type.String()),
    has_client_hello: Type.Boolean(),
    subscriptions: Type.Array(Type.String())
  })
)

const Ok = Type.Object({ ok: Type.Literal(true) })

export const healthz = defineRoute({
  method: 'GET',
  operationId: 'getHealth',
  path: '/api/v1/healthz',
  summary: 'Liveness probe; touches neither configuration nor engine',
  auth: 'none',
  data: Ok
})
export const readStartPage = defineRoute({
  method: 'GET',
  path: '/',
  summary: 'Says what answers here; any other pack may serve its own page at this path',
  auth: 'none',
  data: Type.Unknown(),
  binary: { types: ['text/html'] },
  fallback: true
})
export const getMeta = defineRoute({ method: 'GET', path: '/api/v1/meta', summary: 'Identity and capability map', data: Meta })
export const shutdown = defineRoute({
  method: 'POST',
  operationId: 'shutdown',
  path: '/api/v1/shutdown',
  summary: 'Graceful shutdown; the reply is sent first. Only on loopback binds, or with --allow-remote-shutdown',
  data: Ok
})
export const listConnections = defineRoute({
  method: 'GET',
  path: '/api/v1/connections',
  summary: 'WebSocket clients connected now, oldest first',
  data: Type.Object({ connections: Type.Array(ConnectionShape) })
})
