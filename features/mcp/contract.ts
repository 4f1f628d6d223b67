/** Wire shapes of the session view of MCP servers (contract 2, MCP server), and their events (contract 3). */
import { defineEvent, defineRoute, errorSpec, named, oneOf, type Static, Type } from '../../kernel/index.ts'
import { transports } from './config.ts'

export const McpServerMissing = errorSpec('mcp_server_missing', 40408, 'MCP server not found')

const transport = oneOf(transports)

/** States of a server as its session tells them. */
const serverStates = oneOf(['pending', 'connected', 'failed', 'disabled', 'needs-auth', 'removed'])
export type ServerState = Static<typeof serverStates>

export const McpServerObject = named(
  'McpServer',
  Type.Object({
    id: Type.String({ examples: ['database'] }),
    name: Type.String(),
    transport,
    status: oneOf(['connected', 'connecting', 'disconnected', 'error']),
    last_error: Type.Optional(Type.String()),
    tool_count: Type.Integer({ minimum: 0 })
  })
)

export const listMcpServers = defineRoute({
  method: 'GET',
  operationId: 'listMcpServers',
  path: '/api/v1/mcp/servers',
  summary: 'MCP servers of the session that was created last, of those that are live',
  data: Type.Object({ servers: Type.Array(McpServerObject) })
})

export const restartMcpServer = defineRoute({
  method: 'POST',
  operationId: 'restartMcpServer',
  path: '/api/v1/mcp/servers/{mcp_server_id}:restart',
  summary: 'Start an MCP server anew',
  params: Type.Object({ mcp_server_id: Type.String() }),
  data: Type.Object({ restarting: Type.Boolean() }),
  errors: [McpServerMissing]
})

export const mcpServerStatus = defineEvent({
  type: 'mcp.server.status',
  summary: 'An MCP server of the session is in another state',
  scope: 'session',
  durable: true,
  payload: Type.Object({
    server: Type.Object({
      name: Type.String(),
      transport,
      status: serverStates,
      toolCount: Type.Integer({ minimum: 0 }),
      error: Type.Optional(Type.String())
    })
  })
})

export const toolListUpdated = defineEvent({
  type: 'tool.list.updated',
  summary: 'Tools of an MCP server came, went or changed',
  scope: 'session',
  durable: true,
  payload: Type.Object({ reason: oneOf(['mcp.connected', 'mcp.disconnected', 'mcp.failed']), serverName: Type.String() })
})
