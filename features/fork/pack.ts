/** Wires forks and children. */
import { definePack } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { Histories } from '../history/index.ts'
import { Llm } from '../llm/index.ts'
import { Sessions } from '../sessions/index.ts'
import { ToolPolicies } from '../tools/index.ts'
import { createChild, forkSession, openSide } from './contract.ts'
import { fork } from './fork.ts'
import { isSide, openSideConversation } from './side.ts'

export default definePack({
  name: 'fork',
  version: '1.0.0',
  description: 'Copies sessions into new ones (forks and children) and conversations into side conversations',
  area: 'Sessions',
  needs: { sessions: Sessions, agents: Agents, histories: Histories, llm: Llm },
  setup(ctx, ports) {
    ctx.route(forkSession, async ({ params: { session_id }, body }) => {
      const source = await ports.sessions.load(session_id)
      const { title = `Fork: ${source.state.title}`, metadata = {} } = body ?? {}
      return await fork(ports, source, { title, metadata })
    })
    ctx.route(createChild, async ({ params: { session_id }, body }) => {
      const source = await ports.sessions.load(session_id)
      const { title = `Child: ${source.state.title}`, metadata = {} } = body
      return await fork(ports, source, { title, metadata, child: true })
    })
    ctx.route(openSide, async ({ params: { session_id } }) => {
      const side = await openSideConversation(ports, await ports.sessions.load(session_id))
      return { agent_id: side.id }
    })
    ctx.contribute(ToolPolicies, {
      name: 'side-conversation',
      refuses: agent => (isSide(agent) ? 'No tools run in a side conversation. Answer from what you know.' : undefined),
      basis: agent => [isSide(agent)]
    })
  }
})
