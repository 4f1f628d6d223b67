/** Wires histories: one journal per agent, opened with its first use. */
import { definePack, defineSlot, laterPass } from '../../kernel/index.ts'
import { type AgentHost, Sessions } from '../sessions/index.ts'
import { AttachmentsSlot } from './attachments.ts'
import { wireStore } from './contract.ts'
import { copyContext, copyJournal } from './copy.ts'
import { findMedium } from './media.ts'
import { hasPrompt, historyOpener, readStored, wasClosed } from './open.ts'
import { Histories } from './service.ts'

export default definePack({
  name: 'history',
  version: '1.0.0',
  description: 'Append-only journal of an agent: what follows from it for clients and for the model',
  area: 'Sessions',
  needs: { sessions: Sessions }, // journals are closed before the stores of the agents that they lie in
  provides: [Histories],
  setup(ctx, { sessions }) {
    const open = historyOpener(ctx, agent => agent.store(wireStore))
    const slot = defineSlot('history', (agent: AgentHost) => open(agent))
    ctx.slot(slot)
    ctx.slot(AttachmentsSlot)
    const histories: Histories = {
      of: async agent => agent.get(slot),
      stored: (dir, spec, known) => readStored(ctx, ctx.storeAt(wireStore, dir), spec, known),
      medium: findMedium,
      attach: (agent, attachment) => agent.get(AttachmentsSlot).add(attachment),
      wasClosed: agent => wasClosed(ctx, agent, agent.store(wireStore)),
      async copy(agent, dir, ...records) {
        const end = await (await agent.peek(slot))?.recorded()
        const [source, target] = [agent.store(wireStore), ctx.storeAt(wireStore, dir)]
        await copyJournal({ from: agent.dir, to: dir, source, target, end, now: ctx.now }, records)
      },
      async copyContext(agent, dir, ...records) {
        const history = await agent.get(slot)
        const open = () => history.openCalls().map(({ call }) => call.id)
        const before = open()
        const messages = await history.contextMessages()
        const running = [...new Set([...before, ...open()])]
        const given = ctx.streams.watermark(agent.session.id)
        await ctx.streams.flushed(agent.session.id) // a mark that a power failure may overtake is none
        await copyContext({ target: ctx.storeAt(wireStore, dir), messages, running, given, now: ctx.now() }, records)
      },
      hasPrompt: (agent, prompt_id) => hasPrompt(agent.store(wireStore), prompt_id)
    }
    ctx.provide(Histories, histories)
    // Of a swap: what it left untold waits for those who tell it, and not until somebody asks for the agent.
    ctx.background(async signal => {
      await laterPass()
      for (const agent of sessions.allLoaded().flatMap(session => (session.writable ? session.agents() : [])))
        if (!signal.aborted && !(await histories.wasClosed(agent))) await (await histories.of(agent)).recover()
    })
  }
})
