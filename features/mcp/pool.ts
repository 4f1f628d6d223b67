/** The servers of one working directory, shared by its sessions: follows the configuration, and ends with the last session. */
import type { ConnectPorts } from './connection.ts'
import type { ServerState } from './contract.ts'
import { LayerWatch } from './layer-watch.ts'
import { type Entry, effective, type LayerPorts, layerFiles, layersStamp, readLayers } from './layers.ts'
import { McpServer, type ServerPorts } from './server.ts'

export interface PoolPorts extends LayerPorts, Omit<ServerPorts, 'changed'>, ConnectPorts {
  /** Tells whoever runs the server. */
  readonly warn: (facts: object, text: string) => void
}

export type PoolListener = (server: McpServer, before: ServerState) => void

export class ServerPool {
  readonly cwd: string
  readonly #ports: PoolPorts
  readonly #servers = new Map<string, McpServer>()
  readonly #listeners = new Set<PoolListener>()
  readonly #watch = new LayerWatch(() => void this.refresh())
  /** Servers that are gone, until they have ended. */
  readonly #leaving = new Set<Promise<void>>()
  /** Resolves when the servers of this name have ended that pools before had, which are being closed. */
  readonly #before: (name: string) => Promise<unknown>
  /** When each server has ended, by its name; since it is being closed. */
  #ends: Promise<ReadonlyMap<string, Promise<void>>> | undefined
  /** Of the files that were taken in last. */
  #stamp = ''
  #warned = ''
  #refreshing: Promise<void> = Promise.resolve()
  #closed = false
  /** Rises whenever the tools may be others. */
  revision = 0

  constructor(cwd: string, ports: PoolPorts, before: (name: string) => Promise<unknown>) {
    this.cwd = cwd
    this.#ports = ports
    this.#before = before
  }

  get servers(): readonly McpServer[] {
    return [...this.#servers.values()]
  }

  server(name: string): McpServer | undefined {
    return this.#servers.get(name)
  }

  onChange(listener: PoolListener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  /** Takes in what changed in the configuration; cheap while nothing did. Resolves when those that are gone are ending, and new ones starting. */
  refresh(): Promise<void> {
    const done = this.#refreshing.then(() => this.#refresh())
    this.#refreshing = done.catch((err: unknown) => this.#ports.log.error({ err }, 'the MCP servers of a workspace cannot be found out'))
    return this.#refreshing
  }

  /** Resolves when no server is starting. */
  async settled(): Promise<void> {
    await this.#refreshing
    await Promise.all(this.servers.map(server => server.settled))
  }

  async close(): Promise<void> {
    this.#closed = true
    this.#ends ??= this.#end()
    await Promise.all([...(await this.#ends).values(), ...this.#leaving])
  }

  /** Resolves when the server of this name has ended, of a pool that is being closed. */
  async ended(name: string): Promise<void> {
    await (await this.#ends)?.get(name)
  }

  async #end(): Promise<ReadonlyMap<string, Promise<void>>> {
    await this.#refreshing
    await this.#watch.follow([])
    const ends = new Map(this.servers.map(server => [server.name, server.close()]))
    this.#servers.clear()
    this.#listeners.clear()
    return ends
  }

  async #refresh(): Promise<void> {
    if (this.#closed) return
    const files = await layerFiles(this.cwd, this.#ports)
    await this.#watch.follow(files) // first, so that no change comes between
    const stamp = await layersStamp(files, this.#ports)
    if (this.#closed || stamp === this.#stamp) return
    const { entries, problems } = await readLayers(this.cwd, this.#ports)
    if (this.#closed) return // a server that is started now would wait for its own end
    // One layer that cannot be read may be the one that switches a server off. It may be read the next time: with too many open files it is not.
    if (problems.length > 0) return this.#warn(stamp, problems.map(({ file, message }) => `${file}: ${message}`).join('; '))
    this.#stamp = stamp
    this.#warned = ''
    const wanted = new Map(effective(entries).map(entry => [entry.name, entry]))
    const gone = this.servers.filter(server => key(wanted.get(server.name)) !== key(server.entry))
    const ends = new Map<string, Promise<void>>()
    for (const server of gone) {
      this.#servers.delete(server.name)
      this.revision++
      const end = server.close().finally(() => this.#leaving.delete(end))
      this.#leaving.add(end)
      ends.set(server.name, end)
    }
    for (const entry of wanted.values()) {
      const known = this.#servers.get(entry.name)
      const server = known ?? new McpServer(entry, this.cwd, { ...this.#ports, changed: (...change) => this.#changed(...change) })
      this.#servers.delete(entry.name) // in the order of the configuration, also those that stay
      this.#servers.set(entry.name, server)
      if (!known) server.start(ends.get(entry.name) ?? this.#before(entry.name).catch(() => undefined)) // whoever closes it hears
    }
  }

  /** Once, as long as the files and what is wrong with them are the same. */
  #warn(stamp: string, what: string): void {
    const warned = `${stamp}\n${what}`
    if (warned === this.#warned) return
    this.#warned = warned
    this.#ports.warn({ cwd: this.cwd }, `MCP servers stay as they are: ${what}`)
  }

  #changed(server: McpServer, before: ServerState): void {
    this.revision++
    for (const listener of this.#listeners) listener(server, before)
  }
}

const key = (entry: Entry | undefined) => JSON.stringify(entry)
