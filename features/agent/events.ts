/** The events that follow from the records of an agent: one pure function, for what happens now and for what a crash left untold. */
import {
  argumentsFromModel,
  type ConversationView,
  type CoreRecord,
  coreRecord,
  type HistoryRecord,
  isUserInput,
  newestWaiting,
  textOf,
  type WirePart
} from '../history/index.ts'
import { lastPromptOf, sessionMetaUpdated, type TurnReason, workChanged } from '../sessions/index.ts'
import { type AgentEventName, type AgentEventPayload, type AgentEvents, agentEvents, type ErrorInfo, type TextEnds } from './contract.ts'
import { inputText, ownParts, sentParts } from './media.ts'

/** An event of this pack. */
type OwnEvent = {
  [N in AgentEventName]: {
    readonly name: N
    readonly type: AgentEvents[N]['type']
    readonly payload: AgentEventPayload<N>
    readonly at: Date
  }
}[AgentEventName]

interface SessionEvent {
  readonly type: string
  /** What of the event follows from the record. */
  readonly payload: Readonly<Record<string, unknown>>
  readonly at: Date
}

/** Own events, and changes of the session's texts and work, which the session announces. */
export type AgentRecordEvent =
  | OwnEvent
  | (SessionEvent & { readonly name: 'session.prompt'; readonly text: string })
  /** `text`: of the newest prompt that is left. */
  | (SessionEvent & { readonly name: 'session.undo'; readonly text: string | undefined })
  | (SessionEvent & { readonly name: 'session.work'; readonly ended: TurnReason | undefined; readonly prompt_id?: string | undefined })

/** `before`: the conversation without the record; `id`: the agent. */
export function eventsOf(given: HistoryRecord, before: ConversationView, { id }: { readonly id: string }): readonly AgentRecordEvent[] {
  const record = coreRecord(given)
  if (!record) return []
  const at = new Date(record.time ?? 0)
  const event = <N extends AgentEventName>(name: N, payload: AgentEventPayload<N>) =>
    ({ name, type: agentEvents[name].type, payload, at }) as unknown as OwnEvent // name, type and payload belong together
  /** Snapshots do not have what waits: who came meanwhile hears of it when it becomes a message. Clients go by its ids. */
  const again = (promptId: string, status: 'running' | 'blocked') => {
    const known = before.prompts.get(promptId)
    if (!known) return []
    const content = [...sentParts(known.content, known.origin)]
    return [event('promptSubmitted', { promptId, content, userMessageId: promptId, status, createdAt: known.created_at })]
  }
  /** Prompts that were handed to the turn, which ended before it took them. */
  const backInQueue = (turn_id: number) => {
    const queue = [...before.prompts.values()].filter(({ status, origin }) => status === 'queued' && isUserInput(origin))
    return queue.flatMap(({ prompt_id: promptId, content, origin, turn_id: given_to }) =>
      given_to === turn_id ? [event('promptQueued', { promptId, content: [...sentParts(content, origin)], queueLength: queue.length })] : []
    )
  }
  switch (record.type) {
    case 'prompt.accepted': {
      const { prompt_id: promptId, origin, starts, queue_length } = record
      const facts = { promptId, content: [...sentParts(record.content, origin)] }
      const status = starts ? 'running' : 'queued'
      const isUser = isUserInput(origin)
      const queued = !starts && isUser
      const text = inputText(record.content, origin)
      const patch = { lastPrompt: lastPromptOf(text) }
      return [
        ...(isUser && id === 'main'
          ? [{ name: 'session.prompt', type: sessionMetaUpdated.type, payload: { patch }, text, at } as const]
          : []),
        event('promptSubmitted', { ...facts, userMessageId: promptId, status, createdAt: at.toISOString() }),
        ...(queued ? [event('promptQueued', { ...facts, queueLength: queue_length ?? 1 })] : [])
      ]
    }
    case 'prompt.steered': {
      const prompts = record.prompt_ids.flatMap(id => before.prompts.get(id) ?? [])
      const content = prompts.flatMap(({ content, origin }) => sentParts(content, origin))
      const { active_prompt_id: activePromptId, prompt_ids } = record
      if (activePromptId === undefined) return [] // an older journal, which told it before
      return [event('promptSteered', { activePromptId, promptIds: [...prompt_ids], content, steeredAt: at.toISOString() })]
    }
    case 'prompt.settled': {
      // Prompts that were steered into the turn have no event of their own; a notice that began it is no prompt.
      const own = before.turn ? before.turn.prompt_id !== undefined : true
      const over = record.turn_id === undefined ? record.prompt_ids : own ? record.prompt_ids.slice(0, 1) : []
      const { status: reason } = record
      const told = over.map(promptId =>
        reason === 'aborted'
          ? event('promptAborted', { promptId, abortedAt: at.toISOString() })
          : event('promptCompleted', { promptId, finishedAt: at.toISOString(), reason })
      )
      const failed = { name: 'session.work', type: workChanged.type, payload: { last_turn_reason: 'failed' }, ended: 'failed', at } as const
      // One that was to be steered leaves the turn at work.
      const inTurn = before.turn !== undefined && before.turn.reason === undefined
      if (record.turn_id === undefined) return reason === 'blocked' && !inTurn ? [failed, ...told] : told
      const ended = reason === 'aborted' ? 'cancelled' : reason === 'completed' ? reason : 'failed'
      // The end of the turn is what is left of it after a kill: both give the session the same instant.
      const over_at = before.turn?.ended_at
      const work = { name: 'session.work', type: workChanged.type, payload: { last_turn_reason: ended }, ended } as const
      return [{ ...work, at: over_at === undefined ? at : new Date(over_at) }, ...told, ...backInQueue(record.turn_id)]
    }
    case 'turn.started': {
      const { turn_id: turnId, origin, prompt_id: promptId, waited } = record
      const content = isUserInput(origin) ? before.prompts.get(promptId ?? '')?.content : undefined
      const prompt = textOf(ownParts(content ?? [], origin))
      return [
        ...(waited && promptId !== undefined ? again(promptId, 'running') : []),
        event('turnStarted', {
          turnId,
          origin: { ...origin },
          ...(promptId === undefined ? {} : { promptId }),
          ...(prompt === '' ? {} : { prompt })
        }),
        { name: 'session.work', type: workChanged.type, payload: { busy: true }, ended: undefined, prompt_id: promptId, at }
      ]
    }
    case 'message': {
      const { origin, turn_id: turnId, content, prompt_id: promptId, blocked } = record
      // That of the turn's own prompt comes with the begin of the turn.
      if (promptId !== undefined && promptId !== before.turn?.prompt_id) return again(promptId, blocked ? 'blocked' : 'running')
      if (origin?.kind !== 'hook_result') return []
      const facts = { hookEvent: String(origin.event), content: textOf(content ?? []), ...(origin.blocked ? { blocked: true } : {}) }
      return [event('hookResult', { ...(turnId === undefined ? {} : { turnId }), ...facts })]
    }
    case 'step.begin':
      return [event('stepStarted', { turnId: record.turn_id, step: record.step, stepId: record.step_id })]
    case 'tool.begin': {
      const { turn_id: turnId, tool_call_id: toolCallId, tool_name: name, args, description, display } = record
      const shown = { ...(description === undefined ? {} : { description }), ...(display ? { display } : {}) }
      return [event('toolCallStarted', { turnId, toolCallId, name, args: { ...args }, ...shown, ...textEnds(before, id) })]
    }
    case 'tool.result': {
      const { turn_id: turnId, tool_call_id: toolCallId, tool_name: name, content, is_error, synthetic } = record
      const call = before.begun.has(toolCallId) ? undefined : before.openCalls.get(toolCallId)
      const marks = { ...(is_error ? { isError: true as const } : {}), ...(synthetic ? { synthetic: true as const } : {}) }
      return [
        // Clients show a result under its call.
        ...(call
          ? [event('toolCallStarted', { turnId, toolCallId, name, args: argumentsOf(call.arguments), ...textEnds(before, id) })]
          : []),
        event('toolResult', { turnId, toolCallId, output: outputOf(content), ...marks })
      ]
    }
    case 'step.end':
      return stepEnd(record, event, textEnds(before, id))
    case 'turn.ended': {
      const { turn_id: turnId, reason, duration_ms: durationMs, interrupt_reason: interruptReason } = record
      const error = record.error && ({ retryable: false, ...record.error } as ErrorInfo) // written by this pack
      return [
        event('turnEnded', {
          turnId,
          reason,
          ...(durationMs === undefined ? {} : { durationMs }),
          ...(error ? { error } : {}),
          ...(interruptReason === undefined ? {} : { interruptReason })
        }),
        ...(error ? [event('errorRaised', error)] : [])
      ]
    }
    case 'context.undone': {
      if (id !== 'main') return []
      const waiting = newestWaiting(before.prompts)
      const text = waiting ? inputText(waiting.content, waiting.origin) : record.last_prompt
      const patch = { lastPrompt: lastPromptOf(text ?? '') }
      return [
        { name: 'session.undo', type: sessionMetaUpdated.type, payload: { patch }, text, at },
        event('turnsUndone', { turns: record.turns ?? 1 })
      ]
    }
    case 'failed': {
      const { type: _type, time: _time, ...error } = record
      return [event('errorRaised', error)]
    }
    case 'warning':
      return [event('warningRaised', { code: record.code, message: record.message })]
    default:
      return []
  }
}

/** Where the texts of the open step end, for clients of the main agent: only its deltas have offsets. */
function textEnds({ openStep }: ConversationView, id: string): TextEnds {
  const { text, thinking } = (id === 'main' && openStep?.told) || {}
  return { ...(text === undefined ? {} : { assistantEnd: text }), ...(thinking === undefined ? {} : { thinkingEnd: thinking }) }
}

type Make = <N extends AgentEventName>(name: N, payload: AgentEventPayload<N>) => OwnEvent

function stepEnd(record: Extract<CoreRecord, { type: 'step.end' }>, event: Make, ends: TextEnds): readonly AgentRecordEvent[] {
  const { step_id: stepId, interrupted: reason, message, lost, retry, usage } = record
  const step = { turnId: record.turn_id, step: record.step, ...(stepId === undefined ? {} : { stepId }) }
  if (reason) {
    return [
      event('stepInterrupted', { ...step, reason, ...(message === undefined ? {} : { message }), ...(lost ? { lost } : {}), ...ends })
    ]
  }
  if (retry) {
    return [
      event('stepRetrying', {
        ...step,
        failedAttempt: retry.failed_attempt,
        nextAttempt: retry.failed_attempt + 1,
        maxAttempts: retry.max_attempts,
        delayMs: retry.delay_ms,
        errorName: retry.error_name,
        errorMessage: retry.error_message,
        ...(retry.status === undefined ? {} : { statusCode: retry.status })
      })
    ]
  }
  const { reason: finishReason, provider_reason: providerFinishReason, raw_reason: rawFinishReason, first_token_ms, stream_ms } = record
  return [
    event('stepCompleted', {
      ...step,
      ...(usage ? { usage: { ...usage } } : {}),
      finishReason,
      ...(providerFinishReason === undefined ? {} : { providerFinishReason }),
      ...(rawFinishReason === undefined ? {} : { rawFinishReason }),
      ...(first_token_ms === undefined ? {} : { llmFirstTokenLatencyMs: first_token_ms }),
      ...(stream_ms === undefined ? {} : { llmStreamDurationMs: stream_ms }),
      ...ends
    })
  ]
}

/** Joined text when there is nothing else, so that clients need not look into parts. */
function outputOf(content: readonly WirePart[]): string | WirePart[] {
  return content.every(part => part.type === 'text') ? textOf(content) : [...content]
}

/** Arguments as the model wrote them; none when they are no JSON, and the result says so. */
export function argumentsOf(text: string): Record<string, unknown> {
  try {
    const args = argumentsFromModel(text)
    return typeof args === 'object' && args !== null ? { ...args } : {}
  } catch {
    return {} // the model sent no JSON; the result says so
  }
}
