/** Approvals and questions of an agent, put to the person at the terminal one after the other; what nobody can be asked for is refused. */
import { ApiError, type Client, type Data, unwrap } from '../../client/index.ts'
import { shortLine } from '../../kernel/index.ts'
import { type Choice, Interrupted } from './ask.ts'
import type { Io } from './io.ts'

type Approval = Data<'/api/v1/sessions/{session_id}/approvals', 'get'>['items'][number]
export type Question = Data<'/api/v1/sessions/{session_id}/questions', 'get'>['items'][number]
type Answer = { decision: 'approved' | 'rejected'; scope?: 'session'; feedback?: string }
type ItemAnswer =
  | { kind: 'single'; option_id: string }
  | { kind: 'multi'; option_ids: string[] }
  | { kind: 'other'; text: string }
  | { kind: 'skipped' }

const decisions: readonly Choice<Answer>[] = [
  { value: { decision: 'approved' }, label: 'Allow' },
  { value: { decision: 'approved', scope: 'session' }, label: 'Allow for this session' },
  { value: { decision: 'rejected' }, label: 'Reject' }
]

interface QuestionerOptions {
  readonly session_id: string
  /** Approve by itself. */
  readonly yes: boolean
  /** Nothing is asked and nothing is said. */
  readonly json: boolean
  /** Says what was decided. */
  readonly note: (text: string) => void
  /** Called before the terminal is asked. */
  readonly asking: () => void
  /** Called after a Ctrl+C instead of an answer. */
  readonly interrupted: () => void
}

export class Questioner {
  readonly #client: Client
  readonly #io: Io
  readonly #options: QuestionerOptions
  /** What is open, with what ends its prompt at the terminal when somebody else has answered. */
  readonly #open = new Map<string, AbortController>()
  #turn: Promise<unknown> = Promise.resolve()
  #closed = false
  /** Something was refused because nobody could be asked. */
  unasked = false

  constructor(client: Client, io: Io, options: QuestionerOptions) {
    this.#client = client
    this.#io = io
    this.#options = options
  }

  approval(request: Approval): void {
    this.#inTurn(request.approval_id, signal => this.#approve(request, signal))
  }

  question(request: Question): void {
    this.#inTurn(request.question_id, signal => this.#answer(request, signal))
  }

  /** Answered by somebody, or withdrawn. */
  settled(id: string): void {
    this.#open.get(id)?.abort()
    this.#open.delete(id)
  }

  /** Everything else is settled. */
  keep(ids: ReadonlySet<string>): void {
    for (const id of [...this.#open.keys()]) if (!ids.has(id)) this.settled(id)
  }

  close(): void {
    this.#closed = true
    for (const id of [...this.#open.keys()]) this.settled(id)
  }

  get #canAsk(): boolean {
    return this.#io.interactive && !this.#options.json
  }

  #inTurn(id: string, ask: (signal: AbortSignal) => Promise<void>): void {
    if (this.#open.has(id) || this.#closed) return
    const ended = new AbortController()
    this.#open.set(id, ended)
    this.#turn = this.#turn
      .then(() => (ended.signal.aborted ? undefined : ask(ended.signal)))
      .catch((error: unknown) => {
        if (error instanceof Interrupted) this.#options.interrupted()
        // Somebody else was faster, or it expired.
        else if (!(error instanceof ApiError) && !this.#closed)
          this.#io.err(`svc-code: ${error instanceof Error ? error.message : String(error)}\n`)
      })
  }

  async #approve({ approval_id, tool_name, action, tool_input_display }: Approval, signal: AbortSignal): Promise<void> {
    const path = { session_id: this.#options.session_id, approval_id }
    const send = (body: Answer) =>
      unwrap(this.#client.rest.POST('/api/v1/sessions/{session_id}/approvals/{approval_id}', { params: { path }, body }))
    const subject = `${tool_name}: ${action}${details(tool_input_display, action)}`
    if (this.#options.yes) {
      this.#options.note(`allowed by --yes: ${shortLine(subject, 200)}`)
      await send({ decision: 'approved' })
    } else if (this.#canAsk) {
      this.#options.asking()
      const answer = await this.#io.ask.choose(`The agent asks for ${subject}`, decisions, signal)
      if (signal.aborted) return
      await send(answer ?? { decision: 'rejected' })
    } else {
      this.unasked = true
      this.#options.note(`rejected, because nobody can be asked here (--yes allows): ${shortLine(subject, 200)}`)
      await send({ decision: 'rejected', feedback: 'Nobody is there to approve this.' })
    }
  }

  async #answer({ question_id, questions }: Question, signal: AbortSignal): Promise<void> {
    const path = { session_id: this.#options.session_id, question_id }
    const dismiss = () =>
      unwrap(this.#client.rest.POST('/api/v1/sessions/{session_id}/questions/{question_id}:dismiss', { params: { path } }))
    if (!this.#canAsk) {
      this.unasked = true
      this.#options.note(`dismissed, because nobody can be asked here: ${shortLine(questions.map(one => one.question).join(' '), 200)}`)
      await dismiss()
      return
    }
    this.#options.asking()
    const answers: Record<string, ItemAnswer> = {}
    for (const item of questions) {
      const answer = await this.#item(item, signal)
      if (signal.aborted) return
      if (answer === undefined) return void (await dismiss())
      answers[item.id] = answer
    }
    const route = '/api/v1/sessions/{session_id}/questions/{question_id}'
    await unwrap(this.#client.rest.POST(route, { params: { path }, body: { answers, method: 'enter' } }))
  }

  /** Undefined when it was cancelled. */
  async #item(item: Question['questions'][number], signal: AbortSignal): Promise<ItemAnswer | undefined> {
    const { question, body, options, multi_select, allow_other, other_label } = item
    const message = body === undefined ? question : `${question}\n${body}`
    const choices = options.map(({ id, label, description }) => ({ value: id, label, hint: description }))
    if (multi_select) {
      const option_ids = await this.#io.ask.chooseSome(message, choices, signal)
      return option_ids && { kind: 'multi', option_ids: [...option_ids] }
    }
    const other = allow_other ? [{ value: '', label: other_label ?? 'Something else' }] : []
    const option_id = await this.#io.ask.choose(message, [...choices, ...other], signal)
    if (option_id !== '') return option_id === undefined ? undefined : { kind: 'single', option_id }
    const text = await this.#io.ask.text(question, signal)
    return text === undefined ? undefined : text === '' ? { kind: 'skipped' } : { kind: 'other', text }
  }
}

/** The command or path of a call, when the phrase does not have it in full. */
function details(display: Readonly<Record<string, unknown>>, action: string): string {
  const value = display.command ?? display.path ?? display.url
  return typeof value !== 'string' || action.includes(value) ? '' : `\n${value}`
}
