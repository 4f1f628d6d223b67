/** One session as a page of a web client keeps it: the conversation folded from frames, and every rule that the frames must keep. */
import type { Frame } from '../../kernel/testing.ts'

/** A bubble of the conversation, as compared with the message history. */
export type Bubble =
  | { readonly who: 'user'; readonly text: string }
  | { readonly who: 'assistant'; thinking: string; text: string; readonly calls: string[] }
  | { readonly who: 'tool'; readonly id: string; readonly output: string }

// biome-ignore lint/suspicious/noExplicitAny: a page reads untyped JSON
export type Json = any

interface OpenStep {
  readonly step: number
  thinking: string
  text: string
  bubble: Extract<Bubble, { who: 'assistant' }> | undefined
  readonly started: Set<string>
  readonly answered: Set<string>
  /** Rebuilt from a snapshot: calls that were answered before are not known. */
  readonly rebuilt: boolean
}

export class PageSession {
  readonly id: string
  /** What was applied, in order. */
  readonly lines: Frame[] = []
  readonly problems: string[] = []
  seq = 0
  epoch = ''
  bubbles: Bubble[] = []
  work: Json = {}
  turn: { readonly id: number } | undefined
  step: OpenStep | undefined
  readonly approvals = new Map<string, Json>()
  readonly #queued = new Set<string>()
  /** Prompts that have their bubble: they may be told again. */
  #drawn = new Set<string>()
  #lastStep = 0
  /** Length of what this turn has told, by kind of text: where the next delta has to begin. */
  #told = { thinking: 0, text: 0 }
  /** turn.started or turn.ended was applied, its work_changed not yet. */
  #owed: 'start' | 'end' | undefined

  constructor(id: string) {
    this.id = id
  }

  /** Rebuilds everything from `GET snapshot`. */
  rebuild(snapshot: Json): void {
    this.seq = snapshot.as_of_seq
    this.epoch = snapshot.epoch
    this.bubbles = bubblesOf(snapshot.messages.items)
    this.#drawn = new Set(snapshot.messages.items.map(({ id }: Json) => id))
    for (const id of this.#drawn) this.#queued.delete(id)
    this.work = snapshot.session
    this.approvals.clear()
    for (const each of snapshot.pending_approvals) this.approvals.set(each.approval_id, each)
    this.#owed = undefined
    this.#lastStep = 0
    const flight = snapshot.in_flight_turn
    this.turn = flight ? { id: flight.turn_id } : undefined
    this.step = undefined
    if (!flight) return
    const { thinking_text: thinking, assistant_text: text } = flight
    this.#told = { thinking: flight.thinking_offset + thinking.length, text: flight.assistant_offset + text.length }
    if (thinking || text) this.bubbles.push({ who: 'assistant', thinking, text, calls: [] })
    const last = this.bubbles.at(-1)
    const bubble = last?.who === 'assistant' ? last : undefined
    const started = new Set<string>(flight.running_tools.map((tool: Json) => tool.tool_call_id))
    this.step = { step: -1, thinking, text, bubble, started, answered: new Set(), rebuilt: true }
  }

  /** False when text is missing before this frame: the page must take a snapshot. */
  apply(frame: Frame): boolean {
    if (frame.volatile ? frame.seq! < this.seq : frame.seq! <= this.seq) return true
    if (frame.volatile && frame.seq !== this.seq)
      this.#wrong(frame, `a volatile frame carries ${frame.seq}, the last durable is ${this.seq}`)
    if (!frame.volatile) {
      if (frame.seq !== this.seq + 1) this.#wrong(frame, `number ${frame.seq} after ${this.seq}`)
      this.seq = frame.seq!
      this.epoch = frame.epoch!
    }
    this.lines.push(frame)
    return frame.payload.agentId === 'main' ? this.#main(frame) : true
  }

  #wrong(frame: Frame, text: string): void {
    this.problems.push(`${frame.seq} ${frame.type}: ${text}`)
  }

  #expect(frame: Frame, ok: unknown, text: string): void {
    if (!ok) this.#wrong(frame, text)
  }

  #main(frame: Frame): boolean {
    const p = frame.payload
    const { step } = this
    if (this.#owed && !frame.volatile && !['error', 'event.session.work_changed', 'event.approval.resolved'].includes(frame.type)) {
      this.#wrong(frame, `work_changed must come right after the turn's ${this.#owed}`)
    }
    switch (frame.type) {
      case 'prompt.submitted': {
        this.#expect(frame, p.promptId && p.userMessageId, 'both ids must be there')
        if (p.status === 'queued') this.#queued.add(p.promptId)
        else if (!this.#drawn.has(p.promptId)) this.bubbles.push({ who: 'user', text: textOf(p.content) })
        if (p.status !== 'queued') this.#drawn.add(p.promptId)
        break
      }
      case 'prompt.steered':
        for (const id of p.promptIds) this.#queued.delete(id)
        break
      case 'turn.started': {
        this.#expect(frame, !this.turn, 'a turn is running')
        this.turn = { id: p.turnId }
        this.#told = { thinking: 0, text: 0 }
        this.#lastStep = 0
        this.#owed = 'start'
        this.#queued.delete(p.promptId)
        break
      }
      case 'turn.step.started':
        this.#expect(frame, this.turn?.id === p.turnId, 'its turn is not running')
        this.#expect(frame, !step || step.step === -1, 'a step is open')
        this.#expect(frame, this.#lastStep === 0 || p.step === this.#lastStep + 1, `step ${p.step} after ${this.#lastStep}`)
        this.#lastStep = p.step
        this.step = { step: p.step, thinking: '', text: '', bubble: undefined, started: new Set(), answered: new Set(), rebuilt: false }
        break
      case 'assistant.delta':
        return this.#grow(frame, 'text')
      case 'thinking.delta':
        return this.#grow(frame, 'thinking')
      case 'tool.call.delta':
        this.#expect(frame, step, 'no step is open')
        break
      case 'tool.call.started':
        this.#expect(frame, step && step.answered.size === 0, 'after the first result of its step')
        step?.started.add(p.toolCallId)
        if (step && !this.bubbles.some(each => each.who === 'assistant' && each.calls.includes(p.toolCallId))) {
          this.#bubble(step).calls.push(p.toolCallId)
        }
        break
      case 'tool.progress':
        this.#expect(frame, step?.started.has(p.toolCallId) && !step.answered.has(p.toolCallId), 'its call is not running')
        break
      case 'tool.result':
        this.#expect(frame, p.synthetic || (step?.started.has(p.toolCallId) && !step.answered.has(p.toolCallId)), 'its call is not running')
        step?.answered.add(p.toolCallId)
        if (!this.bubbles.some(each => each.who === 'tool' && each.id === p.toolCallId)) {
          this.bubbles.push({ who: 'tool', id: p.toolCallId, output: outputText(p.output) })
        }
        break
      case 'turn.step.completed':
        this.#expect(frame, step, 'no step is open')
        if (step) for (const id of step.started) this.#expect(frame, step.answered.has(id), `${id} has no result`)
        this.step = undefined
        break
      case 'turn.step.retrying':
        this.#drop()
        break
      case 'turn.step.interrupted':
        if (p.reason === 'error') this.#drop()
        this.step = undefined
        break
      case 'turn.ended':
        this.#expect(frame, this.turn?.id === p.turnId, 'its turn is not running')
        this.#expect(frame, !this.step || this.step.step === -1, 'a step is open')
        this.turn = undefined
        this.step = undefined
        this.#owed = 'end'
        break
      case 'event.session.work_changed':
        // With prompts in the queue the agent goes on: it is at work between its turns, too.
        this.#expect(
          frame,
          p.main_turn_active === (this.turn !== undefined || this.#queued.size > 0),
          `main_turn_active is ${p.main_turn_active}`
        )
        if (p.main_turn_active || !p.busy) this.#owed = undefined
        this.work = p
        break
      case 'prompt.completed':
      case 'prompt.aborted':
        this.#queued.delete(p.promptId)
        break
      case 'event.approval.requested':
        this.#expect(frame, this.work.pending_interaction === 'approval', 'work_changed must come before')
        this.approvals.set(p.approval_id, p)
        break
      case 'event.approval.resolved':
        this.#expect(frame, this.approvals.delete(p.approval_id), 'nobody asked for it')
        break
    }
    return true
  }

  #grow(frame: Frame, kind: 'text' | 'thinking'): boolean {
    const { step } = this
    if (!step) {
      this.#wrong(frame, 'no step is open')
      return true
    }
    if (step.answered.size > 0) this.#wrong(frame, 'after the first result of its step')
    if (typeof frame.offset !== 'number') this.#wrong(frame, 'no offset')
    if (frame.offset! < this.#told[kind]) return true
    if (frame.offset! > this.#told[kind]) return false
    if (frame.payload.delta === '') return true
    this.#told[kind] += frame.payload.delta.length
    step[kind] += frame.payload.delta
    this.#bubble(step)[kind] = step[kind]
    return true
  }

  #bubble(step: OpenStep): Extract<Bubble, { who: 'assistant' }> {
    if (!step.bubble) {
      step.bubble = { who: 'assistant', thinking: '', text: '', calls: [] }
      this.bubbles.push(step.bubble)
    }
    return step.bubble
  }

  /** The step's text is void. */
  #drop(): void {
    const { step } = this
    if (!step) return
    this.bubbles = this.bubbles.filter(bubble => bubble !== step.bubble)
    this.step = undefined
  }
}

/** The bubbles that a message list (oldest first) stands for. */
export function bubblesOf(messages: readonly Json[]): Bubble[] {
  return messages.flatMap((message): Bubble[] => {
    if (message.role === 'user') {
      const kind = message.metadata?.origin?.kind ?? 'user'
      return kind === 'user' ? [{ who: 'user', text: textOf(message.content) }] : []
    }
    if (message.role === 'tool') {
      return message.content.map((part: Json) => ({ who: 'tool', id: part.tool_call_id, output: outputText(part.output) }))
    }
    const join = (type: string) => message.content.flatMap((part: Json) => (part.type === type ? [part[type]] : [])).join('')
    const calls = message.content.flatMap((part: Json) => (part.type === 'tool_use' ? [part.tool_call_id] : []))
    return [{ who: 'assistant', thinking: join('thinking'), text: join('text'), calls }]
  })
}

function textOf(content: readonly Json[]): string {
  return content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
}

function outputText(output: Json): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}
