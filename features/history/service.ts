/** The history of an agent: append-only records on disk, folded into messages, projected to what the model sees. */
import { type Accounts, type Contribution, extensionPoint, type LogEntry, type LogRange, serviceToken } from '../../kernel/index.ts'
import type { LlmMessage, LlmToolCall, TokenUsage } from '../llm/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import type { HistoryRecord, LooksAtRecords, StateSpec, Tracked } from './define.ts'
import type { CoreRecord } from './records.ts'
import type { HistoryMessage, LastUndo, OpenStep, Origin, PromptRecord, TurnRecord, WirePart } from './types.ts'

export type * from './types.ts'

export interface MessageQuery {
  /** Ids; exclusive. An unknown one counts as none. */
  readonly before?: string | undefined
  readonly after?: string | undefined
  readonly size: number
}

export interface MessagePage {
  /** Oldest first: the newest of the range. */
  readonly messages: readonly HistoryMessage[]
  readonly has_more: boolean
}

/**
 * All messages of an agent that were not taken back, also those that compaction took out of the context. Read from disk; those that were
 * appended before a call are among them.
 */
export interface Messages {
  count(): number
  /** The number that the next message gets; those that were taken back keep theirs. */
  next(): number
  page(query: MessageQuery): Promise<MessagePage>
  find(id: string): Promise<HistoryMessage | undefined>
}

/** Kinds of media that a model takes. */
export interface Takes {
  readonly images: boolean
  readonly videos: boolean
}

/** Tokens of the context. */
export interface ContextSize {
  /** As the provider counted them with the last answer; 0: it has not since the last compaction. */
  readonly measured: number
  /** Measured, and estimated behind that. */
  readonly total: number
  /** Estimated from the beginning. */
  readonly estimated: number
}

/** Turns that the user began and that can be taken back. A prompt that was steered into a turn is part of it. */
export interface Undoable {
  /**
   * Oldest first. `from`: number of the first message that goes with the turn (`context.undone`); `tokens`: size of the context before it;
   * `prompt_id`: the newest prompt of the user that would be left.
   */
  readonly turns: readonly { readonly from: number; readonly tokens: number; readonly prompt_id?: string | undefined }[]
  /** What is before the first of them: a compaction, turns of which too little is remembered, or nothing. */
  readonly end: 'beginning' | 'compaction' | 'lost'
}

export interface History {
  readonly messages: Messages
  lastTurn(): TurnRecord | undefined
  /** Turns that ever began. */
  turnCount(): number
  /** In the order in which they were accepted. Those that are over have no content: their message holds it. */
  prompts(): readonly PromptRecord[]
  prompt(prompt_id: string): PromptRecord | undefined
  /** Sum of usage over the agent's life, and context size in tokens (measured + estimated). */
  usage(): TokenUsage
  contextTokens(): number
  /** The same in its parts. */
  contextSize(): ContextSize
  /** How often the context was made smaller. */
  compactions(): number
  /** Which turns of the user can be taken back. */
  undoable(): Undoable
  lastUndo(): LastUndo | undefined
  /** Usage by model alias, over the agent's life. */
  usageByModel(): Readonly<Record<string, TokenUsage>>
  /** True when the id was used by a tool call of this agent; rarely also for one that was not. */
  hasToolCall(id: string): boolean
  /** The step that was begun and not ended, while it runs, waits for its next attempt, or after a crash. */
  openStep(): OpenStep | undefined
  /** Tool calls without a result, in call order. `begun`: it was shown. */
  openCalls(): readonly { readonly call: LlmToolCall; readonly begun: boolean }[]
  /** Origin of the newest reminder of this variant in the context. */
  reminder(variant: string): Origin | undefined
  /**
   * Appends records and tells their events; resolves when they are on disk. The order of the calls is the order of the records. They are in all
   * states at once; those with large inline media once these are in files, and so are those that are written meanwhile. `time` is stamped.
   */
  append(...records: (CoreRecord | HistoryRecord)[]): Promise<void>
  /**
   * Resolves when all states are what the disk holds and what is on its way there: a write that was refused may have left them ahead of it.
   * Undefined: they are, none was refused.
   */
  certain(): Promise<void> | undefined
  /** As `append`, but the caller tells the events, in one go or in two. */
  write(...records: (CoreRecord | HistoryRecord)[]): Promise<Written>
  /**
   * What is written is in every state at once, and told only when it is on disk and who tells it is there. Resolves when what is being written
   * now was told (or refused); undefined when nothing is: then states and events agree, for the rest of the tick.
   */
  writing(): Promise<void> | undefined
  /** A state of a pack that follows from the records, live from now on. */
  track<S>(spec: StateSpec<S>): Promise<Tracked<S>>
  /** Such a state as it is now, when it is live already; those of `HistoryStates` always are. */
  tracked<S>(spec: StateSpec<S>): S | undefined
  /** The messages of the context, oldest first; the newest compaction left the first of them. Large media are references. */
  contextMessages(): Promise<readonly HistoryMessage[]>
  /**
   * Repaired view of the context for the model: every tool call has exactly one result, neighbours merged, media inline. A model that does not
   * take images (default: it does) or videos (default: it does not) gets a notice in place of each.
   */
  project(takes?: Partial<Takes>): Promise<LlmMessage[]>
  /** Content of messages with its media inline, as they were given; a text stands for a medium whose file cannot be read. */
  inline(content: readonly WirePart[]): Promise<readonly WirePart[]>
  /** Tells what is on record and was never told, because a process died in between. Every write waits for it. */
  recover(): Promise<void>
  /** Where the records end that every state has been told the place of (`located`): those on disk. */
  end(): number
  /** Records on disk by position, with bounded memory. */
  records(range: LogRange): AsyncIterable<LogEntry<HistoryRecord>>
  /** Instant of the oldest record whose events may not have been told; undefined after `recover`. */
  untoldSince(): Date | undefined
}

export interface Written {
  /**
   * Tells the events of the first `count` records that were given (default: all). Every write must be told to its end, beginning in the
   * pass in which it resolved: whatever waits in between lets the events of later records come before its own.
   */
  tell(count?: number): void
}

/** A file that content of a session refers to (`source { kind: session_media, file_id }`). */
export interface SessionMedium {
  /** Absolute path. */
  readonly file: string
  /** Bytes. */
  readonly size: number
  /** Of an upload as it was declared, else as its first bytes say: `application/octet-stream` for what is no image and no video. */
  readonly media_type: string
  /** Of an upload. */
  readonly attachment?: Attachment
  read(): Promise<Buffer>
}

/** An upload that became a medium of an agent (`source { kind: session_media, file_id }`, or a `file` part). */
export interface Attachment {
  /** As the upload's. */
  readonly file_id: string
  readonly name: string
  readonly media_type: string
  /** Bytes. */
  readonly size: number
  /** Absolute path; the name begins with the id. */
  readonly file: string
  /** What the model gets in its place. */
  readonly shown?: { readonly file: string; readonly media_type: string }
  /** For the model, beside the medium. */
  readonly note?: string
  /** No model gets the medium; `note` says why. */
  readonly unfit?: boolean
}

/** An attachment to be. `source` and `data`: the bytes, or the absolute path of a file that holds them. */
export interface NewAttachment extends Pick<Attachment, 'file_id' | 'name' | 'media_type' | 'note' | 'unfit'> {
  readonly source: string | Uint8Array
  readonly shown?: { readonly data: string | Uint8Array; readonly media_type: string }
}

/** The journal of an agent that nobody needs to load: as it is on disk now. */
export interface StoredHistory<S> {
  /** A state that follows from the records. Of one of `HistoryStates` only what is behind the last checkpoint is read. */
  readonly state: S
  readonly end: number
  records(range: LogRange): AsyncIterable<LogEntry<HistoryRecord>>
}

export interface Histories {
  /**
   * Reads a state from the journal in an agent's directory (absolute), of a session that is not loaded. Nothing is made or written. `known`: what
   * an earlier call answered, which is brought up to date; of states that do not rewind.
   */
  stored<S>(dir: string, spec: StateSpec<S>, known?: Pick<StoredHistory<S>, 'state' | 'end'>): Promise<StoredHistory<S>>
  of(agent: AgentHost): Promise<History>
  /** Media of messages; undefined for an unknown id. */
  medium(session: Session, file_id: string): Promise<SessionMedium | undefined>
  /** Makes an upload a medium of the agent: on disk when it resolves. One that the agent has already stays as it is. */
  attach(agent: AgentHost, attachment: NewAttachment): Promise<Attachment>
  /**
   * Copies the journal of an agent, as far as it is on record now, into another agent's directory (absolute), and these records behind it. All of
   * it counts as told. Large media lie in files beside it, which the caller copies afterwards.
   */
  copy(agent: AgentHost, dir: string, ...records: HistoryRecord[]): Promise<void>
  /**
   * Begins the journal of a new agent, in its directory (absolute), with what the model of this one sees now, and these records behind it. All
   * of it counts as told. Large media lie in files beside it, which the caller copies.
   */
  copyContext(agent: AgentHost, dir: string, ...records: HistoryRecord[]): Promise<void>
  /** Whether the journal is empty or the process that wrote it closed it: nothing in it is untold. Reads its last record only. */
  wasClosed(agent: AgentHost): Promise<boolean>
  /** Whether a prompt of this id was ever accepted. Reads the journal back to its last checkpoint, and keeps nothing. */
  hasPrompt(agent: AgentHost, prompt_id: string): Promise<boolean>
}
export const Histories = serviceToken<Histories>('history')

// biome-ignore lint/suspicious/noExplicitAny: each is called with its own state only
type AnyState = StateSpec<any>
/** States that are computed while a journal is read first; others are read for when they are asked for. */
export const HistoryStates = extensionPoint<AnyState>(
  'history-states',
  undefined,
  { name: 'string', version: 'number', initial: 'function', reduce: 'function', records: 'set?' },
  { initial: () => undefined, reduce: state => state, located: () => undefined, save: () => undefined, load: () => undefined }
)

/** A pack whose work outlives the turn that began it. */
export interface UndoFollower {
  readonly name: string
  /**
   * Ends what the agent began behind the message before number `from` (0: whatever it ever began) and waits until it is over; the agent is not
   * told. Called when `context.undone` is on disk, while the agent is idle and takes nothing in. What it throws is logged; the undo stands.
   */
  undone(agent: AgentHost, from: number): Promise<void>
}
export const UndoFollowers = extensionPoint<UndoFollower>('undo-followers', { undone: 'promise' }, { name: 'string', undone: 'function' })

/** Asks all of them. One that fails is put down to its pack, unless the agent was closed meanwhile: with it all work ended. */
export async function followUndo(
  followers: readonly Contribution<UndoFollower>[],
  accounts: Accounts,
  agent: AgentHost,
  from: number
): Promise<void> {
  await Promise.all(
    followers.map(async ({ pack, item }) => {
      const what = `undo follower ${item.name}`
      try {
        await accounts.onAccountOf(pack, what, () => item.undone(agent, from))
      } catch (error) {
        if (!agent.scope.closed) accounts.blame(pack, what, error, { session_id: agent.session.id })
      }
    })
  )
}

/** An event that follows from a record. */
export interface RecordEvent {
  /** Type on the wire. */
  readonly type: string
  readonly payload: Readonly<Record<string, unknown>>
  /** Instant of the record. */
  readonly at: Date
}

/** Says which events follow from records. After a crash the same events are made again, and those told that the event journal does not have. */
export interface RecordEvents extends LooksAtRecords {
  /** Pure. `before`: the conversation without the record. */
  events(
    record: HistoryRecord,
    before: ConversationView,
    agent: { readonly id: string; readonly session_id: string }
  ): readonly RecordEvent[]
  /** Emits one of them: for every record that was written, in order. */
  tell(agent: AgentHost, event: RecordEvent): void
  /** Who tells this one is another pack, which is away and comes back: it waits, with all events behind it. */
  away?(event: RecordEvent): boolean
  /** An event that an earlier process told, although it is not on record how far it came: for state that goes with events. */
  known?(agent: AgentHost, event: RecordEvent): void
}
export const RecordEvents = extensionPoint<RecordEvents>(
  'record-events',
  undefined,
  { events: 'function', tell: 'function', records: 'set?' },
  { events: () => [], tell: () => undefined, away: () => false, known: () => undefined }
)

/** What the events of a record may depend on. */
export interface ConversationView {
  readonly prompts: ReadonlyMap<string, PromptRecord>
  /** The last turn that began. */
  readonly turn?: TurnRecord | undefined
  readonly openCalls: ReadonlyMap<string, LlmToolCall>
  /** Those of them that were shown. */
  readonly begun: ReadonlySet<string>
  readonly openStep?: OpenStep | undefined
}

/** Who tells events of records: one of the items of a pack, which may be swapped meanwhile. */
export interface Teller extends LooksAtRecords {
  readonly pack: string
  /** Which of the items of the pack. */
  readonly nth: number
  /** Undefined: the pack is away, and comes back. */
  readonly item: RecordEvents | undefined
  readonly events: RecordEvents['events']
}

/** A record's event, and who tells it. */
export interface EventDraft extends RecordEvent {
  readonly teller: Teller
}
