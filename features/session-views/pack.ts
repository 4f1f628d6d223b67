/** Wires the snapshot and the status of a session. */
import { definePack } from '../../kernel/index.ts'
import { Agents, type InFlightTurn } from '../agent/index.ts'
import { Histories } from '../history/index.ts'
import { approvals, Interactions } from '../interactions/index.ts'
import { Llm, totalCost, windowOf } from '../llm/index.ts'
import { Messages } from '../messages/index.ts'
import { Permissions } from '../permissions/index.ts'
import { Sessions } from '../sessions/index.ts'
import type { Subagent } from '../subagents/index.ts'
import { readSnapshot, readStatus } from './contract.ts'
import { SessionViews } from './service.ts'

const snapshotMessages = 100
/** Writes that a snapshot waits for, one after the other, while an agent never pauses. */
const writesAwaited = 20

export default definePack({
  name: 'session-views',
  version: '1.0.0',
  description: 'Snapshot and status of a session',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories, agents: Agents },
  optional: { messages: Messages, interactions: Interactions, permissions: Permissions, llm: Llm },
  provides: [SessionViews],
  setup(ctx, { sessions, histories, agents, messages, interactions, permissions, llm }) {
    /** A loaded session with its main agent and history; both undefined before the first prompt: reading creates nothing. */
    const open = async (session_id: string) => {
      const session = await sessions.load(session_id)
      const host = session.agent('main')
      return { session, host, agent: host && (await agents.of(host)), history: host && (await histories.of(host)) }
    }

    /** The window of the default model, which the first prompt of a session will have. */
    const defaultWindow = () => {
      try {
        const model = llm()?.resolve()
        return model && windowOf(model)
      } catch {
        return undefined // the prompt that needs a model reports what is missing
      }
    }

    const views: SessionViews = {
      async status(session_id) {
        const { session, host, agent } = await open(session_id)
        const usage = agent?.usage()
        const model = agent?.settings().model
        const max = usage ? usage.max_context_tokens : defaultWindow()
        const context_tokens = usage?.context_tokens ?? 0
        const last_failure = agent?.lastFailure()
        return {
          ...(agents.facts(host ?? session, 'status') as { plan_mode: boolean; swarm_mode: boolean }), // in tests the reply is held against its shape
          busy: session.work.busy,
          ...(model === undefined ? {} : { model }),
          thinking_level: agent?.effort() ?? '',
          permission: (await (host ? permissions()?.mode(host) : permissions()?.defaultMode(session))) ?? 'manual',
          context_tokens,
          ...(max === undefined ? {} : { max_context_tokens: max, context_usage: Math.min(1, context_tokens / max) }),
          ...(last_failure && { last_failure })
        }
      }
    }
    ctx.provide(SessionViews, views)
    ctx.route(readStatus, ({ params: { session_id } }) => views.status(session_id))

    ctx.route(readSnapshot, async ({ params: { session_id } }) => {
      const { session, host, agent, history } = await open(session_id)
      const opened = await ctx.streams.open(session_id)
      // What is being written now would be in the snapshot, and told behind it once more.
      for (let round = 0, writing = history?.writing(); writing && round < writesAwaited; round++) {
        await writing
        writing = history?.writing()
      }
      // One tick from here to the next await: position, running turn and everything else agree.
      const at = ctx.streams.watermark(session_id) ?? opened
      const in_flight = agent?.inFlight()
      const last_failure = agent?.lastFailure()
      const page = history && messages()?.newest(history, session_id, snapshotMessages, agent?.active()?.prompt_id)
      const usage = agent?.usage()
      const max = usage ? usage.max_context_tokens : defaultWindow()
      const cost = totalCost(history?.usageByModel() ?? {}, alias => llm()?.price(alias))
      const object = sessions.object(session_id, {
        model: agent?.settings().model ?? '',
        usage: {
          input_tokens: usage?.total.inputOther ?? 0,
          output_tokens: usage?.total.output ?? 0,
          cache_read_tokens: usage?.total.inputCacheRead ?? 0,
          cache_creation_tokens: usage?.total.inputCacheCreation ?? 0,
          context_tokens: usage?.context_tokens ?? 0,
          turn_count: usage?.turn_count ?? 0,
          ...(max === undefined ? {} : { context_limit: max }),
          ...(cost === undefined ? {} : { total_cost_usd: cost })
        }
      })
      const pending_approvals = [...(interactions()?.pending(session, approvals) ?? [])]
      const pending_questions = [...(interactions()?.waiting(session, 'question') ?? [])]
      const facts = agents.facts(host ?? session, 'snapshot')
      const [shown, newest] = await Promise.all([object, page, ctx.streams.flushed(session_id)])
      return {
        ...facts,
        as_of_seq: at.seq,
        epoch: at.epoch,
        session: shown,
        messages: newest ?? { items: [], has_more: false },
        in_flight_turn: in_flight ? inFlightObject(in_flight) : null,
        subagents: facts.subagents as Subagent[], // of the pack that owns them; in tests the reply is held against its shape
        pending_approvals,
        pending_questions,
        ...(last_failure && { last_failure })
      }
    })
  }
})

function inFlightObject({ running_tools, steered_prompts, ...turn }: InFlightTurn) {
  const steered = steered_prompts?.map(({ prompt_id, content }) => ({ prompt_id, content: [...content] }))
  return { ...turn, running_tools: [...running_tools], ...(steered && { steered_prompts: steered }) }
}
