/** What other packs get from messages: the main agent's history as its clients see it, media inline. */
import { serviceToken } from '../../kernel/index.ts'
import type { History, MessageQuery } from '../history/index.ts'
import type { MessageObject } from './contract.ts'

export interface MessagePage {
  readonly items: MessageObject[]
  readonly has_more: boolean
}

export interface Messages {
  /** Newest first. Loads a cold session; throws SessionMissing. */
  page(session_id: string, query: MessageQuery): Promise<MessagePage>
  /** The newest `size`, oldest first, as they are in the tick of the call; with the message of the prompt `active`, whose turn may not have begun. */
  newest(history: History, session_id: string, size: number, active: string | undefined): Promise<MessagePage>
}
export const Messages = serviceToken<Messages>('messages')
