/** Approvals and questions as a transcript shows them, from what is on record: camelCase; questions also as their event has them. Pure. */
import { camelCase, isRecord } from '../../kernel/index.ts'
import { approvals, type interactionEnded, type interactionRequested } from '../interactions/index.ts'
import { questions } from '../questions/index.ts'
import type { Interaction } from './shapes.ts'

type Requested = ReturnType<typeof interactionRequested.of>
type Ended = ReturnType<typeof interactionEnded.of>
type Fields = Readonly<Record<string, unknown>>

const fieldsOf = (value: unknown): Fields => (isRecord(value) ? value : {})

/** Deep, with keys in camelCase, and as they are. */
function shown(value: unknown, both = false): unknown {
  if (Array.isArray(value)) return value.map(each => shown(each, both))
  if (typeof value !== 'object' || value === null) return value
  const keys = (key: string) => (both ? [key, camelCase(key)] : [camelCase(key)])
  return Object.fromEntries(Object.entries(value).flatMap(([key, each]) => keys(key).map(name => [name, shown(each, both)])))
}

/** A request, and the turn it belongs to. */
export function requestOf({ kind, id, agent_id, request }: Requested): {
  readonly interaction: Interaction
  readonly turn: number | undefined
} {
  const { tool_input_display: display, approval_id: _approval, question_id: _question, ...fields } = fieldsOf(request)
  const { tool_call_id, turn_id } = fields
  const whose = agent_id === undefined ? {} : { agentId: agent_id }
  const isQuestion = kind === questions.name
  const interaction: Interaction = {
    interactionId: id,
    interactionKind: kind,
    ...(typeof tool_call_id === 'string' ? { toolCallId: tool_call_id } : {}),
    state: 'pending',
    // A display has the form that events give it.
    request: {
      id,
      ...(isQuestion ? { question_id: id } : {}),
      ...whose,
      ...(shown(fields, isQuestion) as object),
      ...(display === undefined ? {} : { display })
    }
  }
  return { interaction, turn: typeof turn_id === 'number' ? turn_id : undefined }
}

/** Of the session whose transcript has it: the journal of a fork has requests that were made in its source. */
export function inSession(session_id: string, interaction: Interaction): Interaction {
  const request = fieldsOf(interaction.request)
  if (request.sessionId === undefined) return interaction
  const whose = { sessionId: session_id, ...(request.session_id === undefined ? {} : { session_id }) }
  return { ...interaction, request: { ...request, ...whose } }
}

/** How it ended. */
export function endOf(kind: string, { how, answer }: Ended): Pick<Interaction, 'state' | 'response'> {
  const given = fieldsOf(answer)
  if (kind === questions.name) {
    // The keys of the answers are texts of the user.
    if (how === 'answered' && given.answers !== undefined) return { state: 'answered', response: given }
    return { state: 'dismissed', response: null }
  }
  if (how !== 'answered') return { state: 'cancelled', response: { decision: 'cancelled', cancelled: true, reason: how } }
  if (kind !== approvals.name) return { state: 'answered', response: answer }
  const { decision } = given
  return { state: decision === 'approved' || decision === 'rejected' ? decision : 'cancelled', response: shown(answer) }
}
