/** A configured server in one workspace: starts, tells how it is, comes back after it was lost, and ends. */
import { firstAbort, type Logger } from '../../kernel/index.ts'
import { type CallOptions, type Connection, type ConnectPorts, connect, NeedsAuth, SessionGone } from './connection.ts'
import type { ServerState } from './contract.ts'
import type { Entry } from './layers.ts'
import type { McpTool } from './listing.ts'
import { paced } from './paced.ts'

/** Between two lists of tools that changed, ms. */
const relistMs = 1000
/** A connection that has lasted so long begins with the first pause again when it is lost, ms. */
const settledMs = 60_000

export interface ServerPorts extends ConnectPorts {
  readonly log: Logger
  /** Pauses before attempts to come back, ms; after the last one it stays lost until somebody asks for it. */
  readonly backoffMs: readonly number[]
  readonly changed: (server: McpServer, before: ServerState) => void
}

export class McpServer {
  readonly entry: Entry
  readonly #cwd: string
  readonly #ports: ServerPorts
  #state: ServerState = 'pending'
  #error: string | undefined
  #connection: Connection | undefined
  /** Rises with every connection: a call is made on the one that it was prepared for, or not at all. */
  #generation = 0
  /** Since it was settled last, or somebody asked for it. */
  #attempts = 0
  /** When it was connected last, on the clock of `performance.now()`. */
  #connectedAt = 0
  #timer: NodeJS.Timeout | undefined
  #stop = new AbortController()
  /** Aborts when it wants no login any more. */
  #wait = new AbortController()
  #settled: Promise<void> = Promise.resolve()
  #restarting: Promise<void> | undefined
  /** The end of what was given up. */
  #left: Promise<unknown> = Promise.resolve()
  #closed = false

  constructor(entry: Entry, cwd: string, ports: ServerPorts) {
    this.entry = entry
    this.#cwd = cwd
    this.#ports = ports
  }

  get name(): string {
    return this.entry.name
  }

  get state(): ServerState {
    return this.#state
  }

  get error(): string | undefined {
    return this.#error
  }

  get generation(): number {
    return this.#generation
  }

  /** Those that its configuration lets through; empty while it is not connected. */
  get tools(): readonly McpTool[] {
    const { enabledTools, disabledTools = [] } = this.entry.config
    const tools = this.#state === 'connected' ? (this.#connection?.listed.tools ?? []) : []
    return tools.filter(({ name }) => (enabledTools === undefined || enabledTools.includes(name)) && !disabledTools.includes(name))
  }

  /** Resolves when the attempt that is under way has ended. */
  get settled(): Promise<void> {
    return this.#restarting?.then(() => this.#settled) ?? this.#settled
  }

  /** `after`: the end of the one that it takes the place of; never rejects. */
  start(after: Promise<unknown> = Promise.resolve()): void {
    const { signal } = this.#stop
    const { config, problem, origin } = this.entry
    if (config.enabled === false) this.#become('disabled')
    else if (problem !== undefined) this.#become('failed', `its configuration cannot be used: ${problem} (${origin})`)
    else this.#settled = after.then(() => this.#open(signal))
  }

  /** Ends the connection and begins anew; resolves when the old one has ended. Whoever asks meanwhile gets the same. */
  restart(): Promise<void> {
    this.#restarting ??= this.#anew().finally(() => {
      this.#restarting = undefined
    })
    return this.#restarting
  }

  async #anew(): Promise<void> {
    const dropped = this.#drop()
    if (this.entry.config.enabled !== false) this.#become('pending')
    await dropped
    if (this.#closed) return
    this.#stop = new AbortController()
    this.#attempts = 0
    this.start()
  }

  /** Resolves when it has ended, and the one before it, should it be started anew right now. */
  async close(): Promise<void> {
    this.#closed = true
    await this.#drop()
    await this.#restarting
    this.#become('removed')
  }

  /** `generation`: of the tool that is called. Rejects with a sentence for the model. */
  async call(generation: number, name: string, args: Readonly<Record<string, unknown>>, options: CallOptions) {
    const connection = this.#connection
    if (this.#state === 'removed') throw new Error(`The MCP server ${this.name} was removed.`)
    if (!connection || this.#state !== 'connected')
      throw new Error(`The MCP server ${this.name} is not connected${this.#error ? `: ${this.#error}` : ''}.`)
    if (generation !== this.#generation) throw new Error(`The MCP server ${this.name} was started anew: call the tool again.`)
    const lost = this.#stop.signal
    const { signal, end } = firstAbort(options.signal, lost)
    try {
      return await connection.call(name, args, { ...options, signal })
    } catch (error) {
      options.signal.throwIfAborted()
      if (lost.aborted || this.#connection !== connection)
        throw new Error(`The MCP server ${this.name} ended while the tool ran; whether it did its work is not known.`)
      if (error instanceof NeedsAuth) {
        this.#refused(connection, error.message)
        throw new Error(`The MCP server ${this.name} wants a login: the one that there was does not hold any more.`)
      }
      if (error instanceof SessionGone) {
        void this.restart()
        throw new Error(
          `The MCP server ${this.name} has ended its session and did nothing; it is being connected anew: call the tool again.`
        )
      }
      void this.#probe(connection)
      throw error
    } finally {
      end()
    }
  }

  async #open(signal: AbortSignal): Promise<void> {
    await this.#left
    if (signal.aborted) return
    let connection: Connection | undefined
    try {
      const ports = { ...this.#ports, ending: (end: Promise<void>) => this.#leave(end) }
      connection = await connect(this.entry, this.#cwd, ports, signal, {
        closed: why => this.#lost(connection, why),
        // Some servers tell of a change whenever they are asked for their tools.
        toolsChanged: paced(() => this.#relist(connection), relistMs)
      })
      if (signal.aborted) {
        await connection.close()
        return
      }
      this.#connection = connection
      this.#generation++
      this.#connectedAt = performance.now()
      this.#tellOmitted(connection)
      this.#become('connected')
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof NeedsAuth) this.#become('needs-auth', error.message)
      else {
        this.#become('failed', (error as Error).message)
        this.#again()
      }
    }
  }

  #tellOmitted({ listed: { omitted, reasons } }: Connection): void {
    if (omitted > 0) this.#ports.log.warn({ server: this.name, omitted, reasons }, 'tools of an MCP server are left out')
  }

  /** The login that it was connected with does not hold any more. */
  #refused(connection: Connection, why: string): void {
    this.#connection = undefined
    this.#leave(connection.close()) // it lets nobody in
    this.#become('needs-auth', why)
  }

  /** A remote server that does not answer any more is lost; one that refused a call is not. */
  async #probe(connection: Connection): Promise<void> {
    if (this.entry.config.transport === 'stdio') return
    await connection.ping().catch(() => this.#lost(connection, 'it does not answer any more'))
  }

  /** Something of it that nobody waits for now is ending: it is not begun anew before. */
  #leave(end: Promise<void>): void {
    this.#left = Promise.allSettled([this.#left, end])
    this.#ports.ending(end)
  }

  #lost(connection: Connection | undefined, why: string): void {
    if (!connection || this.#connection !== connection || this.#stop.signal.aborted) return
    this.#connection = undefined
    this.#leave(connection.close())
    if (performance.now() - this.#connectedAt > settledMs) this.#attempts = 0
    this.#become('failed', why)
    this.#again()
  }

  async #relist(connection: Connection | undefined): Promise<void> {
    if (!connection || this.#connection !== connection) return
    try {
      if (!(await connection.refresh()) || this.#connection !== connection) return
      this.#tellOmitted(connection)
      this.#become('connected')
    } catch (err) {
      this.#ports.log.warn({ err, server: this.name }, 'the changed tools of an MCP server cannot be listed')
    }
  }

  #again(): void {
    const pause = this.#ports.backoffMs[this.#attempts]
    if (pause === undefined) return
    this.#attempts++
    const { signal } = this.#stop
    this.#timer = setTimeout(() => {
      if (signal.aborted) return
      this.#become('pending')
      this.#settled = this.#open(signal)
    }, pause)
    this.#timer.unref()
  }

  async #drop(): Promise<void> {
    clearTimeout(this.#timer)
    const connection = this.#connection
    this.#connection = undefined
    this.#stop.abort()
    await this.#settled
    await connection?.close().catch((err: unknown) => this.#ports.log.warn({ err, server: this.name }, 'an MCP server could not be ended'))
    await this.#left
  }

  #become(state: ServerState, error?: string): void {
    const before = this.#state
    this.#state = state
    this.#error = error
    this.#wait.abort()
    if (state === 'needs-auth') void this.#awaitLogin()
    this.#ports.changed(this, before)
  }

  /** Another server of the home may get the login that is wanted, and tell nobody. */
  async #awaitLogin(): Promise<void> {
    this.#wait = new AbortController()
    const { signal } = this.#wait
    try {
      const undo = await this.#ports.tokens(this.entry)?.onChange?.(() => void this.restart())
      if (undo && signal.aborted) undo()
      else if (undo) signal.addEventListener('abort', undo)
    } catch (err) {
      this.#ports.log.warn({ err, server: this.name }, 'whether an MCP server gets its login elsewhere cannot be seen')
    }
  }
}
