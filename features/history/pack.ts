/** Wires histories: one journal per agent, opened with its first use. */
import { definePack, defineSlot } from '../../kernel/index.ts'
import type { AgentHost } from '../sessions/index.ts'
import { wireStore } from './contract.ts'
import { AgentHistory } from './history.ts'
import { Histories } from './service.ts'

export default definePack({
  name: 'history',
  version: '1.0.0',
  description: 'Append-only journal of an agent, folded to messages and projected for the model',
  provides: [Histories],
  setup(ctx) {
    const slot = defineSlot('history', async (agent: AgentHost) => {
      const { session } = agent
      const ports = { log: agent.store(wireStore), now: ctx.now, session_id: session.id, writable: session.writable }
      return await new AgentHistory(ports).open()
    })
    ctx.slot(slot)
    ctx.provide(Histories, {
      async of(agent) {
        try {
          return await agent.get(slot)
        } catch (error) {
          await agent.drop(slot) // the next call reads the journal again
          throw error
        }
      }
    })
  }
})
