/** The event side of a kernel: emission, listeners, journals and sockets behind one object. */
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { Gate } from '../access/gate.ts'
import type { EventSpec } from '../contract.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import type { MountedFrame } from '../lifecycle/registry.ts'
import type { Hosts } from '../lifecycle/slot.ts'
import type { Logger } from '../log/log.ts'
import { problems } from '../schema.ts'
import { agentOf, draftEvent, globalStream, reachesEveryone } from './event-frame.ts'
import { Fanout } from './fanout.ts'
import { type JournaledEvent, readBackwards } from './journal-reverse.ts'
import { Listeners } from './listeners.ts'
import { SocketSide } from './sockets.ts'
import { StreamTable } from './stream-table.ts'
import type { ConnectionInfo, EmittedEvent, EventTarget, Streams, Watermark } from './types.ts'

export interface HubOptions {
  /** Directory of the journals, `<home>/server/events`; made when the first event needs it. */
  readonly dir: string
  readonly gate: Gate
  readonly hooks: KernelHooks
  readonly hosts: Hosts
  readonly log: Logger
  now(): Date
  newId(): string
  /** Check payloads and acks against their specs and report what misses to `onViolation`. */
  readonly strict: boolean
  onViolation(error: Error): void
  /** Unsent bytes a connection may pile up before it is closed with 1013; default 8 MiB. */
  readonly bufferBytes?: number | undefined
  /** Largest message a client may send, in bytes; default 16 MiB. Larger ones close the connection with 1009. */
  readonly messageBytes?: number | undefined
  readonly server_id: string
}

export interface Hub extends Streams {
  /**
   * Emits an event. Its number is given now (or when the journal has opened), listeners run before this returns (save inside
   * another listener: then right after it), sockets get it once it is on disk. Throws only on a payload that is no JSON and on
   * a session id that cannot be one.
   */
  emit(spec: EventSpec, payload: unknown, target?: string | EventTarget): void
  /** Listens to one event type; returns the undo. */
  on(type: string, listener: (event: EmittedEvent) => void): () => void
  /** Listens to all events; returns the undo. */
  tap(listener: (event: EmittedEvent) => void): () => void
  /** Replaces the request frames of packs. */
  setFrames(frames: readonly MountedFrame[]): void
  /** Tells the specs of all events, so that filters treat replayed events of earlier processes as live ones. */
  setEvents(specs: readonly EventSpec[]): void
  /** Open connections, oldest first. */
  connections(): ConnectionInfo[]
  /** Handler of the HTTP server's `upgrade` event. */
  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void
  /** Closes all sockets with 1001 and takes no new ones; who does not go within a second is cut. */
  closeSockets(): Promise<void>
  /** Closes sockets, writes everything and closes the journals. Later events reach listeners only. */
  stop(): Promise<void>
}

export function createHub(options: HubOptions): Hub {
  return new KernelHub(options)
}

class KernelHub implements Hub {
  readonly #options: HubOptions
  readonly #listeners: Listeners
  readonly #fanout = new Fanout()
  readonly #table: StreamTable
  readonly #sockets: SocketSide
  /** Specs of everything that may be in a journal. */
  readonly #specs = new Map<string, EventSpec>()
  #ended = false
  #stopping: Promise<void> | undefined

  constructor(options: HubOptions) {
    this.#options = options
    const { dir, server_id, log, hooks } = options
    this.#listeners = new Listeners(hooks, log)
    this.#table = new StreamTable({
      dir,
      server_id,
      log,
      now: () => options.now(),
      newId: () => options.newId(),
      deliver: frame => this.#fanout.deliver(frame)
    })
    this.#sockets = new SocketSide({ ...options, fanout: this.#fanout, table: this.#table, spec: type => this.#specs.get(type) })
  }

  emit(spec: EventSpec, payload: unknown, target: string | EventTarget = globalStream): void {
    const given = typeof target === 'string' ? { session_id: target } : target
    const to = spec.scope === 'global' ? { ...given, session_id: globalStream } : given
    if (spec.scope === 'session' && to.session_id === globalStream) throw new Error(`event '${spec.type}' needs a session`)
    if (this.#options.strict) this.#check(spec, payload)
    if (this.#specs.get(spec.type) !== spec) this.#specs.set(spec.type, spec)
    const at = to.time ?? this.#options.now()
    if (this.#ended) this.#options.log.debug({ event: spec.type }, 'an event came after the end')
    else if (this.#matters(spec, to.session_id)) this.#table.get(to.session_id).push(draftEvent(spec, payload, to, at))
    this.#listeners.notify({
      type: spec.type,
      payload,
      session_id: to.session_id,
      agent_id: agentOf(payload, to),
      durable: spec.durable,
      offset: to.offset,
      at
    })
  }

  on(type: string, listener: (event: EmittedEvent) => void): () => void {
    return this.#listeners.on(type, listener)
  }

  tap(listener: (event: EmittedEvent) => void): () => void {
    return this.#listeners.tap(listener)
  }

  setFrames(frames: readonly MountedFrame[]): void {
    this.#sockets.setFrames(frames)
  }

  setEvents(specs: readonly EventSpec[]): void {
    for (const spec of specs) this.#specs.set(spec.type, spec)
  }

  async open(session_id: string): Promise<Watermark> {
    if (this.#ended) throw new Error('the event journals are closed')
    const stream = this.#table.get(session_id)
    const { epoch, seq } = await stream.open()
    return stream.watermark ?? { seq, epoch }
  }

  async takeOver(session_id: string): Promise<Watermark> {
    const known = this.#table.find(session_id)
    const changed = known?.watermark !== undefined && (await known.reread())
    const mark = await this.open(session_id)
    if (changed) this.#sockets.resync(session_id, mark)
    return mark
  }

  watermark(session_id: string): Watermark | undefined {
    return this.#table.find(session_id)?.watermark
  }

  async flushed(session_id?: string): Promise<void> {
    await this.#table.settled(session_id)
    this.#fanout.flush(session_id)
  }

  async close(session_id: string): Promise<void> {
    await this.#table.settled(session_id)
    this.#sockets.endSubscriptions(session_id)
    await this.#table.close(session_id)
  }

  async *backwards(session_id: string): AsyncGenerator<JournaledEvent> {
    const stream = this.#table.get(session_id)
    const journal = await stream.open()
    await stream.settled()
    yield* readBackwards(journal)
  }

  subscribers(session_id: string): number {
    return this.#fanout.subscribers(session_id)
  }

  connections(): ConnectionInfo[] {
    return this.#sockets.connections()
  }

  upgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    this.#sockets.upgrade(req, socket, head)
  }

  closeSockets(): Promise<void> {
    return this.#sockets.close()
  }

  stop(): Promise<void> {
    this.#stopping ??= this.#stop()
    return this.#stopping
  }

  async #stop(): Promise<void> {
    await this.#sockets.close()
    this.#ended = true
    await this.#table.closeAll()
  }

  /** False for volatile session events that nobody would get: they are not even serialised. */
  #matters(spec: EventSpec, session_id: string): boolean {
    return spec.durable || reachesEveryone(spec) || this.#fanout.subscribers(session_id) > 0
  }

  #check(spec: EventSpec, payload: unknown): void {
    const [first] = problems(spec.payload, payload)
    if (first) this.#options.onViolation(new Error(`event '${spec.type}': ${first.path ? `${first.path}: ` : ''}${first.message}`))
  }
}
