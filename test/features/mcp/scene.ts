/** A server with MCP and a scripted model, and MCP servers of the official library beside it. */
import { once } from 'node:events'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname, join } from 'node:path'
import { SSEServerTransport } from '@modelcontextprotocol/sdk/server/sse.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import config from '../../../features/config/pack.ts'
import interactions from '../../../features/interactions/pack.ts'
import { listMcpServers } from '../../../features/mcp/index.ts'
import mcp from '../../../features/mcp/pack.ts'
import permissions from '../../../features/permissions/pack.ts'
import plugins from '../../../features/plugins/pack.ts'
import tools from '../../../features/tools/pack.ts'
import shell from '../../../features/tools-shell/pack.ts'
import type { TestContextLike } from '../../../kernel/testing.ts'
import { program } from '../../helpers/child.ts'
import { testMcpServer } from '../../helpers/mcp-server.ts'
import { type ScriptedLlm, scriptedLlm, toolCalls } from '../../helpers/scripted-llm.ts'
import { freshDir } from '../../helpers/temp.ts'
import { type Started, type StartOptions, startAgent } from '../agent/start.ts'

/** Entry of the program that behaves so. */
export const stdio = (mode = 'good', file?: string, more: object = {}) => ({
  command: process.execPath,
  args: [program('mcp-server'), mode, ...(file === undefined ? [] : [file])],
  ...more
})

type Call = readonly [name: string, args?: object]
interface Mode {
  readonly permission_mode: string
}
const isCall = (each: Call | Mode): each is Call => Array.isArray(each)

export interface Scene extends Started {
  readonly llm: ScriptedLlm
  /** Runs calls of tools in one turn (of auto mode, unless one is given) and answers their results. */
  run(...calls: readonly (Call | Mode)[]): Promise<{ output: unknown; isError: boolean }[]>
  servers(): Promise<Record<string, { status: string; last_error?: string; tool_count: number }>>
  /** Resolves with the first status of a server that fits. */
  status(name: string, status: string): Promise<{ error?: string; toolCount: number }>
  of(type: string): Record<string, unknown>[]
}

export const userFile = (home: string, servers: object) => writeFile(join(home, 'mcp.json'), JSON.stringify({ mcpServers: servers }))

export async function writeJson(file: string, value: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  await writeFile(file, JSON.stringify(value))
}

export async function start(t: TestContextLike, servers: object, options: StartOptions = {}): Promise<Scene> {
  const home = options.home ?? (await freshDir())
  await userFile(home, servers)
  let next: readonly (readonly [string, object?])[] = []
  let made = 0
  const llm = scriptedLlm(() => {
    const calls = next
    next = []
    return calls.length === 0 ? 'done' : toolCalls(...calls.map(([name, args = {}]) => ({ id: `call_${made++}`, name, args })))
  })
  const scene = await startAgent(t, llm, {
    ...options,
    home,
    packs: [config, tools, shell, interactions, permissions, plugins, mcp, ...(options.packs ?? [])],
    config: { ...options.config, mcp: { backoff_ms: [], first_turn_ms: 20_000, ...options.config?.mcp } }
  })
  const of = (type: string) => scene.events.filter(event => event.type === type).map(event => event.payload as Record<string, unknown>)
  return {
    ...scene,
    of,
    llm,
    async run(...given) {
      const calls = given.filter(isCall)
      next = calls
      const from = made
      const { prompt_id } = await scene.prompt('go', { permission_mode: 'auto', ...given.find(each => !isCall(each)) })
      await scene.waitFor(({ type, payload }) => type === 'prompt.completed' && (payload as { promptId: string }).promptId === prompt_id)
      const results = of('tool.result')
      return calls.map((_, at) => {
        const found = results.find(({ toolCallId }) => toolCallId === `call_${from + at}`)
        return { output: found?.output, isError: found?.isError === true }
      })
    },
    async servers() {
      const { data } = await scene.call(listMcpServers, {})
      return Object.fromEntries(
        data.servers.map(({ name, status, last_error, tool_count }) => [name, { status, last_error, tool_count }])
      ) as never
    },
    async status(name, status) {
      const { payload } = await scene.waitFor(event => {
        if (event.type !== 'mcp.server.status') return false
        const { server } = event.payload as { server: { name: string; status: string } }
        return server.name === name && server.status === status
      })
      return (payload as { server: { toolCount: number } }).server
    }
  }
}

export interface Web {
  readonly url: string
  /** Of the requests so far. */
  readonly headers: IncomingHttpHeaders[]
  /** Answers 503 to everything from now on. */
  fail(): void
}

/** An MCP server over HTTP, at `/mcp` (streamable) or `/sse`. `allowed` refuses requests with 401. */
export async function web(t: TestContextLike, allowed: (headers: IncomingHttpHeaders) => boolean = () => true): Promise<Web> {
  const streamable = new Map<string, StreamableHTTPServerTransport>()
  const legacy = new Map<string, SSEServerTransport>()
  const headers: IncomingHttpHeaders[] = []
  let failing = false
  const server = createServer((request, reply) => {
    headers.push(request.headers)
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://x')
    if (failing) return void reply.writeHead(503).end()
    if (!allowed(request.headers)) return void reply.writeHead(401).end()
    void (async () => {
      if (pathname === '/sse') {
        const transport = new SSEServerTransport('/messages', reply)
        legacy.set(transport.sessionId, transport)
        await testMcpServer('sse').connect(transport)
      } else if (pathname === '/messages') await legacy.get(searchParams.get('sessionId') ?? '')?.handlePostMessage(request, reply)
      else if (pathname === '/huge') {
        reply.writeHead(200, { 'content-type': 'application/json' })
        const piece = Buffer.alloc(1024 * 1024, 'x')
        while (!reply.destroyed) if (!reply.write(piece)) await Promise.race([once(reply, 'drain'), once(reply, 'close')])
      } else {
        const id = request.headers['mcp-session-id']
        let transport = streamable.get(String(id))
        if (!transport) {
          const made = new StreamableHTTPServerTransport({
            sessionIdGenerator: () => `s${streamable.size}`,
            onsessioninitialized: session => void streamable.set(session, made)
          })
          transport = made
          await testMcpServer('http').connect(made as never)
        }
        await transport.handleRequest(request, reply)
      }
    })()
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    headers,
    fail: () => {
      failing = true
      server.closeAllConnections()
    }
  }
}

interface ToolCall {
  readonly id: number
  readonly params: { readonly name: string }
}

/**
 * A server over streamable HTTP with tools `whole`, `ended`, `cut` and `refused`; calls of them are answered by `answer`, and what would resume
 * the stream of one by `resume`, with its last event. `leave`: it has sessions, and answers to their end.
 */
export async function answering(
  t: TestContextLike,
  answer: (call: ToolCall, reply: ServerResponse) => void,
  resume: (last: string, reply: ServerResponse) => void = (_, reply) => void reply.writeHead(405).end(),
  leave?: (reply: ServerResponse) => void
): Promise<{ url: string }> {
  const tools = ['whole', 'ended', 'cut', 'refused'].map(name => ({ name, inputSchema: { type: 'object' } }))
  const server = createServer(async (request, reply) => {
    const last = request.headers['last-event-id']
    if (request.method === 'GET' && last !== undefined) return resume(String(last), reply)
    if (request.method === 'DELETE' && leave) return leave(reply)
    if (request.method !== 'POST') return void reply.writeHead(405).end()
    const { id, method, params } = JSON.parse(Buffer.concat(await request.toArray()).toString())
    if (id === undefined) return void reply.writeHead(202).end()
    reply.setHeader('content-type', 'application/json')
    if (leave && method === 'initialize') reply.setHeader('mcp-session-id', 'one')
    if (method === 'tools/call') return answer({ id, params }, reply)
    const greeting = { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'raw', version: '1' } }
    const result = method === 'initialize' ? greeting : method === 'tools/list' ? { tools } : {}
    reply.end(JSON.stringify({ jsonrpc: '2.0', id, result }))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp` }
}

/** Whether a process runs. */
export const runs = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

export const pidsIn = async (file: string) => (await readFile(file, 'utf8').catch(() => '')).split('\n').filter(Boolean).map(Number)
