/** Wires forks and children. */
import { definePack } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { Histories } from '../history/index.ts'
import { Sessions } from '../sessions/index.ts'
import { createChild, forkSession } from './contract.ts'
import { fork } from './fork.ts'

export default definePack({
  name: 'fork',
  version: '1.0.0',
  description: 'Copies sessions into new ones: forks and children',
  area: 'Sessions',
  needs: { sessions: Sessions, agents: Agents, histories: Histories },
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
  }
})
