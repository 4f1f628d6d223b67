/** Tools of MCP servers as tools of an agent: their names, and calls that reach the server they were listed by or none. */
import { headOf, Type, underFirstAbort } from '../../kernel/index.ts'
import type { ToolImages } from '../media/index.ts'
import { type Tool, type ToolEnv, ToolRefusal } from '../tools/index.ts'
import { argumentNames } from './argument-names.ts'
import { brokeOff } from './broken-answers.ts'
import { type Ask, type Form, fillIn } from './elicitation.ts'
import type { McpTool } from './listing.ts'
import { toolName } from './names.ts'
import type { ServerPool } from './pool.ts'
import { resultOf } from './results.ts'
import { CallLate } from './running-calls.ts'
import type { McpServer } from './server.ts'
import type { McpLogins } from './service.ts'
import { inWords } from './words.ts'

const parameters = Type.Object({}, { additionalProperties: true })

export interface ToolsPorts {
  /** Limit of a call without one in the configuration of the server, ms. */
  readonly toolMs: () => number
  /** Makes images small enough for models; undefined: they stay as they are. */
  readonly images: () => ToolImages | undefined
  /** Asks the user of the session in which a call runs. */
  readonly ask: (env: ToolEnv, signal: AbortSignal) => Ask
  /** Signs in at a remote server; undefined: nobody can. */
  readonly login: () => McpLogins['login'] | undefined
  /** Two tools have one name; the second one is left out. */
  readonly collision: (name: string, server: McpServer) => void
}

/** The tools of a pool, made anew only when they may have changed. */
export class PoolTools {
  readonly #pool: ServerPool
  readonly #ports: ToolsPorts
  #revision = -1
  #tools: readonly Tool[] = []

  constructor(pool: ServerPool, ports: ToolsPorts) {
    this.#pool = pool
    this.#ports = ports
  }

  get list(): readonly Tool[] {
    if (this.#revision === this.#pool.revision) return this.#tools
    const byName = new Map<string, Tool>()
    for (const server of this.#pool.servers) {
      const login = server.state === 'needs-auth' ? this.#ports.login() : undefined
      if (login) byName.set(toolName(server.name, 'authenticate'), loginTool(server, login))
      for (const tool of server.tools) {
        const name = toolName(server.name, tool.name)
        if (byName.has(name)) this.#ports.collision(name, server)
        else byName.set(name, toolOf(name, server, tool, this.#ports))
      }
    }
    this.#tools = [...byName.values()]
    this.#revision = this.#pool.revision
    return this.#tools
  }
}

function toolOf(name: string, server: McpServer, { name: own, description, schema }: McpTool, { toolMs, images, ask }: ToolsPorts): Tool {
  const { generation } = server
  const names = argumentNames(schema)
  return {
    name,
    description: description === '' ? `Tool ${own} of the MCP server ${server.name}.` : description,
    parameters,
    model_schema: names.schema,
    source: 'mcp',
    prepare(given: Readonly<Record<string, unknown>>, env) {
      const args = names.own(given)
      const limit_ms = server.entry.config.toolTimeoutMs ?? toolMs()
      return {
        description: `${server.name}: ${own}`,
        display: { kind: 'generic', summary: `${server.name}: ${own}`, detail: args },
        accesses: [{ kind: 'exclusive' }],
        limit_ms: 0,
        async run(progress, signal) {
          const options = {
            signal,
            timeoutMs: limit_ms,
            elicit: (form: Form, over: AbortSignal) =>
              underFirstAbort([signal, over], either => fillIn(server.name, form, ask(env, either))),
            progress: (update: { readonly text?: string; readonly percent?: number }) => progress({ kind: 'progress', ...update })
          }
          const answer = await server.call(generation, own, args, options).catch((error: unknown) => {
            signal.throwIfAborted()
            throw new ToolRefusal(sentence(error, server, limit_ms))
          })
          const result = resultOf(answer)
          return (await images()?.fit(result, env.agent)) ?? result
        }
      }
    }
  }
}

/** In place of the tools of a server that wants a login. */
function loginTool(server: McpServer, login: NonNullable<McpLogins['login']>): Tool {
  const { name, entry } = server
  return {
    name: toolName(name, 'authenticate'),
    description: `Signs in at the MCP server ${name}, whose tools cannot be used before. The user opens a page in the browser. Use it when the task needs that server.`,
    parameters: Type.Object({}),
    source: 'mcp',
    prepare: () => ({
      description: `Sign in at ${name}`,
      display: { kind: 'generic', summary: `Sign in at the MCP server ${name}` },
      accesses: [],
      limit_ms: 0,
      async run(progress, signal) {
        const told = (customData: { readonly authorizationUrl: string }) =>
          progress({
            kind: 'custom',
            text: `Open ${customData.authorizationUrl}`,
            customKind: 'mcp_oauth',
            customData: { serverName: name, ...customData }
          })
        await login(entry, told, signal).catch((error: unknown) => {
          signal.throwIfAborted()
          throw new ToolRefusal(`Signing in at ${name} failed: ${(error as Error).message}`)
        })
        return { output: `Signed in at ${name}. Its tools can be used from the next turn on.` }
      }
    })
  }
}

function sentence(error: unknown, { name }: McpServer, limit_ms: number): string {
  const unknown = 'whether it did its work is not known.'
  if (error instanceof CallLate) return `The MCP server ${name} did not answer within ${limit_ms / 1000} s; ${unknown}`
  if (brokeOff(error)) return `The MCP server ${name} ended its answer before it was whole; ${unknown}`
  const message = inWords(error)
  return message.startsWith('The MCP server') ? message : `The MCP server ${name} refused the call: ${headOf(message, 2000)}`
}
