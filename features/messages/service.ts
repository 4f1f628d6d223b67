/** What other packs get from messages: a session as its clients see it. */
import { serviceToken } from '../../kernel/index.ts'
import type { MessageQuery } from '../history/index.ts'
import type { MessageObject, SessionStatus } from './contract.ts'

/** Both load a cold session and throw SessionMissing. */
export interface SessionViews {
  /** The main agent's history, newest first. */
  messages(session_id: string, query: MessageQuery): Promise<{ readonly items: MessageObject[]; readonly has_more: boolean }>
  status(session_id: string): Promise<SessionStatus>
}
export const SessionViews = serviceToken<SessionViews>('session-views')
