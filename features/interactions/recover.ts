/** Approvals that a dead process left behind: nobody waits for them any more, so they end, once, on record and for the clients. */
import type { Emit, JournaledEvent, Static } from '../../kernel/index.ts'
import type { History, HistoryRecord } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { type ApprovalRequest, approvalRequested, approvalResolved } from './contract.ts'
import type { ApprovalAnswer } from './service.ts'

export interface RecoverPorts {
  readonly emitResolved: Emit<typeof approvalResolved>
  readonly now: () => Date
  /** Events of the session, newest first. */
  readonly journal: AsyncIterable<JournaledEvent>
}

/** Looks only at requests of the last turn: the ends of earlier ones were told before it began. */
export async function recoverApprovals(agent: AgentHost, history: History, ports: RecoverPorts): Promise<void> {
  const turn_id = history.turns().at(-1)?.turn_id
  const requests = history.records('interaction.request').filter(isApproval).map(requestOf)
  const recent = requests.filter(request => request.turn_id === turn_id)
  if (recent.length === 0) return
  const answers = new Map(history.records('interaction.resolved').map(record => [String(record.id), record]))
  const { requested, resolved } = await readTold(new Set(recent.map(request => request.approval_id)), ports.journal)
  for (const { approval_id: id } of recent) {
    const answer = answers.get(id) as (ApprovalAnswer & HistoryRecord) | undefined
    if (!answer) await history.append({ type: 'interaction.resolved', kind: 'approval', id, decision: 'cancelled' })
    if (!requested.has(id) || resolved.has(id)) continue
    const { decision = 'cancelled', scope, feedback, selected_label } = answer ?? {}
    ports.emitResolved(
      {
        approval_id: id,
        decision,
        ...(scope === undefined ? {} : { scope }),
        ...(feedback === undefined ? {} : { feedback }),
        ...(selected_label === undefined ? {} : { selected_label }),
        resolved_at: (answer?.time === undefined ? ports.now() : new Date(answer.time)).toISOString()
      },
      { session_id: agent.session.id, subject: agent.id }
    )
  }
}

/** Which of these approvals the journal knows. Reads no further back than to the first of them. */
async function readTold(ids: ReadonlySet<string>, journal: AsyncIterable<JournaledEvent>) {
  const requested = new Set<string>()
  const resolved = new Set<string>()
  for await (const { type, payload } of journal) {
    const id = String(payload.approval_id)
    if (ids.has(id) && type === approvalRequested.type) requested.add(id)
    if (ids.has(id) && type === approvalResolved.type) resolved.add(id)
    if (requested.size === ids.size) break
  }
  return { requested, resolved }
}

const isApproval = (record: HistoryRecord) => record.kind === 'approval'
const requestOf = (record: HistoryRecord) => record.request as Static<typeof ApprovalRequest>
