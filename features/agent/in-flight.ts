/** What the snapshot says about the running turn, kept from the agent's own events; and the phase, announced on every change. */
import type { OpenStep } from '../history/index.ts'
import type { AgentEmit, AgentEventName, AgentEventPayload } from './contract.ts'
import type { InFlightTurn, RunningTool } from './service.ts'

type Phase = { readonly kind: string } & Readonly<Record<string, unknown>>

export class InFlight {
  readonly #turnId: number
  readonly #promptId: string | undefined
  readonly #phase: (phase: Phase) => void
  readonly #now: () => Date
  readonly #tools = new Map<string, RunningTool>()
  readonly #texts = { assistantDelta: new StreamedText(), thinkingDelta: new StreamedText() }
  readonly #offsets: 'turn' | 'step'
  #step = 0
  #stepId: string | undefined
  /** Key of the phase that was announced last: pieces of one stream announce it once. */
  #shown = ''
  /** Prompts of which was told that they were steered into the turn. */
  readonly #steered = new Set<string>()
  /** A step is open and none of its results came: clients close the message with the first result. */
  #textOpen = false
  /** The open step, as the history has it. */
  readonly #openStep: () => OpenStep | undefined

  constructor(
    { turn_id, prompt_id }: { readonly turn_id: number; readonly prompt_id: string | undefined },
    openStep: () => OpenStep | undefined,
    { deltaOffset, now }: { readonly deltaOffset: 'turn' | 'step'; readonly now: () => Date },
    phase: (phase: Phase) => void
  ) {
    this.#turnId = turn_id
    this.#promptId = prompt_id
    this.#openStep = openStep
    this.#offsets = deltaOffset
    this.#now = now
    this.#phase = phase
  }

  /** `steered`: prompts that are on record as steered, and no messages yet. */
  snapshot(steered: NonNullable<InFlightTurn['steered_prompts']>): InFlightTurn {
    const open = this.#openStep()
    // A message is shown in one place: from the moment it is in the history it does not stream any more.
    const streams = open?.step_id === this.#stepId && !open?.answered && !open?.waits
    const { assistantDelta: assistant, thinkingDelta: thinking } = this.#texts
    // A step that clients hear of before the steering did not take the prompt.
    const steered_prompts = steered.flatMap(({ prompt_id, content }) => (this.#steered.has(prompt_id) ? { prompt_id, content } : []))
    return {
      turn_id: this.#turnId,
      assistant_text: streams ? assistant.text : '',
      assistant_offset: streams ? assistant.from : assistant.end,
      thinking_text: streams ? thinking.text : '',
      thinking_offset: streams ? thinking.from : thinking.end,
      running_tools: [...this.#tools.values()],
      ...(this.#promptId === undefined ? {} : { current_prompt_id: this.#promptId }),
      ...(steered_prompts.length > 0 ? { steered_prompts } : {})
    }
  }

  /** Where a text delta that is told now begins; undefined for other events. */
  offset(name: AgentEventName): number | undefined {
    return name === 'assistantDelta' || name === 'thinkingDelta' ? this.#texts[name].end : undefined
  }

  /** Takes an event in before it is emitted, so that a snapshot in the same tick agrees with the stream. */
  see<N extends AgentEventName>(name: N, given: AgentEventPayload<N>): void {
    switch (name) {
      case 'assistantDelta':
      case 'thinkingDelta':
        this.#texts[name as 'assistantDelta' | 'thinkingDelta'].add((given as AgentEventPayload<'assistantDelta' | 'thinkingDelta'>).delta)
        break
      case 'stepStarted': {
        const payload = given as AgentEventPayload<'stepStarted'>
        for (const text of Object.values(this.#texts)) text.begin(this.#offsets === 'step')
        this.#step = payload.step
        this.#stepId = payload.stepId
        this.#textOpen = true
        break
      }
      case 'stepRetrying':
      case 'stepCompleted':
      case 'stepInterrupted':
        this.#textOpen = false
        break
      case 'toolCallStarted': {
        const { toolCallId, name: tool, args, description, display } = given as AgentEventPayload<'toolCallStarted'>
        const facts = { tool_call_id: toolCallId, name: tool, args }
        this.#tools.set(toolCallId, { ...facts, ...(description === undefined ? {} : { description }), ...(display ? { display } : {}) })
        break
      }
      case 'toolProgress': {
        const { toolCallId, update } = given as AgentEventPayload<'toolProgress'>
        const tool = this.#tools.get(toolCallId)
        if (tool && update.kind !== 'custom') {
          const { kind, text, percent } = update
          const last_progress = { kind, ...(text === undefined ? {} : { text }), ...(percent === undefined ? {} : { percent }) }
          this.#tools.set(toolCallId, { ...tool, last_progress })
        }
        break
      }
      case 'promptSteered':
        for (const id of (given as AgentEventPayload<'promptSteered'>).promptIds) this.#steered.add(id)
        break
      case 'toolResult':
        this.#textOpen = false
        this.#tools.delete((given as AgentEventPayload<'toolResult'>).toolCallId)
        break
      default:
        break
    }
  }

  /**
   * Empty deltas at the end of the texts of this step. Deltas are never replayed, so a client that reads the snapshot and then subscribes can
   * miss the last ones of a step, and only an offset beyond its text tells it.
   */
  tellLengths(emit: AgentEmit): void {
    if (!this.#textOpen) return
    const nothing = { turnId: this.#turnId, delta: '' }
    const { assistantDelta, thinkingDelta } = this.#texts
    if (thinkingDelta.told) emit('thinkingDelta', nothing, { offset: thinkingDelta.end })
    if (assistantDelta.told) emit('assistantDelta', nothing, { offset: assistantDelta.end })
  }

  /** Offsets behind what the open step has told, by kind; undefined when it told nothing. */
  told(): { readonly text?: number; readonly thinking?: number } | undefined {
    const { assistantDelta: text, thinkingDelta: thinking } = this.#texts
    if (!text.told && !thinking.told) return undefined
    return { ...(text.told ? { text: text.end } : {}), ...(thinking.told ? { thinking: thinking.end } : {}) }
  }

  /** Announces the phase that follows from an emitted event. Streaming is announced once per kind, not per piece. */
  phaseAfter<N extends AgentEventName>(name: N, given: AgentEventPayload<N>): void {
    const at = { turnId: this.#turnId, step: this.#step, stepId: this.#stepId ?? '' }
    if (name === 'assistantDelta' || name === 'thinkingDelta') {
      const stream = name === 'assistantDelta' ? 'assistant' : 'thinking'
      if (this.#shown === stream) return
      this.#show(stream, { kind: 'streaming', ...at, stream })
    } else if (name === 'toolCallDelta') {
      const { toolCallId, name: toolName } = given as AgentEventPayload<'toolCallDelta'>
      if (this.#shown === toolCallId) return
      this.#show(toolCallId, { kind: 'streaming', ...at, stream: 'tool_call', toolCallId, ...(toolName === undefined ? {} : { toolName }) })
    } else if (name === 'turnStarted' || name === 'stepStarted') this.#show(name, { kind: 'running', ...at })
    else if (name === 'toolCallStarted') {
      const { toolCallId, name: tool } = given as AgentEventPayload<'toolCallStarted'>
      this.#show(name, { kind: 'tool_call', turnId: at.turnId, step: at.step, toolCallId, name: tool })
    } else if (name === 'stepRetrying') {
      const { turnId: _turn, step: _step, stepId: _id, errorMessage: _message, ...facts } = given as AgentEventPayload<'stepRetrying'>
      this.#show(name, { kind: 'retrying', ...at, ...facts })
    } else if (name === 'stepInterrupted') {
      const { reason, message } = given as AgentEventPayload<'stepInterrupted'>
      this.#phase({
        kind: 'interrupted',
        turnId: at.turnId,
        step: at.step,
        reason,
        ...(message ? { message } : {}),
        at: this.#now().getTime()
      })
    } else if (name === 'turnEnded') {
      const { reason, durationMs } = given as AgentEventPayload<'turnEnded'>
      this.#phase({
        kind: 'ended',
        turnId: at.turnId,
        reason,
        ...(durationMs === undefined ? {} : { durationMs }),
        at: this.#now().getTime()
      })
    }
  }

  awaitsApproval(approval: { readonly approvalId: string; readonly toolCallId: string }): void {
    this.#show(approval.approvalId, { kind: 'awaiting_approval', turnId: this.#turnId, step: this.#step, approval })
  }

  #show(key: string, phase: Phase): void {
    this.#shown = key
    this.#phase({ ...phase, since: this.#now().getTime() })
  }
}

/** One kind of text as a turn streams it; lengths in UTF-16 units. */
class StreamedText {
  /** Of the message that still streams. */
  text = ''
  /** Where `text` begins: everything told before it counts, also what a failed attempt made void. */
  from = 0
  /** The open step told some. */
  told = false

  get end(): number {
    return this.from + this.text.length
  }

  add(delta: string): void {
    this.text += delta
    this.told = true
  }

  /** A step begins, or another attempt. */
  begin(anew: boolean): void {
    this.from = anew ? 0 : this.end
    this.text = ''
    this.told = false
  }
}
