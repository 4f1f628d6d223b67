/** What becomes of agents when their session is loaded or archived, when a client subscribes to it, and when the server stops. */
import { defineSlot, type PackContext, type Static } from '../../kernel/index.ts'
import type { Histories } from '../history/index.ts'
import { approvalRequested } from '../interactions/index.ts'
import type { AgentHost, Session, Sessions } from '../sessions/index.ts'
import type { AgentEngine } from './agent.ts'
import { readHeard, recoverChildren } from './recovery.ts'
import { cutLine } from './stopping.ts'

interface SessionLifePorts {
  readonly sessions: Sessions
  readonly histories: Histories
  readonly of: (agent: AgentHost) => Promise<AgentEngine>
  /** Undefined: not open, or it cannot be, as those hear who asked for it. */
  readonly opened: (agent: AgentHost) => Promise<AgentEngine | undefined> | undefined
}

type Context = Pick<PackContext, 'own' | 'slot' | 'streams' | 'log' | 'operator' | 'on' | 'tap' | 'hooks'>

/** Repairs and the restored queue of the main agent happen before anyone else sees the session. Its children, who may be many, follow. */
export function followSessions(ctx: Context, { sessions, histories, of, opened }: SessionLifePorts): void {
  const children = defineSlot('agent-children', (session: Session) => recoverChildren(session, { of, sessions, histories, log: ctx.log }))
  ctx.slot(children)
  sessions.onLoad(async session => {
    if (!session.writable) return
    await readHeard(session, ctx.streams).catch(err =>
      ctx.log.error({ err, session_id: session.id }, 'what was told of the work of a session could not be read')
    )
    const main = session.agent('main')
    if (main) await of(main)
    void session.get(children)
  })
  sessions.onArchive(async session => {
    await session.get(children)
    const engines = (await Promise.all(session.agents().map(opened))).filter(engine => engine !== undefined)
    // Of all first: the end of a turn ends those of the agents that it started.
    for (const engine of engines) await engine.withdrawAll()
    for (const engine of engines) await engine.end()
  })
}

/** A turn that waits for an approval shows it; when no client looks, whoever runs the server reads it. */
export function showApprovals(ctx: Context, { sessions, opened }: SessionLifePorts): void {
  ctx.on(approvalRequested, event => {
    const agent = sessions.loaded(event.session_id)?.agent(event.subject)
    const { approval_id: approvalId, tool_call_id: toolCallId } = event.payload
    if (ctx.streams.subscribers(event.session_id) === 0) ctx.operator.info({ session_id: event.session_id }, unheardLine(event.payload))
    void (agent && opened(agent))?.then(engine => engine?.awaitsApproval({ approvalId, toolCallId }))
  })
}

/** An approval that no client heard of: a person with nothing but the terminal must learn of it, and how it is answered. */
function unheardLine({ session_id, approval_id, action }: Static<typeof approvalRequested.payload>): string {
  const answer = `POST /api/v1/sessions/${session_id}/approvals/${approval_id} {"decision":"approved"} or {"decision":"rejected"}`
  return `${session_id}: asks for approval (${action}), and no client listens; answer it with ${answer}`
}

/** Who subscribes in the middle of a turn learns whether it has the whole text. */
export function tellLengths(ctx: Context, { sessions, opened }: SessionLifePorts): void {
  ctx.tap(ctx.hooks.subscribed, (session_id, client, wasLive) => {
    if (wasLive) return
    const main = sessions.loaded(session_id)?.agent('main')
    void (main && opened(main))?.then(engine => engine?.tellLengths(client))
  })
}

/** A stop says what it cuts, and waits for the end of turns. */
export function endTurnsAtStop(ctx: Context, { sessions, opened }: SessionLifePorts): void {
  ctx.tap(ctx.hooks.stopping, async () => {
    const agents = sessions.allLoaded().flatMap(session => session.agents())
    const engines = (await Promise.all(agents.map(opened))).filter(engine => engine !== undefined)
    const cut = cutLine(engines.map(engine => engine.atStop()))
    if (cut !== undefined) ctx.operator.info({}, cut)
    await Promise.all(engines.map(engine => engine.close()))
  })
}
