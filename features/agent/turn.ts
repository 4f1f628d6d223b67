/** One turn, from its begin to settled: what its loop works with, steering and aborting, and the order of its end. */
import { setMaxListeners } from 'node:events'
import { type Contribution, laterPass, nextPass, yieldToLoop } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord, Tracked, Written } from '../history/index.ts'
import { type LlmError, type LlmPart, type LlmRequest, type TokenUsage, usageSince } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { TurnBinding } from './binding.ts'
import type { AgentEmit, ErrorInfo } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import { describe } from './engine-error.ts'
import type { StepInjector } from './extension-points.ts'
import { failureFacts, failureLine, loudRetry, statusIn } from './failure.ts'
import type { TurnInfo } from './hooks.ts'
import { InFlight } from './in-flight.ts'
import { runTurn, type StepAt, type TurnPorts, type TurnResult } from './loop.ts'
import { forStep, type Notice } from './notices.ts'
import type { QueuedPrompt } from './queue.ts'
import { requestOf } from './request.ts'
import type { PromptOutcome } from './service.ts'
import { endRecords, interruptReason, openCallRecords } from './turn-records.ts'
import { noticeMessage, reminder, userMessage } from './user-message.ts'

/** What a turn needs from its agent. */
interface TurnHost {
  readonly host: AgentHost
  readonly history: History
  readonly deps: AgentDeps
  readonly emit: AgentEmit
  /** Model, effort and system prompt. */
  bind(): Promise<TurnBinding>
  /** The next number behind an id that the provider repeated. */
  readonly repeats: Map<string, number>
  /** Notices that wait. */
  readonly notices: Tracked<readonly Notice[]>
  /** Tells the agent's status: tokens were spent. */
  measured(): void
  /** Records, again and again while the disk refuses, what follows from what it holds; undefined when the agent was closed first. */
  insist(records: () => readonly (CoreRecord | HistoryRecord)[]): Promise<Written | undefined>
  /** The turn takes nothing more: what was steered and not taken waits again. */
  ending(left: readonly QueuedPrompt[], taken: readonly QueuedPrompt[]): void
  /** The prompt is over for everyone: the agent must be free in the same tick. */
  settled(turn: Turn): void
}

class UserAbort extends Error {
  override readonly name = 'UserAbort'
}

export class Turn implements TurnPorts {
  readonly turn_id: number
  /** Undefined: a notice began it. */
  readonly prompt: QueuedPrompt | undefined
  /** Id of the prompt or notice that began it. */
  readonly id: string
  /** Steered prompts that wait for the next step. */
  steered: QueuedPrompt[] = []
  /** Steered prompts whose message is in the history. */
  readonly consumed: QueuedPrompt[] = []
  /** False as soon as the turn cannot take another prompt. */
  accepting = true
  /** turn.started was sent, turn.ended was not. */
  visible = false
  done: Promise<void> = Promise.resolve()
  /** Model, effort and system prompt are frozen. */
  bound = false
  readonly inFlight: InFlight
  /** Once it is over. */
  outcome: Omit<PromptOutcome, 'prompt_id'> | undefined
  readonly #agent: TurnHost
  readonly #controller = new AbortController()
  readonly signal: AbortSignal = this.#controller.signal
  readonly #callIds = new Set<string>()
  readonly #usageBefore: TokenUsage
  /** Records that go with the next ones: nobody has to wait for them. */
  readonly #unsaved: (CoreRecord | HistoryRecord)[] = []
  #userAborted = false
  /** How often the context had been made smaller when the reminders of the step came in. */
  #compactions = 0
  /** Model, effort and system prompt, frozen; throws what keeps the turn from running. */
  #setup: TurnBinding['use'] = () => {
    throw new Error('the turn is not bound')
  }

  constructor(turn_id: number, head: QueuedPrompt | Notice, agent: TurnHost) {
    this.turn_id = turn_id
    this.prompt = 'prompt_id' in head ? head : undefined
    this.id = 'prompt_id' in head ? head.prompt_id : head.notice_id
    this.#agent = agent
    this.#usageBefore = agent.history.usage()
    setMaxListeners(0, this.signal) // every call of a response listens
    const { deps, history } = agent
    const whose = { turn_id, prompt_id: this.prompt?.prompt_id }
    this.inFlight = new InFlight(
      whose,
      () => history.openStep(),
      deps,
      phase => agent.emit('agentStatusUpdated', { phase })
    )
  }

  /** Emits an event of the turn; the snapshot of the running turn agrees with it in the same tick. */
  readonly emit: AgentEmit = (name, payload, target) => {
    const offset = this.inFlight.offset(name)
    this.inFlight.see(name, payload)
    this.#agent.emit(name, payload, { ...target, ...(offset === undefined ? {} : { offset }) })
    this.inFlight.phaseAfter(name, payload)
  }

  abort(user: boolean): void {
    if (this.signal.aborted) return
    this.#userAborted = user
    this.#controller.abort(user ? new UserAbort('the user cancelled the turn') : new Error('the turn was cancelled'))
  }

  /** Its prompt, then those that were steered into it and became messages. */
  taken(): readonly QueuedPrompt[] {
    return [...(this.prompt ? [this.prompt] : []), ...this.consumed]
  }

  /** Tokens spent since the turn began. */
  usage(): TokenUsage {
    return usageSince(this.#usageBefore, this.#agent.history.usage())
  }

  /** `start`: its begin, on record and not told. Resolves when the turn has settled. */
  async run(start: Written): Promise<void> {
    const begun = performance.now()
    this.visible = true
    const answered = nextPass() // the answer to the prompt goes out first, and what is told of it last
    start.tell()
    await answered
    const binding = await this.#agent.bind()
    const others = yieldToLoop() // turns of one directory wait for the same files
    if (others) await others
    this.#unsaved.push(...binding.records)
    this.#unsaved.push(...binding.warnings.map(warning => ({ type: 'warning' as const, ...warning })))
    const { max_steps, max_attempts } = this.#agent.deps.loop()
    this.#setup = binding.use
    this.bound = true
    const input = { turn_id: this.turn_id, max_steps, max_attempts, retry_base_ms: this.#agent.deps.retryBaseMs }
    const result = await runTurn(this, input, this.signal)
    await this.#settle(result, performance.now() - begun)
  }

  /** In this order: records, turn.ended, error, turnEnd hooks, work_changed, prompt.completed or prompt.aborted. */
  async #settle(result: TurnResult, duration: number): Promise<void> {
    const { deps } = this.#agent
    const { turn_id } = this
    const { reason, error, steps, text, truncated } = result
    this.accepting = false
    const interrupt_reason = interruptReason(result, this.#userAborted)
    const why = { ...(interrupt_reason === undefined ? {} : { interrupt_reason }), ...(error ? { error } : {}) }
    const outcome = () => ({ turn_id, reason, ...why, steps, text, truncated, usage: this.usage() })
    this.outcome = outcome()
    this.#agent.ending(this.steered.splice(0), [])
    const others = yieldToLoop() // many may end at once
    if (others) await others
    const own = this.#unsaved.splice(0)
    const end = { turn_id, result, user_aborted: this.#userAborted, duration_ms: Math.round(duration) }
    let before: readonly (CoreRecord | HistoryRecord)[] = []
    const written = await this.#agent.insist(() => {
      before = [...this.#leftOpen(result), ...result.unsaved, ...own]
      this.#giveBack()
      return [...before, ...endRecords({ ...end, prompt_ids: this.taken().map(item => item.prompt_id) })]
    })
    if (!written) return
    this.#agent.ending([], this.consumed)
    this.outcome = outcome() // the last step has been counted
    written.tell(before.length)
    if (result.unsaved.length > 0) this.#agent.measured()
    this.visible = false
    written.tell(before.length + 1)
    if (error) this.#tellFailure(error, result)
    await laterPass() // the end of the turn goes out first
    await deps.hooks.each('turnEnd', [{ ...this.#info({ turn_id, step: steps }), reason }], { limit_ms: deps.turnEndMs })
    written.tell()
    this.#agent.settled(this)
  }

  #tellFailure(error: ErrorInfo, { asked = {}, reason }: TurnResult): void {
    const { host, deps } = this.#agent
    const status = statusIn(error.details)
    const told = { ...error, ...asked, ...(status === undefined ? {} : { status }) }
    deps.operator.warn(
      failureFacts(host, this.turn_id, told),
      failureLine(host, `the turn ${reason === 'failed' ? 'failed' : 'ended'}`, told)
    )
  }

  retrying(error: LlmError, { failed_attempt, max_attempts, delay_ms, same, ...asked }: Parameters<TurnPorts['retrying']>[1]): void {
    const { host, deps } = this.#agent
    const told = { ...error, ...asked }
    const facts = { ...failureFacts(host, this.turn_id, told), failed_attempt, max_attempts, delay_ms }
    deps.log.info(facts, failureLine(host, `attempt ${failed_attempt} of ${max_attempts} failed, the next one is in ${delay_ms} ms`, told))
    const loud = loudRetry({ failed_attempt, max_attempts, delay_ms, same }, deps.retryBaseMs)
    if (loud !== undefined) deps.operator.warn(facts, failureLine(host, loud, told))
  }

  /** Prompts whose message the disk refused when the step took them wait again. */
  #giveBack(): void {
    const { history } = this.#agent
    const lost = this.consumed.filter(({ prompt_id }) => ['queued', 'steered'].includes(history.prompt(prompt_id)?.status ?? ''))
    for (const item of lost) this.consumed.splice(this.consumed.indexOf(item), 1)
    this.#agent.ending(lost, [])
  }

  /** Ends of calls that were believed to be on record when the disk refused the end of their step, and could not be read. */
  #leftOpen({ reason, steps, unsaved }: TurnResult): readonly CoreRecord[] {
    if (reason === 'completed' || unsaved.length === 0) return []
    const ended = new Set(unsaved.flatMap(record => (record.type === 'tool.result' ? record.tool_call_id : [])))
    const open = this.openCalls({ turn_id: this.turn_id, step: steps })
    return open.filter(record => 'tool_call_id' in record && !ended.has(record.tool_call_id))
  }

  openCalls(at: StepAt): readonly CoreRecord[] {
    return openCallRecords(this.#agent.history, at)
  }

  told(): ReturnType<TurnPorts['told']> {
    return this.inFlight.told()
  }

  stream(request: LlmRequest, signal: AbortSignal): AsyncIterable<LlmPart> {
    return this.#agent.deps.llm.stream(request, signal)
  }

  record(...records: (CoreRecord | HistoryRecord)[]): Promise<void> {
    return this.#agent.history.append(...records)
  }

  stepBegin(at: StepAt): Promise<'stop' | undefined> {
    return this.#agent.deps.hooks.first('stepBegin', [this.#info(at)])
  }

  /** The next request, before the hooks. Fails with what keeps the turn from running. */
  draft(): Promise<LlmRequest> {
    return requestOf(this.#agent, this.turn_id, this.#setup())
  }

  async request(at: StepAt): Promise<LlmRequest> {
    const { deps, history } = this.#agent
    // A hook made the context smaller since the step began: its reminders went with the rest.
    if (history.compactions() !== this.#compactions) {
      const records = await this.#reminders(at)
      if (records.length > 0) await this.record(...records)
    }
    const request = await this.draft()
    const asked = await deps.hooks.beforeStep(request, this.#info(at))
    // Each look at a long conversation takes its time: the adapter's comes next.
    const others = yieldToLoop()
    if (others) await others
    return asked
  }

  modelError(error: LlmError, at: StepAt): Promise<'retry' | 'fail' | undefined> {
    return this.#agent.deps.hooks.first('modelError', [error, this.#info(at)])
  }

  answered(): void {
    this.#agent.measured()
  }

  afterStep(at: StepAt): Promise<void> {
    this.#agent.measured()
    return this.signal.aborted ? Promise.resolve() : this.#agent.deps.hooks.each('afterStep', [this.#info(at)])
  }

  describe(error: unknown): ErrorInfo {
    const { host, deps } = this.#agent
    return describe(error, err => deps.log.error({ err, session_id: host.session.id }, 'a turn failed unexpectedly'))
  }

  #info({ step }: StepAt): TurnInfo {
    return { agent: this.#agent.host, turn_id: this.turn_id, step, signal: this.signal }
  }

  async runTools(...[calls, signal, report]: Parameters<TurnPorts['runTools']>): ReturnType<TurnPorts['runTools']> {
    const { host, deps } = this.#agent
    const runner = deps.runner()
    if (!runner) return calls.map(call => ({ call, result: { output: `Tool not available: ${call.name}`, is_error: true } }))
    try {
      return await runner.run({ agent: host, turn_id: this.turn_id, calls, signal, report })
    } catch (err) {
      deps.log.error({ err }, 'the tool runner failed')
      return []
    }
  }

  /** Providers repeat ids over a conversation; results are matched by id, so every call of an agent gets its own. */
  uniqueCallId(given: string): string {
    const { deps, history, repeats } = this.#agent
    const taken = (id: string) => this.#callIds.has(id) || history.hasToolCall(id)
    const base = given === '' ? `call_${deps.newId()}` : given
    let id = base
    // Some give the same one in every step, and in every turn: no number is tried twice.
    let n = repeats.get(base) ?? 2
    for (; taken(id); n++) id = `${base}_${n}`
    if (id !== base) repeats.set(base, n)
    if (given !== '' && id !== given) deps.log.warn({ tool_call_id: given }, 'the provider repeated a tool call id')
    this.#callIds.add(id)
    return id
  }

  /** Notices and steered prompts become messages; reminders follow. What is steered until the step begins is with it: clients go by that order. */
  async beforeStep(at: StepAt): Promise<readonly (CoreRecord | HistoryRecord)[]> {
    const reminders = await this.#reminders(at)
    const records = this.#unsaved.splice(0)
    records.push(...this.#notices().map(notice => noticeMessage(this.turn_id, notice)))
    const steered = this.steered.splice(0)
    this.consumed.push(...steered)
    // Each keeps a message of its own, which clients can read by its id; the model gets them as one.
    records.push(...steered.map(({ content, origin, prompt_id }) => userMessage(this.turn_id, content, origin, prompt_id)))
    return [...records, ...reminders]
  }

  async #reminders(at: StepAt): Promise<CoreRecord[]> {
    const records: CoreRecord[] = []
    this.#compactions = this.#agent.history.compactions()
    for (const contribution of this.#agent.deps.injectors.entries()) {
      const said = this.#injection(contribution, this.#info(at))
      const injection = said instanceof Promise ? await said : said // most have nothing to say, and say so at once
      if (injection) records.push(reminder(this.turn_id, contribution.item.variant, injection.text, injection.facts))
    }
    return records
  }

  /** An injector that fails has nothing to say now. */
  #injection({ pack, item: injector }: Contribution<StepInjector>, info: TurnInfo): ReturnType<StepInjector['inject']> {
    const { host, deps, history } = this.#agent
    const { hooks, accounts } = deps
    const what = `injector ${injector.variant}`
    const failed = (err: unknown): undefined => void accounts.blame(pack, what, err, { session_id: host.session.id })
    try {
      const said = accounts.onAccountOf(pack, what, () => injector.inject(info, history))
      return said instanceof Promise ? hooks.wait(said, info.signal).catch(failed) : said
    } catch (err) {
      return failed(err)
    }
  }

  #notices(): readonly Notice[] {
    return forStep(this.#agent.notices.value, this.turn_id)
  }

  closes(): boolean {
    if (this.#waits() || !this.#agent.deps.hooks.nobodyHears('afterStep', 'shouldContinue')) return false
    this.accepting = false
    return true
  }

  #waits(): boolean {
    return this.steered.length + this.#notices().length > 0
  }

  async more(at: StepAt): Promise<boolean> {
    const { deps, history } = this.#agent
    if (this.#waits()) return true
    const next = await deps.hooks.first('shouldContinue', [this.#info(at)])
    // Nobody goes on with a turn that was aborted while they were asked.
    if (next && !this.signal.aborted) {
      await history.append(userMessage(this.turn_id, [{ type: 'text', text: next.text }], next.origin))
      return true
    }
    if (this.#waits()) return true
    this.accepting = false
    return false
  }
}
