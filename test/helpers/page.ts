/**
 * A page of a web client, as strict as a compiled one: says hello after server_hello, opens a session by snapshot and subscribe, resubscribes
 * through client_hello with its cursors, takes a snapshot where text is missing, and writes down every broken rule.
 */
import { WebSocket } from 'ws'
import { type Frame, RestClient, witnessedSocket } from '../../kernel/testing.ts'
import { type Json, PageSession } from './page-session.ts'

export interface PageServer {
  readonly url: string
  readonly token: string
}

export interface PageOptions {
  /** For a server in another process: says what is wrong with a frame according to its `/asyncapi.json`; '' when nothing is. */
  readonly judge?: (message: string, frame: Json) => string
  readonly agent_filter?: Readonly<Record<string, readonly string[]>>
}

interface Waiter {
  fits(frame: Frame): boolean
  resolve(frame: Frame): void
  reject(error: Error): void
}

export class Page {
  readonly sessions = new Map<string, PageSession>()
  /** Every frame of every connection, in order of arrival. */
  readonly frames: Frame[] = []
  /** Snapshots taken because text was missing. */
  gaps = 0
  #server: PageServer
  #rest: RestClient
  readonly #options: PageOptions
  readonly #problems: string[] = []
  readonly #waiters = new Set<Waiter>()
  /** Frames of sessions whose snapshot is under way. */
  readonly #pending = new Map<string, Frame[]>()
  readonly #recovering = new Set<Promise<void>>()
  /** Sessions that need a snapshot once their subscription is acknowledged. */
  readonly #resyncs = new Set<string>()
  /** Numbers on this connection, per subscribed session. */
  readonly #wire = new Map<string, { readonly seq: number }>()
  #ws: WebSocket | undefined
  #look = witnessedSocket('')
  #next = 1

  private constructor(server: PageServer, options: PageOptions) {
    this.#server = server
    this.#options = options
    this.#rest = new RestClient(server.url, server.token)
  }

  static async open(t: { after(fn: () => unknown): void }, server: PageServer, options: PageOptions = {}): Promise<Page> {
    const page = new Page(server, options)
    t.after(() => page.drop())
    await page.#connect()
    return page
  }

  /** Every broken rule so far. */
  get problems(): string[] {
    return [...this.#problems, ...[...this.sessions.values()].flatMap(session => session.problems)]
  }

  session(id: string): PageSession {
    const session = this.sessions.get(id)
    if (!session) throw new Error(`the page has not opened ${id}`)
    return session
  }

  /** Snapshot, then subscribe at its position, with something else between them; or first subscribe to what comes, then the snapshot. */
  async openSession(id: string, how: 'subscribe first' | (() => Promise<unknown>) = async () => undefined): Promise<PageSession> {
    const session = new PageSession(id)
    if (how === 'subscribe first') {
      this.sessions.set(id, session)
      const waiting: Frame[] = []
      this.#pending.set(id, waiting)
      await this.request('subscribe', { session_ids: [id] })
      session.rebuild(await this.#snapshot(id))
      this.#pending.delete(id)
      for (const frame of waiting) if (!session.apply(frame)) this.#problems.push(`text is missing before offset ${frame.offset}`)
      return session
    }
    session.rebuild(await this.#snapshot(id))
    await how()
    this.sessions.set(id, session)
    await this.#subscribe(session)
    return session
  }

  /** The connection is lost. */
  drop(): void {
    this.#ws?.removeAllListeners('message')
    this.#ws?.terminate()
    this.#ws = undefined
    this.#rest.close()
  }

  /** Connects again, perhaps to a server that was restarted; the hello resubscribes. */
  async reconnect(server: PageServer = this.#server): Promise<void> {
    this.drop()
    this.#server = server
    this.#rest = new RestClient(server.url, server.token)
    this.#wire.clear()
    this.#pending.clear()
    const open = [...this.sessions.values()].filter(session => session.turn)
    await this.#connect()
    // What streamed while the page was away is in no replay: a turn that was open is read again.
    for (const session of open) this.#recover(session)
    await this.settled()
  }

  /** Resolves when no snapshot is under way. */
  async settled(): Promise<void> {
    while (this.#recovering.size > 0) await Promise.all(this.#recovering)
  }

  /** First frame that fits, of those that come from now on or (`from`) since that many frames. */
  next(fits: string | ((frame: Frame) => boolean), from = 0): Promise<Frame> {
    const test = typeof fits === 'string' ? (frame: Frame) => frame.type === fits : fits
    const seen = this.frames.slice(from).find(test)
    if (seen) return Promise.resolve(seen)
    return new Promise((resolve, reject) => this.#waiters.add({ fits: test, resolve, reject }))
  }

  /** Sends a control frame; resolves with its ack. */
  async request(type: string, payload: object): Promise<Frame> {
    const id = `p${this.#next++}`
    const from = this.frames.length
    const ack = this.next(frame => frame.type === 'ack' && frame.id === id, from)
    this.#look.sent({ type, id })
    this.#ws?.send(JSON.stringify({ type, id, payload }))
    const answer = await ack
    this.#judge(`${type}_ack`, answer)
    return answer
  }

  post(path: string, body?: unknown): Promise<Json> {
    return this.#rest.json('POST', path, body)
  }

  get(path: string): Promise<Json> {
    return this.#rest.json('GET', path)
  }

  async #snapshot(id: string): Promise<Json> {
    const answer = await this.get(`/api/v1/sessions/${id}/snapshot`)
    if (answer.code !== 0) throw new Error(`snapshot: ${answer.code} ${answer.msg}`)
    return answer.data
  }

  #subscribe(session: PageSession): Promise<void> {
    return this.#join([session], 'subscribe', { session_ids: [session.id] })
  }

  /** Sends a request that subscribes; what comes until its ack is taken in at once. */
  async #join(sessions: readonly PageSession[], type: string, payload: object): Promise<void> {
    const cursors: Record<string, object> = {}
    for (const { id, seq, epoch } of sessions) {
      cursors[id] = { seq, epoch }
      if (!this.#pending.has(id)) this.#pending.set(id, [])
    }
    const ack = await this.request(type, { ...payload, cursors })
    if (ack.code !== 0) this.#problems.push(`${type}: ${ack.code} ${ack.msg}`)
    for (const session of sessions) {
      const { id } = session
      const waiting = this.#pending.get(id) ?? []
      this.#pending.delete(id)
      // Frames that came in one packet with the ack are here, too.
      const seq = Math.max(ack.payload.cursors[id]?.seq ?? 0, ...waiting.flatMap(frame => (frame.volatile ? [] : [frame.seq!])))
      this.#wire.set(id, { seq })
      // A global event that left before the server had read the request comes again in the replay.
      const early = (frame: Frame, at: number) =>
        !frame.volatile && waiting.some((other, n) => n > at && !other.volatile && other.seq === frame.seq)
      if (this.#resyncs.delete(id)) this.#recover(session, [], true)
      else for (const frame of waiting.filter((each, at) => !early(each, at))) this.#apply(session, frame)
    }
  }

  async #connect(): Promise<void> {
    const protocol = `svc-code.bearer.${this.#server.token}`
    const ws = new WebSocket(`${this.#server.url.replace(/^http/, 'ws')}/api/v1/ws?client_id=web_1`, [protocol])
    this.#ws = ws
    this.#look = witnessedSocket(this.#server.url)
    const hello = this.next('server_hello', this.frames.length)
    for (const id of this.sessions.keys()) this.#pending.set(id, [])
    ws.on('message', (data, binary) => this.#receive(ws, JSON.parse(String(data)) as Frame, binary))
    ws.on('error', () => undefined) // shows as close
    ws.on('close', code => {
      for (const waiter of this.#waiters) if (this.#ws === ws) waiter.reject(new Error(`the socket closed with ${code}`))
    })
    await hello
    if (ws.protocol !== protocol) this.#problems.push('the subprotocol was not echoed')
    const { agent_filter } = this.#options
    const subscriptions = [...this.sessions.keys()]
    await this.#join([...this.sessions.values()], 'client_hello', {
      client_id: 'web_1',
      subscriptions,
      ...(agent_filter ? { agent_filter } : {})
    })
  }

  #receive(ws: WebSocket, frame: Frame, binary: boolean): void {
    if (this.#ws !== ws) return
    if (binary) this.#problems.push('a binary message')
    this.#look.got(frame)
    this.frames.push(frame)
    if (frame.type !== 'ack') this.#judge(frame.type, frame)
    if (frame.type === 'resync_required') this.#resync(frame)
    else if (frame.session_id !== undefined) this.#event(frame)
    for (const waiter of [...this.#waiters]) {
      if (!waiter.fits(frame)) continue
      this.#waiters.delete(waiter)
      waiter.resolve(frame)
    }
  }

  #event(frame: Frame): void {
    this.#checkEnvelope(frame)
    const session = this.sessions.get(frame.session_id!)
    if (!session) return
    this.#apply(session, frame)
  }

  #apply(session: PageSession, frame: Frame): void {
    const pending = this.#pending.get(session.id)
    if (pending) pending.push(frame)
    else if (!session.apply(frame)) {
      this.gaps++
      this.#recover(session, [frame])
    }
  }

  #checkEnvelope(frame: Frame): void {
    const wrong = (text: string) => this.#problems.push(`${frame.session_id} ${frame.seq} ${frame.type}: ${text}`)
    const { payload, seq, epoch, timestamp, volatile } = frame
    if (payload?.type !== frame.type) wrong('payload.type differs')
    if (typeof payload?.agentId !== 'string') wrong('no payload.agentId')
    if (typeof payload?.sessionId !== 'string') wrong('no payload.sessionId')
    if (frame.type !== 'event.session.archived' && payload?.sessionId !== frame.session_id) wrong('payload.sessionId differs')
    if (!/^ep_[0-9A-Z]{26}$/.test(epoch ?? '')) wrong(`epoch ${epoch}`)
    if (new Date(timestamp ?? '').toISOString() !== timestamp) wrong(`timestamp ${timestamp}`)
    if (payload?.time !== undefined && new Date(payload.time).toISOString() !== timestamp) wrong('time differs from timestamp')
    const extra = Object.keys(frame).filter(
      key => !['type', 'seq', 'epoch', 'session_id', 'timestamp', 'volatile', 'offset', 'payload'].includes(key)
    )
    if (extra.length > 0) wrong(`unknown fields ${extra}`)
    if (volatile !== undefined && volatile !== true) wrong('volatile is not true')
    if (frame.offset !== undefined && !/^(assistant|thinking)\.delta$/.test(frame.type)) wrong('offset on a frame that is no text')
    const wire = this.#wire.get(frame.session_id!)
    if (!wire) return
    if (volatile ? seq! !== wire.seq : seq! <= wire.seq) wrong(`number ${seq} after ${wire.seq} on this connection`)
    if (!volatile) this.#wire.set(frame.session_id!, { seq: seq! })
  }

  #resync({ payload }: Frame): void {
    const session = this.sessions.get(payload.session_id)
    if (session && this.#pending.has(session.id)) this.#resyncs.add(session.id)
    else if (session) this.#recover(session, [], true)
  }

  /** A snapshot; what comes meanwhile waits for it. */
  #recover(session: PageSession, first: Frame[] = [], subscribe = false): void {
    if (this.#pending.has(session.id)) return
    const waiting = first
    this.#pending.set(session.id, waiting)
    const ws = this.#ws
    const work = (async () => {
      const snapshot = await this.#snapshot(session.id)
      if (this.#ws !== ws) return
      session.rebuild(snapshot)
      this.#pending.delete(session.id)
      for (const frame of waiting) {
        if (session.apply(frame)) continue
        this.gaps++
        this.#recover(session, waiting.slice(waiting.indexOf(frame)), subscribe)
        return
      }
      if (subscribe) await this.#subscribe(session)
    })()
      .catch(error => {
        if (this.#ws === ws) this.#problems.push(`recovery: ${error}`)
      })
      .finally(() => this.#recovering.delete(work))
    this.#recovering.add(work)
  }

  #judge(message: string, frame: Frame): void {
    const problem = this.#options.judge?.(message, frame)
    if (problem) this.#problems.push(`${message}: ${problem} ${JSON.stringify(frame).slice(0, 300)}`)
  }
}
