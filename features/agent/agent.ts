/** The engine of one agent: accepts prompts, runs one turn after the other, steers, aborts, and recovers after a crash. */
import { AppError, type Connection } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord } from '../history/index.ts'
import type { ResolvedModel } from '../llm/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import { ActiveTurn } from './active-turn.ts'
import { AgentBinding } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import { metadataText, textOf } from './media.ts'
import { PromptQueue, type QueuedPrompt } from './queue.ts'
import { backoff, pause } from './retry.ts'
import {
  type Agent,
  type AgentSettings,
  type InFlightTurn,
  type Prompt,
  PromptCompleted,
  type PromptInput,
  PromptInUse,
  PromptMissing
} from './service.ts'
import { endRecords, interruptReason, repairOf, startRecords } from './settle.ts'
import { runTurn, type TurnResult } from './turn.ts'
import { tellUntold } from './untold.ts'

export class AgentEngine implements Agent {
  readonly host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #emit: AgentEmit
  readonly #binding: AgentBinding
  readonly #queue = new PromptQueue()
  #turn: ActiveTurn | undefined
  #last: ActiveTurn | undefined
  #submits: Promise<unknown> = Promise.resolve()
  #stopped = false
  readonly #closing = new AbortController()

  constructor(host: AgentHost, history: History, deps: AgentDeps) {
    this.host = host
    this.#history = history
    this.#deps = deps
    this.#emit = deps.emit(host)
    this.#binding = new AgentBinding(host, history, deps)
  }

  /** Closes what a dead process left open and puts accepted prompts back into the queue; `start` runs them. */
  async restore(): Promise<this> {
    if (!this.host.session.writable) return this
    const repair = repairOf(this.#history)
    if (repair.length > 0) await this.#history.append(...repair)
    await tellUntold(this.host, this.#history, this.#emit, this.#deps.journal(this.host.session.id)).catch((err: unknown) =>
      this.#deps.log.error({ err, session_id: this.host.session.id }, 'events that a crash swallowed could not be made up for')
    )
    for (const prompt of this.#history.prompts()) {
      if (prompt.status === 'queued') this.#queue.push({ ...prompt, origin: prompt.origin ?? { kind: 'user' } })
    }
    return this
  }

  /** Begins with the restored queue. */
  start(): void {
    this.#kick()
  }

  settings(): AgentSettings {
    return this.#binding.settings
  }

  async configure(change: Partial<AgentSettings>): Promise<void> {
    if (await this.#binding.configure(change)) this.#status()
  }

  announce(change: { readonly permission: string }): void {
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
    if (known?.status === 'queued' || known?.status === 'running') throw new AppError(PromptInUse)
    if (known) throw new AppError(PromptCompleted, { data: { aborted: false } })
  }

  submit(input: PromptInput): Promise<Prompt> {
    const accepted = this.#submits.then(() => this.#accept(input))
    this.#submits = accepted.catch(() => undefined) // the caller hears of it
    return accepted
  }

  active(): Prompt | undefined {
    return this.#turn && shown(this.#turn.prompt, 'running')
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
    this.#emit('promptSteered', {
      activePromptId: turn.prompt.prompt_id,
      promptIds: steered.map(item => item.prompt_id),
      content: steered.flatMap(item => [...item.content]),
      steeredAt: this.#deps.now().toISOString()
    })
  }

  async abortPrompt(prompt_id: string): Promise<void> {
    const turn = this.#turn
    if (turn && [turn.prompt, ...turn.consumed].some(item => item.prompt_id === prompt_id)) return await this.#cancel(turn, true)
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
      this.#kick()
      throw error
    }
    this.#queue.forget(ids)
    const abortedAt = this.#deps.now().toISOString()
    for (const promptId of ids) this.#emit('promptAborted', { promptId, abortedAt })
    return true
  }

  /** Nothing runs or waits any more when it resolves: queued prompts are withdrawn, the running turn is cancelled. */
  async end(): Promise<void> {
    await this.#submits
    const steered = this.#turn?.steered ?? []
    await this.#withdraw([...this.#queue.items(), ...steered].map(item => item.prompt_id))
    await this.abort(false)
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
      turn_count: this.#history.turns().length
    }
  }

  /** The running turn waits for the user: shown as its phase. */
  awaitsApproval(approval: { readonly approvalId: string; readonly toolCallId: string }): void {
    if (this.#turn?.visible) this.#turn.inFlight.awaitsApproval(approval)
  }

  /** A client subscribed in the middle of a turn: shows that one whether it has the whole text. */
  tellLengths(client: Connection): void {
    if (this.#turn?.visible) this.#turn.inFlight.tellLengths((name, payload, offset) => this.#emit(name, payload, offset, client))
  }

  /** Takes nothing more, cancels the running turn and waits for its end. Queued prompts stay accepted and start with the next load. */
  async close(): Promise<void> {
    this.#stopped = true
    await this.#submits
    this.#closing.abort()
    await this.abort(false)
    await this.#last?.done
  }

  async #accept(input: PromptInput): Promise<Prompt> {
    if (this.#stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    const id = input.prompt_id ?? `msg_${this.#deps.newId()}`
    this.checkPromptId(id)
    const origin = input.origin ?? { kind: 'user' }
    const { content } = input
    // A prompt that starts at once is accepted and its turn begun by one write.
    const starts = !this.#turn && this.#queue.length === 0
    const turn_id = this.#nextTurn()
    await this.#history.append(
      { type: 'prompt.accepted', prompt_id: id, content, origin },
      ...(starts ? startRecords(turn_id, { prompt_id: id, origin }) : [])
    )
    const item: QueuedPrompt = {
      prompt_id: id,
      content,
      origin,
      created_at: this.#history.prompt(id)?.created_at ?? this.#deps.now().toISOString()
    }
    if (this.host.id === 'main' && origin.kind === 'user') this.host.session.promptSubmitted(metadataText(content))
    const prompt = shown(item, starts ? 'running' : 'queued')
    const facts = { promptId: id, content: [...content] }
    this.#emit('promptSubmitted', { ...facts, userMessageId: id, status: prompt.status, createdAt: item.created_at })
    if (starts) {
      this.#begin(turn_id, item, turn => this.#run(turn))
      return prompt
    }
    this.#queue.push(item)
    if (origin.kind === 'user') this.#emit('promptQueued', { ...facts, queueLength: this.#queue.length })
    this.#kick()
    return prompt
  }

  #nextTurn(): number {
    return (this.#history.turns().at(-1)?.turn_id ?? -1) + 1
  }

  /** Runs the prompt that has waited longest. */
  #kick(): void {
    if (this.#turn || this.#stopped) return
    const prompt = this.#queue.shift()
    if (!prompt) return
    this.#begin(this.#nextTurn(), prompt, async turn => {
      if (await this.#record(startRecords(turn.turn_id, prompt))) await this.#run(turn)
    })
  }

  #begin(turn_id: number, prompt: QueuedPrompt, run: (turn: ActiveTurn) => Promise<void>): void {
    const turn = new ActiveTurn(turn_id, prompt, this.host, this.#history, this.#deps, () => this.#status())
    this.#turn = turn
    this.#last = turn
    turn.done = run(turn)
      .catch((err: unknown) => this.#deps.log.error({ err, session_id: this.host.session.id }, 'a turn could not be settled'))
      .then(() => this.#release(turn))
  }

  /** The next prompt may start. */
  #release(turn: ActiveTurn): void {
    if (this.#turn === turn) this.#turn = undefined
    this.#kick()
  }

  async #cancel(turn: ActiveTurn, user: boolean): Promise<void> {
    turn.abort(user)
    await turn.done
  }

  /** A turn whose begin is on record. */
  async #run(turn: ActiveTurn): Promise<void> {
    const { turn_id } = turn
    const begun = performance.now()
    this.#announceStart(turn)
    const setup = await this.#binding.forTurn()
    turn.unsaved.push(...setup.records)
    if (setup.warning !== undefined) turn.emit('warningRaised', { code: 'agents-md-oversized', message: setup.warning })
    const { max_steps, max_attempts } = this.#deps.loop()
    const result = await runTurn(turn.ports(setup.use), { turn_id, max_steps, max_attempts }, turn.signal)
    await this.#settle(turn, result, performance.now() - begun)
  }

  /**
   * Records the begin or the end of a turn, again and again while the disk refuses: without it the agent can do nothing that counts, and
   * clients see it at work until then. False when the agent was closed first; what is not on record, the next load makes up for.
   */
  async #record(records: readonly (CoreRecord | HistoryRecord)[]): Promise<boolean> {
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#history.append(...records)
        return true
      } catch (err) {
        this.#deps.log.error({ err, session_id: this.host.session.id, attempt }, 'the begin or the end of a turn could not be saved')
        await pause(backoff(attempt, this.#deps.retryBaseMs), this.#closing.signal)
        if (this.#closing.signal.aborted) return false
      }
    }
  }

  #announceStart(turn: ActiveTurn): void {
    const { prompt, turn_id: turnId } = turn
    const text = textOf(prompt.content)
    turn.visible = true
    turn.emit('turnStarted', { turnId, origin: { ...prompt.origin }, promptId: prompt.prompt_id, ...(text === '' ? {} : { prompt: text }) })
    this.host.session.work.turnStarted(this.host.id)
  }

  /** In this order: records, turn.ended, error, turnEnd hooks, work_changed, prompt.completed or prompt.aborted. */
  async #settle(turn: ActiveTurn, result: TurnResult, durationMs: number): Promise<void> {
    const { turn_id } = turn
    const { reason, error } = result
    turn.accepting = false
    this.#queue.restore(turn.steered.splice(0))
    this.#queue.forget(turn.consumed.map(item => item.prompt_id))
    if (!(await this.#record([...turn.unsaved.splice(0), ...endRecords(turn, result)]))) return

    const interrupted = interruptReason(turn, result)
    turn.visible = false
    turn.emit('turnEnded', {
      turnId: turn_id,
      reason,
      durationMs: Math.round(durationMs),
      ...(error ? { error } : {}),
      ...(interrupted === undefined ? {} : { interruptReason: interrupted })
    })
    if (error) turn.emit('errorRaised', error)
    await this.#deps.hooks.turnEnd({ agent: this.host, turn_id, step: result.steps, reason }, this.#deps.turnEndMs)
    this.host.session.work.turnEnded(this.host.id, reason, { goesOn: !this.#stopped && this.#queue.length > 0 })
    const at = this.#deps.now().toISOString()
    const promptId = turn.prompt.prompt_id
    if (reason === 'cancelled') turn.emit('promptAborted', { promptId, abortedAt: at })
    else turn.emit('promptCompleted', { promptId, finishedAt: at, reason })
    // From here on the prompt is over for everyone, so the agent must be free in the same tick.
    this.#release(turn)
  }

  #status(change: { readonly permission?: string } = {}): void {
    const max = this.#binding.maxTokens()
    const tokens = this.#history.contextTokens()
    const { model } = this.#binding.settings
    this.#emit('agentStatusUpdated', {
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

function shown(item: QueuedPrompt, status: Prompt['status']): Prompt {
  return { prompt_id: item.prompt_id, user_message_id: item.prompt_id, status, content: [...item.content], created_at: item.created_at }
}
