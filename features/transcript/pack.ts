/** Wires transcripts: pages and what is looked for in them, of loaded sessions and of those on disk. */
import { AppError, definePack, invalid } from '../../kernel/index.ts'
import { Histories, HistoryStates } from '../history/index.ts'
import { SessionMissing, type SessionState, Sessions } from '../sessions/index.ts'
import { PlanMissing, readPlans, readTranscript, readUserMessages } from './contract.ts'
import { indexState } from './index-state.ts'
import { plansOf, userMessages } from './inputs.ts'
import { sourceOpener } from './open-source.ts'
import { pageOf } from './page.ts'
import { rosterOf } from './roster.ts'

export default definePack({
  name: 'transcript',
  description: 'What agents did, as a document that clients draw: turns, steps, frames',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories },
  setup(ctx, { sessions, histories }) {
    ctx.contribute(HistoryStates, indexState)

    const stateOf = async (session_id: string): Promise<SessionState> => {
      const state = sessions.loaded(session_id)?.state ?? (await sessions.state(session_id))
      if (!state) throw new AppError(SessionMissing)
      return state
    }

    const open = sourceOpener({ sessions, histories })

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
        ...source.entities,
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
