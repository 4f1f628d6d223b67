/** Wires undo: its route. */
import { definePack } from '../../kernel/index.ts'
import { Agents } from '../agent/index.ts'
import { followUndo, Histories, UndoFollowers } from '../history/index.ts'
import { Messages } from '../messages/index.ts'
import { SessionViews } from '../session-views/index.ts'
import { Sessions } from '../sessions/index.ts'
import { UndoUnavailable, undoSession } from './contract.ts'
import { refusal, undo } from './undo.ts'

export default definePack({
  name: 'undo',
  version: '1.0.0',
  description: 'Takes back the newest turns of the user, with what follows from them',
  area: 'Sessions',
  needs: { sessions: Sessions, agents: Agents, histories: Histories, messages: Messages, views: SessionViews },
  errors: [UndoUnavailable],
  setup(ctx, { sessions, agents, histories, messages, views }) {
    const followers = ctx.collect(UndoFollowers)
    ctx.route(undoSession, async ({ params: { session_id }, body }) => {
      const { count = 1, page_size: size = 50 } = body ?? {}
      const session = await sessions.load(session_id)
      session.assertWritable()
      const main = session.agent('main')
      if (!main) throw refusal(count, { turns: [], end: 'beginning' })
      await undo(await agents.of(main), await histories.of(main), count, from => followUndo(followers.entries(), ctx, main, from))
      return { messages: await messages.page(session_id, { size }), status: await views.status(session_id) }
    })
  }
})
