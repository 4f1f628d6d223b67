/** Wire shapes of forks and children (contract 2, session actions). */
import { defineRoute, Type } from '../../kernel/index.ts'
import { CredentialRejected, ModelUnresolved, NoCredential, NoProvider } from '../llm/index.ts'
import { SessionBusy, SessionMissing, SessionObject } from '../sessions/index.ts'

const params = Type.Object({ session_id: Type.String() })
const Copy = Type.Object({
  title: Type.Optional(Type.String({ minLength: 1 })),
  metadata: Type.Optional(Type.Record(Type.String(), Type.Unknown(), { description: 'merged over that of the source' }))
})
const item = '/api/v1/sessions/{session_id}' as const

export const forkSession = defineRoute({
  method: 'POST',
  path: `${item}:fork`,
  summary: 'Copy a session into a new one of the same workspace',
  params,
  body: Type.Optional(Copy),
  data: SessionObject,
  errors: [SessionMissing, SessionBusy]
})

export const createChild = defineRoute({
  method: 'POST',
  path: `${item}/children`,
  summary: 'Copy a session into a new one that is its child',
  params,
  body: Copy,
  data: SessionObject,
  errors: [SessionMissing, SessionBusy]
})

/** A side conversation: an agent that knows what the main one knows, and runs no tools. Prompts go to its `agent_id`. */
export const openSide = defineRoute({
  method: 'POST',
  path: `${item}:btw`,
  summary: 'Open a side conversation',
  params,
  data: Type.Object({ agent_id: Type.String() }),
  errors: [SessionMissing, SessionBusy, NoProvider, NoCredential, CredentialRejected, ModelUnresolved]
})
