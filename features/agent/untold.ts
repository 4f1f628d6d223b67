/**
 * After a crash the records of an agent can be ahead of its events: a record is on disk before its event is sent. Compares the two and
 * sends what is missing, so that a client that replays the journal sees every turn and prompt begin and end exactly once.
 */
import type { JournaledEvent } from '../../kernel/index.ts'
import { type History, interruptedResult, type PromptRecord, type TurnRecord } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentEmit } from './contract.ts'
import { metadataText, textOf } from './media.ts'

/** Events of one agent since the last turn whose end was told completely. */
interface Told {
  /** Oldest first. */
  readonly events: readonly JournaledEvent[]
  /** Instant from which on an event that is not here was never sent; undefined when the journal tells nothing. */
  readonly since: string | undefined
  /** The journal reaches back no further: of the instant `since` itself something may be missing here. */
  readonly cut: boolean
}

/** Sends what is on record but was never told, because the process died in between; `newestFirst`: the journal of the session. */
export async function tellUntold(
  host: AgentHost,
  history: History,
  emit: AgentEmit,
  newestFirst: AsyncIterable<JournaledEvent>
): Promise<void> {
  const { id, session } = host
  const told = await readTold(history, id, newestFirst)
  if (id === 'main') catchUp(host, history, told)
  const untold = untoldTurns(history, told)
  for (const turn of untold) {
    tellTurn(emit, history, told, turn)
    if (turn === untold.at(-1)) session.work.turnEnded(id, workReason(turn), { announce: true })
    tellPromptEnd(emit, history, told, turn)
  }
  const last = history.turns().at(-1)
  if (id === 'main' && last && untold.length === 0) catchUpReason(host, workReason(last), told)
  tellQueued(emit, history, told)
}

/** The state of the session is saved later than the journal: what a crash swallowed of it follows from the prompts of the user. */
function catchUp({ session }: AgentHost, history: History, told: Told): void {
  const saved = session.state.updated_at
  for (const prompt of history.prompts()) {
    if ((prompt.origin?.kind ?? 'user') !== 'user' || prompt.created_at <= saved) continue
    const { content: left, prompt_id } = prompt
    const content = left.length > 0 ? left : history.messages().find(message => message.id === prompt_id)?.content
    session.promptSubmitted(metadataText(content ?? []), { announce: !toldPrompt(told, prompt) })
  }
}

function catchUpReason({ id, session }: AgentHost, reason: WorkReason, told: Told): void {
  const idle = toldIdle(told, reason)
  if (idle === false) session.work.turnEnded(id, reason, { announce: true })
  else if (session.state.last_turn_reason !== reason) session.work.turnEnded(id, reason, { announce: idle === undefined })
}

/** Reads the journal backwards, only as far as needed: usually the end of the last turn. */
async function readTold(history: History, agent_id: string, newestFirst: AsyncIterable<JournaledEvent>): Promise<Told> {
  const promptOf = new Map(history.turns().map(turn => [turn.turn_id, turn.prompt_id]))
  const waiting = history.prompts().filter(prompt => prompt.status === 'queued')
  /** Prompts whose submission must be found, unless it was never told. */
  const sought = new Set([...waiting.map(prompt => prompt.prompt_id), ...promptOf.values()])
  const over = new Set<unknown>([undefined])
  const events: JournaledEvent[] = []
  let since: string | undefined
  let settled = history.turns().length === 0
  let cut = false
  if (sought.size === 0) return { events, since, cut }
  for await (const event of newestFirst) {
    since = event.timestamp
    cut = event.seq > 1
    if (event.payload.agentId !== agent_id) continue
    events.push(event)
    const { turnId, promptId } = event.payload
    if (event.type === 'prompt.submitted') sought.delete(String(promptId))
    else if (event.type === 'prompt.completed' || event.type === 'prompt.aborted') over.add(promptId)
    else if (event.type === 'turn.ended' && !settled && over.has(promptOf.get(Number(turnId)))) {
      settled = true
      for (const [id, prompt] of promptOf) if (id <= Number(turnId)) sought.delete(prompt)
    }
    if (settled && sought.size === 0) {
      cut = false
      break
    }
  }
  return { events: events.reverse(), since, cut }
}

/** Ended turns of which something was not told, oldest first. */
function untoldTurns(history: History, told: Told): readonly TurnRecord[] {
  return history.turns().filter(turn => {
    const known =
      began(told, turn.started_at) || has(told, undefined, 'turnId', turn.turn_id) || has(told, undefined, 'promptId', turn.prompt_id)
    return known && turn.ended_at !== undefined && !(has(told, ['turn.ended'], 'turnId', turn.turn_id) && promptIsOver(told, turn))
  })
}

/** Sends everything about a turn up to its end that is on record and was not told. */
function tellTurn(emit: AgentEmit, history: History, told: Told, turn: TurnRecord): void {
  const { turn_id: turnId, prompt_id: promptId, reason = 'cancelled', error, interrupt_reason: interruptReason } = turn
  const lacks = (type: string, key: string, value: unknown) => !has(told, [type], key, value)
  const content = history.messages().find(message => message.id === promptId)?.content ?? []
  const prompt = promptId === undefined ? undefined : history.prompt(promptId)
  if (prompt && began(told, prompt.created_at) && lacks('prompt.submitted', 'promptId', promptId))
    submitted(emit, prompt, content, 'running')
  if (began(told, turn.started_at) && lacks('turn.started', 'turnId', turnId)) {
    const text = textOf(content)
    emit('turnStarted', {
      turnId,
      origin: { ...turn.origin },
      ...(promptId === undefined ? {} : { promptId }),
      ...(text === '' ? {} : { prompt: text })
    })
  }
  tellCalls(emit, history, told, turnId)
  tellStep(emit, told, turn)
  if (!lacks('turn.ended', 'turnId', turnId)) return
  const failure = error && { ...error, retryable: false }
  emit('turnEnded', {
    turnId,
    reason,
    ...(failure ? { error: failure } : {}),
    ...(interruptReason === undefined ? {} : { interruptReason })
  })
  if (failure) emit('errorRaised', failure)
}

/** `prompt.completed` or `prompt.aborted` of the turn's prompt; steered ones have no event of their own. */
function tellPromptEnd(emit: AgentEmit, history: History, told: Told, turn: TurnRecord): void {
  const { prompt_id: promptId, reason = 'cancelled', ended_at: at = turn.started_at } = turn
  if (promptId === undefined || !history.prompt(promptId) || promptIsOver(told, turn)) return
  if (reason === 'cancelled') emit('promptAborted', { promptId, abortedAt: at })
  else emit('promptCompleted', { promptId, finishedAt: at, reason })
}

/** Prompts that wait or were taken back before they ran. */
function tellQueued(emit: AgentEmit, history: History, told: Told): void {
  for (const prompt of history.prompts()) {
    const { prompt_id: promptId, status, turn_id } = prompt
    const known = has(told, ['prompt.submitted'], 'promptId', promptId)
    if (status === 'queued' && !known && began(told, prompt.created_at)) submitted(emit, prompt, prompt.content, 'queued')
    if (status === 'aborted' && known && turn_id === undefined && !has(told, ['prompt.aborted'], 'promptId', promptId)) {
      emit('promptAborted', { promptId, abortedAt: prompt.created_at })
    }
  }
}

/** Whether a session at rest whose last turn ended for `reason` was told so last; undefined when nothing was told about its work. */
function toldIdle(told: Told, reason: WorkReason): boolean | undefined {
  const last = told.events.findLast(event => event.type === 'event.session.work_changed')?.payload
  return last && last.busy === false && last.pending_interaction === 'none' && last.last_turn_reason === reason
}

/** Whether the prompt, and with it the change of the session's texts, was told. */
function toldPrompt(told: Told, prompt: PromptRecord): boolean {
  return has(told, ['prompt.submitted'], 'promptId', prompt.prompt_id) || !began(told, prompt.created_at)
}

type WorkReason = 'completed' | 'cancelled' | 'failed'

function workReason(turn: TurnRecord): WorkReason {
  return turn.reason === 'blocked' ? 'failed' : (turn.reason ?? 'cancelled')
}

function tellCalls(emit: AgentEmit, history: History, told: Told, turnId: number): void {
  const messages = history.messages().filter(message => message.turn_id === turnId)
  const calls = new Map(messages.flatMap(({ tool_calls = [], created_at }) => tool_calls.map(call => [call.id, { call, created_at }])))
  for (const { role, tool_call_id: id, content, is_error, created_at } of messages) {
    if (role !== 'tool' || id === undefined || !began(told, created_at) || has(told, ['tool.result'], 'toolCallId', id)) continue
    const { call, created_at: asked = '' } = calls.get(id) ?? {}
    if (call && began(told, asked) && !has(told, ['tool.call.started'], 'toolCallId', id)) {
      emit('toolCallStarted', { turnId, toolCallId: id, name: call.name, args: argumentsOf(call.arguments) })
    }
    const output = content.every(part => part.type === 'text') ? textOf(content) : [...content]
    const synthetic = output === interruptedResult ? { synthetic: true as const } : {}
    emit('toolResult', { turnId, toolCallId: id, output, ...(is_error ? { isError: true } : {}), ...synthetic })
  }
}

/** The step that was announced last and never closed. */
function tellStep(emit: AgentEmit, told: Told, turn: TurnRecord): void {
  const ofTurn = told.events.filter(event => event.payload.turnId === turn.turn_id)
  const begun = ofTurn.findLast(event => event.type === 'turn.step.started')
  if (!begun || ofTurn.some(event => event.seq > begun.seq && /^turn\.(step\.|ended)/.test(event.type))) return
  const { step, stepId } = begun.payload as { readonly step: number; readonly stepId: string }
  const at = { turnId: turn.turn_id, step, stepId }
  if (turn.reason === 'completed') emit('stepCompleted', at)
  else emit('stepInterrupted', { ...at, reason: turn.reason === 'cancelled' ? 'aborted' : 'error' })
}

function submitted(
  emit: AgentEmit,
  prompt: { readonly prompt_id: string; readonly created_at: string },
  content: NonNullable<ReturnType<History['prompt']>>['content'],
  status: 'running' | 'queued'
): void {
  const { prompt_id: promptId, created_at: createdAt } = prompt
  emit('promptSubmitted', { promptId, userMessageId: promptId, status, content: [...content], createdAt })
}

function promptIsOver(told: Told, turn: TurnRecord): boolean {
  return turn.prompt_id === undefined || has(told, ['prompt.completed', 'prompt.aborted'], 'promptId', turn.prompt_id)
}

/** False for what was recorded before the oldest event that was looked at: that was told, however far back. */
function began(told: Told, at: string): boolean {
  return told.since !== undefined && (told.cut ? at > told.since : at >= told.since)
}

function has(told: Told, types: readonly string[] | undefined, key: string, value: unknown): boolean {
  return (
    value !== undefined && told.events.some(event => event.payload[key] === value && (types === undefined || types.includes(event.type)))
  )
}

function argumentsOf(text: string): Record<string, unknown> {
  try {
    const args: unknown = JSON.parse(text)
    return typeof args === 'object' && args !== null ? { ...args } : {}
  } catch {
    return {} // the model sent no JSON; the result says so
  }
}
