/** The event stream of a server: one socket for all watched sessions, made again when it breaks, with positions so that nothing is missed. */
import { Connection, type SocketConstructor } from './connection.ts'
import { ApiError, type Snapshot, type Token, tokenOf } from './rest.ts'
import type { EventFrame, ServerFrame } from './types.ts'
import { type SessionEvent, type Watch, type WatchOptions, WatchState } from './watch.ts'

export type StreamState =
  | { readonly state: 'connecting' }
  | { readonly state: 'open' }
  /** The connection is lost, or could not be made; the next try comes after `retry_ms`. */
  | { readonly state: 'waiting'; readonly attempt: number; readonly retry_ms: number; readonly reason: string }
  | { readonly state: 'closed' }

export interface EventStreamOptions {
  readonly url: string
  readonly token: Token
  /** Shown by the server beside the connection; default `svc-code-client`. */
  readonly client_id?: string
  /** Reads the snapshot of a session. */
  readonly snapshot: (session_id: string) => Promise<Snapshot>
  /** Default: the global one, else the package `ws`. */
  readonly WebSocket?: SocketConstructor
  /** First and longest wait before a connection is made again, ms; default 250 and 10,000. */
  readonly retryMs?: readonly [first: number, longest: number]
  /** After so much silence the server is asked whether it is there, ms; default 30,000. */
  readonly silenceMs?: number
  readonly onState?: (state: StreamState) => void
}

/** An agent may end one step after the other while its client takes a snapshot: after so many its text is made up for at the end of the turn. */
const maxRounds = 5

class Entry implements Watch {
  readonly session_id: string
  readonly state: WatchState
  readonly ready: Promise<void>
  settle: { resolve(): void; reject(error: Error): void } = { resolve: () => undefined, reject: () => undefined }
  readonly #leave: (entry: Entry) => void

  constructor(session_id: string, options: WatchOptions, leave: (entry: Entry) => void) {
    this.session_id = session_id
    this.state = new WatchState(options)
    this.#leave = leave
    this.ready = new Promise((resolve, reject) => {
      this.settle = { resolve, reject }
    })
    this.ready.catch(() => undefined) // whoever wants to know waits for it
  }

  get cursor() {
    return this.state.cursor
  }

  close(): void {
    this.#leave(this)
  }
}

export class EventStream {
  readonly #options: EventStreamOptions
  readonly #watched = new Map<string, Entry>()
  readonly #listeners = new Set<(frame: EventFrame) => void>()
  readonly #stateListeners = new Set<(state: StreamState) => void>()
  #connection: Connection | undefined
  /** Also while it connects and introduces itself. */
  #newest: Connection | undefined
  #started = false
  #closed = false
  #attempt = 0
  #timer: ReturnType<typeof setTimeout> | undefined

  constructor(options: EventStreamOptions) {
    this.#options = options
    if (options.onState) this.#stateListeners.add(options.onState)
  }

  /** Follows a session; one watch per session at a time. Opens the socket when it is not open yet. */
  watch(session_id: string, options: WatchOptions): Watch {
    if (this.#watched.has(session_id)) throw new Error(`session ${session_id} is watched already`)
    const entry = new Entry(session_id, options, one => this.#leave(one))
    this.#watched.set(session_id, entry)
    if (this.#closed) this.#refuse(entry, new Error('the event stream is closed'))
    else if (this.#connection) void this.#join(this.#connection, entry)
    else this.#start()
    return entry
  }

  /** Hears every event frame as it comes in, of all watched sessions and those that reach everyone. Returns the undo. */
  listen(hear: (frame: EventFrame) => void): () => void {
    this.#listeners.add(hear)
    this.#start()
    return () => this.#listeners.delete(hear)
  }

  /** Hears how the connection fares, as the option of this name does. Returns the undo. */
  onState(hear: (state: StreamState) => void): () => void {
    this.#stateListeners.add(hear)
    return () => this.#stateListeners.delete(hear)
  }

  /** Ends everything; nothing but `closed` is told afterwards. */
  close(): void {
    if (this.#closed) return
    this.#closed = true
    clearTimeout(this.#timer)
    this.#newest?.close()
    for (const entry of this.#watched.values()) this.#refuse(entry, new Error('the event stream is closed'))
    this.#tell({ state: 'closed' })
  }

  #tell(state: StreamState): void {
    for (const hear of this.#stateListeners) hear(state)
  }

  #start(): void {
    if (this.#started || this.#closed) return
    this.#started = true
    void this.#connect()
  }

  async #connect(): Promise<void> {
    const { url, token, silenceMs = 30_000, client_id = 'svc-code-client' } = this.#options
    this.#tell({ state: 'connecting' })
    let connection: Connection | undefined
    try {
      const [given, socket] = [await tokenOf(token), this.#options.WebSocket ?? (await platformSocket())]
      if (this.#closed) return
      connection = await Connection.open({
        url,
        token: given,
        socket,
        silenceMs,
        onFrame: frame => this.#receive(frame),
        onClose: reason => this.#lost(reason),
        onBegin: begun => {
          this.#newest = begun
        }
      })
      if (!this.#closed) await connection.request('client_hello', { client_id })
      if (this.#closed) return connection.close()
      this.#connection = connection // a watch that came before is joined below, and nowhere else
      this.#attempt = 0
      this.#tell({ state: 'open' })
      for (const entry of this.#watched.values()) void this.#join(connection, entry)
    } catch (error) {
      connection?.close()
      this.#lost(error instanceof Error ? error.message : String(error))
    }
  }

  /** The next try comes later and later, at slightly different times for many clients of one server. */
  #lost(reason: string): void {
    this.#connection = undefined
    if (this.#closed || this.#timer) return
    for (const { state } of this.#watched.values()) state.lost()
    const [first, longest] = this.#options.retryMs ?? [250, 10_000]
    const retry_ms = Math.round(Math.min(longest, first * 2 ** this.#attempt) * (0.75 + Math.random() / 4))
    this.#attempt++
    this.#tell({ state: 'waiting', attempt: this.#attempt, retry_ms, reason })
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      void this.#connect()
    }, retry_ms)
  }

  #receive(frame: ServerFrame): void {
    if (this.#closed) return
    if (frame.type === 'resync_required') {
      const entry = this.#watched.get(frame.payload.session_id)
      if (entry) this.#recover(entry)
      return
    }
    if (!isEvent(frame)) return
    for (const hear of this.#listeners) hear(frame)
    const entry = this.#watched.get(frame.session_id)
    if (entry && !entry.state.take(frame as SessionEvent)) this.#recover(entry)
  }

  /** Takes a snapshot and subscribes again at its position; a subscription that is being made does it by itself. */
  #recover(entry: Entry): void {
    entry.state.needsSnapshot = true
    if (!entry.state.joining && this.#connection) void this.#join(this.#connection, entry)
  }

  async #join(connection: Connection, entry: Entry): Promise<void> {
    const { session_id, state } = entry
    const isCurrent = () => this.#connection === connection && this.#watched.get(session_id) === entry
    state.hold()
    try {
      for (let whole = false, round = 1; !whole && isCurrent(); round++) {
        if (state.needsSnapshot) {
          const snapshot = await this.#options.snapshot(session_id)
          if (!isCurrent()) return
          state.rebuild(snapshot)
          if (!isCurrent()) return // whoever got it wants no more
        }
        const { agents } = state.options
        const ack = await connection.request('subscribe', {
          session_ids: [session_id],
          ...(state.cursor ? { cursors: { [session_id]: state.cursor } } : {}),
          ...(agents ? { agent_filter: { [session_id]: [...agents] } } : {})
        })
        if (!isCurrent()) return
        if (ack.not_found.includes(session_id)) throw new ApiError({ code: 40401, msg: `session ${session_id} does not exist` }, 200)
        if (state.needsSnapshot || ack.resync_required.includes(session_id)) {
          state.needsSnapshot = true
          continue
        }
        whole = state.join(ack.cursors[session_id], round > maxRounds)
        state.needsSnapshot = !whole
      }
      entry.settle.resolve()
    } catch (error) {
      if (!isCurrent()) return
      // A broken connection, and a server that is away while it is asked for a snapshot, are followed by a new connection, which subscribes again.
      if (error instanceof ApiError && error.code >= 40000 && error.code < 50000) this.#refuse(entry, error)
      else connection.close()
    }
  }

  #leave(entry: Entry): void {
    if (this.#watched.get(entry.session_id) !== entry) return
    this.#refuse(entry, new Error('the watch is closed'))
    this.#connection?.request('unsubscribe', { session_ids: [entry.session_id] }).catch(() => undefined) // gone with its connection
  }

  #refuse(entry: Entry, error: Error): void {
    this.#watched.delete(entry.session_id)
    entry.state.close()
    entry.settle.reject(error)
  }
}

async function platformSocket(): Promise<SocketConstructor> {
  const own = (globalThis as { WebSocket?: SocketConstructor }).WebSocket
  return own ?? ((await import('ws')).WebSocket as unknown as SocketConstructor)
}

/** An event names its type in its payload, too; other frames of a session have numbers of their own. */
function isEvent(frame: ServerFrame): frame is EventFrame {
  return 'type' in frame.payload
}
