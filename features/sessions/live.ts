/** A loaded session and its agents: slot hosts with persisted state. */
import { join } from 'node:path'
import { AppError, type Hosts, SlotHost, type StoreOf, type StoreSpec } from '../../kernel/index.ts'
import { busyElsewhere, SessionBusy, SessionMissing } from './contract.ts'
import { SavedState, type SavedStatePorts } from './saved-state.ts'
import type { AgentHost, AgentRecord, Session, SessionState } from './service.ts'
import type { SessionFact } from './shared.ts'
import { lastPromptOf, titleOf } from './title.ts'
import { Work, type WorkPorts } from './work.ts'

export interface LiveSessionPorts extends Omit<SavedStatePorts, 'writable' | 'refuse'> {
  readonly hosts: Hosts
  readonly store: <S extends StoreSpec>(spec: S, dir: string) => StoreOf<S>
  readonly workChanged: (session: LiveSession, work: Parameters<WorkPorts['announce']>[0]) => void
  readonly statusChanged: (session: LiveSession, change: Parameters<WorkPorts['statusChanged']>[0]) => void
  readonly metaUpdated: (
    id: string,
    payload: { title?: string; patch: { title?: string; isCustomTitle?: boolean; lastPrompt?: string } }
  ) => void
  /** Resolves when the events of the session so far are on disk. */
  readonly flushed: (id: string) => Promise<void>
  readonly agentCreated: (session_id: string, agent_id: string) => void
  readonly idle: () => void
}

const dirOf = ({ dir }: Pick<Session, 'dir'>, id: string): string => join(dir, 'agents', id)

class LiveAgent extends SlotHost implements AgentHost {
  readonly id: string
  readonly record: AgentRecord
  readonly session: LiveSession
  readonly dir: string
  readonly #store: LiveSessionPorts['store']

  constructor(id: string, record: AgentRecord, session: LiveSession, { hosts, store }: LiveSessionPorts) {
    super(hosts)
    this.id = id
    this.record = record
    this.session = session
    this.dir = dirOf(session, id)
    this.#store = store
  }

  store<S extends StoreSpec>(spec: S): StoreOf<S> {
    return this.#store(spec, this.dir)
  }

  protected override refusal(): Error {
    return this.session.refusal()
  }
}

export class LiveSession extends SlotHost implements Session {
  readonly dir: string
  /** Number of its lease; undefined: another process has it. */
  readonly fence: number | undefined
  readonly work: Work
  readonly loadedAt = performance.now()
  usedAt = this.loadedAt
  readonly #ports: LiveSessionPorts
  readonly #agents = new Map<string, LiveAgent>()
  /** Agents that were closed while something waited in them. */
  readonly #left = new Set<string>()
  /** Who keeps it loaded. */
  readonly #holds = new Set<object>()
  readonly #saved: SavedState
  /** It is closed because its data is to be taken away. */
  ends = false
  /** Its data is gone, or another server's. */
  #gone = false
  /** Another server has it. */
  #moved = false
  /** Its lock is given back. */
  #over = false
  /** Ids of agents that are being made. */
  readonly #coming = new Set<string>()

  constructor(state: SessionState, dir: string, fence: number | undefined, ports: LiveSessionPorts) {
    super(ports.hosts)
    this.dir = dir
    this.fence = fence
    this.#ports = ports
    this.#saved = new SavedState(state, { ...ports, writable: this.writable, refuse: () => this.assertWritable() })
    for (const [id, record] of Object.entries(state.agents)) this.#attach(id, record)
    this.work = new Work({
      announce: work => ports.workChanged(this, work),
      statusChanged: change => ports.statusChanged(this, change),
      reason: () => this.state.last_turn_reason,
      setReason: (reason, at) => this.#setReason(reason, at),
      idle: ports.idle
    })
  }

  get id(): string {
    return this.state.id
  }

  get writable(): boolean {
    return this.fence !== undefined
  }

  get workspace_id(): string {
    return this.state.workspace_id
  }

  get cwd(): string {
    return this.state.cwd
  }

  get state(): SessionState {
    return this.#saved.current
  }

  store<S extends StoreSpec>(spec: S): StoreOf<S> {
    return this.#ports.store(spec, this.dir)
  }

  async update(change: (state: SessionState) => SessionState, { touch = false } = {}): Promise<SessionState> {
    this.assertWritable()
    await this.#saved.update(state => (touch ? this.#saved.touched(change(state)) : change(state)))
    return this.state
  }

  async entitle(title: string, kind: 'custom' | 'generated'): Promise<void> {
    await this.update(state => ({ ...state, title, title_kind: kind, title_untold: true }))
    this.tellTitle()
  }

  /** The state has it before clients hear of it: should the server die in between, the next one tells it. `heard`: they have heard of it. */
  tellTitle(heard = false): void {
    const { title, title_kind } = this.state
    if (!heard) this.#ports.metaUpdated(this.id, { title, patch: { title, isCustomTitle: title_kind === 'custom' } })
    void this.#ports.flushed(this.id).then(() => {
      const { title_untold: _untold, ...state } = this.state
      if (state.title === title) this.#saved.changeAtClose(state)
    }, this.#ports.failed)
  }

  promptSubmitted(text: string, { announce = true, at }: { readonly announce?: boolean; readonly at?: Date } = {}): void {
    const lastPrompt = lastPromptOf(text)
    const title = this.state.title_kind === 'replaceable' && this.state.title === '' ? titleOf(text) : ''
    this.#saved.change(this.#saved.touched({ ...this.state, ...(title === '' ? {} : { title }), last_prompt: lastPrompt }, at))
    if (!announce) return
    this.#ports.metaUpdated(
      this.id,
      title === '' ? { patch: { lastPrompt } } : { title, patch: { title, isCustomTitle: false, lastPrompt } }
    )
  }

  promptsUndone(text: string | undefined, { announce = true, at }: { readonly announce?: boolean; readonly at?: Date } = {}): void {
    const { last_prompt: _last, ...state } = this.state
    const lastPrompt = lastPromptOf(text ?? '')
    // A title that nobody chose is that of the first prompt, and goes with it.
    const untitled = text === undefined && state.title_kind === 'replaceable' && state.title !== '' ? { title: '' } : {}
    this.#saved.change(this.#saved.touched(text === undefined ? { ...state, ...untitled } : { ...state, last_prompt: lastPrompt }, at))
    if (announce) this.#ports.metaUpdated(this.id, { ...untitled, patch: { ...untitled, lastPrompt } })
  }

  leaves(agent_id: string, waiting: boolean): void {
    if (waiting) this.#left.add(agent_id)
    else this.#left.delete(agent_id)
  }

  keep(): () => void {
    const hold = {}
    this.#holds.add(hold)
    return () => {
      if (this.#holds.delete(hold) && !this.isKept) this.#ports.idle()
    }
  }

  get isKept(): boolean {
    return this.#holds.size > 0
  }

  get hasLeft(): boolean {
    return this.#left.size > 0
  }

  agents(): readonly AgentHost[] {
    return [...this.#agents.values()]
  }

  agent(id: string): AgentHost | undefined {
    return this.#agents.get(id)
  }

  async main(): Promise<AgentHost> {
    const main = this.#agents.get('main')
    if (main) return main
    this.assertWritable()
    return this.#createMain()
  }

  /** Whether a server that died had told of a main agent, or had begun with its directory, before it saved the state. */
  recallMain(told: boolean, begun: boolean): void {
    if (told || begun) this.#createMain(told || !this.writable)
  }

  askMain<T>(ask: (agent: AgentHost) => T): T {
    const main = this.#agents.get('main')
    if (main) return ask(main)
    const draft = new LiveAgent('main', { type: 'main' }, this, this.#ports)
    try {
      return ask(draft)
    } finally {
      void draft.closeHost()
    }
  }

  createAgent(record: AgentRecord, begin?: (dir: string) => Promise<void>): Promise<AgentHost> {
    if (record.type === 'main') return this.main()
    let number = 0
    const isTaken = (id: string) => this.#agents.has(id) || this.#coming.has(id) || this.state.agents[id] !== undefined
    while (isTaken(`agent-${number}`)) number++
    return this.#create(`agent-${number}`, record, begin)
  }

  /** What other servers hear of it; undefined when it is only read here. */
  get fact(): SessionFact | undefined {
    if (!this.writable) return undefined
    const { busy, main_turn_active, pending_interaction } = this.work
    return { id: this.id, fence: this.fence, state: this.state, work: { busy, main_turn_active, pending_interaction } }
  }

  get isMoved(): boolean {
    return this.#moved
  }

  /** The data of the session was taken away, or is another server's (`moved`): whoever still has it changes nothing any more. */
  gone({ moved = false } = {}): void {
    this.#gone = true
    this.#moved = moved
    this.#saved.end()
  }

  assertWritable(): void {
    if (this.#gone && !this.#moved) throw new AppError(SessionMissing)
    if (!this.writable || this.#moved) throw busyElsewhere()
    if (this.#over) throw this.refusal()
  }

  /** For requests that are under way while the session is closed. */
  override refusal(): Error {
    if (this.ends) return new AppError(SessionMissing)
    return this.#moved ? busyElsewhere() : new AppError(SessionBusy, { message: 'the session was closed meanwhile; ask again' })
  }

  /** Its event, or the directory that comes with its first record, says that there is a main agent: its state need not be on disk before. */
  #createMain(told = false): AgentHost {
    const record: AgentRecord = { type: 'main' }
    this.#saved.change({ ...this.state, agents: { ...this.state.agents, main: record } })
    const agent = this.#attach('main', record)
    if (!told) this.#ports.agentCreated(this.id, 'main')
    return agent
  }

  async #create(id: string, record: AgentRecord, begin?: (dir: string) => Promise<void>): Promise<AgentHost> {
    this.#coming.add(id)
    try {
      await this.update(state => ({ ...state, agents: { ...state.agents, [id]: record } }))
      await begin?.(dirOf(this, id))
    } finally {
      this.#coming.delete(id)
    }
    const agent = this.#attach(id, record)
    this.#ports.agentCreated(this.id, id)
    return agent
  }

  #attach(id: string, record: AgentRecord): LiveAgent {
    const agent = new LiveAgent(id, record, this, this.#ports)
    this.#agents.set(id, agent)
    this.own(() => agent.closeHost())
    return agent
  }

  /** Starting a turn clears the reason in memory only: a crash leaves its own reason behind, so the write would be wasted. */
  #setReason(reason: SessionState['last_turn_reason'], at: Date | undefined): void {
    const { last_turn_reason: _old, ...state } = this.state
    if (reason === undefined) this.#saved.changeUnsaved(state)
    else this.#saved.change(this.#saved.touched({ ...state, last_turn_reason: reason }, at))
  }

  /** Resolves when everything is written. */
  settled(): Promise<void> {
    return this.#saved.settled()
  }

  /** Writes what its slots said as they went. Whoever still has it changes nothing any more: any server may have it next. */
  async over(): Promise<void> {
    this.#over = true
    await this.settled()
    this.#saved.end()
  }
}
