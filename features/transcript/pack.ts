/** Wires transcripts: pages and what is looked for in them, of loaded sessions and of those on disk. */
import { AppError, definePack, invalid } from '../../kernel/index.ts'
import { Agents, assistantDelta, thinkingDelta, toolCallDelta, toolProgress } from '../agent/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { agentCreated, SessionMissing, type SessionState, Sessions } from '../sessions/index.ts'
import {
  PlanMissing,
  readOps,
  readPlans,
  readTranscript,
  readUserMessages,
  subscribeTranscript,
  transcriptOps,
  transcriptReset,
  unsubscribeTranscript
} from './contract.ts'
import { indexState } from './index-state.ts'
import { plansOf, userMessages } from './inputs.ts'
import { liveTranscripts } from './live.ts'
import { sourceOpener } from './open-source.ts'
import { pageOf } from './page.ts'
import { rosterOf } from './roster.ts'
import { shownIn } from './shown.ts'

export default definePack({
  name: 'transcript',
  description: 'What agents did, as a document that clients draw: turns, steps, frames',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories },
  optional: { agents: Agents, llm: Llm },
  setup(ctx, { sessions, histories, agents, llm }) {
    ctx.contribute(HistoryStates, indexState)

    const stateOf = async (session_id: string): Promise<SessionState> => {
      const state = sessions.loaded(session_id)?.state ?? (await sessions.state(session_id))
      if (!state) throw new AppError(SessionMissing)
      return state
    }

    const live = liveTranscripts({
      pack: ctx.name,
      histories,
      agents,
      llm,
      isLoaded: session => sessions.loaded(session.id) === session,
      log: (agent, err) => ctx.log.error({ err, session_id: agent.session.id }, 'the transcript of an agent could not be read'),
      send(connection, session, type, payload) {
        const at = ctx.streams.watermark(session.id)
        // As events begin, for who passes them on to a client of another server.
        const where = { seq: at?.seq ?? 0, ...(at ? { epoch: at.epoch } : {}), session_id: session.id }
        connection.send({ type, ...where, timestamp: ctx.now().toISOString(), volatile: true, payload })
      }
    })
    for (const slot of live.slots) ctx.slot(slot)
    // Who followed transcripts before this pack was swapped has to ask for them again.
    ctx.tap(ctx.hooks.started, () => {
      for (const id of ctx.streams.followed()) ctx.streams.resync(id)
    })
    ctx.outFrame(transcriptReset)
    ctx.outFrame(transcriptOps)
    const agentOf = ({ session_id, subject }: { readonly session_id: string; readonly subject: string }) =>
      sessions.loaded(session_id)?.agent(subject)
    ctx.on(agentCreated, event => {
      const agent = agentOf(event)
      if (agent) live.created(agent)
    })
    for (const [spec, kind] of [[assistantDelta, 'text'] as const, [thinkingDelta, 'thinking'] as const])
      ctx.on(spec, event => {
        const { turnId, delta } = event.payload
        live.peek(agentOf(event))?.streamed(fold => fold.streamed(kind, turnId, delta), delta.length + 128)
      })
    ctx.on(toolCallDelta, event => {
      const { turnId, toolCallId, name, argumentsPart = '' } = event.payload
      live.peek(agentOf(event))?.streamed(fold => fold.calling(turnId, toolCallId, name, argumentsPart))
    })
    ctx.on(toolProgress, event => {
      const { turnId, toolCallId, update } = event.payload
      const { replace: _replace, ...progress } = update
      live.peek(agentOf(event))?.streamed(fold => fold.progressed(turnId, toolCallId, progress))
    })
    ctx.tap(ctx.hooks.event, event => {
      const agent = event.durable ? agentOf(event) : undefined
      if (agent) live.heard(agent)
    })
    ctx.tap(ctx.hooks.subscribed, (session_id, connection) => live.replayed(sessions.loaded(session_id), connection))
    ctx.tap(ctx.hooks.unsubscribed, (session_id, connection) => live.leave(sessions.loaded(session_id), connection))

    ctx.frame(subscribeTranscript, async ({ payload: { session_id, transcript, transcript_since }, connection }) => {
      const answer = { accepted: [] as string[], not_found: [] as string[], resync_required: [], cursors: {} }
      const session = (await sessions.exists(session_id)) ? await sessions.load(session_id) : undefined
      const grades = new Map(Object.entries(transcript))
      const since = new Map(Object.entries(transcript_since ?? {}))
      const found = session !== undefined && (await live.follow(session, connection, grades, since))
      if (!found) return { ...answer, not_found: [session_id] }
      const at = ctx.streams.watermark(session_id)
      return { ...answer, accepted: [session_id], cursors: at ? { [session_id]: at } : {} }
    })
    ctx.frame(unsubscribeTranscript, ({ payload: { session_id, agent_ids }, connection }) => {
      live.leave(sessions.loaded(session_id), connection, agent_ids)
      return { accepted: [session_id], not_found: [], resync_required: [] }
    })

    const open = sourceOpener({ sessions, histories, streamOf: live.streamOf, opened: async agent => agents()?.of(agent) })

    ctx.route(readOps, async ({ params: { session_id }, query: { agent_id, since_seq } }) => {
      await stateOf(session_id)
      const session = sessions.loaded(session_id)
      const agent = session?.agent(agent_id)
      // Of an agent that is not there yet nothing is missing.
      if (!agent) return { agent_id, batches: [], latest_seq: 0, complete: session !== undefined && since_seq === 0 }
      const { batches, ...rest } = (await live.streamOf(agent)).since(since_seq)
      return { agent_id, batches: batches.map(({ seq, ops }) => ({ seq, ops: [...ops] })), ...rest }
    })

    ctx.route(readTranscript, async ({ params: { session_id }, query }) => {
      const { agent_id, before_turn, after_turn, page_size = 20 } = query
      if (before_turn !== undefined && after_turn !== undefined) {
        throw invalid([{ path: 'query.before_turn', message: 'before_turn and after_turn exclude each other' }])
      }
      const state = await stateOf(session_id)
      const source = await open(state, agent_id)
      const { items, has_more } = await pageOf(source, { before_turn, after_turn, page_size })
      return {
        agent_id,
        items: [...items],
        has_more,
        ...shownIn(session_id, source.entities, llm()),
        agents: rosterOf(state),
        pending_interactions: [...source.pending],
        ...(source.seq === undefined ? {} : { seq: source.seq })
      }
    })

    ctx.route(readUserMessages, async ({ params: { session_id }, query }) => {
      const state = await stateOf(session_id)
      const ids = query.agent_id === undefined ? rosterOf(state).map(({ agentId }) => agentId) : [query.agent_id]
      const agents = []
      for (const agent_id of ids) {
        const source = await open(state, agent_id)
        agents.push({ agent_id, messages: await userMessages(source), attachments: source.entities.attachments })
      }
      return { agents }
    })

    ctx.route(readPlans, async ({ params: { session_id }, query: { agent_id, tool_call_id } }) => {
      const plans = await plansOf(await open(await stateOf(session_id), agent_id))
      const wanted = tool_call_id === undefined ? plans : plans.filter(plan => plan.tool_call_id === tool_call_id)
      if (tool_call_id !== undefined && wanted.length === 0) throw new AppError(PlanMissing)
      return { agent_id, plans: wanted }
    })
  }
})
