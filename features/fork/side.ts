/** Side conversations: an agent that begins with what the main one sees, answers questions, and leaves everything as it is. */
import { join } from 'node:path'
import { makeDirs } from '../../kernel/index.ts'
import type { Llm } from '../llm/index.ts'
import type { AgentHost, Session } from '../sessions/index.ts'
import { copyFiles } from './copy-files.ts'
import type { ForkPorts } from './fork.ts'

const reminder = `<system-reminder>
This is a side conversation beside the main one, of which you see what happened so far. Answer from what you know. No tools run here; nothing that is said here gets
into the main conversation, which goes on by itself.
</system-reminder>`

export interface SidePorts extends Omit<ForkPorts, 'sessions'> {
  readonly llm: Llm
}

export const isSide = (agent: AgentHost): boolean => agent.record.labels?.side === 'btw'

/** Throws what keeps the main agent's model from being used (40110 to 40113). A turn of the main agent goes on. */
export async function openSideConversation({ agents, histories, llm }: SidePorts, session: Session): Promise<AgentHost> {
  session.assertWritable()
  if (!session.agent('main')) await llm.lookUp() // a side conversation that is refused must not bring a main agent
  const main = await agents.main(session.id)
  main.model()
  const { model, thinking, profile } = main.settings()
  // Whoever hears of it reads its journal at once.
  const side = await session.createAgent({ type: 'sub', parent_agent_id: main.host.id, labels: { side: 'btw' } }, async dir => {
    await histories.copyContext(main.host, dir)
    await copyFilesOf(main.host.dir, dir) // behind the messages: what they refer to is on disk by now
  })
  const engine = await agents.of(side)
  await engine.configure({
    ...(model === undefined ? {} : { model }),
    ...(thinking === undefined ? {} : { thinking }),
    ...(profile === undefined ? {} : { profile })
  })
  await engine.inject({ content: reminder, origin: { kind: 'injection', variant: 'btw' }, admission: 'activeOrNextTurn' })
  return side
}

/** Media of its messages, and the uploads that they refer to. */
async function copyFilesOf(from: string, to: string): Promise<void> {
  for (const name of ['blobs', 'attachments']) {
    await makeDirs(join(to, name), 0o700)
    await copyFiles(join(from, name), join(to, name)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== 'ENOENT') throw error // it has none
    })
  }
}
