/** Wires the broker: one per session, for the kinds that packs contribute; and approvals, with their two routes and events. */
import { askEach, definePack, defineSlot, type EventTarget, milliseconds, oneOf, type Static, Type, within } from '../../kernel/index.ts'
import { Histories, HistoryStates, RecordEvents, recordTypes } from '../history/index.ts'
import { type AgentHost, type Session, Sessions } from '../sessions/index.ts'
import { approvals } from './approvals.ts'
import { Broker, type BrokerPorts, newRequestId } from './broker.ts'
import { type ApprovalRequest, approvalRequested, approvalResolved, listApprovals, resolveApproval } from './contract.ts'
import { type InteractionEnd, InteractionKinds, type InteractionSource } from './kind.ts'
import { endRecord, eventsOf, openRequests, requestRecord } from './records.ts'
import { Interactions } from './service.ts'

/** Paths of requests to the human. */
const looks = /^\/api\/v1\/sessions\/\{session_id\}\/(?:approvals|questions)(?:\/|$)/

export default definePack({
  name: 'interactions',
  description: 'Requests to the human: a broker for all kinds, and approvals',
  area: 'Agent',
  needs: { sessions: Sessions },
  optional: { histories: Histories },
  provides: [Interactions],
  config: Type.Object({
    approval_ttl_ms: milliseconds({
      minimum: 1,
      default: 86_400_000,
      description: 'an unanswered approval is withdrawn after this time'
    }),
    unattended: oneOf(['wait', 'deny', 'fail'], {
      default: 'wait',
      description: 'what becomes of requests while no client is there: they wait, end without consent, or fail their turn'
    }),
    unattended_grace_ms: milliseconds({
      minimum: 0,
      default: 60_000,
      description: 'so long no client may be there before `unattended` counts'
    })
  }),
  setup(ctx, { sessions, histories }) {
    const emitRequested = ctx.event(approvalRequested)
    const emitResolved = ctx.event(approvalResolved)
    const source: InteractionSource = {
      kind: approvals,
      ttl_ms: ctx.config.approval_ttl_ms,
      tell({ type, payload }, target) {
        // The kind made the payload for this type.
        if (type === approvalRequested.type) emitRequested(payload as Static<typeof ApprovalRequest>, target)
        else emitResolved(payload as Static<typeof approvalResolved.payload>, target)
      }
    }
    ctx.contribute(InteractionKinds, source)

    const kinds = ctx.collect(InteractionKinds)
    const targetOf = (agent: AgentHost): EventTarget => ({ session_id: agent.session.id, subject: agent.id })
    const events = (record: Parameters<typeof eventsOf>[0]) =>
      askEach(
        kinds
          .entries()
          .concat(kinds.away())
          .filter(({ item }) => item.kind.name === record.kind)
          .slice(0, 1), // of two of one name the first counts
        ctx,
        ({ kind }) => `interaction kind ${kind.name}`,
        source => eventsOf(record, [source])
      )
    /** Its pack may have been swapped since the event was made. */
    const sourceOf = ({ kind: { name } }: InteractionSource) => kinds.items().find(({ kind }) => kind.name === name)
    ctx.contribute(RecordEvents, {
      records: recordTypes(requestRecord, endRecord),
      events,
      // What `events` made comes back.
      tell(agent, event) {
        const { from, id, end } = event as ReturnType<typeof events>[number]
        const { work } = agent.session
        if (!end && !agent.session.peek(brokers)?.isOpen(id)) work.pendingLeft(id, from.kind.pending)
        if (end?.how === 'answered') work.pendingLeft(id, undefined)
        sourceOf(from)?.tell(event, targetOf(agent))
        if (end) work.pendingLeft(id, undefined)
      },
      away: event => {
        const { from } = event as ReturnType<typeof events>[number]
        return sourceOf(from) === undefined && kinds.away().some(({ item }) => item.kind.name === from.kind.name)
      }
    })
    ctx.contribute(HistoryStates, openRequests)

    const { unattended, unattended_grace_ms: grace_ms } = ctx.config
    const ports: BrokerPorts = {
      ...(unattended === 'wait'
        ? {}
        : { unattended: { fail: unattended === 'fail', grace_ms, here: ({ id }) => ctx.streams.subscribers(id) > 0 } }),
      log: ctx.log,
      now: () => ctx.now(),
      newId: newRequestId,
      async record(agent, record) {
        const history = await histories()?.of(agent)
        if (history) return history.write(record)
        const made = events({ time: ctx.now().getTime(), ...record })
        return { tell: () => made.forEach(event => void event.from.tell(event, targetOf(agent))) }
      }
    }
    // The last to be registered is the first to end: what is open is withdrawn while its kind can tell it.
    const brokers = defineSlot<Broker, Session>('interactions', session => new Broker(session, ports))
    ctx.slot(brokers)
    kinds.onChange(() => {
      const there = new Set(kinds.items().map(source => source.kind))
      for (const session of sessions.allLoaded()) void session.peek(brokers)?.withdraw(kind => !there.has(kind))
    })

    const seen = (session_id: string) => sessions.loaded(session_id)?.peek(brokers)?.seen()
    if (unattended !== 'wait') {
      ctx.tap(ctx.hooks.subscribed, seen)
      // Who asks what is open, or answers it, is there, too.
      ctx.tap(ctx.hooks.afterRequest, ({ url }, { route }) => {
        if (route && looks.test(route.path)) seen(decodeURIComponent(url.split('/')[4] ?? ''))
      })
    }

    const openOf = (session: Session) => session.peek(brokers)?.open() ?? []
    const interactions: Interactions = {
      async ask(kind, ask, signal) {
        try {
          const source = kinds.items().find(each => each.kind === kind)
          if (!source) return { how: 'withdrawn' }
          // The broker answers with what the kind's own answers are.
          return (await ask.agent.session.get(brokers).ask(source, ask, signal)) as InteractionEnd<Static<(typeof kind)['answer']>>
        } catch (error) {
          ctx.log.error({ err: error, kind: kind.name }, 'the user could not be asked')
          return { how: 'withdrawn' }
        }
      },
      pending: (session, kind) =>
        openOf(session).flatMap(open => (open.kind === kind ? [open.request as Static<(typeof kind)['request']>] : [])),
      waiting: (session, pending) => openOf(session).flatMap(open => (open.kind.pending === pending ? [open.request] : [])),
      find(session, kind, id) {
        session.assertWritable()
        return session.get(brokers).find(kind, id).request as Static<(typeof kind)['request']>
      },
      answer(session, kind, id, answer) {
        session.assertWritable()
        return session.get(brokers).answer(kind, id, answer)
      },
      async recover(agent) {
        try {
          const history = await histories()?.of(agent)
          if (!history) return []
          const alive = new Set(openOf(agent.session).map(({ id }) => id))
          const dead = (await history.track(openRequests)).value.filter(({ id }) => !alive.has(id))
          if (dead.length > 0) await history.append(...dead.map(({ kind, id }) => endRecord.of({ kind, id, how: 'withdrawn' })))
          return dead.flatMap(({ call }) => call ?? [])
        } catch (error) {
          ctx.log.error({ err: error, session_id: agent.session.id }, 'requests of an earlier process could not be closed')
          return []
        }
      }
    }
    ctx.provide(Interactions, interactions)

    ctx.route(listApprovals, async ({ params }) => {
      const session = await sessions.load(params.session_id)
      return { items: [...interactions.pending(session, approvals)] }
    })
    ctx.route(resolveApproval, async ({ params: { session_id, approval_id }, body }) => {
      const session = await sessions.load(session_id)
      const { scope, ...answer } = body
      const kept = answer.decision === 'approved' && scope ? { ...answer, scope } : answer
      try {
        return { resolved: true as const, resolved_at: await interactions.answer(session, approvals, approval_id, kept) }
      } catch (error) {
        throw within('body', error)
      }
    })
  }
})
