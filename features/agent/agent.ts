/** The engine of one agent: accepts prompts and notices, runs one turn after the other, steers, aborts, and recovers after a crash. */
import { AppError, type Connection, inOrder, waitAtMost } from '../../kernel/index.ts'
import type { History, Tracked } from '../history/index.ts'
import type { LlmRequest, ResolvedModel } from '../llm/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import { isUserAbort } from '../tools/index.ts'
import { Admission, shown } from './admission.ts'
import { AgentBinding } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentRecordEvent } from './events.ts'
import { type Failures, failureState } from './failure.ts'
import { noticeDropped, noticeState } from './notices.ts'
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
  PromptMissing,
  type PromptOutcome,
  type TurnOutcome
} from './service.ts'
import { statusOf, toldTokens } from './status.ts'
import type { AtStop } from './stopping.ts'
import type { Turn } from './turn.ts'
import { neverRan, Turns } from './turns.ts'
import { WaitingPrompts } from './waiting.ts'

/** How long exclusive work waits for the taps of the end of a turn, ms. */
const endingMs = 1000

export class AgentEngine implements Agent {
  readonly host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #emit: AgentEmit
  readonly #binding: AgentBinding
  readonly #turns: Turns
  readonly #admission: Admission
  readonly #waiting: WaitingPrompts
  readonly #failures: Tracked<Failures>
  /** What comes in is taken one after the other. */
  readonly #inOrder = inOrder()

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
    this.#admission = new Admission({ host, history, deps, binding, turns })
    this.#waiting = new WaitingPrompts(history, turns)
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
    return this.prompt(prompt_id) !== undefined
  }

  prompt(prompt_id: string): ReturnType<History['prompt']> {
    return this.#history.prompt(prompt_id)
  }

  checkPromptId(prompt_id: string): void {
    this.#admission.check(prompt_id)
  }

  async submit(input: PromptInput): Promise<Prompt> {
    const { prompt, launched } = await this.#inOrder(() => this.#admission.accept(input))
    return { ...prompt, status: (await launched) ?? prompt.status }
  }

  async run(input: PromptInput, signal?: AbortSignal): Promise<PromptOutcome> {
    signal?.throwIfAborted()
    const outcome = settling()
    const { prompt_id } = (await this.#inOrder(() => this.#admission.accept(input, outcome.settled))).prompt
    const end = (user: boolean) => this.#abortPrompt(prompt_id, user)
    return { prompt_id, ...(await untilOver(outcome.ended, end, signal)) }
  }

  async runNotice(notice: Pick<NoticeInput, 'content' | 'origin'>, signal?: AbortSignal): Promise<TurnOutcome> {
    signal?.throwIfAborted()
    const { settled, ended } = settling()
    const id = `msg_${this.#deps.newId()}`
    const { ends } = this.#turns
    ends.set(id, settled)
    const end = async (user: boolean) => {
      if (this.#turns.current?.id === id) await this.#turns.cancel(user)
      else if (await this.withdrawNotice(id)) settled(neverRan)
    }
    try {
      await this.inject({ ...notice, id, admission: 'newTurn' })
      return await untilOver(ended, end, signal)
    } finally {
      ends.delete(id)
    }
  }

  inject(notice: NoticeInput): Promise<NoticeFate> {
    return this.#inOrder(() => this.#admission.inject(notice))
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
    const { ending } = this.#turns
    if (ending) await waitAtMost(ending, endingMs)
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
    for (const { event, text } of await this.#waiting.steer(prompt_ids))
      await this.inject({ content: text, origin: { kind: 'hook_result', event }, admission: 'activeTurnOnly' })
  }

  abortPrompt(prompt_id: string): Promise<void> {
    return this.#abortPrompt(prompt_id, true)
  }

  async #abortPrompt(prompt_id: string, user: boolean): Promise<void> {
    const isTaken = () => this.#turns.current?.taken().some(item => item.prompt_id === prompt_id)
    if (!isTaken()) {
      if (await this.#waiting.withdraw([prompt_id])) return
      await this.#entered() // nobody holds one whose acceptance is on its way to the disk
    }
    const turn = this.#turns.current
    if (turn && isTaken()) {
      await this.#turns.cancel(user)
      // The turn may have been through when the abort came, its end just not on record.
      if (!turn.outcome || turn.outcome.reason === 'cancelled') return
    } else if (await this.#waiting.withdraw([prompt_id])) return
    if (this.#history.prompt(prompt_id)) throw new AppError(PromptCompleted, { data: { aborted: false } })
    throw new AppError(PromptMissing)
  }

  async end(): Promise<void> {
    await this.withdrawAll()
    await this.#turns.endExclusive()
    await this.abort(false)
  }

  /** Withdraws what waits, so that nothing of it begins when the running turn or exclusive work ends. */
  async withdrawAll(): Promise<void> {
    await this.#entered()
    await this.#waiting.withdrawAll()
  }

  async abort(user: boolean): Promise<void> {
    const isIdle = !this.#turns.current && this.#turns.asked === undefined
    if (user && isIdle) await this.#entered() // a prompt whose acceptance is on its way to the disk
    // The prompt about which packs are asked is the one that the user sees at work.
    const { asked } = this.#turns
    if (user && asked !== undefined && (await this.#waiting.withdraw([asked]))) return
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
    await this.#entered()
    await this.#turns.endExclusive()
    // The next process would not run them.
    if (this.host.record.type === 'sub' && this.host.session.writable)
      await this.#waiting
        .withdrawAll()
        .catch((err: unknown) =>
          this.#deps.log.error({ err, session_id: this.host.session.id }, 'the end of what waits could not be recorded')
        )
    await this.#turns.close()
    if (this.host.session.writable) this.host.session.leaves(this.host.id, this.#turns.next() !== undefined)
    for (const item of this.#turns.queue.items()) {
      item.launched?.('queued')
      item.settled?.(neverRan)
    }
    for (const settled of this.#turns.ends.values()) settled(neverRan)
  }

  /** Resolves when what came in before was taken. */
  #entered(): Promise<void> {
    return this.#inOrder(async () => undefined)
  }
}

/** A promise of an outcome, and the function that settles it. */
function settling() {
  let settled: NonNullable<QueuedPrompt['settled']> = () => {}
  const ended = new Promise<TurnOutcome>(resolve => {
    settled = resolve
  })
  return { settled, ended }
}

/** `end`: ends it when the signal aborts, which may fail. */
async function untilOver(ended: Promise<TurnOutcome>, end: (user: boolean) => Promise<void>, signal?: AbortSignal): Promise<TurnOutcome> {
  if (!signal) return await ended
  let abort = () => {}
  const failed = new Promise<never>((_, reject) => {
    abort = () => void end(isUserAbort(signal)).catch(reject)
  })
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  try {
    return await Promise.race([ended, failed])
  } finally {
    signal.removeEventListener('abort', abort)
  }
}
