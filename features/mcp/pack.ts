/** Wires MCP: the servers of each workspace that has a session, their tools, and the view of clients. */
import { AppError, definePack, defineSlot, KernelInfo, milliseconds, type Static, Type } from '../../kernel/index.ts'
import { TurnHooks } from '../agent/index.ts'
import { Config, ConfigSections } from '../config/index.ts'
import { InteractionKinds, Interactions } from '../interactions/index.ts'
import { OutboundHosts } from '../llm/index.ts'
import { ToolImages } from '../media/index.ts'
import { Permissions } from '../permissions/index.ts'
import { PluginServerChecks, Plugins, pluginChanged } from '../plugins/index.ts'
import { questions } from '../questions/index.ts'
import { type Session, Sessions } from '../sessions/index.ts'
import { ToolSets } from '../tools/index.ts'
import { Shell } from '../tools-shell/index.ts'
import { Workspaces } from '../workspaces/index.ts'
import { Milliseconds } from './config.ts'
import {
  listMcpServers,
  McpServerMissing,
  type McpServerObject,
  mcpServerStatus,
  restartMcpServer,
  type ServerState,
  toolListUpdated
} from './contract.ts'
import { pluginServerProblem, readLayersStrictly } from './layers.ts'
import { Pools, type Use } from './pools.ts'
import type { McpServer } from './server.ts'
import { Mcp, McpLogins } from './service.ts'

const statuses: Readonly<Record<ServerState, Static<typeof McpServerObject>['status']>> = {
  pending: 'connecting',
  connected: 'connected',
  disabled: 'disconnected',
  removed: 'disconnected',
  failed: 'error',
  'needs-auth': 'error'
}

/** Limits of servers that name none. */
const mcpSection = {
  name: 'mcp',
  schema: Type.Object({ startup_timeout_ms: Type.Optional(Milliseconds), tool_timeout_ms: Type.Optional(Milliseconds) }),
  default: {} as { startup_timeout_ms?: number; tool_timeout_ms?: number }
}

export default definePack({
  name: 'mcp',
  description: 'MCP servers: their tools in sessions',
  area: 'Tools',
  needs: { sessions: Sessions, workspaces: Workspaces, turns: TurnHooks, info: KernelInfo },
  optional: { config: Config, plugins: Plugins, shell: Shell, images: ToolImages, interactions: Interactions, permissions: Permissions },
  provides: [Mcp],
  errors: [McpServerMissing],
  config: Type.Object({
    startup_ms: milliseconds({ minimum: 1, default: 30_000, description: 'limit of the start of a server that names none' }),
    tool_ms: milliseconds({ minimum: 1, default: 60_000, description: 'limit of a call of a server that names none' }),
    first_turn_ms: milliseconds({
      minimum: 0,
      default: 5000,
      description: 'so long the turn of a prompt waits for servers that are starting'
    }),
    backoff_ms: Type.Array(Type.Integer({ minimum: 0 }), {
      default: [1000, 5000, 30_000, 60_000],
      description: 'pauses before a server that was lost is started again'
    }),
    max_tools: Type.Integer({ minimum: 1, default: 500, description: 'tools of one server' }),
    message_bytes: Type.Integer({ minimum: 1024, default: 16 * 1024 * 1024, description: 'of one message of a server' }),
    messages_per_second: Type.Integer({ minimum: 1, default: 5000, description: 'that a server may send; more end it' })
  }),
  setup(ctx, { sessions, workspaces, info, config, plugins, shell, images, interactions, permissions, turns }) {
    ctx.contribute(ConfigSections, mcpSection)
    const logins = ctx.collect(McpLogins)
    const kinds = ctx.collect(InteractionKinds)
    const limits = {
      tools: ctx.config.max_tools,
      messageBytes: ctx.config.message_bytes,
      messagesPerSecond: ctx.config.messages_per_second
    }
    const layers = { home: ctx.home, workspaces, plugins }
    let said = ''
    const pools = new Pools({
      ...layers,
      log: ctx.log,
      warn: (facts, text) => {
        if (text === said) return ctx.log.warn(facts, text) // by the servers of another directory
        said = text
        ctx.operator.warn(facts, text)
      },
      shell,
      version: info.version,
      limits,
      backoffMs: ctx.config.backoff_ms,
      startupMs: () => config()?.get(mcpSection).startup_timeout_ms ?? ctx.config.startup_ms,
      toolMs: () => config()?.get(mcpSection).tool_timeout_ms ?? ctx.config.tool_ms,
      images,
      asks: () => interactions() !== undefined && kinds.items().some(({ kind }) => kind === questions),
      ask:
        ({ agent, turn_id, tool_call_id }, signal) =>
        async asked => {
          if ((await permissions()?.mode(agent)) === 'auto') return undefined // nobody is to be asked
          const end = await interactions()?.ask(questions, { agent, turn_id, tool_call_id, questions: [...asked] }, signal)
          return end?.how === 'answered' ? end.answer : undefined
        },
      login: () => logins.items().find(each => each.login)?.login,
      tokens: entry => logins.items().flatMap(each => each.tokens(entry) ?? [])[0]
    })
    ctx.own(() => pools.close())
    ctx.contribute(OutboundHosts, {
      pack: ctx.name,
      hosts: () => [{ why: 'remote MCP servers of the configuration', when: 'a session is live' }]
    })

    const emitStatus = ctx.event(mcpServerStatus)
    const emitTools = ctx.event(toolListUpdated)
    const tell = (session: Session, server: McpServer, before: ServerState) => {
      const target = { session_id: session.id, subject: 'main' }
      const { name, state: status, error } = server
      const facts = { name, transport: server.entry.config.transport, status, toolCount: server.tools.length }
      emitStatus({ server: { ...facts, ...(error === undefined ? {} : { error }) } }, target)
      const reason = status === 'connected' ? 'mcp.connected' : status === 'failed' ? 'mcp.failed' : 'mcp.disconnected'
      if (status === 'connected' || before === 'connected') emitTools({ reason, serverName: name }, target)
    }
    const slot = defineSlot(
      'mcp-servers',
      (session: Session): Use => pools.use(session.cwd, (server, before) => tell(session, server, before))
    )
    ctx.slot(slot)
    sessions.onLoad(session => void session.get(slot))
    for (const session of sessions.allLoaded()) session.get(slot)

    ctx.contribute(ToolSets, { name: 'mcp', tools: agent => agent.session.peek(slot)?.tools ?? [] })
    // Whoever configured servers wants them in the first turn; one that hangs holds it up for a moment only.
    ctx.tap(turns.stepBegin, ({ agent, step }) => {
      const use = step === 1 ? agent.session.peek(slot) : undefined
      return use?.ready(ctx.config.first_turn_ms).then(() => undefined)
    })
    ctx.on(pluginChanged, () => pools.refresh())
    ctx.contribute(PluginServerChecks, { problem: pluginServerProblem })
    workspaces.onTrustChange(() => pools.refresh())
    ctx.provide(Mcp, {
      entries: cwd => readLayersStrictly(cwd, layers),
      probe: (entry, cwd, signal) => pools.probe(entry, cwd, signal),
      changed: () => pools.refresh(),
      credentialsChanged: login => pools.reconnect(login)
    })

    const effective: readonly unknown[] = [listMcpServers, restartMcpServer]
    ctx.tap(ctx.hooks.about, route => (effective.includes(route) ? sessions.newestLoaded() : undefined))
    const newest = () => [...sessions.allLoaded()].sort((a, b) => (a.state.created_at < b.state.created_at ? 1 : -1))[0]
    ctx.route(listMcpServers, async () => {
      const use = newest()?.get(slot)
      await use?.pool.refresh()
      const servers = (use?.pool.servers ?? []).map(server => ({
        id: server.name,
        name: server.name,
        transport: server.entry.config.transport,
        status: statuses[server.state],
        ...(statuses[server.state] === 'error' && server.error ? { last_error: server.error } : {}),
        tool_count: server.tools.length
      }))
      return { servers }
    })
    ctx.route(restartMcpServer, async ({ params: { mcp_server_id } }) => {
      const use = newest()?.get(slot)
      await use?.pool.refresh()
      const server = use?.pool.server(mcp_server_id)
      if (!server) throw new AppError(McpServerMissing, { message: `MCP server not found: ${mcp_server_id}` })
      ctx.background(() => server.restart())
      return { restarting: true }
    })
  }
})
