/** Wire of generated titles (contract 2, POST title/generate). */
import { defineRoute, errorSpec, named, oneOf, Type } from '../../kernel/index.ts'
import { SessionBusy, SessionMissing } from '../sessions/index.ts'

export const TitleUnavailable = errorSpec('title_unavailable', 40923, 'no title can be generated')

export const sources = ['user_prompts', 'first_turn', 'digest'] as const
export type TitleSource = (typeof sources)[number]

export const generateTitle = defineRoute({
  method: 'POST',
  path: '/api/v1/sessions/{session_id}/title/generate',
  summary: 'Let the managed provider make a title',
  description: 'Needs the managed login and the experimental flag auto_session_title.',
  operationId: 'generateSessionTitle',
  params: Type.Object({ session_id: Type.String() }),
  body: Type.Optional(
    named(
      'GenerateTitleRequest',
      Type.Object({
        force: Type.Optional(Type.Boolean({ description: 'also in place of a title that was chosen or generated; default false' })),
        source: Type.Optional(oneOf(sources, { description: 'what the title is made of; default user_prompts' }))
      })
    )
  ),
  data: Type.Object({ title: Type.String() }),
  errors: [SessionMissing, SessionBusy, TitleUnavailable]
})
