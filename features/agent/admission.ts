/** How prompts and notices come in: recorded, then begun at once, given to the running turn, or left to wait. */
import { AppError } from '../../kernel/index.ts'
import type { History, WirePart } from '../history/index.ts'
import { type AgentHost, SessionBusy } from '../sessions/index.ts'
import type { AgentBinding } from './binding.ts'
import type { AgentDeps } from './deps.ts'
import { sentParts } from './media.ts'
import { type Notice, noticeAccepted, startsTurn } from './notices.ts'
import type { QueuedPrompt } from './queue.ts'
import { type NoticeFate, type NoticeInput, type Prompt, PromptCompleted, type PromptInput, PromptInUse } from './service.ts'
import { startRecords } from './turn-records.ts'
import type { Turns } from './turns.ts'

interface AdmissionParts {
  readonly host: AgentHost
  readonly history: History
  readonly deps: AgentDeps
  readonly binding: AgentBinding
  readonly turns: Turns
}

/** Not for calls side by side: the engine makes one after the other. */
export class Admission {
  readonly #host: AgentHost
  readonly #history: History
  readonly #deps: AgentDeps
  readonly #binding: AgentBinding
  readonly #turns: Turns

  constructor({ host, history, deps, binding, turns }: AdmissionParts) {
    this.#host = host
    this.#history = history
    this.#deps = deps
    this.#binding = binding
    this.#turns = turns
  }

  /** Throws PromptInUse, PromptCompleted when an agent of the session that is open has a prompt of this id: who aborts it names no agent. */
  check(prompt_id: string): void {
    const others = this.#host.session.agents().map(agent => this.#deps.engines.get(agent)?.prompt(prompt_id))
    const known = this.#history.prompt(prompt_id) ?? others.find(prompt => prompt !== undefined)
    if (known && ['queued', 'steered', 'running'].includes(known.status)) throw new AppError(PromptInUse)
    if (known) throw new AppError(PromptCompleted, { data: { aborted: false } })
  }

  /** `launched`, where packs are asked about the prompt first: resolves to how it started. `settled`: hears how it ended. */
  async accept(
    input: PromptInput,
    settled?: QueuedPrompt['settled']
  ): Promise<{ readonly prompt: Prompt; readonly launched?: Promise<Prompt['status']> }> {
    if (this.#turns.stopped) throw new AppError(SessionBusy, { message: 'session is closing' })
    const id = input.prompt_id ?? `msg_${this.#deps.newId()}`
    this.check(id)
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
    this.#turns.start()
    return { prompt, ...(starts ? { launched: launch } : {}) }
  }

  async inject({ content, origin, admission = 'activeOrNewTurn', mergeable = true, ...given }: NoticeInput): Promise<NoticeFate> {
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
    this.#turns.start()
    return turn ? 'joins' : startsTurn(notice) ? 'starts' : 'waits'
  }

  async #knowsNotice(id: string): Promise<boolean> {
    return this.#turns.notices.some(notice => notice.notice_id === id) || (await this.#history.messages.find(id)) !== undefined
  }
}

/** As clients see it. */
export function shown({ prompt_id, content, origin, created_at }: QueuedPrompt, status: Prompt['status']): Prompt {
  return { prompt_id, user_message_id: prompt_id, status, content: [...sentParts(content, origin)], created_at }
}
