/** Warnings of a session (contract 2, Warning). */
import { defineRoute, oneOf, Type } from '../../kernel/index.ts'
import { SessionMissing } from '../sessions/index.ts'

export const Warning = Type.Object({
  code: Type.String({ description: '`agents-md-oversized`' }),
  message: Type.String(),
  severity: oneOf(['info', 'warning', 'error'])
})

export const readWarnings = defineRoute({
  method: 'GET',
  path: '/api/v1/sessions/{session_id}/warnings',
  summary: 'Problems of the instruction files of a session',
  params: Type.Object({ session_id: Type.String() }),
  data: Type.Object({ warnings: Type.Array(Warning) }),
  errors: [SessionMissing]
})
