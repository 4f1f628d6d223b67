/** A loaded session and its agents: slot hosts with persisted state. */
import { join } from 'node:path'
import { AppError, type Hosts, SlotHost, type StoreOf, type StoreSpec } from '../../kernel/index.ts'
import { SessionBusy, SessionMissing } from './contract.ts'
import type { AgentHost, AgentRecord, Session, SessionState } from './service.ts'
import type { SessionFact } from './shared.ts'
import { lastPromptOf, titleOf } from './title.ts'
import { Work, type WorkPorts } from './work.ts'

/** How long a change of the state may wait for others, when the journal of an agent implies it. */
const saveDelayMs = 250

export interface LiveSessionPorts {
  readonly now: () => Date
  readonly hosts: Hosts
  /** Shows the state in lists. */
  readonly show: (state: SessionState) => void
  /** Resolves when the state is on disk. */
  readonly save: (state: SessionState) => Promise<void>
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
  /** A write nobody waits for failed. */
  readonly failed: (error: unknown) => void
}

const elsewhere = 'session is open in another server process'

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
  #state: SessionState
  /** It is closed because its data is to be taken away. */
  ends = false
  /** Its data is gone: nothing is written or shown any more. */
  #gone = false
  /** Another server has it. */
  #moved = false
  /** Changes of `update` that no write has begun with. */
  #changes: ((state: SessionState) => SessionState)[] = []
  /** Ids of agents that are being made. */
  readonly #coming = new Set<string>()
  #later: NodeJS.Timeout | undefined
  /** Something has changed that need not be on disk before the session is closed. */
  #unsaved = false
  #saving: Promise<void> | undefined
  #next: Promise<void> | undefined

  constructor(state: SessionState, dir: string, fence: number | undefined, ports: LiveSessionPorts) {
    super(ports.hosts)
    this.#state = state
    this.dir = dir
    this.fence = fence
    this.#ports = ports
    for (const [id, record] of Object.entries(state.agents)) this.#attach(id, record)
    this.work = new Work({
      announce: work => ports.workChanged(this, work),
      statusChanged: change => ports.statusChanged(this, change),
      reason: () => this.#state.last_turn_reason,
      setReason: (reason, at) => this.#setReason(reason, at),
      idle: ports.idle
    })
  }

  get id(): string {
    return this.#state.id
  }

  get writable(): boolean {
    return this.fence !== undefined
  }

  get workspace_id(): string {
    return this.#state.workspace_id
  }

  get cwd(): string {
    return this.#state.cwd
  }

  get state(): SessionState {
    return this.#state
  }

  store<S extends StoreSpec>(spec: S): StoreOf<S> {
    return this.#ports.store(spec, this.dir)
  }

  async update(change: (state: SessionState) => SessionState, { touch = false } = {}): Promise<SessionState> {
    this.assertWritable()
    this.#changes.push(state => (touch ? this.#touched(change(state)) : change(state)))
    await this.#save()
    return this.#state
  }

  async entitle(title: string, kind: 'custom' | 'generated'): Promise<void> {
    await this.update(state => ({ ...state, title, title_kind: kind, title_untold: true }))
    this.tellTitle()
  }

  /** The state has it before clients hear of it: should the server die in between, the next one tells it. `heard`: they have heard of it. */
  tellTitle(heard = false): void {
    const { title, title_kind } = this.#state
    if (!heard) this.#ports.metaUpdated(this.id, { title, patch: { title, isCustomTitle: title_kind === 'custom' } })
    void this.#ports.flushed(this.id).then(() => {
      const { title_untold: _untold, ...state } = this.#state
      if (state.title !== title) return
      this.#set(state)
      this.#unsaved = true
    }, this.#ports.failed)
  }

  promptSubmitted(text: string, { announce = true, at }: { readonly announce?: boolean; readonly at?: Date } = {}): void {
    const lastPrompt = lastPromptOf(text)
    const title = this.#state.title_kind === 'replaceable' && this.#state.title === '' ? titleOf(text) : ''
    this.#set(this.#touched({ ...this.#state, ...(title === '' ? {} : { title }), last_prompt: lastPrompt }, at))
    this.#saveLater()
    if (!announce) return
    this.#ports.metaUpdated(
      this.id,
      title === '' ? { patch: { lastPrompt } } : { title, patch: { title, isCustomTitle: false, lastPrompt } }
    )
  }

  promptsUndone(text: string | undefined, { announce = true, at }: { readonly announce?: boolean; readonly at?: Date } = {}): void {
    const { last_prompt: _last, ...state } = this.#state
    const lastPrompt = lastPromptOf(text ?? '')
    // A title that nobody chose is that of the first prompt, and goes with it.
    const untitled = text === undefined && state.title_kind === 'replaceable' && state.title !== '' ? { title: '' } : {}
    this.#set(this.#touched(text === undefined ? { ...state, ...untitled } : { ...state, last_prompt: lastPrompt }, at))
    this.#saveLater()
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
    const isTaken = (id: string) => this.#agents.has(id) || this.#coming.has(id) || this.#state.agents[id] !== undefined
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
    clearTimeout(this.#later)
    this.#later = undefined
  }

  assertWritable(): void {
    if (this.#gone && !this.#moved) throw new AppError(SessionMissing)
    if (!this.writable || this.#moved) throw new AppError(SessionBusy, { message: elsewhere })
  }

  /** For requests that are under way while the session is closed. */
  override refusal(): Error {
    if (this.ends) return new AppError(SessionMissing)
    return new AppError(SessionBusy, { message: this.#moved ? elsewhere : 'the session was closed meanwhile; ask again' })
  }

  /** Its event, or the directory that comes with its first record, says that there is a main agent: its state need not be on disk before. */
  #createMain(told = false): AgentHost {
    const record: AgentRecord = { type: 'main' }
    this.#set({ ...this.#state, agents: { ...this.#state.agents, main: record } })
    this.#saveLater()
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
    const { last_turn_reason: _old, ...state } = this.#state
    if (reason === undefined) this.#set(state)
    else {
      this.#set(this.#touched({ ...state, last_turn_reason: reason }, at))
      this.#saveLater()
    }
  }

  #set(state: SessionState): void {
    this.#state = state
    if (!this.#gone) this.#ports.show(state)
  }

  #touched(state: SessionState, at = this.#ports.now()): SessionState {
    const time = at.toISOString()
    return { ...state, updated_at: time > state.updated_at ? time : state.updated_at }
  }

  /** For what the journal of an agent implies, too: changes of a short while share a write, and a crash before it costs nothing. */
  #saveLater(): void {
    if (!this.writable) return // its owner saves it
    this.#later ??= setTimeout(() => void this.#save().catch(this.#ports.failed), saveDelayMs).unref()
  }

  /** One write at a time; changes that arrive meanwhile share the next one. */
  #save(): Promise<void> {
    clearTimeout(this.#later)
    this.#later = undefined
    if (this.#gone) return this.#refuse()
    if (!this.#saving) {
      this.#saving = this.#write().finally(() => {
        this.#saving = undefined
      })
      return this.#saving
    }
    this.#next ??= this.#saving
      .catch(() => undefined) // whoever asked for that write has seen its failure
      .then(() => {
        this.#next = undefined
        return this.#save()
      })
    return this.#next
  }

  /** Changes that no write has begun with are not made any more, and whoever asked for them hears it. */
  async #refuse(): Promise<void> {
    if (this.#changes.splice(0).length > 0) this.assertWritable()
  }

  /** What the disk refuses is taken back: nobody was told that it is so. What need not be on disk yet waits for the next write. */
  async #write(): Promise<void> {
    const before = this.#state
    const changes = this.#changes
    this.#changes = []
    this.#unsaved = false
    if (changes.length > 0) this.#set(changes.reduce((state, change) => change(state), before))
    const written = this.#state
    try {
      await this.#ports.save(written)
    } catch (error) {
      this.#unsaved = true
      if (changes.length > 0) this.#set(without(this.#state, written, before))
      throw error
    }
  }

  /** Resolves when everything is written. */
  async settled(): Promise<void> {
    if (this.#later || this.#unsaved) void this.#save().catch(this.#ports.failed)
    for (let save = this.#next ?? this.#saving; save; save = this.#next ?? this.#saving) await save.catch(() => undefined) // as above
  }
}

/** A state whose fields are what they were before, where they are still what a refused change made of them. */
function without(state: SessionState, refused: SessionState, before: SessionState): SessionState {
  const isRefused = (key: keyof SessionState) => refused[key] !== before[key] && state[key] === refused[key]
  const kept = Object.entries(state).filter(([key]) => !isRefused(key as keyof SessionState))
  const old = Object.entries(before).filter(([key]) => isRefused(key as keyof SessionState))
  return Object.fromEntries([...kept, ...old]) as unknown as SessionState // the fields of three states, each of one of them
}
