/** The engine of one agent: accepts prompts, runs one turn after the other, steers, aborts, and recovers after a crash. */
import { AppError, type Connection } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord, Written } from '../history/index.ts'
import type { ResolvedModel } from '../llm/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import { AgentBinding } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentRecordEvent } from './events.ts'
import { PromptQueue, type QueuedPrompt } from './queue.ts'
import { catchUp } from './recovery.ts'
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
import { Turn } from './turn.ts'
import { startRecords } from './turn-records.ts'

export class AgentEngine implements Agent {
  readonly host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #emit: AgentEmit
  readonly #binding: AgentBinding
  readonly #queue = new PromptQueue()
  #turn: Turn | undefined
  #last: Turn | undefined
  #submits: Promise<unknown> = Promise.resolve()
  #stopped = false
  /** What an earlier process left is made up for. */
  #open = false
  readonly #closing = new AbortController()

  private constructor(host: AgentHost, history: History, deps: AgentDeps, binding: AgentBinding) {
    this.host = host
    this.#history = history
    this.#deps = deps
    this.#emit = deps.emit(host)
    this.#binding = binding
    deps.engines.set(host, this)
  }

  /** Closes what a dead process left open and puts accepted prompts back into the queue; `start` runs them. */
  static async open(host: AgentHost, history: History, deps: AgentDeps): Promise<AgentEngine> {
    const engine = new AgentEngine(host, history, deps, await AgentBinding.open(host, history, deps))
    if (!host.session.writable) return engine
    await catchUp(host, history, deps)
    engine.#open = true
    for (const prompt of history.prompts()) {
      if (prompt.status === 'queued') engine.#queue.push({ ...prompt, origin: prompt.origin ?? { kind: 'user' } })
    }
    return engine
  }

  /** Begins with the restored queue. */
  start(): void {
    this.#kick()
  }

  /** Tells what follows from a record. `known`: clients were told before this process began; only the session's state may lack it. */
  tell(event: AgentRecordEvent, known = false): void {
    const { session, id } = this.host
    if (event.name === 'session.prompt') session.promptSubmitted(event.text, { announce: !known })
    else if (event.name === 'session.work' && event.ended !== undefined) {
      const goesOn = !this.#stopped && this.#queue.length > 0
      session.work.turnEnded(id, event.ended, { goesOn, ...(known ? { announce: false } : this.#open ? {} : { announce: true }) })
    } else if (event.name === 'session.work') {
      if (this.#open) session.work.turnStarted(id)
    } else if (!known) {
      const turn = 'turnId' in event.payload && event.payload.turnId === this.#turn?.turn_id ? this.#turn : undefined
      const emit = turn?.emit ?? this.#emit
      emit(event.name, event.payload, { at: event.at })
    }
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
    if (known && ['queued', 'steered', 'running'].includes(known.status)) throw new AppError(PromptInUse)
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
    const ids = steered.map(item => item.prompt_id)
    const { turn_id, prompt } = turn
    try {
      await this.#history.append({ type: 'prompt.steered', turn_id, prompt_ids: ids, active_prompt_id: prompt.prompt_id })
    } catch (error) {
      turn.steered = turn.steered.filter(item => !ids.includes(item.prompt_id))
      this.#queue.restore(steered.filter(item => !turn.consumed.includes(item) && !this.#queue.has(item.prompt_id)))
      throw error
    }
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
    const start = starts ? startRecords(turn_id, { prompt_id: id, origin }) : []
    const waits = starts ? { starts } : { queue_length: this.#queue.length + 1 }
    const written = await this.#history.write({ type: 'prompt.accepted', prompt_id: id, content, origin, ...waits }, ...start)
    const known = this.#history.prompt(id)
    const item: QueuedPrompt = {
      prompt_id: id,
      content: known?.content ?? content, // large media are references there
      origin,
      created_at: known?.created_at ?? this.#deps.now().toISOString()
    }
    written.tell(1)
    const prompt = shown(item, starts ? 'running' : 'queued')
    if (starts) {
      this.#begin(turn_id, item, async () => written)
      return prompt
    }
    this.#queue.push(item)
    this.#kick()
    return prompt
  }

  #nextTurn(): number {
    return (this.#history.lastTurn()?.turn_id ?? -1) + 1
  }

  /** Runs the prompt that has waited longest. */
  #kick(): void {
    if (this.#turn || this.#stopped) return
    const prompt = this.#queue.shift()
    if (!prompt) return
    const turn_id = this.#nextTurn()
    this.#begin(turn_id, prompt, () => this.#insist(startRecords(turn_id, prompt)))
  }

  /** `start`: the begin of the turn on record, not told; undefined when the agent was closed first. */
  #begin(turn_id: number, prompt: QueuedPrompt, start: () => Promise<Written | undefined>): void {
    const turn = new Turn(turn_id, prompt, {
      host: this.host,
      history: this.#history,
      deps: this.#deps,
      emit: this.#emit,
      bind: () => this.#binding.forTurn(),
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
      .catch((err: unknown) => this.#deps.log.error({ err, session_id: this.host.session.id }, 'a turn could not be settled'))
      .then(() => this.#release(turn))
  }

  /** The next prompt may start. */
  #release(turn: Turn): void {
    if (this.#turn === turn) this.#turn = undefined
    this.#kick()
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
