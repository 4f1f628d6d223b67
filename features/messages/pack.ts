/** Wires messages, snapshot and status. */
import { AppError, binary, definePack, invalid } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { passive, Uploads } from '../files/index.ts'
import { Histories, type History, type HistoryMessage } from '../history/index.ts'
import { approvals, Interactions } from '../interactions/index.ts'
import { Llm, totalCost } from '../llm/index.ts'
import { Permissions } from '../permissions/index.ts'
import { Sessions } from '../sessions/index.ts'
import type { Subagent } from '../subagents/index.ts'
import {
  listMessages,
  MediaSessionMissing,
  MediumMissing,
  MessageMissing,
  type MessageObject,
  readMedia,
  readMessage,
  readSnapshot,
  readStatus
} from './contract.ts'
import { SessionViews } from './service.ts'
import { messageObject, startingMessage } from './view.ts'

const snapshotMessages = 100

export default definePack({
  name: 'messages',
  version: '1.0.0',
  description: 'Message history, snapshot and status of a session',
  area: 'Sessions',
  needs: { sessions: Sessions, histories: Histories, agents: Agents },
  optional: { interactions: Interactions, permissions: Permissions, llm: Llm, uploads: Uploads },
  provides: [SessionViews],
  errors: [MessageMissing],
  setup(ctx, { sessions, histories, agents, interactions, permissions, llm, uploads }) {
    /** A loaded session with its main agent and history; both undefined before the first prompt: reading creates nothing. */
    const open = async (session_id: string) => {
      const session = await sessions.load(session_id)
      const host = session.agent('main')
      return { session, host, agent: host && (await agents.of(host)), history: host && (await histories.of(host)) }
    }

    /** Messages as clients see them: media inline. */
    const objects = async (history: History | undefined, found: readonly HistoryMessage[], session_id: string) => {
      const shown: MessageObject[] = []
      for (const message of found) {
        const content = (await history?.inline(message.content)) ?? message.content
        shown.push(messageObject({ ...message, content }, session_id))
      }
      return shown
    }

    const views: SessionViews = {
      async messages(session_id, query) {
        const { history } = await open(session_id)
        const page = await history?.messages.page(query)
        return { items: (await objects(history, page?.messages ?? [], session_id)).reverse(), has_more: page?.has_more ?? false }
      },
      async status(session_id) {
        const { session, host, agent } = await open(session_id)
        const usage = agent?.usage()
        const model = agent?.settings().model
        const max = usage?.max_context_tokens
        const context_tokens = usage?.context_tokens ?? 0
        const last_failure = agent?.lastFailure()
        return {
          ...(agents.facts(host, 'status') as { plan_mode: boolean; swarm_mode: boolean }), // in tests the reply is held against its shape
          busy: session.work.busy,
          ...(model === undefined ? {} : { model }),
          thinking_level: agent?.effort() ?? '',
          permission: (await (host ? permissions()?.mode(host) : permissions()?.defaultMode())) ?? 'manual',
          context_tokens,
          ...(max === undefined ? {} : { max_context_tokens: max, context_usage: Math.min(1, context_tokens / max) }),
          ...(last_failure && { last_failure })
        }
      }
    }
    ctx.provide(SessionViews, views)

    ctx.route(listMessages, async ({ params: { session_id }, query }) => {
      if (query.before_id !== undefined && query.after_id !== undefined) {
        throw invalid([{ path: 'query.before_id', message: 'before_id and after_id exclude each other' }])
      }
      const { before_id: before, after_id: after, page_size: size = 50, role } = query
      const { items, has_more } = await views.messages(session_id, { before, after, size })
      return { items: items.filter(message => role === undefined || message.role === role), has_more }
    })

    ctx.route(readMessage, async ({ params: { session_id, message_id } }) => {
      const { history } = await open(session_id)
      const found = await history?.messages.find(message_id)
      if (!found) throw new AppError(MessageMissing)
      return (await objects(history, [found], session_id))[0] as MessageObject
    })

    ctx.route(readSnapshot, async ({ params: { session_id } }) => {
      const { session, host, agent, history } = await open(session_id)
      const opened = await ctx.streams.open(session_id)
      // One tick from here to the next await: position, running turn and everything else agree.
      const at = ctx.streams.watermark(session_id) ?? opened
      const in_flight = agent?.inFlight()
      const last_failure = agent?.lastFailure()
      const starting = startingMessage(history, agent?.active()?.prompt_id)
      const page = history?.messages.page({ size: snapshotMessages - starting.length })
      const usage = agent?.usage()
      const cost = totalCost(history?.usageByModel() ?? {}, alias => llm()?.price(alias))
      const object = sessions.object(session_id, {
        model: agent?.settings().model ?? '',
        usage: {
          input_tokens: usage?.total.inputOther ?? 0,
          output_tokens: usage?.total.output ?? 0,
          cache_read_tokens: usage?.total.inputCacheRead ?? 0,
          cache_creation_tokens: usage?.total.inputCacheCreation ?? 0,
          context_tokens: usage?.context_tokens ?? 0,
          ...(usage?.max_context_tokens === undefined ? {} : { context_limit: usage.max_context_tokens }),
          ...(cost === undefined ? {} : { total_cost_usd: cost })
        }
      })
      const pending_approvals = [...(interactions()?.pending(session, approvals) ?? [])]
      const pending_questions = [...(interactions()?.waiting(session, 'question') ?? [])]
      const facts = agents.facts(host, 'snapshot')
      await ctx.streams.flushed(session_id)
      return {
        ...facts,
        as_of_seq: at.seq,
        epoch: at.epoch,
        session: await object,
        messages: {
          items: await objects(history, [...((await page)?.messages ?? []), ...starting], session_id),
          has_more: (await page)?.has_more ?? false
        },
        in_flight_turn: in_flight ? { ...in_flight, running_tools: [...in_flight.running_tools] } : null,
        subagents: facts.subagents as Subagent[], // of the pack that owns them; in tests the reply is held against its shape
        pending_approvals,
        pending_questions,
        ...(last_failure && { last_failure })
      }
    })

    ctx.route(readMedia, async ({ params: { session_id, file_id } }) => {
      if (!(await sessions.exists(session_id))) throw new AppError(MediaSessionMissing)
      const medium = await histories.medium(await sessions.load(session_id), file_id)
      const staged = medium ? undefined : await uploads()?.find(file_id)
      const { file, media_type, size } = medium ?? staged ?? {}
      if (file === undefined || media_type === undefined) throw new AppError(MediumMissing)
      const name = (medium?.attachment ?? staged)?.name
      return binary({
        file,
        type: media_type,
        ...(name === undefined ? {} : { filename: name }),
        disposition: /^(?:image|video|audio)\//.test(media_type) || !name ? 'inline' : 'attachment',
        etag: `"${session_id}-${file_id}-${size}"`,
        conditional: false,
        headers: passive
      })
    })

    ctx.route(readStatus, ({ params: { session_id } }) => views.status(session_id))
  }
})
