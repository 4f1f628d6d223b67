/** Messages that are no answer: of users, and of the program for the model. */
import { asData, type CoreRecord, type Origin, type WirePart } from '../history/index.ts'
import type { Notice } from './notices.ts'

export function userMessage(turn_id: number, content: readonly WirePart[] | undefined, origin: Origin, prompt_id?: string): CoreRecord {
  return {
    type: 'message',
    role: 'user',
    turn_id,
    origin,
    ...(content ? { content } : {}),
    ...(prompt_id === undefined ? {} : { id: prompt_id, prompt_id })
  }
}

/** A notice, once its turn or step is there. */
export function noticeMessage(
  turn_id: number,
  { notice_id, content, origin }: Pick<Notice, 'notice_id' | 'content' | 'origin'>
): CoreRecord {
  return { type: 'message', role: 'user', turn_id, origin, content, id: notice_id }
}

/** A text of the program for the model, in the history as a message of origin `injection`. What others said in it does not end it. */
export function reminder(turn_id: number, variant: string, text: string, facts: Readonly<Record<string, unknown>> = {}): CoreRecord {
  const content = [{ type: 'text', text: `<system-reminder>\n${asData(text)}\n</system-reminder>` }]
  return userMessage(turn_id, content, { ...facts, kind: 'injection', variant })
}

/** What a hook says beside a prompt, or in place of a turn (`blocked`). */
export function hookResult(
  event: string,
  text: string,
  { turn_id, blocked }: { readonly turn_id?: number; readonly blocked?: true }
): CoreRecord {
  return {
    type: 'message',
    role: blocked ? 'assistant' : 'user',
    ...(turn_id === undefined ? {} : { turn_id }),
    origin: { kind: 'hook_result', event, ...(blocked ? { blocked } : {}) },
    ...(blocked ? { blocked } : {}),
    content: [{ type: 'text', text }]
  }
}
