/** The engine of one agent: accepts prompts and notices, runs one turn after the other, steers, aborts, and recovers after a crash. */
import { AppError, type Connection } from '../../kernel/index.ts'
import type { History, Tracked, WirePart } from '../history/index.ts'
import type { LlmRequest, ResolvedModel } from '../llm/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import { isUserAbort } from '../tools/index.ts'
import { AgentBinding } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentRecordEvent } from './events.ts'
import { type Failures, failureState } from './failure.ts'
import { sentParts } from './media.ts'
import { type Notice, noticeAccepted, noticeDropped, noticeState, startsTurn } from './notices.ts'
import type { QueuedPrompt } from './queue.ts'
import { catchUp, catchUpReading } from './recovery.ts'
import { requestOf } from './request.ts'
import {
  type Agent,
  type AgentSettings,
  type ExclusiveOptions,
  type Failure,
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
import { statusOf, toldTokens } from './status.ts'
import type { AtStop } from './stopping.ts'
import type { Turn } from './turn.ts'
import { startRecords } from './turn-records.ts'
import { type Judgement, neverRan, Turns } from './turns.ts'

export class AgentEngine implements Agent {
  readonly host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #emit: AgentEmit
  readonly #binding: AgentBinding
  readonly #turns: Turns
  readonly #failures: Tracked<Failures>
  /** What comes in is taken one after the other. */
  #entering: Promise<unknown> = Promise.resolve()
  /** Prompts whose abort is being recorded: what becomes of them, `#withdraw` says. */
  readonly #withdrawing = new Set<string>()

  private constructor(
    host: AgentHost,
    history: History,
    deps: AgentDeps,
    parts: { emit: AgentEmit; binding: AgentBinding; turns: Turns; failures: Tracked<Failures> }
  ) {
    const { emit, binding, turns, failures } = parts
    this.host = host
    this.#failures = failures
    this.#history = history
    this.#deps = deps
    this.#emit = emit
    this.#binding = binding
    this.#turns = turns
  }

  /** Closes what a dead process left open and puts accepted prompts back into the queue; `start` runs them. */
  static async open(host: AgentHost, history: History, deps: AgentDeps): Promise<AgentEngine> {
    const notices = await history.track(noticeState)
    const failures = await history.track(failureState)
    const binding = await AgentBinding.open(host, history, deps)
    const emit = deps.emit(host)
    const turns: Turns = new Turns({
      host,
      history,
      deps,
      emit,
      notices,
      binding,
      measured: () => engine.announce()
    })
    const engine: AgentEngine = new AgentEngine(host, history, deps, { emit, binding, turns, failures })
    if (!host.session.writable) {
      await catchUpReading(host, history)
      return engine
    }
    await catchUp(host, history, deps)
    deps.engines.set(host, engine)
    for (const prompt of history.prompts()) {
      if (prompt.status === 'queued') turns.queue.push({ ...prompt, origin: prompt.origin ?? { kind: 'user' } })
    }
    return engine
  }

  /** Runs what has waited longest: a prompt, else a notice. */
  start(): void {
    this.#turns.start()
  }

  /** Tells what follows from a record. */
  tell(event: AgentRecordEvent): void {
    const { session, id } = this.host
    const turns = this.#turns
    if (event.name === 'session.prompt') session.promptSubmitted(event.text, { at: event.at })
    else if (event.name === 'session.undo') session.promptsUndone(event.text, { at: event.at })
    else if (event.name !== 'session.work') {
      const isOfTurn = 'turnId' in event.payload ? event.payload.turnId === turns.current?.turn_id : event.name === 'promptSteered'
      const turn = isOfTurn ? turns.current : undefined
      const emit = turn?.emit ?? this.#emit
      emit(event.name, event.payload, { at: event.at })
    } else if (event.ended === undefined) session.work.turnStarted(id, event.prompt_id)
    else session.work.turnEnded(id, event.ended, { goesOn: !turns.stopped && turns.next() !== undefined, at: event.at })
  }

  settings(): AgentSettings {
    return this.#binding.settings
  }

  async configure(change: Partial<AgentSettings>): Promise<void> {
    if (await this.#binding.configure(change)) this.announce()
  }

  announce(change: { readonly permission?: string } = {}): void {
    const spent = this.#turns.current?.usage()
    const status = statusOf({ host: this.host, history: this.#history, binding: this.#binding, deps: this.#deps, spent })
    this.#emit('agentStatusUpdated', { ...status, ...change })
  }

  model(): ResolvedModel {
    return this.#binding.model()
  }

  effort(): string {
    return this.#binding.limits().effort
  }

  knows(prompt_id: string): boolean {
    return this.#history.prompt(prompt_id) !== undefined
  }

  checkPromptId(prompt_id: string): void {
    const known = this.#history.prompt(prompt_id)
    if (known && ['queued', 'steered', 'running'].includes(known.status)) throw new AppError(PromptInUse)
    if (known) throw new AppError(PromptCompleted, { data: { aborted: false } })
  }

  async submit(input: PromptInput): Promise<Prompt> {
    const { prompt, launched } = await this.#inOrder(() => this.#accept(input))
    return { ...prompt, status: (await launched) ?? prompt.status }
  }

  async run(input: PromptInput, signal?: AbortSignal): Promise<PromptOutcome> {
    signal?.throwIfAborted()
    let settled: NonNullable<QueuedPrompt['settled']> = () => {}
    const outcome = new Promise<Omit<PromptOutcome, 'prompt_id'>>(resolve => {
      settled = resolve
    })
    const { prompt_id } = (await this.#inOrder(() => this.#accept(input, settled))).prompt
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

  withdrawNotice(id: string): Promise<boolean> {
    return this.#inOrder(async () => {
      if (!this.#turns.notices.some(notice => notice.notice_id === id)) return false
      await this.#history.append(noticeDropped.of({ notice_ids: [id] }))
      return true
    })
  }

  async exclusive<T>(work: (signal: AbortSignal) => Promise<T>, options: ExclusiveOptions = {}): Promise<T> {
    const { refusal = SessionBusy, brief = false } = options
    // Not in order with what comes in: that may be part of the work that is waited for.
    while (this.#turns.brief) await this.#turns.brief
    const held = await this.#inOrder(async () => (this.#turns.brief ? undefined : this.#turns.takeOver(refusal, brief)))
    if (!held) return await this.exclusive(work, options)
    try {
      return await work(held.signal)
    } finally {
      held.release()
    }
  }

  async draft(): Promise<LlmRequest> {
    const turn = this.#turns.current
    if (turn?.bound) return await turn.draft()
    const binding = await this.#binding.forTurn()
    const setup = binding.use()
    if (binding.records.length > 0) await this.#history.append(...binding.records)
    return await requestOf({ host: this.host, history: this.#history, deps: this.#deps }, this.#turns.nextId(), setup)
  }

  active(): Prompt | undefined {
    const prompt = this.#turns.current?.prompt
    return prompt && shown(prompt, 'running')
  }

  queued(): readonly Prompt[] {
    return this.#turns.queue.items().map(item => shown(item, 'queued'))
  }

  async steer(prompt_ids: readonly string[]): Promise<void> {
    const turn = this.#steerable(prompt_ids)
    const texts = this.#turns.asks ? await this.#judge(turn, prompt_ids) : []
    const steered = this.#turns.queue.take(prompt_ids)
    turn.steered.push(...steered)
    const ids = steered.map(item => item.prompt_id)
    try {
      await this.#history.append({ type: 'prompt.steered', turn_id: turn.turn_id, prompt_ids: ids, active_prompt_id: turn.id })
    } catch (error) {
      turn.steered = turn.steered.filter(item => !ids.includes(item.prompt_id))
      this.#turns.queue.restore(steered.filter(item => !turn.consumed.includes(item) && this.#isLost(item.prompt_id)))
      throw error
    }
    for (const { event, text } of texts)
      await this.inject({ content: text, origin: { kind: 'hook_result', event }, admission: 'activeTurnOnly' })
  }

  /** The turn that takes these prompts. Throws PromptMissing. */
  #steerable(prompt_ids: readonly string[]): Turn {
    const turn = this.#turns.current
    const once = new Set(prompt_ids).size === prompt_ids.length
    if (!turn?.accepting || turn.signal.aborted || !once || !prompt_ids.every(id => this.#turns.queue.has(id)))
      throw new AppError(PromptMissing)
    return turn
  }

  /** What packs want the model to read beside these prompts. One that they block is over; then none is steered. */
  async #judge(turn: Turn, prompt_ids: readonly string[]): Promise<Judgement['texts']> {
    const waiting = this.#turns.queue.items().filter(item => prompt_ids.includes(item.prompt_id))
    const texts: Judgement['texts'][number][] = []
    let blocked = false
    for (const item of waiting) {
      const judgement = await this.#turns.judge(item, true, turn.signal)
      texts.push(...judgement.texts)
      if (!judgement.blocked || !this.#turns.queue.has(item.prompt_id)) continue
      await this.#turns.block(item, judgement.blocked)
      blocked = true
    }
    if (blocked) throw new AppError(PromptMissing, { message: 'a prompt was blocked by a hook' })
    if (this.#steerable(prompt_ids) !== turn) throw new AppError(PromptMissing)
    return texts
  }

  /** Waits, and nobody holds it. */
  #isLost(prompt_id: string): boolean {
    const status = this.#history.prompt(prompt_id)?.status ?? ''
    return ['queued', 'steered'].includes(status) && !this.#withdrawing.has(prompt_id) && !this.#turns.queue.has(prompt_id)
  }

  abortPrompt(prompt_id: string): Promise<void> {
    return this.#abortPrompt(prompt_id, true)
  }

  async #abortPrompt(prompt_id: string, user: boolean): Promise<void> {
    const turn = this.#turns.current
    if (turn?.taken().some(item => item.prompt_id === prompt_id)) {
      await this.#turns.cancel(user)
      // The turn may have been through when the abort came, its end just not on record.
      if (!turn.outcome || turn.outcome.reason === 'cancelled') return
    } else if (await this.#withdraw([prompt_id])) return
    if (this.#history.prompt(prompt_id)) throw new AppError(PromptCompleted, { data: { aborted: false } })
    throw new AppError(PromptMissing)
  }

  /** Prompts that wait, also for the next step of the running turn, are over: they never run. False when none of them waits. */
  async #withdraw(prompt_ids: readonly string[]): Promise<boolean> {
    const turn = this.#turns.current
    const steered = turn?.steered.filter(item => prompt_ids.includes(item.prompt_id)) ?? []
    if (turn) turn.steered = turn.steered.filter(item => !steered.includes(item))
    const taken = [...steered, ...this.#turns.queue.take(prompt_ids)]
    if (taken.length === 0) return false
    this.#turns.withdrawn(prompt_ids)
    const ids = taken.map(item => item.prompt_id)
    for (const id of ids) this.#withdrawing.add(id)
    try {
      await this.#history.append({ type: 'prompt.settled', prompt_ids: ids, status: 'aborted' })
    } catch (error) {
      this.#turns.queue.restore(taken)
      this.start()
      throw error
    } finally {
      for (const id of ids) this.#withdrawing.delete(id)
    }
    this.#turns.queue.forget(ids)
    for (const item of taken) item.settled?.(neverRan)
    return true
  }

  async end(): Promise<void> {
    await this.#entering
    await this.#turns.endExclusive()
    await this.#withdrawAll()
    await this.abort(false)
  }

  /** Nobody waits any more. */
  async #withdrawAll(): Promise<void> {
    const steered = this.#turns.current?.steered ?? []
    await this.#withdraw([...this.#turns.queue.items(), ...steered].map(item => item.prompt_id))
    const notice_ids = this.#turns.notices.map(notice => notice.notice_id)
    if (notice_ids.length > 0) await this.#history.append(noticeDropped.of({ notice_ids }))
  }

  async abort(user: boolean): Promise<void> {
    // The prompt about which packs are asked is the one that the user sees at work.
    const { asked } = this.#turns
    if (user && asked !== undefined && (await this.#withdraw([asked]))) return
    // What waits for exclusive work begins when it has ended, and nobody wants that to be aborted.
    if (user && !this.#turns.current) await this.#turns.endExclusive()
    else await this.#turns.cancel(user)
  }

  inFlight(): InFlightTurn | undefined {
    return this.#visible()?.snapshot(this.#history.prompts().filter(({ status }) => status === 'steered'))
  }

  lastFailure(): Failure | undefined {
    return this.#failures.value.last
  }

  usage(): ReturnType<Agent['usage']> {
    const { max } = this.#binding.limits()
    return {
      total: this.#history.usage(),
      context_tokens: toldTokens(this.#history.contextSize(), this.#deps),
      ...(max === undefined ? {} : { max_context_tokens: max }),
      turn_count: this.#history.turnCount()
    }
  }

  /** The running turn waits for the user: shown as its phase. */
  awaitsApproval(approval: { readonly approvalId: string; readonly toolCallId: string }): void {
    this.#visible()?.awaitsApproval(approval)
  }

  /** A client subscribed in the middle of a turn: shows that one whether it has the whole text. */
  tellLengths(client: Connection): void {
    this.#visible()?.tellLengths((name, payload, target) => this.#emit(name, payload, { ...target, only: client }))
  }

  #visible(): Turn['inFlight'] | undefined {
    const turn = this.#turns.current
    return turn?.visible ? turn.inFlight : undefined
  }

  atStop(): AtStop {
    // The next process runs nothing of a subagent.
    const waiting = this.host.record.type === 'sub' ? 0 : this.#turns.queue.length
    return { host: this.host, works: this.#turns.current !== undefined, waiting }
  }

  /** Takes nothing more, cancels the running turn and waits for its end. Queued prompts stay accepted and start with the next load. */
  async close(): Promise<void> {
    this.#turns.stop()
    await this.#entering
    await this.#turns.endExclusive()
    // The next process would not run them.
    if (this.host.record.type === 'sub' && this.host.session.writable)
      await this.#withdrawAll().catch((err: unknown) =>
        this.#deps.log.error({ err, session_id: this.host.session.id }, 'the end of what waits could not be recorded')
      )
    await this.#turns.close()
    if (this.host.session.writable) this.host.session.leaves(this.host.id, this.#turns.next() !== undefined)
    for (const item of this.#turns.queue.items()) item.settled?.(neverRan)
  }

  #inOrder<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#entering.then(work)
    this.#entering = done.catch(() => undefined) // the caller hears of it
    return done
  }

  /** `launched`: packs are asked first; how the prompt started. */
  async #accept(
    input: PromptInput,
    settled?: QueuedPrompt['settled']
  ): Promise<{ readonly prompt: Prompt; readonly launched?: Promise<Prompt['status']> }> {
    if (this.#turns.stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    const id = input.prompt_id ?? `msg_${this.#deps.newId()}`
    this.checkPromptId(id)
    const origin = input.origin ?? { kind: 'user' }
    const { content } = input
    const starts = this.#turns.free
    // A prompt that starts at once is accepted and its turn begun by one write.
    const begins = starts && !this.#turns.asks
    const turn_id = this.#turns.nextId()
    const start = begins ? startRecords(turn_id, { prompt_id: id, origin }) : []
    const waits = starts ? { starts } : { queue_length: this.#turns.queue.length + 1 }
    const writing = this.#history.write({ type: 'prompt.accepted', prompt_id: id, content, origin, ...waits }, ...start)
    const looked = begins ? this.#binding.look() : undefined
    const written = await writing
    const known = this.#history.prompt(id)
    let launched: QueuedPrompt['launched']
    const launch = new Promise<Prompt['status']>(resolve => {
      launched = resolve
    })
    const item: QueuedPrompt = {
      prompt_id: id,
      content: known?.content ?? content, // large media are references there
      origin,
      created_at: known?.created_at ?? this.#deps.now().toISOString(),
      ...(starts && launched ? { launched } : {}),
      ...(settled ? { settled } : {})
    }
    const prompt = shown(item, starts ? 'running' : 'queued')
    if (begins) {
      this.#turns.begin(turn_id, item, written, { looked })
      return { prompt }
    }
    written.tell()
    this.#turns.queue.push(item)
    this.start()
    return { prompt, ...(starts ? { launched: launch } : {}) }
  }

  async #inject({ content, origin, admission = 'activeOrNewTurn', mergeable = true, ...given }: NoticeInput): Promise<NoticeFate> {
    if (this.#turns.stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    if (given.id !== undefined && (await this.#knowsNotice(given.id))) return 'known'
    const { current } = this.#turns
    const turn = admission !== 'newTurn' && current?.accepting && !current.signal.aborted ? current : undefined
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
    if (startsTurn(notice) && this.#turns.free) {
      const turn_id = this.#turns.nextId()
      const writing = this.#history.write(...startRecords(turn_id, notice))
      const looked = this.#binding.look()
      const written = await writing
      this.#turns.begin(turn_id, notice, written, { looked })
      return 'starts'
    }
    await this.#history.append(noticeAccepted.of(notice))
    this.start()
    return turn ? 'joins' : startsTurn(notice) ? 'starts' : 'waits'
  }

  async #knowsNotice(id: string): Promise<boolean> {
    return this.#turns.notices.some(notice => notice.notice_id === id) || (await this.#history.messages.find(id)) !== undefined
  }
}

function shown({ prompt_id, content, origin, created_at }: QueuedPrompt, status: Prompt['status']): Prompt {
  return { prompt_id, user_message_id: prompt_id, status, content: [...sentParts(content, origin)], created_at }
}
