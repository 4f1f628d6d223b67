/** Wires approvals: one broker per session, two routes, two events. */
import { AppError, definePack, defineSlot, type Static, Type } from '../../kernel/index.ts'
import { Histories, HistoryStates, type RecordEvent, RecordEvents } from '../history/index.ts'
import { type AgentHost, type Session, Sessions } from '../sessions/index.ts'
import { type ApprovalPorts, newApprovalId, SessionApprovals } from './approvals.ts'
import { ApprovalMissing, type ApprovalRequest, approvalRequested, approvalResolved, listApprovals, resolveApproval } from './contract.ts'
import { eventsOf, openRequests, resolvedRecord } from './records.ts'
import { Interactions } from './service.ts'

export default definePack({
  name: 'interactions',
  description: 'Requests to the human: approvals',
  needs: { sessions: Sessions },
  optional: { histories: Histories },
  provides: [Interactions],
  config: Type.Object({
    approval_ttl_ms: Type.Integer({
      minimum: 1,
      maximum: 2 ** 31 - 1,
      default: 86_400_000,
      description: 'an unanswered approval is withdrawn after this time'
    })
  }),
  setup(ctx, { sessions, histories }) {
    const emitRequested = ctx.event(approvalRequested)
    const emitResolved = ctx.event(approvalResolved)
    const tell = (agent: AgentHost, { type, payload }: RecordEvent) => {
      const target = { session_id: agent.session.id, subject: agent.id }
      // `eventsOf` made the payload for this type.
      if (type === approvalRequested.type) emitRequested(payload as Static<typeof ApprovalRequest>, target)
      else emitResolved(payload as Static<typeof approvalResolved.payload>, target)
    }
    ctx.contribute(RecordEvents, { events: eventsOf, tell })
    ctx.contribute(HistoryStates, openRequests)

    const ports: ApprovalPorts = {
      log: ctx.log,
      now: () => ctx.now(),
      newId: newApprovalId,
      ttlMs: ctx.config.approval_ttl_ms,
      async record(agent, record) {
        const history = await histories()?.of(agent)
        if (history) return history.write(record)
        const events = eventsOf({ time: ctx.now().getTime(), ...record })
        return { tell: () => events.forEach(event => void tell(agent, event)), drop: () => undefined }
      }
    }
    const approvals = defineSlot<SessionApprovals, Session>('interactions', session => new SessionApprovals(session, ports))
    ctx.slot(approvals)

    ctx.provide(Interactions, {
      async approve(ask, signal) {
        try {
          return await ask.agent.session.get(approvals).ask(ask, signal)
        } catch (error) {
          ctx.log.error({ err: error, tool: ask.tool_name }, 'an approval could not be asked for')
          return { decision: 'cancelled' }
        }
      },
      async recover(agent) {
        try {
          const history = await histories()?.of(agent)
          if (!history) return
          const alive = new Set(
            agent.session
              .peek(approvals)
              ?.pending()
              .map(request => request.approval_id)
          )
          const dead = (await history.track(openRequests)).value.filter(id => !alive.has(id))
          if (dead.length > 0) await history.append(...dead.map(id => resolvedRecord.of({ kind: 'approval', id, decision: 'cancelled' })))
        } catch (error) {
          ctx.log.error({ err: error, session_id: agent.session.id }, 'approvals of an earlier process could not be closed')
        }
      },
      pendingApprovals: session => session.peek(approvals)?.pending() ?? []
    })

    ctx.route(listApprovals, async ({ params }) => {
      const session = await sessions.load(params.session_id)
      return { items: session.peek(approvals)?.pending() ?? [] }
    })
    ctx.route(resolveApproval, async ({ params: { session_id, approval_id }, body }) => {
      const session = await sessions.load(session_id)
      session.assertWritable()
      const open = session.peek(approvals)
      if (!open) throw new AppError(ApprovalMissing)
      const { scope, ...answer } = body
      const resolved_at = await open.resolve(approval_id, answer.decision === 'approved' && scope ? { ...answer, scope } : answer)
      return { resolved: true as const, resolved_at }
    })
  }
})
