/** What the snapshot says about the running turn, kept from the agent's own events; and the phase, announced on every change. */
import type { AgentEmit, AgentEventName, AgentEventPayload } from './contract.ts'
import type { InFlightTurn, RunningTool } from './service.ts'

type Phase = { readonly kind: string } & Readonly<Record<string, unknown>>

export class InFlight {
  readonly #turnId: number
  readonly #promptId: string | undefined
  readonly #phase: (phase: Phase) => void
  readonly #now: () => Date
  readonly #tools = new Map<string, RunningTool>()
  #assistant = ''
  #thinking = ''
  #step = 0
  #stepId: string | undefined
  #shown = ''
  /** A step is open and none of its results came: clients close the message with the first result. */
  #textOpen = false

  constructor(turnId: number, promptId: string | undefined, now: () => Date, phase: (phase: Phase) => void) {
    this.#turnId = turnId
    this.#promptId = promptId
    this.#now = now
    this.#phase = phase
  }

  snapshot(): InFlightTurn {
    return {
      turn_id: this.#turnId,
      assistant_text: this.#assistant,
      thinking_text: this.#thinking,
      running_tools: [...this.#tools.values()],
      ...(this.#promptId === undefined ? {} : { current_prompt_id: this.#promptId })
    }
  }

  /** Takes an event in before it is emitted, so that a snapshot in the same tick agrees with the stream. */
  see<N extends AgentEventName>(name: N, given: AgentEventPayload<N>): void {
    switch (name) {
      case 'assistantDelta':
        this.#assistant += (given as AgentEventPayload<'assistantDelta'>).delta
        break
      case 'thinkingDelta':
        this.#thinking += (given as AgentEventPayload<'thinkingDelta'>).delta
        break
      case 'stepStarted': {
        const payload = given as AgentEventPayload<'stepStarted'>
        this.#assistant = ''
        this.#thinking = ''
        this.#step = payload.step
        this.#stepId = payload.stepId
        this.#textOpen = true
        break
      }
      case 'stepRetrying': // the next attempt begins from nothing
        this.#textOpen = false
        this.#assistant = ''
        this.#thinking = ''
        break
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
      case 'toolResult':
        this.#textOpen = false
        this.#tools.delete((given as AgentEventPayload<'toolResult'>).toolCallId)
        break
      default:
        break
    }
  }

  /**
   * Empty deltas at the end of the step's texts. Deltas are never replayed, so a client that reads the snapshot and then subscribes can
   * miss the last ones of a step, and only an offset beyond its text tells it.
   */
  tellLengths(emit: AgentEmit): void {
    if (!this.#textOpen) return
    const nothing = { turnId: this.#turnId, delta: '' }
    if (this.#thinking !== '') emit('thinkingDelta', nothing, this.#thinking.length)
    if (this.#assistant !== '') emit('assistantDelta', nothing, this.#assistant.length)
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
