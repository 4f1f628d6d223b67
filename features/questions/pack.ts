/** Wires questions: the kind of request with its events, three routes, the tool. */
import { definePack, milliseconds, type Static, Type } from '../../kernel/index.ts'
import { InteractionKinds, Interactions } from '../interactions/index.ts'
import { Sessions } from '../sessions/index.ts'
import { Tasks } from '../tasks/index.ts'
import { Tools } from '../tools/index.ts'
import { textsOf } from './answers.ts'
import {
  answerQuestion,
  dismissQuestion,
  listQuestions,
  type QuestionRequest,
  questionAnswered,
  questionDismissed,
  questionRequested
} from './contract.ts'
import { questions } from './kind.ts'
import { createAskUserQuestion } from './tool.ts'

export default definePack({
  name: 'questions',
  description: 'Questions of the agent to the user: AskUserQuestion',
  area: 'Agent',
  needs: { interactions: Interactions, sessions: Sessions },
  optional: { tasks: Tasks },
  config: Type.Object({
    question_ttl_ms: milliseconds({
      minimum: 1,
      default: 86_400_000,
      description: 'an unanswered question is withdrawn after this time'
    })
  }),
  setup(ctx, { interactions, sessions, tasks }) {
    const emitRequested = ctx.event(questionRequested)
    const emitAnswered = ctx.event(questionAnswered)
    const emitDismissed = ctx.event(questionDismissed)
    ctx.contribute(InteractionKinds, {
      kind: questions,
      ttl_ms: ctx.config.question_ttl_ms,
      tell({ type, payload }, target) {
        // The kind made the payload for this type.
        if (type === questionRequested.type) emitRequested(payload as QuestionRequest, target)
        else if (type === questionAnswered.type) emitAnswered(payload as Static<typeof questionAnswered.payload>, target)
        else emitDismissed(payload as Static<typeof questionDismissed.payload>, target)
      }
    })
    ctx.on(questionRequested, ({ payload: { session_id, questions: items } }) => {
      if (ctx.streams.subscribers(session_id) > 0) return
      const where = `GET /api/v1/sessions/${session_id}/questions?status=pending`
      ctx.operator.info({ session_id }, `${session_id}: asks a question (${items[0]?.question}), and no client listens; ${where} shows it`)
    })
    ctx.contribute(Tools, createAskUserQuestion({ ask: (ask, signal) => interactions.ask(questions, ask, signal), tasks }))

    ctx.route(listQuestions, async ({ params }) => {
      const session = await sessions.load(params.session_id)
      return { items: [...interactions.pending(session, questions)] }
    })
    ctx.route(answerQuestion, async input => {
      const { session_id, question_id } = input.params
      const session = await sessions.load(session_id)
      const { questions: items } = interactions.find(session, questions, question_id)
      const { answers, method, note } = input.body
      const answer = { answers: textsOf(items, answers), ...(method ? { method } : {}), ...(note ? { note } : {}) }
      return { resolved: true as const, resolved_at: await interactions.answer(session, questions, question_id, answer) }
    })
    ctx.route(dismissQuestion, async ({ params: { session_id, question_id } }) => {
      const session = await sessions.load(session_id)
      const answer = { dismissed: true as const }
      return { dismissed: true as const, dismissed_at: await interactions.answer(session, questions, question_id, answer) }
    })
  }
})
