/** One pool of servers for each working directory that has a live session. */
import { waitAtMost } from '../../kernel/index.ts'
import type { Tool } from '../tools/index.ts'
import { connect } from './connection.ts'
import type { Entry } from './layers.ts'
import type { Listed } from './listing.ts'
import { type PoolListener, type PoolPorts, ServerPool } from './pool.ts'
import { createRemoteFetch } from './remote.ts'
import type { McpServer } from './server.ts'
import type { RemoteLogin } from './service.ts'
import { PoolTools, type ToolsPorts } from './tools.ts'

export interface PoolsPorts extends Omit<PoolPorts, 'remote' | 'ending'>, Omit<ToolsPorts, 'collision'> {}

/** What a session has of its pool. */
export interface Use {
  readonly pool: ServerPool
  readonly tools: readonly Tool[]
  /** Takes in changes of the configuration, then resolves when no server is starting, after so many ms at the latest. */
  ready(ms: number): Promise<void>
  close(): Promise<void>
}

interface Shared {
  readonly pool: ServerPool
  readonly tools: PoolTools
  users: number
}

export class Pools {
  readonly #ports: PoolsPorts & PoolPorts
  readonly #shared = new Map<string, Shared>()
  /** Pools that are being closed. */
  readonly #closing = new Set<ServerPool>()
  /** Connections that nobody else waits for, until they have ended. */
  readonly #ending = new Set<Promise<void>>()

  constructor(ports: PoolsPorts) {
    this.#ports = {
      ...ports,
      remote: createRemoteFetch({ bytes: ports.limits.messageBytes, events: ports.limits.messagesPerSecond }),
      ending: end => {
        const ended = end.catch(() => undefined).finally(() => this.#ending.delete(ended)) // nobody could do anything about it
        this.#ending.add(ended)
      }
    }
  }

  /** The pool of the directory, until the use is closed. */
  use(cwd: string, listener: PoolListener): Use {
    const shared = this.#shared.get(cwd) ?? this.#make(cwd)
    shared.users++
    const { pool, tools } = shared
    const undo = pool.onChange(listener)
    void pool.refresh()
    return {
      pool,
      get tools() {
        return tools.list
      },
      async ready(ms) {
        await pool.refresh()
        if (!pool.servers.some(({ state }) => state === 'pending')) return
        await waitAtMost(pool.settled(), ms)
      },
      close: async () => {
        undo()
        if (--shared.users > 0) return
        this.#shared.delete(cwd)
        this.#closing.add(pool)
        await pool.close().finally(() => this.#closing.delete(pool))
      }
    }
  }

  refresh(): void {
    for (const { pool } of this.#shared.values()) void pool.refresh()
  }

  /** Servers of this login, or those that want one, connect anew. */
  reconnect(login: RemoteLogin | undefined): void {
    const isMeant = ({ name, state, entry: { config } }: McpServer) =>
      login ? name === login.name && config.transport !== 'stdio' && config.url === login.url : state === 'needs-auth'
    for (const { pool } of this.#shared.values()) for (const server of pool.servers) if (isMeant(server)) void server.restart()
  }

  async probe(entry: Entry, cwd: string, signal: AbortSignal): Promise<Listed> {
    const connection = await connect(entry, cwd, this.#ports, signal, { closed() {}, toolsChanged() {} })
    const { listed } = connection
    await connection.close().catch((err: unknown) => this.#ports.log.warn({ err, server: entry.name }, 'an MCP server could not be ended'))
    return listed
  }

  /** Resolves when every server has ended, those whose start was given up too. */
  async close(): Promise<void> {
    const all = [...this.#shared.values()]
    this.#shared.clear()
    await Promise.all(all.map(({ pool }) => pool.close()))
    while (this.#ending.size > 0) await Promise.all(this.#ending)
    await this.#ports.remote.close()
  }

  #make(cwd: string): Shared {
    const before = (name: string) => Promise.all([...this.#closing].map(pool => pool.cwd === cwd && pool.ended(name)))
    const pool = new ServerPool(cwd, this.#ports, before)
    const tools = new PoolTools(pool, {
      ...this.#ports,
      collision: (name, { name: server }) =>
        this.#ports.log.warn({ name, server }, 'two tools of MCP servers have one name; the later one is left out')
    })
    const shared = { pool, tools, users: 0 }
    this.#shared.set(cwd, shared)
    return shared
  }
}
