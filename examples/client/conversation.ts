/** A session as a client shows it, folded from a snapshot and the events behind it. The types come from the documents that the server serves. */
import type { SessionEvent, Snapshot } from '../../client/index.ts'

type Messages = Snapshot['messages']['items']
type Content = Messages[number]['content']

/** One line of the conversation of the main agent. */
export type Entry =
  | { readonly who: 'user'; readonly prompt_id: string | undefined; readonly text: string }
  | { readonly who: 'assistant'; readonly thinking: string; readonly text: string; readonly calls: readonly string[] }
  | { readonly who: 'tool'; readonly id: string; readonly output: string }
type Answer = Extract<Entry, { who: 'assistant' }>

export interface Conversation {
  readonly title: string
  readonly busy: boolean
  readonly pending_interaction: string
  readonly last_turn_reason: string | undefined
  /** Ids of approvals that wait for a decision. */
  readonly approvals: readonly string[]
  /** Ids of questions that wait for an answer. */
  readonly questions: readonly string[]
  /** Agents at work for the turn, or that were; those in the background are tasks. */
  readonly subagents: readonly { readonly id: string; readonly phase: string }[]
  readonly entries: readonly Entry[]
  /** Turn that runs. */
  readonly turn: number | undefined
  /** The step that runs has begun its entry at this place. */
  readonly open: number | undefined
}

/** The state that a snapshot stands for. */
export function conversationOf(snapshot: Snapshot): Conversation {
  const { session, in_flight_turn: flight, pending_approvals, pending_questions, subagents } = snapshot
  const sealed = snapshot.messages.items.flatMap(entriesOf)
  const { thinking_text: thinking = '', assistant_text: text = '' } = flight ?? {}
  const entries: Entry[] = thinking || text ? [...sealed, { who: 'assistant', thinking, text, calls: [] }] : sealed
  return {
    title: session.title,
    busy: session.busy,
    pending_interaction: session.pending_interaction,
    last_turn_reason: session.last_turn_reason,
    approvals: pending_approvals.map(each => each.approval_id),
    questions: pending_questions.map(each => String(each.question_id)),
    subagents: subagents.map(({ id, subagent_phase: phase }) => ({ id, phase })),
    entries,
    turn: flight?.turn_id,
    open: flight && entries.at(-1)?.who === 'assistant' ? entries.length - 1 : undefined
  }
}

/** The state after an event. `client.events.watch` brings events once, in order, and text without gaps. */
export function reduce(state: Conversation, event: SessionEvent): Conversation {
  if (event.type === 'session.meta.updated') return { ...state, title: event.payload.title ?? event.payload.patch.title ?? state.title }
  if (event.type === 'event.session.work_changed') {
    const { busy, pending_interaction, last_turn_reason } = event.payload
    return { ...state, busy, pending_interaction, last_turn_reason: last_turn_reason ?? state.last_turn_reason }
  }
  return event.payload.agentId === 'main' ? ofMain(asking(state, event), event) : asking(state, event)
}

/** Any agent may ask. */
function asking(state: Conversation, event: SessionEvent): Conversation {
  const { approvals, questions } = state
  switch (event.type) {
    case 'event.approval.requested':
      return { ...state, approvals: [...approvals, event.payload.approval_id] }
    case 'event.approval.resolved':
      return { ...state, approvals: approvals.filter(id => id !== event.payload.approval_id) }
    case 'event.question.requested':
      return { ...state, questions: [...questions, event.payload.question_id] }
    case 'event.question.answered':
    case 'event.question.dismissed':
      return { ...state, questions: questions.filter(id => id !== event.payload.question_id) }
    default:
      return state
  }
}

/** Agents that the main one started. */
function started(subagents: Conversation['subagents'], event: SessionEvent): Conversation['subagents'] {
  const phase = (id: string, next: string) => subagents.map(each => (each.id === id ? { id, phase: next } : each))
  switch (event.type) {
    case 'subagent.spawned': {
      const { subagentId: id, runInBackground } = event.payload
      if (runInBackground) return subagents
      return subagents.some(each => each.id === id) ? phase(id, 'queued') : [...subagents, { id, phase: 'queued' }]
    }
    case 'subagent.started':
      return phase(event.payload.subagentId, 'working')
    case 'subagent.suspended':
      return phase(event.payload.subagentId, 'suspended')
    case 'subagent.completed':
      return phase(event.payload.subagentId, 'completed')
    case 'subagent.failed':
      return phase(event.payload.subagentId, 'failed')
    case 'task.started': {
      const { info } = event.payload
      return info.kind === 'agent' ? subagents.filter(({ id }) => id !== info.agentId) : subagents
    }
    case 'turn.started':
      return []
    case 'turn.ended':
      if (event.payload.reason === 'completed') return subagents
      return subagents.map(each => (each.phase === 'completed' ? each : { ...each, phase: 'failed' }))
    default:
      return subagents
  }
}

function ofMain(before: Conversation, event: SessionEvent): Conversation {
  const state = { ...before, subagents: started(before.subagents, event) }
  const { entries, open } = state
  switch (event.type) {
    case 'prompt.submitted': {
      const { promptId, status, content } = event.payload
      return status === 'queued' ? state : asked(state, promptId, textOf(content)) // it is told again when it does not wait any more
    }
    case 'turn.started':
      return { ...state, turn: event.payload.turnId, open: undefined }
    case 'turn.step.started':
      return { ...state, open: undefined }
    case 'assistant.delta':
      return answered(state, answer => ({ ...answer, text: answer.text + event.payload.delta }))
    case 'thinking.delta':
      return answered(state, answer => ({ ...answer, thinking: answer.thinking + event.payload.delta }))
    case 'tool.call.started': {
      const { toolCallId } = event.payload
      const isKnown = entries.some(entry => entry.who === 'assistant' && entry.calls.includes(toolCallId))
      return isKnown ? state : answered(state, answer => ({ ...answer, calls: [...answer.calls, toolCallId] }))
    }
    case 'tool.result': {
      const { toolCallId: id, output } = event.payload
      if (entries.some(entry => entry.who === 'tool' && entry.id === id)) return state
      return { ...state, entries: [...entries, { who: 'tool', id, output: outputText(output) }] }
    }
    case 'turn.step.retrying':
      return withoutOpen(state)
    case 'turn.step.interrupted': {
      // What it told is in a message when this or its first call says where that ends; it is not when the server ended meanwhile.
      const { assistantEnd, thinkingEnd } = event.payload
      const answer = state.open === undefined ? undefined : state.entries[state.open]
      const isKept = (assistantEnd ?? thinkingEnd) !== undefined || (answer?.who === 'assistant' && answer.calls.length > 0)
      return isKept ? { ...state, open: undefined } : withoutOpen(state)
    }
    case 'turn.step.completed':
      return { ...state, open: undefined }
    case 'turn.ended':
      return { ...state, turn: undefined, open: undefined }
    default:
      return { ...state, open }
  }
}

/** A prompt may have been told before, and a snapshot may have it already. */
function asked(state: Conversation, prompt_id: string | undefined, text: string): Conversation {
  const isKnown = prompt_id !== undefined && state.entries.some(entry => entry.who === 'user' && entry.prompt_id === prompt_id)
  return isKnown ? state : { ...state, entries: [...state.entries, { who: 'user', prompt_id, text }] }
}

/** Changes the entry of the step that runs, which begins with the first text or call. */
function answered(state: Conversation, change: (answer: Answer) => Answer): Conversation {
  const entries = [...state.entries]
  const at = state.open ?? entries.length
  entries[at] = change((entries[at] as Answer | undefined) ?? { who: 'assistant', thinking: '', text: '', calls: [] })
  return { ...state, open: at, entries }
}

/** What a step said that is tried again is void, and what was lost. */
function withoutOpen(state: Conversation): Conversation {
  return { ...state, open: undefined, entries: state.entries.filter((_, at) => at !== state.open) }
}

function entriesOf({ role, content, metadata, prompt_id }: Messages[number]): Entry[] {
  if (role === 'user') {
    const { kind = 'user' } = (metadata?.origin ?? {}) as { kind?: string }
    return kind === 'user' ? [{ who: 'user', prompt_id, text: textOf(content) }] : []
  }
  if (role === 'tool') {
    return content.flatMap(part =>
      part.type === 'tool_result' ? [{ who: 'tool' as const, id: part.tool_call_id, output: outputText(part.output) }] : []
    )
  }
  const thinking = content.flatMap(part => (part.type === 'thinking' ? [part.thinking] : [])).join('')
  const calls = content.flatMap(part => (part.type === 'tool_use' ? [part.tool_call_id] : []))
  return [{ who: 'assistant', thinking, text: textOf(content), calls }]
}

function textOf(content: Content): string {
  return content.flatMap(part => (part.type === 'text' ? [part.text] : [])).join('')
}

function outputText(output: unknown): string {
  return typeof output === 'string' ? output : JSON.stringify(output)
}
