/** The turns of one agent: one after the other, what has waited longest first, unless somebody has the agent for itself. */
import { AppError, type ErrorSpec } from '../../kernel/index.ts'
import type { CoreRecord, History, HistoryRecord, Tracked, Written } from '../history/index.ts'
import { noUsage } from '../llm/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentBinding, LookedUp } from './binding.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { PromptRefusal } from './hooks.ts'
import { type Notice, startsTurn } from './notices.ts'
import { PromptQueue, type QueuedPrompt } from './queue.ts'
import { backoff, pause } from './retry.ts'
import { Turn } from './turn.ts'
import { blockedRecords, startRecords } from './turn-records.ts'
import { hookResult } from './user-message.ts'

/** What packs say of a prompt before it reaches the model. */
export interface Judgement {
  readonly blocked?: PromptRefusal
  /** For the model, behind the prompt. */
  readonly texts: readonly { readonly event: string; readonly text: string }[]
}

interface TurnsHost {
  readonly host: AgentHost
  readonly history: History
  readonly deps: AgentDeps
  readonly emit: AgentEmit
  /** Those that wait; the records say which. */
  readonly notices: Tracked<readonly Notice[]>
  /** Model, effort and system prompt of the next turn. */
  readonly binding: AgentBinding
  /** Tokens were spent. */
  measured(): void
}

export class Turns {
  /** Prompts that wait. */
  readonly queue = new PromptQueue()
  /** Who hears how the turn of a notice ended, by its id. */
  readonly ends = new Map<string, NonNullable<QueuedPrompt['settled']>>()
  readonly #agent: TurnsHost
  #current: Turn | undefined
  #stopped = false
  #last: Turn | undefined
  /** The next number behind an id of a call that the provider repeated. */
  readonly #repeats = new Map<string, number>()
  /** Keeps turns from beginning. */
  #exclusive: { readonly abort: () => void; readonly done: Promise<unknown>; readonly brief: boolean } | undefined
  /** The first prompt of the queue, while packs are asked about it. */
  #asking: { readonly item: QueuedPrompt; readonly controller: AbortController; readonly done: Promise<unknown> } | undefined
  readonly #closing = new AbortController()

  constructor(agent: TurnsHost) {
    this.#agent = agent
  }

  /** The turn that runs, from the moment in which it is to begin until everyone knows that it is over. */
  get current(): Turn | undefined {
    return this.#current
  }

  /** The rest of a turn of which clients know the end, where nothing comes behind it. */
  get ending(): Promise<void> | undefined {
    const turn = this.#current
    return turn?.outcome && !turn.visible && !this.next() ? turn.done : undefined
  }

  get stopped(): boolean {
    return this.#stopped
  }

  get notices(): readonly Notice[] {
    return this.#agent.notices.value
  }

  /** What comes now may begin at once. */
  get free(): boolean {
    return !this.#current && !this.#exclusive && this.next() === undefined
  }

  /** What begins next: a prompt, else a notice. */
  next(): QueuedPrompt | Notice | undefined {
    return this.queue.items()[0] ?? this.notices.find(startsTurn)
  }

  nextId(): number {
    return (this.#agent.history.lastTurn()?.turn_id ?? -1) + 1
  }

  /** Whether packs have a say before a prompt gets its turn. */
  get asks(): boolean {
    return !this.#agent.deps.hooks.nobodyHears('beforePrompt')
  }

  /** The prompt about which packs are being asked. */
  get asked(): string | undefined {
    return this.#asking?.item.prompt_id
  }

  /** Begins with what has waited longest. */
  start(): void {
    if (this.#current || this.#stopped || this.#exclusive || this.#asking) return
    const [first] = this.queue.items()
    if (first && this.asks) {
      this.#ask(first)
      return
    }
    const head = this.queue.shift() ?? this.next()
    if (!head) {
      const { id, session } = this.#agent.host
      session.work.rests(id) // what waited when the turn before it ended may have been withdrawn
      return
    }
    const turn_id = this.nextId()
    this.begin(turn_id, head, () => this.#insist(() => startRecords(turn_id, head, { waited: true })))
    if ('launched' in head) head.launched?.('running') // whoever was to be asked has left meanwhile
  }

  /** The first prompt waits, and the session is at work, until packs have had their say; one that is withdrawn meanwhile is gone. */
  #ask(item: QueuedPrompt): void {
    const { host, deps } = this.#agent
    const controller = new AbortController()
    host.session.work.background(1)
    const ask = async () => {
      const { blocked, texts } = await this.judge(item, false, controller.signal)
      if (this.#stopped || !this.queue.has(item.prompt_id)) return item.launched?.('queued')
      if (blocked) return this.block(item, blocked)
      this.queue.take([item.prompt_id])
      this.queue.forget([item.prompt_id])
      const turn_id = this.nextId()
      const more = texts.map(({ event, text }) => hookResult(event, text, { turn_id }))
      await new Promise<void>(begun => {
        this.begin(turn_id, item, () => this.#insist(() => [...startRecords(turn_id, item, { waited: true }), ...more]), { begun })
      })
      item.launched?.('running')
    }
    const done = ask()
      .catch((err: unknown) => {
        deps.log.error({ err, session_id: host.session.id }, 'a prompt could not be begun')
        item.launched?.('queued')
      })
      .finally(() => {
        this.#asking = undefined
        this.start()
        host.session.work.background(-1)
      })
    this.#asking = { item, controller, done }
  }

  /** What packs say of a prompt: that it is blocked, or what the model is to read behind it. */
  async judge(item: QueuedPrompt, steered: boolean, signal: AbortSignal): Promise<Judgement> {
    const { host, deps } = this.#agent
    const { prompt_id, content, origin } = item
    const texts: { readonly event: string; readonly text: string }[] = []
    const add = (event: string, text: string) => void texts.push({ event, text })
    const blocked = await deps.hooks.first('beforePrompt', [{ agent: host, prompt_id, content, origin, steered, signal, add }], {
      limit_ms: deps.beforePromptMs
    })
    return { texts, ...(blocked ? { blocked } : {}) }
  }

  /** The prompt is over without a turn; resolves when that is on record. */
  async block(item: QueuedPrompt, block: PromptRefusal): Promise<void> {
    const taken = this.queue.take([item.prompt_id])
    const written = await this.#insist(() => blockedRecords(item, block))
    this.queue.forget(taken.map(({ prompt_id }) => prompt_id))
    written?.tell()
    item.launched?.('blocked')
    item.settled?.({ ...neverRan, reason: 'blocked' })
  }

  /** A prompt was withdrawn: nobody has to be asked about it any more. */
  withdrawn(prompt_ids: readonly string[]): void {
    const asking = this.#asking
    if (asking && prompt_ids.includes(asking.item.prompt_id)) asking.controller.abort(new Error('the prompt was withdrawn'))
  }

  /**
   * `start`: the begin of the turn on record, not told; undefined when the agent was closed first. What is on record already is told before this
   * returns. `begun`: called when it is told, or will not be. `looked`: where the caller has looked already.
   */
  begin(
    turn_id: number,
    head: QueuedPrompt | Notice,
    start: Written | (() => Promise<Written | undefined>),
    {
      begun = () => {},
      looked = this.#agent.binding.look()
    }: { readonly begun?: () => void; readonly looked?: Promise<LookedUp | undefined> | undefined } = {}
  ): void {
    const { host, history, deps, emit, notices, binding, measured } = this.#agent
    const turn = new Turn(turn_id, head, {
      host,
      history,
      deps,
      emit,
      bind: () => binding.forTurn(looked),
      measured,
      repeats: this.#repeats,
      notices,
      insist: records => this.#insist(records),
      ending: (left, taken) => {
        this.queue.restore(left)
        this.queue.forget(taken.map(item => item.prompt_id))
      },
      settled: () => this.#release(turn)
    })
    this.#current = turn
    this.#last = turn
    const { work } = host.session
    // What kept the session at work until now may end before the begin of the turn is on record and told.
    const goesOn = work.busy
    if (goesOn) work.background(1)
    const launch = async (written: Written | undefined) => {
      const over = written && turn.run(written)
      if (goesOn) work.background(-1)
      begun()
      await over
    }
    turn.done = (typeof start === 'function' ? start().then(launch) : launch(start))
      .catch((err: unknown) => deps.log.error({ err, session_id: host.session.id }, 'the end of a turn could not be recorded'))
      .then(() => this.#release(turn))
  }

  /** No turn begins while `work` runs. Throws `refusal` when one runs or something waits. */
  takeOver(refusal: ErrorSpec, brief: boolean): { readonly signal: AbortSignal; release(): void } {
    if (this.#stopped || this.#current || this.#exclusive || this.#asking || this.next()) throw new AppError(refusal)
    const controller = new AbortController()
    let end = () => {}
    const done = new Promise<void>(resolve => {
      end = resolve
    })
    this.#exclusive = { abort: () => controller.abort(new Error('the agent is needed or closed')), done, brief }
    return {
      signal: controller.signal,
      release: () => {
        this.#exclusive = undefined
        end()
        this.start()
      }
    }
  }

  /** The end of brief work that keeps turns from beginning. */
  get brief(): Promise<unknown> | undefined {
    return this.#exclusive?.brief ? this.#exclusive.done : undefined
  }

  /** Ends what keeps turns from beginning; resolves when it has. */
  async endExclusive(): Promise<void> {
    this.#exclusive?.abort()
    await this.#exclusive?.done
  }

  /** Cancels the running turn, if any; resolves when it has ended. */
  async cancel(user: boolean): Promise<void> {
    const turn = this.#current
    turn?.abort(user)
    await turn?.done
  }

  /** Nothing is taken any more. */
  stop(): void {
    this.#stopped = true
  }

  /** After `stop`: the running turn is cancelled; resolves when it has ended, or the disk does not take its end. */
  async close(): Promise<void> {
    this.#closing.abort()
    this.#asking?.controller.abort(new Error('the agent is closing'))
    await this.#asking?.done
    await this.cancel(false)
    await this.#last?.done
  }

  /** The next one may begin. */
  #release(turn: Turn): void {
    if (this.#current === turn) this.#current = undefined
    for (const item of turn.taken()) item.settled?.(turn.outcome ?? neverRan)
    this.ends.get(turn.id)?.(turn.outcome ?? neverRan)
    this.start()
  }

  /**
   * Records the begin or the end of a turn, again and again while the disk refuses: without it the agent can do nothing that counts, and
   * clients see it at work until then. Undefined when the agent was closed first; what is not on record, the next load makes up for.
   */
  async #insist(records: () => readonly (CoreRecord | HistoryRecord)[]): Promise<Written | undefined> {
    const { host, history, deps } = this.#agent
    for (let attempt = 1; ; attempt++) {
      try {
        const read = history.certain()
        if (read) await read
        return await history.write(...records())
      } catch (err) {
        deps.log.error({ err, session_id: host.session.id, attempt }, 'the begin or the end of a turn could not be saved')
        await pause(backoff(attempt, deps.retryBaseMs), this.#closing.signal)
        if (this.#closing.signal.aborted) return undefined
      }
    }
  }
}

/** Withdrawn, or left to the next process. */
export const neverRan: Parameters<NonNullable<QueuedPrompt['settled']>>[0] = {
  reason: 'cancelled',
  interrupt_reason: 'aborted',
  text: '',
  truncated: false,
  steps: 0,
  usage: noUsage
}
