/**
 * After a crash: what is on record and was never told is told, what was left open is closed or withdrawn, and the session gets what it had
 * not saved.
 */
import type { Logger, Streams } from '../../kernel/index.ts'
import { type Histories, type History, type HistoryRecord, isUserInput, type PromptRecord } from '../history/index.ts'
import {
  type AgentHost,
  type Session,
  type SessionStatus,
  type Sessions,
  statusChanged,
  statusOf,
  type ToldWork,
  workChanged
} from '../sessions/index.ts'
import type { AgentEmit } from './contract.ts'
import type { AgentDeps } from './deps.ts'
import type { AgentRecordEvent } from './events.ts'
import { lastEndState } from './last-end.ts'
import { inputText } from './media.ts'
import { noticeDropped, noticeState, startsTurn } from './notices.ts'
import { repairOf } from './turn-records.ts'

/** When it resolves, records, events and the state of the session agree, and no turn is open. */
export async function catchUp(host: AgentHost, history: History, deps: AgentDeps): Promise<void> {
  if (host.id === 'main') await catchUpPrompts(host, history)
  const notices = await history.track(noticeState)
  const waits = () => history.prompts().some(prompt => prompt.status === 'queued') || notices.value.some(startsTurn)
  deps.goesOn.set(host, () => host.record.type !== 'sub' && waits())
  await history.recover()
  const waited = await deps.endRequests(host)
  const { records, notes } = await repairsOf(host, history, deps)
  const repair = [...records, ...repairOf(history, notes, waited)]
  if (repair.length > 0) await history.append(...repair)
  if (host.record.type === 'sub') await withdraw(history)
  if (host.id === 'main') await catchUpReason(host, history)
}

/** A session that another server has is read only: its state takes in, in memory, what its journal has and its owner has not saved yet. */
export async function catchUpReading(host: AgentHost, history: History): Promise<void> {
  if (host.id !== 'main') return
  await catchUpPrompts(host, history)
  await catchUpReason(host, history)
}

async function catchUpReason({ id, session }: AgentHost, history: History): Promise<void> {
  const { open, last } = (await history.track(lastEndState)).value
  if (open || !last || session.state.last_turn_reason === last.reason) return
  session.work.turnEnded(id, last.reason, { announce: false, at: new Date(last.at) })
}

/** What packs put on record: before the end of the turn, in which it may have been left open. */
async function repairsOf(host: AgentHost, history: History, { repairs, accounts }: AgentDeps) {
  const records: HistoryRecord[] = []
  const notes = new Map<string, string>()
  for (const { pack, item } of repairs.entries()) {
    const what = `repair ${item.name}`
    try {
      records.push(...(await accounts.onAccountOf(pack, what, () => item.records(host, history))))
      const told = await accounts.onAccountOf(pack, what, () => item.notes?.(host, history))
      for (const [call, note] of Object.entries(told ?? {})) notes.set(call, note)
    } catch (err) {
      accounts.blame(pack, what, err, { session_id: host.session.id })
    }
  }
  return { records, notes }
}

/** Nobody waits for a subagent any more whose process died: it begins nothing by itself. */
async function withdraw(history: History): Promise<void> {
  const prompt_ids = history.prompts().flatMap(prompt => (prompt.status === 'queued' ? prompt.prompt_id : []))
  const notice_ids = (await history.track(noticeState)).value.flatMap(notice => (startsTurn(notice) ? notice.notice_id : []))
  if (prompt_ids.length > 0) await history.append({ type: 'prompt.settled', prompt_ids, status: 'aborted' })
  if (notice_ids.length > 0) await history.append(noticeDropped.of({ notice_ids }))
}

/**
 * Tells what an agent left untold whose engine is not at work. `known`: clients were told before this process began; only the session's
 * state may lack it. `goesOn`: something waits that begins at once when the agent is open.
 */
export function tellLeft({ session, id }: AgentHost, event: AgentRecordEvent, known: boolean, emit: AgentEmit, goesOn: boolean): void {
  if (event.name === 'session.prompt') session.promptSubmitted(event.text, { announce: !known, at: event.at })
  else if (event.name === 'session.undo') session.promptsUndone(event.text, { announce: !known, at: event.at })
  else if (event.name !== 'session.work') {
    if (!known) emit(event.name, event.payload, { at: event.at })
  } else if (id !== 'main') {
    // Events of the session's work are of all agents together: `recoverChildren` tells them.
    if (event.ended !== undefined) session.work.turnEnded(id, event.ended, { goesOn })
  } else if (event.ended !== undefined) session.work.turnEnded(id, event.ended, { announce: !known, goesOn, at: event.at })
  else if (!known) session.work.turnStarted(id, event.prompt_id) // it is closed by what is on record behind it, or by the repair
}

/** Events among which the newest status is looked for. */
const STATUS_WITHIN = 2000

/** What clients heard last of a session's work: of the status by its newest event, else by the newest work. */
export async function readHeard({ id, work }: Session, streams: Pick<Streams, 'backwards'>): Promise<void> {
  if (work.isHeard) return
  let heard: ToldWork | undefined
  let status: SessionStatus | undefined
  let seen = 0
  for await (const { type, payload } of streams.backwards(id)) {
    if (type === statusChanged.type) status ??= payload.status as SessionStatus
    else if (type === workChanged.type) heard ??= payload as unknown as ToldWork
    if (heard && (status !== undefined || ++seen > STATUS_WITHIN)) break
  }
  work.heard({ work: heard, status: status ?? (heard ? statusOf(heard, heard.last_turn_reason) : 'idle') })
}

/** The state of the session is saved a little later than its events are told. */
async function catchUpPrompts({ session }: AgentHost, history: History): Promise<void> {
  const saved = session.state.updated_at
  const untold = history.untoldSince()?.toISOString()
  const undo = history.lastUndo()
  const undone = undo ? new Date(undo.time).toISOString() : ''
  if (undo && undone > saved && (untold === undefined || undone < untold)) {
    const waiting = undo.waiting === undefined ? undefined : history.prompt(undo.waiting)
    const text = (waiting && (await textOfPrompt(history, waiting))) ?? undo.last_prompt
    session.promptsUndone(text, { announce: false, at: new Date(undo.time) })
  }
  for (const prompt of history.prompts()) {
    if (prompt.created_at <= undone) continue
    const isOwed = prompt.created_at > saved && (untold === undefined || prompt.created_at < untold)
    if (!isOwed || !isUserInput(prompt.origin)) continue
    const text = await textOfPrompt(history, prompt)
    if (text !== undefined) session.promptSubmitted(text, { announce: false, at: new Date(prompt.created_at) })
  }
}

/** Nothing is known of one that was aborted before it began. */
async function textOfPrompt(history: History, { prompt_id, content, origin }: PromptRecord): Promise<string | undefined> {
  const parts = content.length > 0 ? content : (await history.messages.find(prompt_id))?.content
  return parts && inputText(parts, origin)
}

interface ChildrenPorts {
  readonly of: (agent: AgentHost) => Promise<unknown>
  readonly sessions: Pick<Sessions, 'load'>
  readonly histories: Histories
  readonly log: Logger
}

/**
 * Opens the agents beside the main one that have something to make up for, one after the other: independent ones go on with what waits, and
 * what a subagent left open when its process died is closed. The others are opened when somebody asks for them. Then clients hear of the
 * session's work what is. Never rejects.
 */
export async function recoverChildren(session: Session, { of, sessions, histories, log }: ChildrenPorts): Promise<void> {
  for (const agent of session.agents()) {
    if (agent.id === 'main') continue
    try {
      if (agent.record.type === 'independent' || !(await histories.wasClosed(agent))) await of(agent)
    } catch (err) {
      if (session.scope.closed || agent.scope.closed) return
      log.error({ err, session_id: session.id, agent_id: agent.id }, 'an agent could not be opened')
    }
  }
  // Other packs have ended by then what an earlier process left in it.
  if (!session.scope.closed) await sessions.load(session.id).catch(() => undefined) // whoever loads it is told
  session.work.announce()
}
