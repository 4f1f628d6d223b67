/** Copies a session into a new one, which goes its own way from there. */
import { join } from 'node:path'
import { AppError } from '../../kernel/index.ts'
import type { Agent, Agents } from '../agent/index.ts'
import { type Histories, sessionForked } from '../history/index.ts'
import { type Session, SessionBusy, type SessionCopy, type SessionObject, type Sessions } from '../sessions/index.ts'
import { copyFiles } from './copy-files.ts'

export interface ForkPorts {
  readonly sessions: Sessions
  readonly agents: Agents
  readonly histories: Histories
}

/**
 * Throws SessionBusy (40901) while a turn of any agent runs or waits, and SessionMissing when the source is deleted meanwhile. Prompts that come
 * meanwhile wait.
 */
export async function fork(ports: ForkPorts, source: Session, copy: SessionCopy): Promise<SessionObject> {
  source.assertWritable()
  const { sessions, agents, histories } = ports
  const hosts = source.agents()
  const open = await Promise.all(hosts.filter(host => agents.isOpen(host)).map(host => agents.of(host)))
  return await holding(open, () => {
    if (source.work.activeTurns().length > 0) throw new AppError(SessionBusy, { message: 'a turn of the session runs' })
    return sessions.copy(source, copy, async dir => {
      const forked = sessionForked.of({ from: source.id })
      try {
        // Journals first: what they refer to was on disk before them.
        for (const host of hosts) await histories.copy(host, join(dir, 'agents', host.id), forked)
        await copyFiles(source.dir, dir)
      } finally {
        source.assertWritable() // deleted meanwhile, or another server's: what was there to copy may not have been all of it
      }
    })
  })
}

/** No turn of these agents begins while `work` runs. */
async function holding<T>([first, ...others]: readonly Agent[], work: () => Promise<T>): Promise<T> {
  return first ? await first.exclusive(() => holding(others, work), { brief: true }) : await work()
}
