/** Wire shapes of the management plane of MCP servers (contract 3, v2 MCP shapes and v2 MCP management plane). */
import { defineRoute, errorSpec, milliseconds, named, oneOf, type TObject, type TProperties, Type } from '../../kernel/index.ts'
import { McpServerMissing, RemoteConfig, ServerConfig, StdioConfig } from '../mcp/index.ts'

export const OauthFailed = errorSpec('mcp_oauth_failed', 40929, 'the login at the MCP server failed')

const text = Type.String()
const Milliseconds = milliseconds({ minimum: 1 })

export const Locator = named(
  'McpLocator',
  Type.Union([
    Type.Object({ source: Type.Literal('global'), name: text }),
    Type.Object({ source: Type.Literal('plugin'), pluginId: text, serverName: text })
  ])
)
const Redacted = Type.Object(
  {},
  { additionalProperties: true, description: 'without secrets: `envKeys` and `headerKeys` are sorted names' }
)

export const ManagedServer = named(
  'McpManagedServer',
  Type.Object({
    name: text,
    config: Type.Union([named('McpServerConfig', ServerConfig), Redacted], { description: 'whole where it can be changed' }),
    source: oneOf(['global', 'plugin']),
    origin: Type.String({ description: 'path of the file, or id of the plugin' }),
    mutable: Type.Boolean({ description: 'it stands in the file of the user' }),
    plugin: Type.Optional(Type.Object({ id: text, name: text }))
  })
)

const authStatus = oneOf(['not-applicable', 'bearer-token', 'oauth-required', 'oauth-authorized', 'oauth-expired', 'unavailable'])

export const Inspection = named(
  'McpInspection',
  Type.Object({
    serverId: Type.String({ examples: ['global:database'] }),
    locator: Locator,
    runtimeName: text,
    canonicalUrl: Type.Optional(text),
    origin: oneOf(['global', 'plugin']),
    config: Redacted,
    enabled: Type.Boolean(),
    editable: Type.Boolean(),
    authStatus,
    checkedAt: Type.Optional(Type.Integer({ description: 'ms; when it was probed' })),
    error: Type.Optional(text)
  })
)

/** A config by its transport. Whether `url` is an address, the handler says. */
const HttpConfig = Type.Object({ ...RemoteConfig.properties, transport: Type.Literal('http') })
const SseConfig = Type.Object({ ...RemoteConfig.properties, transport: Type.Literal('sse') })
const withName = <P extends TProperties>({ properties }: TObject<P>) => Type.Object({ name: text, ...properties })
const ServerWithName = named('McpServerInput', Type.Union([withName(StdioConfig), withName(HttpConfig), withName(SseConfig)]))

const Cwd = Type.Optional(Type.String({ description: 'absolute; files of the project join in when its workspace is trusted' }))
const query = Type.Object({ cwd: Cwd })
const params = Type.Object({ name: text })
const list = Type.Array(ManagedServer)
const errors = [McpServerMissing]

export const listManaged = defineRoute({
  method: 'GET',
  operationId: 'listManagedMcpServers',
  path: '/api/v2/mcp/servers',
  summary: 'Configured MCP servers',
  query,
  data: list
})
export const readManaged = defineRoute({
  method: 'GET',
  operationId: 'readManagedMcpServer',
  path: '/api/v2/mcp/servers/{name}',
  summary: 'One configured MCP server',
  params,
  query,
  data: ManagedServer,
  errors
})
export const addManaged = defineRoute({
  method: 'POST',
  operationId: 'addMcpServer',
  path: '/api/v2/mcp/servers',
  summary: 'Add a server to the file of the user',
  query,
  body: ServerWithName,
  data: list
})
export const updateManaged = defineRoute({
  method: 'PUT',
  operationId: 'updateMcpServer',
  path: '/api/v2/mcp/servers/{name}',
  summary: 'Replace a server in the file of the user',
  params,
  query,
  body: Type.Union([StdioConfig, HttpConfig, SseConfig]),
  data: list,
  errors
})
export const deleteManaged = defineRoute({
  method: 'DELETE',
  operationId: 'deleteMcpServer',
  path: '/api/v2/mcp/servers/{name}',
  summary: 'Remove a server from the file of the user',
  params,
  query,
  data: list,
  errors
})
export const testServer = defineRoute({
  method: 'POST',
  operationId: 'testMcpServer',
  path: '/api/v2/mcp/servers:test',
  summary: 'Connect to a server and list its tools; nothing is kept',
  body: Type.Object({ name: Type.Optional(text), server: Type.Optional(ServerWithName), cwd: Cwd }),
  data: Type.Object({ success: Type.Boolean(), output: text }),
  errors
})
export const inspectServers = defineRoute({
  method: 'POST',
  operationId: 'inspectMcpServers',
  path: '/api/v2/mcp/servers:inspect',
  summary: 'Configured servers without secrets, and which of them want a login',
  body: Type.Object({ targets: Type.Optional(Type.Array(Locator)), cwd: Cwd }),
  data: Type.Array(Inspection),
  errors
})
export const readAuthStatuses = defineRoute({
  method: 'GET',
  operationId: 'readMcpAuthStatuses',
  path: '/api/v2/mcp/auth-statuses',
  summary: 'Which servers want a login',
  query: Type.Object({
    cwd: Cwd,
    verify: Type.Optional(
      oneOf(['true', 'false'], { description: 'true: every candidate is asked; false: nobody; absent: those of which nothing is known' })
    )
  }),
  data: Type.Array(Type.Object({ name: text, authStatus }))
})
export const beginAuth = defineRoute({
  method: 'POST',
  operationId: 'beginMcpAuth',
  path: '/api/v2/mcp/auth:begin',
  summary: 'Begin a login at a remote server',
  query,
  body: Locator,
  data: Type.Object({
    status: oneOf(['authorization-required', 'already-authorized']),
    flowId: Type.Optional(text),
    authorizationUrl: Type.Optional(text)
  }),
  errors: [McpServerMissing, OauthFailed]
})
export const completeAuth = defineRoute({
  method: 'POST',
  operationId: 'completeMcpAuth',
  path: '/api/v2/mcp/auth:complete',
  summary: 'Wait for the end of a login',
  body: Type.Object({ flowId: text, timeoutMs: Type.Optional(Milliseconds) }),
  data: Type.Null(),
  errors: [OauthFailed]
})
export const cancelAuth = defineRoute({
  method: 'POST',
  operationId: 'cancelMcpAuth',
  path: '/api/v2/mcp/auth:cancel',
  summary: 'Give a login up',
  body: Type.Object({ flowId: text }),
  data: Type.Null()
})
export const resetAuth = defineRoute({
  method: 'POST',
  operationId: 'resetMcpAuth',
  path: '/api/v2/mcp/auth:reset',
  summary: 'Forget the login of a server',
  query,
  body: Locator,
  data: Type.Null(),
  errors
})
