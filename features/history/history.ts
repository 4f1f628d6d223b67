/** The history of one agent: its journal, the conversation that follows from it, its messages and its context. */
import { isDeepStrictEqual } from 'node:util'
import { isRecord, type JournaledEvent, type LogEntry, type LogRange, laterPass, yieldToLoop } from '../../kernel/index.ts'
import type { LlmMessage, LlmToolCall, TokenUsage } from '../llm/index.ts'
import { AgentLog, type AgentLogPorts, type Untold } from './agent-log.ts'
import { type Context, contextState } from './context.ts'
import type { Conversation } from './conversation.ts'
import { conversationState } from './conversation-saved.ts'
import type { HistoryRecord, StateSpec, Tracked } from './define.ts'
import { hasKeptMedia, hasLargeMedia, type Media } from './media.ts'
import { MessageLog } from './message-log.ts'
import { inlined, type Projected } from './project.ts'
import type { CoreRecord } from './records.ts'
import type { ContextSize, ConversationView, EventDraft, History, Messages, Takes, Undoable, Written } from './service.ts'
import type { HistoryMessage, LastUndo, OpenStep, Origin, PromptRecord, TurnRecord, WirePart } from './types.ts'

export interface HistoryPorts extends Omit<AgentLogPorts, 'states' | 'draft' | 'lastMessage'> {
  readonly session_id: string
  /** States of other packs that are wanted from the beginning. */
  readonly states: readonly StateSpec<unknown>[]
  readonly draft: (record: HistoryRecord, before: ConversationView) => readonly EventDraft[]
  /** The event journal behind a mark, as far as it may be about this agent; undefined when it does not reach back so far. */
  readonly eventsAfter: (mark: Untold['after']) => Promise<readonly JournaledEvent[] | undefined>
  /** Where large media lie; without it they stay in the records. */
  readonly media?: Media
  /** Resolves when the event journal is on disk as far as it was given. */
  readonly flushed: () => Promise<void>
  /** An event that was told before. */
  readonly known: (draft: EventDraft) => void
}

export class AgentHistory implements History {
  readonly messages: Messages
  readonly #ports: HistoryPorts
  readonly #log: AgentLog
  readonly #conversation: { readonly value: Conversation }
  #untold: Untold | undefined
  #recovering: Promise<void> | undefined
  /** Writes that were asked for and not taken in: media of theirs, or of one before, are on their way to the disk. Never rejects. */
  #line: Promise<unknown> | undefined

  private constructor(ports: HistoryPorts, log: AgentLog, conversation: Tracked<Conversation>, untold: Untold) {
    this.#ports = ports
    this.#log = log
    this.#conversation = conversation
    // Another process that owns the session tells its own events.
    this.#untold = ports.writable && untold.events.length > 0 ? untold : undefined
    this.messages = new MessageLog({
      session_id: ports.session_id,
      conversation: () => conversation.value,
      end: () => log.end,
      settled: () => log.settled(),
      scan: range => log.scan(range)
    })
  }

  /** Reads the journal. */
  static async open(ports: HistoryPorts): Promise<AgentHistory> {
    const state: { conversation?: Tracked<Conversation> } = {}
    const log = new AgentLog({
      ...ports,
      states: [conversationState as StateSpec<unknown>, ...ports.states],
      draft: (record, before) => ports.draft(record, before as Conversation), // the first state is the conversation
      lastMessage: () => ({ number: (state.conversation?.value.messages ?? 0) - 1, time: state.conversation?.value.lastTime ?? 0 })
    })
    const untold = await log.open()
    state.conversation = await log.track(conversationState)
    return new AgentHistory(ports, log, state.conversation, untold)
  }

  lastTurn(): TurnRecord | undefined {
    return this.#state.turn
  }

  turnCount(): number {
    return this.#state.turns
  }

  prompts(): readonly PromptRecord[] {
    return [...this.#state.prompts.values()]
  }

  prompt(prompt_id: string): PromptRecord | undefined {
    return this.#state.prompts.get(prompt_id)
  }

  usage(): TokenUsage {
    return this.#state.usage
  }

  usageByModel(): Readonly<Record<string, TokenUsage>> {
    return this.#state.usageByModel
  }

  contextTokens(): number {
    return this.#state.contextTokens()
  }

  contextSize(): ContextSize {
    const { measured, since, estimated } = this.#state.tokens
    return { measured, total: measured + since, estimated }
  }

  compactions(): number {
    return this.#state.compactions
  }

  undoable(): Undoable {
    const { openings, openingsLost, compactions } = this.#state
    const { floor } = this.#log
    const turns = openings
      .filter(({ number }) => number >= floor)
      .map(({ number, tokens, prompt }) => ({ from: number, tokens: tokens.measured + tokens.since, prompt_id: prompt }))
    return { turns, end: openingsLost || turns.length < openings.length ? 'lost' : compactions > 0 ? 'compaction' : 'beginning' }
  }

  lastUndo(): LastUndo | undefined {
    return this.#state.undone
  }

  hasToolCall(id: string): boolean {
    return this.#state.knowsCall(id)
  }

  openStep(): OpenStep | undefined {
    return this.#state.openStep
  }

  openCalls(): readonly { readonly call: LlmToolCall; readonly begun: boolean }[] {
    const { openCalls, begun } = this.#state
    return [...openCalls.values()].map(call => ({ call, begun: begun.has(call.id) }))
  }

  reminder(variant: string): Origin | undefined {
    return this.#state.reminders.get(variant)?.at(-1)?.origin
  }

  append(...records: (CoreRecord | HistoryRecord)[]): Promise<void> {
    return this.write(...records).then(written => written.tell())
  }

  certain(): Promise<void> | undefined {
    return this.#log.certain()
  }

  write(...records: (CoreRecord | HistoryRecord)[]): Promise<Written> {
    const given = records as HistoryRecord[] // core records are records
    const { media, writable } = this.#ports
    const keeper = media && writable && hasLargeMedia(given) ? media : undefined
    const waits = keeper || this.#line || this.#untold || this.#recovering
    return waits ? this.#writeInLine(given, keeper) : this.#log.write(given)
  }

  async #writeInLine(given: readonly HistoryRecord[], keeper: Media | undefined): Promise<Written> {
    const taking = this.#takeIn(this.#line, async () => (keeper ? await keeper.keep(given) : given))
    const line = taking
      .catch(() => undefined) // the caller hears of it
      .then(() => {
        if (this.#line === line) this.#line = undefined
      })
    this.#line = line
    return (await taking).writing
  }

  /** In the order of the calls, and only when what an earlier process left is told. */
  async #takeIn(
    before: Promise<unknown> | undefined,
    ready: () => Promise<readonly HistoryRecord[]>
  ): Promise<{ readonly writing: Promise<Written> }> {
    await before
    if (this.#untold || this.#recovering) await this.recover()
    return { writing: this.#log.write(await ready()) }
  }

  async inline(content: readonly WirePart[]): Promise<readonly WirePart[]> {
    const { media } = this.#ports
    return media && hasKeptMedia(content) ? await media.inline(content) : content
  }

  track<S>(spec: StateSpec<S>): Promise<Tracked<S>> {
    return this.#log.track(spec)
  }

  tracked<S>(spec: StateSpec<S>): S | undefined {
    return this.#log.tracked(spec)
  }

  async contextMessages(): Promise<readonly HistoryMessage[]> {
    return (await this.#context()).messages()
  }

  /** Complete: contents that were accepted before it begins are read. */
  async #context(): Promise<Context> {
    await this.#line // what was asked for before belongs to the context
    const spec = contextState(() => this.#state, this.#ports.session_id)
    for (;;) {
      if (this.#state.context.at < 0) await this.#log.settled()
      const { value } = await this.#log.track<Context>(spec, () => Math.max(0, this.#state.context.at))
      const lacking = value.lacking()
      if (!lacking) return value
      value.fill(lacking, (await this.messages.find(lacking.id))?.content ?? [])
    }
  }

  async project({ images = true, videos = false }: Partial<Takes> = {}): Promise<LlmMessage[]> {
    const takes = { images, videos }
    return await this.#withMedia((await this.#context()).project(takes), takes)
  }

  /** Where the records end that are on disk now. */
  async recorded(): Promise<number> {
    await this.#line
    await this.#log.settled()
    return this.#log.end
  }

  writing(): Promise<void> | undefined {
    const released = this.#log.released()
    if (!this.#line && !this.#log.writing && !released) return undefined
    return Promise.all([this.recorded(), released]).then(laterPass)
  }

  end(): number {
    return this.#log.end
  }

  records(range: LogRange): AsyncIterable<LogEntry<HistoryRecord>> {
    return this.#log.scan(range)
  }

  untoldSince(): Date | undefined {
    return this.#untold?.events[0]?.at
  }

  recover(): Promise<void> {
    this.#recovering ??= this.#recover().finally(() => {
      this.#recovering = undefined
    })
    return this.#recovering
  }

  async #recover(): Promise<void> {
    const untold = this.#untold
    if (untold) {
      // Without a journal that reaches back to the mark nobody can go on from there: clients read the state anew.
      const journaled = await this.#ports.eventsAfter(untold.after)
      const left = new Map<string, JournaledEvent[]>()
      for (const event of journaled ?? []) {
        const same = left.get(event.type)
        if (same) same.push(event)
        else left.set(event.type, [event])
      }
      for (const draft of untold.events) {
        if (isTold(draft, left.get(draft.type)) || !journaled) this.#ports.known(draft)
        else this.#log.tell(draft)
        await yieldToLoop()
      }
      this.#log.allTold()
    }
    this.#untold = undefined
  }

  async close(): Promise<void> {
    await this.#line
    // What was told then goes on record, and the next opening need not look for it.
    if (this.#ports.writable) await this.#ports.flushed()
    await this.#log.close()
  }

  get #state(): Conversation {
    return this.#conversation.value
  }

  /** Media that lie in files, one after the other: what is held at once is what the model gets anyway. */
  async #withMedia({ messages, kept }: Projected, takes: Takes): Promise<LlmMessage[]> {
    const { media } = this.#ports
    for (const at of kept) {
      const message = messages[at]
      if (message) messages[at] = await inlined(message, takes, async part => (media ? await media.forModel(part, takes) : [part]))
    }
    return messages
  }
}

/** Whether the event of the draft is among these of its type (then it is taken out): one that says at least the same. */
function isTold(draft: EventDraft, events: JournaledEvent[] = []): boolean {
  const wanted: unknown = JSON.parse(JSON.stringify(draft.payload))
  const at = events.findIndex(({ payload }) => holds(payload, wanted))
  if (at >= 0) events.splice(at, 1)
  return at >= 0
}

function holds(value: unknown, wanted: unknown): boolean {
  if (!isRecord(wanted)) return isDeepStrictEqual(value, wanted)
  if (typeof value !== 'object' || value === null) return false
  return Object.entries(wanted).every(([key, each]) => holds((value as Record<string, unknown>)[key], each))
}
