/** Questions as a kind of request to the human. */
import type { Static } from '../../kernel/index.ts'
import { defineInteraction, type InteractionAsk } from '../interactions/index.ts'
import { itemsOf } from './answers.ts'
import {
  type AskArguments,
  QuestionAnswer,
  QuestionExpired,
  QuestionMissing,
  QuestionRequest,
  questionAnswered,
  questionDismissed,
  questionRequested
} from './contract.ts'

export interface QuestionAsk extends InteractionAsk {
  readonly tool_call_id?: string
  readonly questions: AskArguments['questions']
}

export const questions = defineInteraction({
  name: 'question',
  pending: 'question',
  request: QuestionRequest,
  answer: QuestionAnswer,
  missing: QuestionMissing,
  expired: QuestionExpired,
  describe: ({ turn_id, tool_call_id, questions }: QuestionAsk, { id, session_id, created_at, expires_at }) => ({
    question_id: id,
    session_id,
    ...(turn_id === undefined ? {} : { turn_id }),
    ...(tool_call_id === undefined ? {} : { tool_call_id }),
    questions: itemsOf(questions),
    created_at,
    ...(expires_at === undefined ? {} : { expires_at })
  }),
  asked: request => ({ type: questionRequested.type, payload: request }),
  ended(question_id, end, at) {
    const instant = at.toISOString()
    if (end.how === 'answered' && 'answers' in end.answer) {
      const payload: Static<typeof questionAnswered.payload> = { question_id, answers: end.answer.answers, resolved_at: instant }
      return { type: questionAnswered.type, payload }
    }
    return { type: questionDismissed.type, payload: { question_id, dismissed_at: instant } }
  }
})
