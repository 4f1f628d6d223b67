/** After a crash: what is on record and was never told is told, what was left open is closed, and the session gets what it had not saved. */
import type { History } from '../history/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import type { AgentDeps } from './deps.ts'
import { metadataText } from './media.ts'
import { repairOf } from './turn-records.ts'

/** When it resolves, records, events and the state of the session agree, and no turn is open. */
export async function catchUp(host: AgentHost, history: History, deps: AgentDeps): Promise<void> {
  if (host.id === 'main') await catchUpPrompts(host, history)
  await history.recover()
  await deps.endRequests(host)
  const repair = repairOf(history)
  if (repair.length > 0) await history.append(...repair)
  const { work, state } = host.session
  const { ended_at, reason } = history.lastTurn() ?? {}
  if (host.id !== 'main' || ended_at === undefined) return
  const last = workReason(reason)
  if (state.last_turn_reason !== last) work.turnEnded(host.id, last, { announce: false })
}

/** The state of the session is saved a little later than its events are told. */
async function catchUpPrompts({ session }: AgentHost, history: History): Promise<void> {
  const saved = session.state.updated_at
  const untold = history.untoldSince()?.toISOString()
  for (const prompt of history.prompts()) {
    const isOwed = prompt.created_at > saved && (untold === undefined || prompt.created_at < untold)
    if (!isOwed || (prompt.origin?.kind ?? 'user') !== 'user') continue
    const content = prompt.content.length > 0 ? prompt.content : ((await history.messages.find(prompt.prompt_id))?.content ?? [])
    session.promptSubmitted(metadataText(content), { announce: false })
  }
}

export const workReason = (reason: string | undefined): 'completed' | 'cancelled' | 'failed' =>
  reason === 'completed' ? reason : reason === 'failed' || reason === 'blocked' ? 'failed' : 'cancelled'
