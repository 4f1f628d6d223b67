/** Start and stop of a server: wires log, storage, gate, hub, HTTP side and the pack lifecycle into one. */
import type { Server } from 'node:http'
import { resolve } from 'node:path'
import { createGate, type Gate } from './access/gate.ts'
import type { AnyRoute, Method } from './contract.ts'
import { Relays } from './elsewhere.ts'
import { createEnvironment, type Environment, type KernelOptions } from './environment.ts'
import { CredentialRejected, developerError, generalErrors, PassingFailure } from './errors.ts'
import { assertLinks, makeHome } from './home.ts'
import type { Inject, InjectInput } from './http/inject.ts'
import { Pipeline } from './http/pipeline.ts'
import { closeServer, createServer, listen, onUpgrade } from './http/server.ts'
import { type Declarations, type Feature, KernelInfo, type PackChange, PackControl, type PackReport } from './info.ts'
import { type ContextParts, createContext, deploymentConfig } from './lifecycle/context.ts'
import { heardServices, PointTable } from './lifecycle/faces.ts'
import { textOf } from './lifecycle/guard.ts'
import { createKernelHooks, type KernelHooks, TappedHooks, tapPoints } from './lifecycle/hooks.ts'
import { Lifecycle } from './lifecycle/lifecycle.ts'
import type { ServiceTable } from './lifecycle/needs.ts'
import type { ServiceToken } from './lifecycle/services.ts'
import { type Registrations, Registry, type Surface, type Unit } from './lifecycle/unit.ts'
import { createOperator, type Logger, type Operator } from './log/log.ts'
import type { Pack } from './pack.ts'
import { coreFrames, systemFrames } from './realtime/control-frames.ts'
import { EventSubject, type SubjectRule } from './realtime/event-frame.ts'
import { createJournals } from './realtime/file-journals.ts'
import { Hub } from './realtime/hub.ts'
import type { LocalClient, LocalConnection } from './realtime/types.ts'
import { FenceRules } from './storage/fences.ts'
import { createStorage } from './storage/index.ts'
import type { Storage } from './storage/ports.ts'

export interface Address {
  readonly host: string
  readonly port: number
  /** `http://host:port`, with brackets around IPv6. */
  readonly url: string
}

/** What the kernel itself answers and sends, so that no pack takes it over. */
const kernelSurface: Surface = {
  pack: 'the kernel',
  routes: [],
  events: [],
  frames: coreFrames(undefined),
  outFrames: systemFrames,
  errors: [...generalErrors, CredentialRejected]
}

export class Kernel {
  readonly server_id: string
  readonly started_at: Date
  readonly hooks: KernelHooks = createKernelHooks()
  readonly hub: Hub
  readonly gate: Gate
  readonly log: Logger
  readonly home: string
  /** Resolves when a shutdown (request or `stop`) is complete. */
  readonly done: Promise<void>
  readonly #env: Environment
  readonly #operator: Operator
  readonly #storage: Storage
  readonly #http: Pipeline
  readonly #services: ServiceTable = new Map()
  readonly #points = new PointTable()
  readonly #tapped = new TappedHooks(this.hooks)
  readonly #registry: Registry
  readonly #lifecycle: Lifecycle
  readonly #config: Map<string, unknown>
  #declarations: Declarations | undefined
  #server: Server | undefined
  #address: Address | undefined
  #starting: Promise<unknown> = Promise.resolve()
  #stopping: Promise<void> | undefined
  #finished: () => void = () => undefined

  /** Use `createKernel`, which prepares the home and reads the token. */
  constructor(env: Environment, gate: Gate) {
    const { options, log, now, newId } = env
    this.#env = env
    this.#config = new Map(Object.entries(options.config))
    this.home = options.home
    this.gate = gate
    this.log = log
    this.#operator = createOperator(log, options.onOperatorLine)
    this.done = new Promise(finished => {
      this.#finished = finished
    })
    this.server_id = newId()
    this.started_at = now()
    const fences = new FenceRules(env.guard)
    const engine = { home: this.home, server_id: this.server_id, log, now, newId, fences }
    this.#storage = (options.storage ?? createStorage)(engine)
    const journals = (options.journal ?? createJournals)(engine)
    this.hub = new Hub(env, { gate, hooks: this.hooks, journals })
    gate.onRevoked(gone => this.hub.clients.disconnect(one => one.id === gone.id, 'the token was replaced'))
    this.#http = new Pipeline(env, { gate, hooks: this.hooks })
    this.#registry = new Registry(kernelSurface)
    const relays: Relays = {
      // A server on its way out has lost some of its routes: whoever asked looks where the session is then.
      serve: (req, res, asker) => void (this.#stopping ? req.socket.destroy() : this.#http.serveFor(asker, req, res)),
      connect: client => this.hub.clients.connect(client, true),
      setElsewhere: elsewhere => {
        this.#http.elsewhere = elsewhere
        this.hub.clients.elsewhere = elsewhere
      },
      onShared: listener => this.hub.fanout.onShared(listener),
      deliver: event => this.hub.deliver(event)
    }
    const own = [[KernelInfo, this.#info()] as const, [Relays, relays] as const, [PackControl, this.#control()] as const]
    for (const [token, impl] of [...own, ...options.services]) this.#services.set(token.id, { owner: 'the kernel', token, impl })
    this.#lifecycle = new Lifecycle(env, {
      services: this.#services,
      registry: this.#registry,
      setup: unit => {
        if (unit.pack.broken) throw unit.pack.broken
        const config = deploymentConfig(unit.pack, this.#config.get(unit.name))
        const context = createContext(env, unit, config, contexts)
        return unit.pack.setup(context, this.#resolve(unit) as never)
      },
      onState: (name, state) => {
        this.hub.setSubject(this.#subject)
        this.hooks.packState.call(name, state)
      },
      remount: () => this.#remount(),
      settled: () => this.#points.forgetAway()
    })
    const contexts: ContextParts = {
      storage: this.#storage,
      fences,
      hub: this.hub,
      hooks: tapPoints(this.hooks),
      hasStarted: () => this.#address !== undefined,
      tapped: this.#tapped,
      points: this.#points,
      lifecycle: this.#lifecycle,
      remount: added => this.#remount(added),
      fail: (pack, error) => this.#takeOut(pack, error)
    }
    env.guard.onLimit((pack, error) => this.#takeOut(pack, error))
  }

  /** Activates the packs and begins to listen. Rejects with one error when a required pack is not active. */
  async start(): Promise<Address> {
    if (this.#stopping) throw developerError('server_stopping')
    const starting = this.#start()
    this.#starting = starting.catch(() => undefined) // `stop` only waits for its end; the failure is thrown here
    try {
      return await starting
    } catch (error) {
      await this.stop()
      throw error
    }
  }

  async #start(): Promise<Address> {
    await this.#lifecycle.settle()
    this.#checkRequired()
    const server = createServer(this.#http.handler)
    onUpgrade(server, this.hub.clients.upgrade)
    this.#server = server
    const { host, port } = this.#env.options
    const bound = await listen(server, host, port)
    const shown = bound.host.includes(':') ? `[${bound.host}]` : bound.host
    this.#address = { ...bound, url: `http://${shown}:${bound.port}` }
    await this.hooks.started.promise()
    this.log.info({ host: bound.host, port: bound.port }, 'listening')
    return this.#address
  }

  get address(): Address {
    if (!this.#address) throw developerError('not_listening')
    return this.#address
  }

  /** Connects code of this process as a WebSocket client would, without a socket: bridges, tests, other instances. */
  connect(client: LocalClient): LocalConnection {
    return this.hub.clients.connect(client)
  }

  /** See `PackControl.change`. */
  change(change: PackChange): Promise<void> {
    return this.#lifecycle.change(change)
  }

  /** Adds or re-enables packs. */
  load(...packs: readonly (Pack | string)[]): Promise<void> {
    return this.change({ load: packs })
  }

  /** Takes a pack and its dependents out; running requests get a grace time. */
  unload(name: string): Promise<void> {
    return this.change({ unload: [name] })
  }

  /** Unloads and activates again, a `Pack` in place of the one of its name. */
  reload(pack: Pack | string): Promise<void> {
    return this.change({ reload: [pack] })
  }

  /** See `Inject`: the same routing, checks, hooks, handler and envelope as over HTTP. Rejects when `signal` ended it first. */
  readonly inject: Inject = (route, ...[input]) => this.#http.inject(route, (input ?? {}) as InjectInput)

  /** The route that answers this path now. */
  routeAt(method: Method, path: string): AnyRoute | undefined {
    return this.#http.routeAt(method, path)
  }

  /** The single source of `meta.features`. */
  features(): Feature[] {
    return this.#lifecycle.features()
  }

  /** Every pack, also of those that were unloaded. */
  packs(): Pack[] {
    return this.#lifecycle.units().map(({ unit }) => unit.pack)
  }

  /**
   * Puts an error that nobody caught down to a pack. `exception`: it was thrown, not a rejected promise that nobody waited for. A pack that one ran
   * through, and through nothing else (`alone`), is Failed from then on: its own state is unknown. Answers whether the server may go on.
   */
  escaped({ pack, alone }: { readonly pack: string; readonly alone: boolean }, error: unknown, exception: boolean): boolean {
    this.#env.guard.report(pack, exception ? 'a callback' : 'a promise that nobody waited for', error)
    if (exception && alone) this.#takeOut(pack, developerError('exception_escaped', textOf(error)))
    return !exception || alone
  }

  #takeOut(pack: string, error: Error): void {
    const until = error instanceof PassingFailure ? 'for now' : 'until it is reloaded'
    this.#operator.warn({ pack }, `pack ${pack} is taken out ${until}: ${error.message}`)
    void this.#lifecycle.fail(pack, error)
  }

  /** What is on the wire now; the same object as long as no pack comes or goes. */
  declarations(): Declarations {
    this.#declarations ??= this.#declared()
    return this.#declarations
  }

  /** What packs have registered, for leak checks. */
  inspect() {
    const { routes, events, frames } = this.#registry.wire()
    return {
      routes: routes.map(({ spec }) => `${spec.method} ${spec.path}`).sort(),
      services: [...this.#services.keys()].sort(),
      events: events.map(spec => spec.type).sort(),
      frames: frames.map(({ spec }) => spec.type).sort(),
      taps: Object.values(this.hooks).reduce((sum, hook) => sum + hook.taps.length, 0),
      items: this.#points.size()
    }
  }

  /**
   * Graceful end: sockets are closed first, `closing` ends requests that wait, then listening ends, `stopping` lets running turns settle,
   * packs unload (each after those that use it), everything is flushed. Later calls wait for the first; a call during the start waits for its end.
   */
  stop(): Promise<void> {
    this.#stopping ??= this.#starting.then(() => this.#stop()).finally(() => this.#finished())
    return this.#stopping
  }

  /** `stop` was called, during the start perhaps, which goes through to its end. */
  get stopping(): boolean {
    return this.#stopping !== undefined
  }

  async #stop(): Promise<void> {
    const begun = performance.now()
    this.#tellCut()
    const steps: [name: string, step: () => Promise<unknown> | unknown][] = [
      ['sockets', () => this.hub.clients.close()],
      ['waits', () => this.hooks.closing.call()],
      ['listener', () => this.#server && closeServer(this.#server, this.#env.options.graceMs)],
      ['hooks', () => this.hooks.stopping.promise()],
      ['packs', () => this.#lifecycle.stop(begun)],
      ['journals', () => this.hub.stop()],
      ['storage', () => this.#storage.close()],
      ['gate', () => this.gate.close()]
    ]
    for (const [name, step] of steps) {
      try {
        await step()
      } catch (err) {
        this.log.error({ err, step: name }, 'a step of the shutdown failed')
      }
    }
    this.log.info('stopped')
  }

  /** What ends with the sockets; packs tell what else they cut. */
  #tellCut(): void {
    const connections = this.hub.clients.list().length
    if (connections === 0) return
    this.#operator.info({ connections }, `closing ${connections} ${connections === 1 ? 'connection' : 'connections'} of clients`)
  }

  #remount(added?: Registrations): void {
    if (added) this.#registry.assertFree(added)
    const { routes, frames, events } = this.#registry.wire()
    this.#http.mount(routes)
    this.hub.clients.frames.mount(frames)
    this.hub.setEvents(events)
    this.#declarations = undefined
  }

  #declared(): Declarations {
    const { routes, frames, events, outFrames } = this.#registry.wire() // what comes back stays in the documents
    return {
      routes: routes.flatMap(({ spec }) => (spec.fallback ? [] : [spec])),
      events,
      frames: [...coreFrames(this.#subject), ...frames.map(({ spec }) => spec)],
      outFrames,
      systemFrames,
      owners: this.#registry.owners(),
      subject: this.#subject
    }
  }

  get #subject(): SubjectRule | undefined {
    return this.#services.get(EventSubject.id)?.impl as SubjectRule | undefined
  }

  #resolve({ pack, scope }: Unit): Record<string, unknown> {
    const { guard, options } = this.#env
    const heard = heardServices(pack.name, guard, scope, options.frameTimeoutMs)
    const find = ({ id }: ServiceToken<unknown>) => {
      const found = this.#services.get(id)
      return found && heard(found.token, found.impl)
    }
    const resolved: Record<string, unknown> = {}
    for (const [key, token] of Object.entries(pack.needs)) resolved[key] = find(token)
    for (const [key, token] of Object.entries(pack.optional)) resolved[key] = () => find(token)
    return resolved
  }

  #checkRequired(): void {
    const packs = this.features()
    const failed = this.#env.options.required.flatMap(name => {
      const { state, meta } = packs.find(pack => pack.name === name) ?? { meta: { error: 'no such pack' } }
      if (state === 'Active') return []
      return [`${name}: ${meta.error ?? `waiting for ${meta.waiting_for?.join(', ') ?? 'nothing'}`}`]
    })
    if (failed.length > 0) throw developerError('packs_required', failed)
  }

  #control(): PackControl {
    return {
      list: () => this.#reports(),
      change: change => this.change(change),
      configure: (name, given) => void this.#config.set(name, given)
    }
  }

  #reports(): PackReport[] {
    const { required } = this.#env.options
    return this.#lifecycle.units().map(({ unit, feature }) => ({
      ...feature,
      pack: unit.pack,
      wanted: unit.wanted,
      required: required.includes(unit.name),
      setup_ms: unit.setupMs,
      active_since: unit.state === 'Active' ? unit.activeSince : undefined,
      options: optionsOf(unit.pack, this.#config.get(unit.name))
    }))
  }

  #info(): KernelInfo {
    const options = this.#env.options
    return {
      version: options.version,
      server_id: this.server_id,
      started_at: this.started_at,
      dangerous_bypass_auth: options.dangerousBypassAuth,
      loopback: this.gate.loopback,
      allow_remote_shutdown: options.allowRemoteShutdown,
      debug_endpoints: options.debugEndpoints && this.gate.loopback,
      offline: options.offline,
      features: () => this.features(),
      absence: pack => this.#lifecycle.absence(pack),
      time: pack => this.#env.guard.time(pack),
      connections: () => this.hub.clients.list(),
      internals: () => ({ hooks: this.#tapped.facts(), ...this.hub.facts() }),
      declarations: () => this.declarations(),
      address: () => this.#address,
      inject: this.inject,
      shutdown: () => {
        setImmediate(() => void this.stop())
      }
    }
  }
}

function optionsOf(pack: Pack, given: unknown): Record<string, unknown> | undefined {
  try {
    return deploymentConfig(pack, given) as Record<string, unknown>
  } catch {
    return undefined // the pack fails with the reason
  }
}

/** Prepares the home (0700), log, token and gate, and builds a kernel that is not started yet. */
export async function createKernel(given: KernelOptions): Promise<Kernel> {
  const home = resolve(given.home)
  makeHome(home)
  assertLinks(home)
  const env = createEnvironment({ ...given, home })
  const gate = await createGate(env)
  return new Kernel(env, gate)
}
