/** The engine of one agent: accepts prompts and notices, runs one turn after the other, steers, aborts, and recovers after a crash. */
import { AppError, type Connection, type ErrorSpec } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord, Tracked, WirePart, Written } from '../history/index.ts'
import type { ResolvedModel } from '../llm/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import { isUserAbort } from '../tools/index.ts'
import { AgentBinding } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentRecordEvent } from './events.ts'
import { type Notice, noticeAccepted, noticeDropped, noticeState, startsTurn } from './notices.ts'
import { PromptQueue, type QueuedPrompt } from './queue.ts'
import { catchUp } from './recovery.ts'
import { backoff, pause } from './retry.ts'
import {
  type Agent,
  type AgentSettings,
  type InFlightTurn,
  type NoticeFate,
  type NoticeInput,
  type Prompt,
  PromptCompleted,
  type PromptInput,
  PromptInUse,
  PromptMissing,
  type PromptOutcome
} from './service.ts'
import { Turn } from './turn.ts'
import { startRecords } from './turn-records.ts'

export class AgentEngine implements Agent {
  readonly host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #emit: AgentEmit
  readonly #binding: AgentBinding
  readonly #queue = new PromptQueue()
  /** Those that wait; the records say which. */
  readonly #notices: Tracked<readonly Notice[]>
  #turn: Turn | undefined
  #last: Turn | undefined
  /** What comes in is taken one after the other. */
  #entering: Promise<unknown> = Promise.resolve()
  /** Keeps turns from beginning. */
  #exclusive: { readonly abort: () => void; readonly done: Promise<unknown> } | undefined
  #stopped = false
  readonly #closing = new AbortController()

  private constructor(host: AgentHost, history: History, deps: AgentDeps, binding: AgentBinding, notices: Tracked<readonly Notice[]>) {
    this.host = host
    this.#history = history
    this.#deps = deps
    this.#emit = deps.emit(host)
    this.#binding = binding
    this.#notices = notices
  }

  /** Closes what a dead process left open and puts accepted prompts back into the queue; `start` runs them. */
  static async open(host: AgentHost, history: History, deps: AgentDeps): Promise<AgentEngine> {
    const notices = await history.track(noticeState)
    const engine = new AgentEngine(host, history, deps, await AgentBinding.open(host, history, deps), notices)
    if (!host.session.writable) return engine
    await catchUp(host, history, deps)
    deps.engines.set(host, engine)
    for (const prompt of history.prompts()) {
      if (prompt.status === 'queued') engine.#queue.push({ ...prompt, origin: prompt.origin ?? { kind: 'user' } })
    }
    return engine
  }

  /** Runs what has waited longest: a prompt, else a notice. */
  start(): void {
    if (this.#turn || this.#stopped || this.#exclusive) return
    const head = this.#queue.shift() ?? this.#next()
    if (!head) return
    const turn_id = this.#nextTurn()
    this.#begin(turn_id, head, () => this.#insist(startRecords(turn_id, head)))
  }

  /** Tells what follows from a record. */
  tell(event: AgentRecordEvent): void {
    const { session, id } = this.host
    if (event.name === 'session.prompt') session.promptSubmitted(event.text)
    else if (event.name !== 'session.work') {
      const turn = 'turnId' in event.payload && event.payload.turnId === this.#turn?.turn_id ? this.#turn : undefined
      const emit = turn?.emit ?? this.#emit
      emit(event.name, event.payload, { at: event.at })
    } else if (event.ended === undefined) session.work.turnStarted(id)
    else session.work.turnEnded(id, event.ended, { goesOn: !this.#stopped && this.#next() !== undefined })
  }

  settings(): AgentSettings {
    return this.#binding.settings
  }

  async configure(change: Partial<AgentSettings>): Promise<void> {
    if (await this.#binding.configure(change)) this.#status()
  }

  announce(change: { readonly permission?: string } = {}): void {
    this.#status(change)
  }

  model(): ResolvedModel {
    return this.#binding.model()
  }

  effort(): string {
    return this.#binding.effort()
  }

  knows(prompt_id: string): boolean {
    return this.#history.prompt(prompt_id) !== undefined
  }

  checkPromptId(prompt_id: string): void {
    const known = this.#history.prompt(prompt_id)
    if (known && ['queued', 'steered', 'running'].includes(known.status)) throw new AppError(PromptInUse)
    if (known) throw new AppError(PromptCompleted, { data: { aborted: false } })
  }

  submit(input: PromptInput): Promise<Prompt> {
    return this.#inOrder(() => this.#accept(input))
  }

  async run(input: PromptInput, signal?: AbortSignal): Promise<PromptOutcome> {
    signal?.throwIfAborted()
    let settled: NonNullable<QueuedPrompt['settled']> = () => {}
    const outcome = new Promise<Omit<PromptOutcome, 'prompt_id'>>(resolve => {
      settled = resolve
    })
    const { prompt_id } = await this.#inOrder(() => this.#accept(input, settled))
    if (!signal) return { prompt_id, ...(await outcome) }
    let abort = () => {}
    const failed = new Promise<never>((_, reject) => {
      abort = () => void this.#abortPrompt(prompt_id, isUserAbort(signal)).catch(reject)
    })
    signal.addEventListener('abort', abort, { once: true })
    if (signal.aborted) abort()
    try {
      return { prompt_id, ...(await Promise.race([outcome, failed])) }
    } finally {
      signal.removeEventListener('abort', abort)
    }
  }

  inject(notice: NoticeInput): Promise<NoticeFate> {
    return this.#inOrder(() => this.#inject(notice))
  }

  async exclusive<T>(work: (signal: AbortSignal) => Promise<T>, refusal: ErrorSpec = SessionBusy): Promise<T> {
    const controller = new AbortController()
    let end = () => {}
    await this.#inOrder(async () => {
      if (this.#stopped || this.#turn || this.#exclusive || this.#next()) throw new AppError(refusal)
      const done = new Promise<void>(resolve => {
        end = resolve
      })
      this.#exclusive = { abort: () => controller.abort(new Error('the agent is needed or closed')), done }
    })
    try {
      return await work(controller.signal)
    } finally {
      this.#exclusive = undefined
      end()
      this.start()
    }
  }

  active(): Prompt | undefined {
    return this.#turn?.prompt && shown(this.#turn.prompt, 'running')
  }

  queued(): readonly Prompt[] {
    return this.#queue.items().map(item => shown(item, 'queued'))
  }

  async steer(prompt_ids: readonly string[]): Promise<void> {
    const turn = this.#turn
    const once = new Set(prompt_ids).size === prompt_ids.length
    if (!turn?.accepting || turn.signal.aborted || !once || !prompt_ids.every(id => this.#queue.has(id))) throw new AppError(PromptMissing)
    const steered = this.#queue.take(prompt_ids)
    turn.steered.push(...steered)
    const ids = steered.map(item => item.prompt_id)
    try {
      await this.#history.append({ type: 'prompt.steered', turn_id: turn.turn_id, prompt_ids: ids, active_prompt_id: turn.id })
    } catch (error) {
      turn.steered = turn.steered.filter(item => !ids.includes(item.prompt_id))
      this.#queue.restore(steered.filter(item => !turn.consumed.includes(item) && !this.#queue.has(item.prompt_id)))
      throw error
    }
  }

  abortPrompt(prompt_id: string): Promise<void> {
    return this.#abortPrompt(prompt_id, true)
  }

  async #abortPrompt(prompt_id: string, user: boolean): Promise<void> {
    const turn = this.#turn
    if (turn?.taken().some(item => item.prompt_id === prompt_id)) return await this.#cancel(turn, user)
    if (await this.#withdraw([prompt_id])) return
    if (this.#history.prompt(prompt_id)) throw new AppError(PromptCompleted, { data: { aborted: false } })
    throw new AppError(PromptMissing)
  }

  /** Prompts that wait, also for the next step of the running turn, are over: they never run. False when none of them waits. */
  async #withdraw(prompt_ids: readonly string[]): Promise<boolean> {
    const turn = this.#turn
    const steered = turn?.steered.filter(item => prompt_ids.includes(item.prompt_id)) ?? []
    if (turn) turn.steered = turn.steered.filter(item => !steered.includes(item))
    const taken = [...steered, ...this.#queue.take(prompt_ids)]
    if (taken.length === 0) return false
    const ids = taken.map(item => item.prompt_id)
    try {
      await this.#history.append({ type: 'prompt.settled', prompt_ids: ids, status: 'aborted' })
    } catch (error) {
      this.#queue.restore(taken)
      this.start()
      throw error
    }
    this.#queue.forget(ids)
    for (const item of taken) item.settled?.(neverRan)
    return true
  }

  async end(): Promise<void> {
    await this.#entering
    await this.#endExclusive()
    await this.#withdrawAll()
    await this.abort(false)
  }

  /** Nobody waits any more. */
  async #withdrawAll(): Promise<void> {
    const steered = this.#turn?.steered ?? []
    await this.#withdraw([...this.#queue.items(), ...steered].map(item => item.prompt_id))
    const notice_ids = this.#notices.value.map(notice => notice.notice_id)
    if (notice_ids.length > 0) await this.#history.append(noticeDropped.of({ notice_ids }))
  }

  async #endExclusive(): Promise<void> {
    this.#exclusive?.abort()
    await this.#exclusive?.done
  }

  async abort(user: boolean): Promise<void> {
    if (this.#turn) await this.#cancel(this.#turn, user)
  }

  inFlight(): InFlightTurn | undefined {
    return this.#turn?.visible ? this.#turn.inFlight.snapshot() : undefined
  }

  usage(): ReturnType<Agent['usage']> {
    const max = this.#binding.maxTokens()
    return {
      total: this.#history.usage(),
      context_tokens: this.#history.contextTokens(),
      ...(max === undefined ? {} : { max_context_tokens: max }),
      turn_count: this.#history.turnCount()
    }
  }

  /** The running turn waits for the user: shown as its phase. */
  awaitsApproval(approval: { readonly approvalId: string; readonly toolCallId: string }): void {
    if (this.#turn?.visible) this.#turn.inFlight.awaitsApproval(approval)
  }

  /** A client subscribed in the middle of a turn: shows that one whether it has the whole text. */
  tellLengths(client: Connection): void {
    if (this.#turn?.visible)
      this.#turn.inFlight.tellLengths((name, payload, target) => this.#emit(name, payload, { ...target, only: client }))
  }

  /** Takes nothing more, cancels the running turn and waits for its end. Queued prompts stay accepted and start with the next load. */
  async close(): Promise<void> {
    this.#stopped = true
    await this.#entering
    this.#closing.abort()
    await this.#endExclusive()
    // The next process would not run them.
    if (this.host.record.type === 'sub' && this.host.session.writable) await this.#withdrawAll().catch(err => this.#failed(err))
    await this.abort(false)
    await this.#last?.done
    if (this.host.session.writable) this.host.session.leaves(this.host.id, this.#next() !== undefined)
    for (const item of this.#queue.items()) item.settled?.(neverRan)
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#entering.then(work)
    this.#entering = done.catch(() => undefined) // the caller hears of it
    return done
  }

  async #accept(input: PromptInput, settled?: QueuedPrompt['settled']): Promise<Prompt> {
    if (this.#stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    const id = input.prompt_id ?? `msg_${this.#deps.newId()}`
    this.checkPromptId(id)
    const origin = input.origin ?? { kind: 'user' }
    const { content } = input
    // A prompt that starts at once is accepted and its turn begun by one write.
    const starts = this.#isFree()
    const turn_id = this.#nextTurn()
    const start = starts ? startRecords(turn_id, { prompt_id: id, origin }) : []
    const waits = starts ? { starts } : { queue_length: this.#queue.length + 1 }
    const written = await this.#history.write({ type: 'prompt.accepted', prompt_id: id, content, origin, ...waits }, ...start)
    const known = this.#history.prompt(id)
    const item: QueuedPrompt = {
      prompt_id: id,
      content: known?.content ?? content, // large media are references there
      origin,
      created_at: known?.created_at ?? this.#deps.now().toISOString(),
      ...(settled ? { settled } : {})
    }
    written.tell(1)
    const prompt = shown(item, starts ? 'running' : 'queued')
    if (starts) {
      this.#begin(turn_id, item, async () => written)
      return prompt
    }
    this.#queue.push(item)
    this.start()
    return prompt
  }

  async #inject({ content, origin, admission = 'activeOrNewTurn', mergeable = true, ...given }: NoticeInput): Promise<NoticeFate> {
    if (this.#stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    if (given.id !== undefined && (await this.#knowsNotice(given.id))) return 'known'
    const turn = admission !== 'newTurn' && this.#turn?.accepting && !this.#turn.signal.aborted ? this.#turn : undefined
    if (admission === 'activeTurnOnly' && !turn) return 'refused'
    const parts: readonly WirePart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content
    const turn_scoped = admission === 'activeTurnOnly' || (given.turn_scoped === true && admission !== 'newTurn')
    const notice: Notice = {
      notice_id: given.id ?? `msg_${this.#deps.newId()}`,
      content: parts,
      origin,
      admission,
      mergeable,
      turn_scoped,
      ...(turn && turn_scoped ? { turn_id: turn.turn_id } : {})
    }
    if (startsTurn(notice) && this.#isFree()) {
      const turn_id = this.#nextTurn()
      const written = await this.#history.write(...startRecords(turn_id, notice))
      this.#begin(turn_id, notice, async () => written)
      return 'starts'
    }
    await this.#history.append(noticeAccepted.of(notice))
    this.start()
    return turn ? 'joins' : startsTurn(notice) ? 'starts' : 'waits'
  }

  async #knowsNotice(id: string): Promise<boolean> {
    return this.#notices.value.some(notice => notice.notice_id === id) || (await this.#history.messages.find(id)) !== undefined
  }

  /** What comes now may begin at once. */
  #isFree(): boolean {
    return !this.#turn && !this.#exclusive && this.#next() === undefined
  }

  /** What begins next. */
  #next(): QueuedPrompt | Notice | undefined {
    return this.#queue.items()[0] ?? this.#notices.value.find(startsTurn)
  }

  #nextTurn(): number {
    return (this.#history.lastTurn()?.turn_id ?? -1) + 1
  }

  /** `start`: the begin of the turn on record, not told; undefined when the agent was closed first. */
  #begin(turn_id: number, head: QueuedPrompt | Notice, start: () => Promise<Written | undefined>): void {
    const turn = new Turn(turn_id, head, {
      host: this.host,
      history: this.#history,
      deps: this.#deps,
      emit: this.#emit,
      bind: () => this.#binding.forTurn(),
      notices: () => this.#notices.value,
      measured: () => this.#status(),
      insist: records => this.#insist(records),
      ending: (left, taken) => {
        this.#queue.restore(left)
        this.#queue.forget(taken.map(item => item.prompt_id))
      },
      settled: () => this.#release(turn)
    })
    this.#turn = turn
    this.#last = turn
    turn.done = start()
      .then(written => written && turn.run(written))
      .catch((err: unknown) => this.#failed(err))
      .then(() => this.#release(turn))
  }

  #failed(err: unknown): void {
    this.#deps.log.error({ err, session_id: this.host.session.id }, 'the end of a turn or of what waits could not be recorded')
  }

  /** The next prompt may start. */
  #release(turn: Turn): void {
    if (this.#turn === turn) this.#turn = undefined
    for (const item of turn.taken()) item.settled?.(turn.outcome ?? neverRan)
    this.start()
  }

  async #cancel(turn: Turn, user: boolean): Promise<void> {
    turn.abort(user)
    await turn.done
  }

  /**
   * Records the begin or the end of a turn, again and again while the disk refuses: without it the agent can do nothing that counts, and
   * clients see it at work until then. Undefined when the agent was closed first; what is not on record, the next load makes up for.
   */
  async #insist(records: readonly (CoreRecord | HistoryRecord)[]): Promise<Written | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#history.write(...records)
      } catch (err) {
        this.#deps.log.error({ err, session_id: this.host.session.id, attempt }, 'the begin or the end of a turn could not be saved')
        await pause(backoff(attempt, this.#deps.retryBaseMs), this.#closing.signal)
        if (this.#closing.signal.aborted) return undefined
      }
    }
  }

  #status(change: { readonly permission?: string } = {}): void {
    const max = this.#binding.maxTokens()
    const tokens = this.#history.contextTokens()
    const { model } = this.#binding.settings
    this.#emit('agentStatusUpdated', {
      ...this.#deps.facts(this.host),
      ...change,
      ...(model === undefined ? {} : { model }),
      ...(max === undefined ? {} : { thinkingEffort: this.effort(), maxContextTokens: max }),
      contextTokens: tokens,
      ...(max === undefined ? {} : { contextUsage: Math.min(1, tokens / max) }),
      usage: {
        byModel: { ...this.#history.usageByModel() },
        total: this.#history.usage(),
        ...(this.#turn ? { currentTurn: this.#turn.usage() } : {})
      }
    })
  }
}

/** Withdrawn, or left to the next process. */
const neverRan: Parameters<NonNullable<QueuedPrompt['settled']>>[0] = {
  reason: 'cancelled',
  interrupt_reason: 'aborted',
  text: '',
  truncated: false,
  steps: 0,
  usage: { inputOther: 0, output: 0, inputCacheRead: 0, inputCacheCreation: 0 }
}

function shown(item: QueuedPrompt, status: Prompt['status']): Prompt {
  return { prompt_id: item.prompt_id, user_message_id: item.prompt_id, status, content: [...item.content], created_at: item.created_at }
}
