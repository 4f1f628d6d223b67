/** The event side behind one door: emitting and hearing, the journals of sessions, and who is connected. */
import type { Gate } from '../access/gate.ts'
import type { EventSpec } from '../contract.ts'
import type { SharedEvent } from '../elsewhere.ts'
import { checkShape, type Environment } from '../environment.ts'
import { developerError } from '../errors.ts'
import type { KernelHooks } from '../lifecycle/hooks.ts'
import { inOrder } from '../lifecycle/wait.ts'
import type { Fence } from '../storage/fences.ts'
import { Connections } from './connections.ts'
import { draftEvent, globalStream, reachesEveryone, type SubjectRule, subjectOf } from './event-frame.ts'
import { Fanout } from './fanout.ts'
import type { Cursor, JournaledEvent, JournalSlice, Journals, Watermark } from './journal.ts'
import { isStreamId, StreamTable } from './stream.ts'
import { readAfter, readBackwards } from './subscriptions.ts'
import type { EmittedEvent, EventTarget, StreamFacts, Streams } from './types.ts'

export interface HubOptions {
  readonly gate: Gate
  readonly hooks: KernelHooks
  readonly journals: Journals
  /** What events of all streams may take while they wait for disk and sockets, in bytes; default 64 MiB. */
  readonly waitingBytes?: number | undefined
}

type Hear = (event: EmittedEvent) => unknown

/** Deleted sessions that are remembered; who speaks of one does it within seconds. */
const maxRemoved = 1000

export class Hub implements Streams {
  readonly clients: Connections
  readonly fanout: Fanout
  readonly #env: Environment
  readonly #hooks: KernelHooks
  /** Listeners by type; those of everything under undefined. */
  readonly #listeners = new Map<string | undefined, Set<{ readonly pack: string; readonly what: string; readonly hear: Hear }>>()
  /** Events whose listeners have not run yet. */
  readonly #untold: EmittedEvent[] = []
  #telling = false
  readonly #table: StreamTable
  /** Specs of everything that may be in a journal. */
  readonly #specs = new Map<string, EventSpec>()
  /** Sessions whose data was deleted lately: what somebody still says of them brings no journal back. */
  readonly #removed = new Set<string>()
  /** What comes from other servers, one after the other. */
  readonly #foreign = inOrder()
  #rule: SubjectRule | undefined
  #ended = false

  constructor(env: Environment, { gate, hooks, journals, waitingBytes }: HubOptions) {
    this.#env = env
    this.#hooks = hooks
    this.fanout = new Fanout(env)
    const missed = (id: string, at: Watermark) => this.clients.resync(id, at)
    this.#table = new StreamTable(env, journals, this.fanout, missed, waitingBytes)
    const spec = (type: string) => this.#specs.get(type)
    this.clients = new Connections(env, { gate, hooks, table: this.#table, spec, subject: () => this.#rule })
  }

  /**
   * Emits an event of a pack. Its number is given now (or when the journal has opened), listeners run before this returns (save
   * inside another listener: then right after it), sockets get it once it is on disk. Throws only on a payload that is no JSON, on
   * a session id that cannot be one, and on a durable event for one client.
   */
  emit(spec: EventSpec, payload: unknown, target: string | EventTarget = globalStream): void {
    const given = typeof target === 'string' ? { session_id: target } : target
    const to = spec.scope === 'global' ? { ...given, session_id: globalStream } : given
    const { session_id } = to
    if (spec.scope === 'session' && session_id === globalStream) throw developerError('event_sessionless', spec.type)
    if (to.only && spec.durable) throw developerError('event_durable', spec.type)
    if (this.#env.options.strict) checkShape(this.#env.options, `event '${spec.type}'`, spec.payload, payload)
    if (this.#specs.get(spec.type) !== spec) this.#specs.set(spec.type, spec)
    const at = to.time ?? this.#env.now()
    const rule = this.#rule
    const subject = subjectOf(payload, to, rule)
    if (this.#ended || this.#removed.has(session_id)) this.#env.log.debug({ event: spec.type, session_id }, 'an event came after the end')
    // Volatile session events that nobody would get are not even serialised.
    else if (spec.durable || reachesEveryone(spec) || this.fanout.subscribers(session_id) > 0)
      this.#table.get(session_id).push(draftEvent(spec, payload, to, { subject, at, rule }))
    if (to.only) return
    this.#untold.push({ type: spec.type, payload, session_id, subject, durable: spec.durable, offset: to.offset, at })
    if (!this.#telling) this.#tell()
  }

  /** Listens to one event type, or with undefined to all; returns the undo. What a listener throws is put down to `pack`. */
  on(type: string | undefined, hear: Hear, pack = 'kernel'): () => void {
    const entry = { pack, what: `listener of ${type ?? 'every event'}`, hear } // one registration each, even of the same function
    const entries = this.#listeners.get(type) ?? new Set()
    this.#listeners.set(type, entries.add(entry))
    return () => {
      entries.delete(entry)
      if (entries.size === 0 && this.#listeners.get(type) === entries) this.#listeners.delete(type)
    }
  }

  /** Tells the specs of all events, so that filters treat replayed events of earlier processes as live ones. */
  setEvents(specs: readonly EventSpec[]): void {
    for (const spec of specs) this.#specs.set(spec.type, spec)
  }

  /** Tells the rule of the pack that knows whom events are about, or that there is none. */
  setSubject(rule: SubjectRule | undefined): void {
    this.#rule = rule
  }

  async open(session_id: string): Promise<Watermark> {
    if (this.#ended) throw developerError('journals_closed')
    this.#removed.delete(session_id)
    const stream = this.#table.get(session_id)
    stream.kept = true
    const { epoch, seq } = await stream.open()
    return stream.watermark ?? { seq, epoch }
  }

  async openForeign(session_id: string): Promise<Watermark> {
    const opened = this.open(session_id)
    const stream = this.#table.find(session_id)
    if (stream) stream.foreign = true
    return await opened
  }

  async takeOver(session_id: string, fence?: Fence): Promise<Watermark> {
    if (fence) this.#table.fences.set(session_id, fence)
    else this.#table.fences.delete(session_id)
    const known = this.#table.find(session_id)
    if (known) Object.assign(known, { lost: false, foreign: false })
    // Another process has owned the file since: what is emitted meanwhile gets its number from that.
    if (known?.watermark) await this.#table.close(session_id)
    const mark = await this.open(session_id)
    // Who followed it before, while it was only read here or its pack was away, follows it anew, with what packs have of it beside events.
    this.clients.resync(session_id, mark)
    return mark
  }

  watermark(session_id: string): Watermark | undefined {
    return this.#table.find(session_id)?.watermark
  }

  written(session_id: string): Watermark | undefined {
    return this.#table.find(session_id)?.written
  }

  flushed(session_id?: string): Promise<void> {
    return this.#table.settled(session_id)
  }

  async close(session_id: string): Promise<void> {
    await this.#table.settled(session_id)
    const stream = this.#table.find(session_id)
    await this.#table.close(session_id)
    if (!stream?.lost) this.#table.fences.delete(session_id) // what is still said of one that is lost is not written
  }

  async lost(session_id: string): Promise<void> {
    const stream = this.#table.find(session_id)
    if (stream) stream.lost = true
    this.clients.moved(session_id, stream?.written)
  }

  async remove(session_id: string): Promise<void> {
    await this.#table.settled(session_id)
    this.clients.endSubscriptions(session_id)
    if (!isStreamId(session_id)) return
    this.#removed.add(session_id)
    const [oldest = ''] = this.#removed
    if (this.#removed.size > maxRemoved) this.#removed.delete(oldest)
    await this.#table.remove(session_id)
  }

  async read(session_id: string, after: Cursor): Promise<JournalSlice | undefined> {
    const journal = await this.#table.recorded(session_id)
    return journal && readAfter(journal, after)
  }

  async *backwards(session_id: string): AsyncGenerator<JournaledEvent> {
    const journal = await this.#table.recorded(session_id)
    if (journal) yield* readBackwards(journal)
  }

  subscribers(session_id: string): number {
    return this.fanout.subscribers(session_id)
  }

  followed(): string[] {
    return this.fanout.followed()
  }

  resync(session_id: string): void {
    const mark = this.watermark(session_id)
    if (mark) this.clients.resync(session_id, mark)
  }

  facts(): { readonly streams: readonly StreamFacts[]; readonly waiting_bytes: number } {
    return { streams: this.#table.facts(), waiting_bytes: this.#table.waiting.bytes }
  }

  /** See `Relays.deliver`. A global event becomes one of this server's stream; one of a session waits until those before it are on disk here. */
  deliver(event: SharedEvent): void {
    if (event.scope === 'session') {
      void this.#foreign(async () => {
        await this.#table.settled(globalStream)
        this.fanout.offer(event)
      })
      return
    }
    const { timestamp, offset, payload } = JSON.parse(event.frame.toString('utf8')) as JournaledEvent & { offset?: number }
    const text = JSON.stringify(payload)
    void this.#foreign(async () => {
      const spec = this.#specs.get(event.type)
      if (this.#ended || !spec) return // of a pack that is not active here
      const facts = { only: undefined, session_id: globalStream, subject: '', foreign: true }
      this.#table.get(globalStream).push({ spec, ...facts, timestamp, offset, text })
    })
  }

  /** Closes connections, writes everything and closes the journals. Later events reach listeners only. */
  async stop(): Promise<void> {
    await this.clients.close()
    this.#ended = true
    await this.#table.closeAll()
  }

  /** Runs listeners, one event after the other, also when a listener emits. */
  #tell(): void {
    const { guard } = this.#env
    const { event: hook } = this.#hooks
    this.#telling = true
    for (let event = this.#untold.shift(); event; event = this.#untold.shift()) {
      const entries = [...(this.#listeners.get(event.type) ?? []), ...(this.#listeners.get(undefined) ?? [])]
      for (const { pack, what, hear } of entries) guard.tell(pack, what, hear, event)
      if (hook.isUsed()) hook.call(event) // a tap that only hears throws nothing (`ownedTap`)
    }
    this.#telling = false
  }
}
