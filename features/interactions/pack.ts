/** Wires approvals: one broker per session, two routes, two events. */
import { AppError, definePack, defineSlot, Type } from '../../kernel/index.ts'
import { Histories } from '../history/index.ts'
import { type Session, Sessions } from '../sessions/index.ts'
import { type ApprovalPorts, newApprovalId, SessionApprovals } from './approvals.ts'
import { ApprovalMissing, approvalRequested, approvalResolved, listApprovals, resolveApproval } from './contract.ts'
import { recoverApprovals } from './recover.ts'
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
    const ports: ApprovalPorts = {
      emitRequested: ctx.event(approvalRequested),
      emitResolved: ctx.event(approvalResolved),
      log: ctx.log,
      now: () => ctx.now(),
      newId: newApprovalId,
      ttlMs: ctx.config.approval_ttl_ms,
      async record(ask, type, fields) {
        try {
          const history = await histories()?.of(ask.agent)
          await history?.append({ type, ...fields })
        } catch (error) {
          ctx.log.error({ err: error, type }, 'an interaction could not be recorded')
        }
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
          if (history) await recoverApprovals(agent, history, { ...ports, journal: ctx.streams.backwards(agent.session.id) })
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
