/** A turn at work: the ports that `runTurn` uses, bound to one agent, and what steering and aborting need. */
import { randomUUID } from 'node:crypto'
import { setMaxListeners } from 'node:events'
import { AppError } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord, Origin, WirePart } from '../history/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider, type ResolvedModel, type TokenUsage } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentEmit, ErrorInfo } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import { InFlight } from './in-flight.ts'
import { adaptMedia } from './media.ts'
import type { QueuedPrompt } from './queue.ts'
import { retryDelay } from './retry.ts'
import type { Injection, StepInjector, TurnInfo } from './service.ts'
import type { TurnPorts } from './turn.ts'

/** Frozen for the whole turn: a switch of the model counts from the next one. */
export interface TurnSetup {
  readonly model: ResolvedModel
  readonly effort: string
  readonly system: string
}

class UserAbort extends Error {
  override readonly name = 'UserAbort'
}

export class ActiveTurn {
  readonly turn_id: number
  readonly prompt: QueuedPrompt
  /** Steered prompts that wait for the next step. */
  steered: QueuedPrompt[] = []
  /** Steered prompts whose message is in the history. */
  readonly consumed: QueuedPrompt[] = []
  /** Records that go with the next ones: nobody has to wait for them. */
  readonly unsaved: HistoryRecord[] = []
  /** False as soon as the turn cannot take another prompt. */
  accepting = true
  /** turn.started was sent, turn.ended was not. */
  visible = false
  userAborted = false
  done: Promise<void> = Promise.resolve()
  readonly inFlight: InFlight
  readonly emit: AgentEmit
  readonly #controller = new AbortController()
  readonly #host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #status: () => void
  readonly #callIds = new Set<string>()
  readonly #usageBefore: TokenUsage

  constructor(turn_id: number, prompt: QueuedPrompt, host: AgentHost, history: History, deps: AgentDeps, status: () => void) {
    this.turn_id = turn_id
    this.prompt = prompt
    this.#host = host
    this.#history = history
    this.#deps = deps
    this.#status = status
    this.#usageBefore = history.usage()
    setMaxListeners(0, this.signal) // every call of a response listens
    const emit = deps.emit(host)
    this.inFlight = new InFlight(turn_id, prompt.prompt_id, deps.deltaOffset, deps.now, phase => emit('agentStatusUpdated', { phase }))
    this.emit = (name, payload) => {
      const offset = this.inFlight.offset(name)
      this.inFlight.see(name, payload)
      emit(name, payload, offset)
      this.inFlight.phaseAfter(name, payload)
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  abort(user: boolean): void {
    if (this.signal.aborted) return
    this.userAborted = user
    this.#controller.abort(user ? new UserAbort('the user cancelled the turn') : new Error('the turn was cancelled'))
  }

  /** Tokens spent since the turn began. */
  usage(): TokenUsage {
    const now = this.#history.usage()
    const before = this.#usageBefore
    return {
      inputOther: now.inputOther - before.inputOther,
      output: now.output - before.output,
      inputCacheRead: now.inputCacheRead - before.inputCacheRead,
      inputCacheCreation: now.inputCacheCreation - before.inputCacheCreation
    }
  }

  /** `setup` fails with what keeps the turn from running; the first request reports it. */
  ports(setup: () => TurnSetup): TurnPorts {
    const { hooks, llm, log } = this.#deps
    const history = this.#history
    const info = (step: number) => ({ agent: this.#host, turn_id: this.turn_id, step })
    return {
      stream: (request, signal) => llm.stream(request, signal),
      runTools: (calls, signal, report) => this.#runTools(calls, signal, report),
      record: (...records) => this.#record(records),
      emit: this.emit,
      uniqueCallId: id => this.#uniqueCallId(id),
      stepBegin: at => hooks.stepBegin(info(at.step)),
      beforeStep: at => this.#beforeStep(at.step),
      request: async at => {
        const { model, effort, system } = setup()
        const max = model.max_output_size
        const context_tokens = history.contextTokens()
        return await hooks.beforeStep(
          {
            model,
            system,
            messages: adaptMedia(history.project(), model),
            tools: this.#deps.runner()?.list(this.#host, this.turn_id) ?? [],
            cache_key: this.#host.session.id,
            effort,
            context_tokens,
            ...(max === undefined ? {} : { max_output_tokens: Math.max(1, Math.min(max, model.max_context_size - context_tokens)) })
          },
          info(at.step)
        )
      },
      modelError: (error, at) => hooks.modelError(error, info(at.step)),
      measured: this.#status,
      afterStep: at => hooks.afterStep(info(at.step)),
      more: at => this.#more(at.step),
      retryDelay: (attempt, error) => retryDelay(attempt, error, this.#deps.retryBaseMs),
      describe: error =>
        describe(error, failure => log.error({ err: failure, session_id: this.#host.session.id }, 'a turn failed unexpectedly')),
      newId: () => randomUUID()
    }
  }

  async #runTools(...[calls, signal, report]: Parameters<TurnPorts['runTools']>): ReturnType<TurnPorts['runTools']> {
    const runner = this.#deps.runner()
    if (!runner) return calls.map(call => ({ call, result: { output: `Tool not available: ${call.name}`, is_error: true } }))
    try {
      return await runner.run({ agent: this.#host, turn_id: this.turn_id, calls, signal, report })
    } catch (err) {
      this.#deps.log.error({ err }, 'the tool runner failed')
      return []
    }
  }

  /** A message is shown in one place: from the moment it is in the history it does not stream any more. */
  #record(records: readonly (CoreRecord | HistoryRecord)[]): Promise<void> {
    if (records.some(record => record.type === 'step.message')) this.inFlight.sealed()
    return this.#history.append(...records)
  }

  /** Providers repeat ids over a conversation; results are matched by id, so every call of an agent gets its own. */
  #uniqueCallId(given: string): string {
    const taken = (id: string) => this.#callIds.has(id) || this.#history.hasToolCall(id)
    const base = given === '' ? `call_${this.#deps.newId()}` : given
    let id = base
    for (let n = 2; taken(id); n++) id = `${base}_${n}`
    if (given !== '' && id !== given) this.#deps.log.warn({ tool_call_id: given }, 'the provider repeated a tool call id')
    this.#callIds.add(id)
    return id
  }

  /** Steered prompts become messages of the user; reminders follow. */
  async #beforeStep(step: number): Promise<readonly (CoreRecord | HistoryRecord)[]> {
    const records: (CoreRecord | HistoryRecord)[] = this.unsaved.splice(0)
    const steered = this.steered.splice(0)
    if (steered.length > 0) {
      this.consumed.push(...steered)
      records.push({ type: 'prompt.steered', prompt_ids: steered.map(prompt => prompt.prompt_id), turn_id: this.turn_id })
      // Each keeps a message of its own, which clients can read by its id; the model gets them as one.
      records.push(...steered.map(({ content, origin, prompt_id }) => userMessage(this.turn_id, content, origin, prompt_id)))
    }
    const info = { agent: this.#host, turn_id: this.turn_id, step }
    for (const injector of this.#deps.injectors()) {
      const injection = await this.#injection(injector, info)
      if (injection) records.push(reminder(this.turn_id, injector.variant, injection.text, injection.facts))
    }
    return records
  }

  /** An injector that fails has nothing to say now. */
  async #injection(injector: StepInjector, info: TurnInfo): Promise<Injection | undefined> {
    try {
      return await injector.inject(info, this.#history)
    } catch (err) {
      this.#deps.log.error({ err, injector: injector.variant, session_id: this.#host.session.id }, 'an injector failed')
      return undefined
    }
  }

  async #more(step: number): Promise<boolean> {
    if (this.steered.length > 0) return true
    const next = await this.#deps.hooks.shouldContinue({ agent: this.#host, turn_id: this.turn_id, step })
    if (next) {
      await this.#history.append(userMessage(this.turn_id, [{ type: 'text', text: next.text }], next.origin))
      return true
    }
    if (this.steered.length > 0) return true
    this.accepting = false
    return false
  }
}

export function userMessage(turn_id: number, content: readonly WirePart[] | undefined, origin: Origin, prompt_id?: string): CoreRecord {
  return {
    type: 'message',
    role: 'user',
    turn_id,
    origin,
    ...(content ? { content } : {}),
    ...(prompt_id === undefined ? {} : { id: prompt_id, prompt_id })
  }
}

/** A text of the program for the model, in the history as a message of origin `injection`. */
export function reminder(turn_id: number, variant: string, text: string, facts: Readonly<Record<string, unknown>> = {}): CoreRecord {
  const content = [{ type: 'text', text: `<system-reminder>\n${text}\n</system-reminder>` }]
  return userMessage(turn_id, content, { ...facts, kind: 'injection', variant })
}

const codes: ReadonlyMap<number, string> = new Map([
  [NoProvider.code, 'model.not_configured'],
  [NoCredential.code, 'auth.token_missing'],
  [CredentialRejected.code, 'auth.token_unauthorized'],
  [ModelUnresolved.code, 'model.not_found']
])

/** Engine error of an exception. Unexpected ones go to the log and leave as a fixed text. */
export function describe(error: unknown, unexpected: (error: unknown) => void): ErrorInfo {
  if (!AppError.is(error)) {
    unexpected(error)
    return { code: 'internal', message: 'the turn failed unexpectedly', retryable: false }
  }
  return { code: codes.get(error.spec.code) ?? 'internal', message: error.message, name: error.name, retryable: false }
}
