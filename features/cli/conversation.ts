/** A session at the terminal: the agent's text on the standard output, what it does on the standard error, and what it asks. */
import { setTimeout as delay } from 'node:timers/promises'
import { ApiError, type Client, type SessionEvent, type Snapshot, unwrap } from '../../client/index.ts'
import { shortLine } from '../../kernel/index.ts'
import { CommandError } from './command-error.ts'
import type { Io } from './io.ts'
import { type Question, Questioner } from './questioner.ts'

interface ConversationOptions {
  readonly session_id: string
  /** Approve by itself. */
  readonly yes: boolean
  /** Every event as a line of JSON on the standard output, and nothing else there. */
  readonly json: boolean
  /** Begin with this many of the last messages, and with what is open; else with what comes. */
  readonly past?: number
  /** Called after a Ctrl+C while something was asked at the terminal. */
  readonly interrupted: () => void
}

/** How a prompt ended. */
export interface Outcome {
  readonly reason: 'completed' | 'failed' | 'blocked' | 'cancelled'
  /** Text of its answers. */
  readonly text: string
  /** Why it failed. */
  readonly error?: string
}

const endings: Readonly<Record<Outcome['reason'], string>> = {
  completed: 'completed',
  failed: 'not completed',
  blocked: 'blocked by a hook',
  cancelled: 'cancelled'
}

/** `the turn was cancelled` */
export function ending({ reason, error }: Outcome): string {
  return `the turn was ${endings[reason]}${error ? `: ${error}` : ''}`
}

/** A server that is away for longer than this is not waited for, ms. */
const awayMs = 20_000
/** How soon it is asked again that was away when it was asked, ms. */
const againMs = 250
/** Codes of a server, or a pack, that is away for a moment. */
const awayCodes: readonly number[] = [50005, 50006, 50007]

export class Conversation {
  readonly #client: Client
  readonly #io: Io
  readonly #options: ConversationOptions
  readonly #questioner: Questioner
  readonly #outcomes = new Map<string, Outcome>()
  readonly #waiting = new Map<string, { resolve(outcome: Outcome): void; reject(error: Error): void }>()
  /** Text of the running turn that was told. */
  #told = ''
  /** The next text is the first one of a step. */
  #stepBegins = false
  #error: string | undefined
  #lineOpen = false
  #begun = false
  #away: ReturnType<typeof setTimeout> | undefined
  #fail: (error: Error) => void = () => undefined
  /** Rejects when the server is gone for good. */
  readonly lost: Promise<never>
  #running = false
  #idle: (() => void)[] = []

  constructor(client: Client, io: Io, options: ConversationOptions) {
    this.#client = client
    this.#io = io
    this.#options = options
    this.#questioner = new Questioner(client, io, {
      ...options,
      note: text => this.#remark(text),
      asking: () => this.endLine()
    })
    this.lost = new Promise((_, reject) => {
      this.#fail = reject
    })
    this.lost.catch(() => undefined) // whoever waits for something hears of it
    client.events.onState(state => {
      if (state.state === 'waiting') {
        const problem = new CommandError(`the connection to the server is lost: ${state.reason}`)
        this.#away ??= setTimeout(() => this.#end(problem), awayMs)
      } else if (state.state === 'open') this.#back()
    })
  }

  /** Somebody should have been asked and could not be. */
  get unasked(): boolean {
    return this.#questioner.unasked
  }

  /** Resolves when events flow. */
  async open(): Promise<void> {
    const { session_id, past } = this.#options
    const watch = this.#client.events.watch(session_id, {
      from: past === undefined ? 'now' : 'snapshot',
      onEvent: event => this.#event(event),
      onSnapshot: snapshot => this.#snapshot(snapshot)
    })
    await Promise.race([watch.ready, this.lost])
  }

  close(): void {
    this.#waiting.clear()
    this.#back()
    this.#questioner.close()
    this.#client.close()
  }

  /** Sends a prompt; resolves to its id as soon as it is accepted. */
  async submit(text: string, model?: string): Promise<string> {
    const path = { session_id: this.#options.session_id }
    const body = { content: [{ type: 'text' as const, text }], model }
    const sending = this.#client.rest.POST('/api/v1/sessions/{session_id}/prompts', { params: { path }, body })
    const { prompt_id } = await unwrap(sending).catch((error: unknown) => {
      throw withRemedy(error)
    })
    return prompt_id
  }

  /** Resolves when no turn of the main agent runs. */
  idle(): Promise<void> {
    return this.#running ? Promise.race([new Promise<void>(resolve => this.#idle.push(resolve)), this.lost]) : Promise.resolve()
  }

  /** How the prompt ends. */
  outcome(prompt_id: string): Promise<Outcome> {
    const known = this.#outcomes.get(prompt_id)
    if (known) return Promise.resolve(known)
    const end = new Promise<Outcome>((resolve, reject) => this.#waiting.set(prompt_id, { resolve, reject }))
    return Promise.race([end, this.lost])
  }

  async abort(prompt_id: string): Promise<void> {
    const path = { session_id: this.#options.session_id, prompt_id }
    const aborting = this.#client.rest.POST('/api/v1/sessions/{session_id}/prompts/{prompt_id}:abort', { params: { path } })
    await unwrap(aborting).catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error // over already: its outcome says how
    })
  }

  /** Ends a line of text that is still open. */
  endLine(): void {
    if (this.#lineOpen && !this.#options.json) this.#io.out('\n')
    this.#lineOpen = false
  }

  #event(event: SessionEvent): void {
    if (this.#options.json) this.#io.out(`${JSON.stringify(event)}\n`)
    const { payload } = event
    if (event.type === 'event.approval.requested') this.#questioner.approval(event.payload)
    else if (event.type === 'event.approval.resolved') this.#questioner.settled(event.payload.approval_id)
    else if (event.type === 'event.question.requested') this.#questioner.question(event.payload)
    else if (event.type === 'event.question.answered' || event.type === 'event.question.dismissed')
      this.#questioner.settled(event.payload.question_id)
    else if ('agentId' in payload && payload.agentId === 'main') this.#main(event)
  }

  /** What the main agent does. */
  #main(event: SessionEvent): void {
    switch (event.type) {
      case 'turn.started':
        this.#setRunning(true)
        this.#told = ''
        this.#error = undefined
        break
      case 'turn.step.started':
        this.#stepBegins = true
        break
      case 'assistant.delta':
        this.#text(event.payload.delta)
        break
      case 'tool.call.started':
        this.#remark(`> ${event.payload.name} ${shortLine(event.payload.description ?? JSON.stringify(event.payload.args), 120)}`)
        break
      case 'tool.result':
        if (event.payload.isError) this.#remark(`  failed: ${shortLine(textOf(event.payload.output), 200)}`)
        break
      case 'turn.step.retrying':
        this.#remark(`trying again in ${Math.round(event.payload.delayMs / 100) / 10} s: ${shortLine(event.payload.errorMessage, 200)}`)
        break
      case 'error':
        this.#error = event.payload.message
        break
      case 'warning':
        this.#remark(`warning: ${shortLine(event.payload.message, 300)}`)
        break
      case 'turn.ended':
        this.#setRunning(false)
        this.#error = event.payload.error?.message ?? this.#error
        break
      case 'prompt.completed':
        this.#over(event.payload.promptId, event.payload.reason ?? 'completed')
        break
      case 'prompt.aborted':
        this.#over(event.payload.promptId, 'cancelled')
        break
    }
  }

  /** The state at the beginning, or after something was missed: text that was not told yet, what is open, prompts that are over. */
  #snapshot(snapshot: Snapshot): void {
    const { session, messages, in_flight_turn, pending_approvals, pending_questions } = snapshot
    const { past, json } = this.#options
    if (json) this.#io.out(`${JSON.stringify({ type: 'snapshot', session_id: session.id, payload: snapshot })}\n`)
    this.#setRunning(session.main_turn_active)
    if (!this.#begun && past !== undefined && !json) for (const message of messages.items.slice(-past)) this.#message(message)
    const turn = apart(this.#answersSince(messages.items), in_flight_turn?.assistant_text ?? '')
    if (!this.#begun) {
      this.#told = ''
      if (in_flight_turn) this.#text(in_flight_turn.assistant_text)
      this.#told = turn
    } else if (turn.startsWith(this.#told)) {
      this.#stepBegins = false // the text has its breaks
      this.#text(turn.slice(this.#told.length))
    }
    this.#begun = true
    const open = new Set<string>()
    for (const approval of pending_approvals) {
      open.add(approval.approval_id)
      this.#questioner.approval(approval)
    }
    for (const question of pending_questions as readonly Question[]) {
      open.add(question.question_id)
      this.#questioner.question(question)
    }
    this.#questioner.keep(open)
    if (this.#waiting.size > 0) void this.#settleFrom(session.last_turn_reason)
  }

  /** Text of the assistant since the last prompt. */
  #answersSince(items: readonly Message[]): string {
    const last = items.findLastIndex(isPrompt)
    const answers = items.slice(last + 1).filter(one => one.role === 'assistant')
    return answers
      .map(({ content }) => content.map(part => (part.type === 'text' ? String((part as { text?: string }).text ?? '') : '')).join(''))
      .reduce(apart, '')
  }

  /** Prompts that are neither running nor queued any more have ended while nobody listened. A server that goes away meanwhile is asked again. */
  async #settleFrom(reason: Outcome['reason'] | undefined): Promise<void> {
    const path = { session_id: this.#options.session_id }
    while (this.#waiting.size > 0) {
      try {
        const { active, queued } = await unwrap(this.#client.rest.GET('/api/v1/sessions/{session_id}/prompts', { params: { path } }))
        const open = new Set([active?.prompt_id, ...queued.map(one => one.prompt_id)])
        for (const id of [...this.#waiting.keys()]) if (!open.has(id)) this.#over(id, reason ?? 'failed')
        return
      } catch (error) {
        if (error instanceof ApiError && error.code > 0 && !awayCodes.includes(error.code)) return this.#end(error)
        await delay(againMs) // nobody waits any more once it is gone for good
      }
    }
  }

  #over(prompt_id: string, reason: Outcome['reason']): void {
    const outcome = { reason, text: this.#told, ...(reason === 'failed' && this.#error !== undefined ? { error: this.#error } : {}) }
    this.#outcomes.set(prompt_id, outcome)
    this.#waiting.get(prompt_id)?.resolve(outcome)
    this.#waiting.delete(prompt_id)
  }

  #setRunning(running: boolean): void {
    this.#running = running
    if (!running) for (const resolve of this.#idle.splice(0)) resolve()
  }

  #text(delta: string): void {
    if (delta === '') return
    this.#told = this.#stepBegins ? apart(this.#told, delta) : this.#told + delta
    this.#stepBegins = false
    if (this.#options.json) return
    this.#io.out(delta)
    this.#lineOpen = !delta.endsWith('\n')
  }

  #remark(text: string): void {
    if (this.#options.json) return
    this.endLine()
    this.#io.err(`${text}\n`)
  }

  #message(message: Message): void {
    const { role, content } = message
    if (role === 'user' && !isPrompt(message)) return
    for (const part of content as readonly Record<string, unknown>[]) {
      if (part.type === 'text' && role === 'user') this.#io.out(`\nyou: ${part.text}\n\n`)
      else if (part.type === 'text' && role === 'assistant') this.#io.out(`${part.text}\n`)
      else if (part.type === 'tool_use') this.#io.err(`> ${part.tool_name} ${shortLine(JSON.stringify(part.input), 120)}\n`)
    }
  }

  #back(): void {
    clearTimeout(this.#away)
    this.#away = undefined
  }

  #end(error: Error): void {
    this.#fail(error)
    for (const waiter of this.#waiting.values()) waiter.reject(error)
    this.#waiting.clear()
  }
}

/** Texts of two steps, which are no one sentence. */
function apart(before: string, text: string): string {
  return before === '' || text === '' || before.endsWith('\n') || text.startsWith('\n') ? before + text : `${before}\n${text}`
}

type Message = Snapshot['messages']['items'][number]

/** What a person said; the server adds messages in the same role, whose origin says so. */
function isPrompt({ role, metadata }: Message): boolean {
  const origin = metadata?.origin as { kind?: string } | undefined
  return role === 'user' && (origin?.kind === undefined || origin.kind === 'user')
}

function textOf(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}

/** What to do about a model that is not ready. */
function withRemedy(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error
  if (error.code === 40110) return new CommandError(`${error.message}: svc-code login stores a key; svc-code run --demo needs none`)
  if (error.code === 40111 || error.code === 40112) return new CommandError(`${error.message}: svc-code login renews it`)
  if (error.code === 40113) return new CommandError(`${error.message}: svc-code models lists those that are configured`)
  return error
}
