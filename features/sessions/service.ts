/** What other packs get from sessions: records, loaded sessions and their agents as slot hosts, live work state. */
import { type ErrorSpec, extensionPoint, type SlotHost, serviceToken } from '../../kernel/index.ts'
import type { SessionObject, SessionStatus } from './contract.ts'

export type TurnReason = 'completed' | 'cancelled' | 'failed'

export interface AgentRecord {
  readonly type: 'main' | 'sub' | 'independent'
  readonly parent_agent_id?: string
  readonly labels?: Readonly<Record<string, string>>
}

/** Persisted state of a session (`state.json`). Times are ISO 8601, UTC. */
export interface SessionState {
  readonly id: string
  readonly version: number
  readonly workspace_id: string
  readonly cwd: string
  readonly title: string
  readonly title_kind: 'replaceable' | 'generated' | 'custom'
  /** The event of the title may not be on disk. */
  readonly title_untold?: true
  readonly last_prompt?: string
  readonly created_at: string
  readonly updated_at: string
  readonly archived: boolean
  readonly archived_at?: string
  readonly forked_from?: string
  /** The session of which it was made a child. */
  readonly child_of?: string
  readonly last_turn_reason?: TurnReason
  readonly agents: Readonly<Record<string, AgentRecord>>
  /** By name, what `SessionDefaults` said when it was made; absent in a session from before there were any, and in one that was rebuilt. */
  readonly defaults?: Readonly<Record<string, unknown>>
  /** Client metadata, without `cwd`. */
  readonly metadata: Readonly<Record<string, unknown>>
}

/** What is going on in a session. */
export interface WorkTuple {
  readonly busy: boolean
  readonly main_turn_active: boolean
  readonly pending_interaction: 'none' | 'approval' | 'question'
}

/** As clients are told of it. */
export interface ToldWork extends WorkTuple {
  readonly last_turn_reason?: TurnReason | undefined
}

/** What clients of a session heard last of its work. */
export interface HeardWork {
  /** Undefined: nothing. */
  readonly work: ToldWork | undefined
  readonly status: SessionStatus
}

/**
 * Live work of a session, and the single place that emits `event.session.work_changed` (only when the tuple changed) and, behind it,
 * `event.session.status_changed` (only when the status changed).
 */
export interface SessionWork extends WorkTuple {
  /** `prompt_id`: the prompt that it answers. */
  turnStarted(agent_id: string, prompt_id?: string): void
  /**
   * Settles the turn; for the main agent also `last_turn_reason` (saved a little later: the agent's journal has it). Emits before it
   * returns. `announce` true: emit even when nothing changed, for a turn that an earlier process left open; false: emit nothing, because
   * that was done. `goesOn`: the agent stays at work, because its next turn begins at once. `at`: when it ended, now by default.
   */
  turnEnded(
    agent_id: string,
    reason: TurnReason,
    options?: { readonly announce?: boolean; readonly goesOn?: boolean; readonly at?: Date }
  ): void
  /** What the agent was to go on with (`goesOn`) is gone before it began. */
  rests(agent_id: string): void
  activeTurns(): readonly string[]
  /** One more (+1) or one less (-1) open approval or question. */
  pending(kind: 'approval' | 'question', change: 1 | -1): void
  /** A request of an earlier process that died before it told it, or its end (undefined): clients hear of it, and nothing waits here. */
  pendingLeft(id: string, kind: 'approval' | 'question' | undefined): void
  /** One more or one less piece of background work. */
  background(change: 1 | -1): void
  /** Emits what is, when clients heard something else last from an earlier process. */
  announce(): void
  /** Whether it is known what clients heard last. */
  readonly isHeard: boolean
  /** What clients of a loaded session heard last, by its journal. Until then no status is told. */
  heard(heard: HeardWork): void
}

/** A loaded session. Packs hang their state on it with slots; `own` and slots end when it is unloaded. */
export interface Session extends SlotHost {
  readonly id: string
  readonly workspace_id: string
  /** Working directory, absolute. */
  readonly cwd: string
  /** `<home>/sessions/<workspace_id>/<id>` */
  readonly dir: string
  /** False when another server process owns this session: reads work, writes throw SessionBusy. */
  readonly writable: boolean
  /** Throws SessionBusy (40901) while another process owns the session. */
  assertWritable(): void
  readonly state: SessionState
  readonly work: SessionWork
  /** Changes persisted state; `touch` moves `updated_at`. Resolves when on disk. */
  update(change: (state: SessionState) => SessionState, options?: { readonly touch?: boolean }): Promise<SessionState>
  /** Gives it a title, on disk when it resolves, and tells it (`session.meta.updated`). `custom`: somebody chose it. */
  entitle(title: string, kind: 'custom' | 'generated'): Promise<void>
  /**
   * A prompt of the user was recorded: sets last_prompt, and the title while it is replaceable and empty; emits session.meta.updated
   * (unless `announce` is false). Saved a little later: the agent's journal has it already. `at`: when it was recorded, now by default;
   * `updated_at` is not before it.
   */
  promptSubmitted(text: string, options?: { readonly announce?: boolean; readonly at?: Date }): void
  /**
   * Prompts were taken back: sets last_prompt to `text`, that of the newest one which is left, or removes it, and with it a title that was
   * taken from the first one; emits session.meta.updated (unless `announce` is false). Saved a little later, as with `promptSubmitted`.
   */
  promptsUndone(text: string | undefined, options?: { readonly announce?: boolean; readonly at?: Date }): void
  /**
   * Says whether something waits in an agent that is being closed. A session that is closed with such agents is loaded by the next server that
   * starts.
   */
  leaves(agent_id: string, waiting: boolean): void
  /** What `ask` says of the main agent; while there is none, of one that nobody else sees and that is gone afterwards. */
  askMain<T>(ask: (agent: AgentHost) => T): T
  /** Keeps the session loaded until the returned undo. */
  keep(): () => void
  agents(): readonly AgentHost[]
  agent(id: string): AgentHost | undefined
  /** The main agent, created (agent.created) at the first call. */
  main(): Promise<AgentHost>
  /** `begin` writes into its directory (absolute) what it begins with, before anybody sees it; what fails leaves an agent that has nothing. */
  createAgent(record: AgentRecord, begin?: (dir: string) => Promise<void>): Promise<AgentHost>
}

/** One conversation inside a session: the slot host for history, queue, permissions. */
export interface AgentHost extends SlotHost {
  readonly id: string
  readonly record: AgentRecord
  readonly session: Session
  /** `<session dir>/agents/<id>` */
  readonly dir: string
}

/** Live facts that only the snapshot shows (contract 2, Session object). */
export interface SessionLive {
  readonly model: string
  readonly usage: SessionObject['usage']
}

/** What is different in a copy of a session. */
export interface SessionCopy {
  readonly title: string
  /** Merged over that of the source. */
  readonly metadata?: Readonly<Record<string, unknown>>
  /** It is a child of the source. */
  readonly child?: boolean
}

export interface Sessions {
  exists(id: string): Promise<boolean>
  /** Persisted facts without loading; undefined when unknown. */
  state(id: string): Promise<SessionState | undefined>
  /** The directory of a session, absolute. */
  dir(state: SessionState): string
  /** Loads (resumes) the session, single-flight. Throws SessionMissing. */
  load(id: string): Promise<Session>
  /** The session if it is loaded in this process. */
  loaded(id: string): Session | undefined
  allLoaded(): readonly Session[]
  /** Of the sessions that are loaded, here or at another server of the home, the one that was created last. */
  newestLoaded(): Promise<string | undefined>
  /** What is going on in a session, also at another server of the home; undefined: nothing that this one knows of. */
  work(id: string): WorkTuple | undefined
  /**
   * Makes a new session of the same workspace with the facts of another one, and announces it (`event.session.created`). `fill` puts files
   * into its directory, absolute, beside the state; until it resolves there is no session, and when it rejects or the process dies there
   * never will be.
   */
  copy(source: Session, copy: SessionCopy, fill: (dir: string) => Promise<void>): Promise<SessionObject>
  /** Persisted facts of all sessions, newest `updated_at` first; sessions of other server processes appear within seconds. */
  list(): Promise<readonly SessionState[]>
  /** The session object of the wire (contract 2), live facts included. Throws SessionMissing. Does not load the session. */
  object(id: string, live?: SessionLive): Promise<SessionObject>
  /**
   * Archives the session: its running work ends first, then `event.session.archived` is told, also when it was archived before. One that
   * is not loaded stays so, and one that another server of the home has is archived there. Throws SessionMissing, SessionBusy, OwnerSilent.
   */
  archive(id: string): Promise<void>
  /** Un-archives the session; as `archive` does. Throws SessionMissing, SessionBusy, OwnerSilent. */
  restore(id: string): Promise<void>
  /** Called for every session right after it was loaded, before anyone else sees it; repairs go here. Awaited in order, as `onArchive`. */
  onLoad(listener: (session: Session) => unknown): () => void
  /** Called before a session is archived: running work ends here. Awaited in order; one that fails, or takes too long, holds nothing up. */
  onArchive(listener: (session: Session) => unknown): () => void
  /** Called when a loaded session that was archived goes on; as `onArchive`. */
  onRestore(listener: (session: Session) => unknown): () => void
}

export const Sessions = serviceToken<Sessions>('sessions', { onLoad: 'promise', onArchive: 'promise', onRestore: 'promise' })

/**
 * Applies one field of `agent_config` to the main agent (contract 2, profile update). Fields that nobody handles are accepted and
 * ignored. Handlers run by `order`: model 10, thinking 20, permission_mode 30, plan_mode 40, swarm_mode 50, goal_objective 60,
 * goal_control 70. Two handlers of one field: the one that came first.
 */
export interface AgentConfigHandler {
  readonly field: string
  readonly order: number
  /** What `apply` may throw, beside 40001: the route lists it. */
  readonly errors?: readonly ErrorSpec[]
  /** `value` has passed the route's schema. Steps already applied stay when a later one throws. A 40001 names the path below `agent_config`. */
  apply(session: Session, value: unknown): Promise<void>
}
export const AgentConfigHandlers = extensionPoint<AgentConfigHandler>(
  'agent-config-handlers',
  { apply: 'promise' },
  {
    field: 'string',
    order: 'number',
    apply: 'function'
  }
)

/** Looks at every session that is about to be made, also by a fork: throws what keeps it from being made, 40001 with `details`. */
export interface SessionCheck {
  readonly name: string
  /** Any other failure is put down to its pack, and the session is made. */
  check(): void | Promise<void>
}
export const SessionChecks = extensionPoint<SessionCheck>('session-checks', { check: 'promise' }, { name: 'string', check: 'function' })

/** A value of the configuration that counts for new sessions only: each keeps what it was when it was made, a fork what its source keeps. */
export interface SessionDefault {
  readonly name: string
  /** Now; JSON. */
  value(): unknown
}
export const SessionDefaults = extensionPoint<SessionDefault>('session-defaults', undefined, { name: 'string', value: 'function' })
