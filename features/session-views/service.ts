/** What other packs get from session-views: a session as its clients see it. */
import { serviceToken } from '../../kernel/index.ts'
import type { SessionStatus } from './contract.ts'

export interface SessionViews {
  /** As the route shows it. Loads a cold session; throws SessionMissing. */
  status(session_id: string): Promise<SessionStatus>
}
export const SessionViews = serviceToken<SessionViews>('session-views')
